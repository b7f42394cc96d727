"""The ends of a node's links, and the arithmetic of a round on them, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dtsvm.rounds import State, compare, exchange, local_step, receive, send
from dtsvm.rounds.step import Accuracy, AgentArrays, HalfArrays, RowArrays, tightened
from dtsvm.runtime.agent.node.holdings import Holding
from dtsvm.runtime.agent.node.refuse import News, Told

__all__ = ["End", "Ends", "Key"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Key = tuple[str, str, str]  # my task, the neighbour, its task
ALIKE = 1e-3  # two ends whose penalties differ by less than this share have the same


class End(NamedTuple):
    """One end of a link to another node: where it is in the arrays, and at which ρ."""

    key: Key
    half: int
    penalty: bytes


class Ends:
    """The links of one node's agents.

    Parameters
    ----------
    state : State
        The agents of the node.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.remembered: dict[Key, tuple[Floats, Floats]] = {}  # ρ and z from a checkpoint
        self.halves: dict[Key, int] = {}
        self.ends: list[End] = []
        self._place: dict[str, list[int]] = {}
        self._slots = np.zeros(0, np.int64)
        self._residual = np.zeros(0)  # of each end when it last heard something
        self._restart()

    def _restart(self) -> None:
        shape = (len(self.halves), 2, self.state.n_features + 1)
        self.told, self._heard = np.zeros(shape), np.zeros(shape)
        self._is_heard = np.zeros(len(self.halves), bool)

    # Who is linked

    def relink(self, wanted: dict[Key, bool], holdings: dict[str, Holding]) -> None:
        """Have exactly these links to other nodes; True where the task is the same."""
        gone = [key for key in self.halves if key not in wanted]
        if gone:
            self.state.unlink(np.array([self.halves.pop(key) for key in gone], np.int64))
        for key in sorted(wanted):
            if key in self.halves:
                continue
            half = self.state.link_elsewhere(holdings[key[0]].slot, wanted[key])
            self.halves[key] = half
            if key in self.remembered:
                penalty, edge_state = self.remembered.pop(key)
                self.state.halves["penalty"][half] = penalty
                self.state.halves["state"][half] = edge_state

    def link_inside(self, wanted: set[tuple[str, str]], holdings: dict[str, Holding]) -> None:
        """Have at least these links between tasks of this node."""
        halves = self.state.halves
        task_of = {h.slot: task for task, h in holdings.items()}
        used = [h for h in halves.used.tolist() if halves["twin"][h] >= 0]
        here = {
            (task_of[int(halves["owner"][h])], task_of[int(halves["owner"][halves["twin"][h]])])
            for h in used
        }
        slots = [
            (holdings[a].slot, holdings[b].slot) for a, b in sorted(wanted) if (a, b) not in here
        ]
        if slots:
            one, other = np.array(slots, np.int64).T
            self.state.link(one, other, False, False)

    def forget(self, task: str) -> None:
        """Know no more of a task that has left, and took its link ends with it."""
        self.halves = {key: half for key, half in self.halves.items() if key[0] != task}

    def edge_states(self) -> dict[Key, tuple[Floats, Floats]]:
        """Return ρ and z of every end."""
        halves = self.state.halves
        return {
            key: (np.array(halves["penalty"][half]), np.array(halves["state"][half]))
            for key, half in self.halves.items()
        }

    # A round

    def prepare(self) -> None:
        """Derive what the last changes made stale."""
        state = self.state
        state.prepare()
        self._arrays = (state.agent_arrays(), state.row_arrays(), state.half_arrays())
        before = dict(zip(self._slots.tolist(), self._residual.tolist(), strict=True))
        halves = [self.halves[key] for key in sorted(self.halves)]
        self._slots = np.array(halves, np.int64)
        self._residual = np.array([before.get(half, np.inf) for half in halves])
        self._restart()
        self._read_penalties()

    def pull_anew(self) -> None:
        """Let new levels take effect; calm is only who has heard the others at theirs."""
        self.state.pull_anew()
        self._residual[:] = np.inf
        self._read_penalties()

    def _read_penalties(self) -> None:
        penalty = self.state.halves["penalty"][self._slots].astype("<f4")
        self.ends = [
            End(key, self.halves[key], penalty[i].tobytes())
            for i, key in enumerate(sorted(self.halves))
        ]
        self._place = {}
        for i, end in enumerate(self.ends):
            self._place.setdefault(end.key[1], []).append(i)

    def solve(self) -> None:
        """Solve every agent's own problem, x = argmin …, then write q of every end."""
        state = self.state
        _solve_all(
            state.used, *self._arrays, state.settings.C, state.accuracy, state.age,
            self._slots, self.told,
        )  # fmt: skip

    def compare(self, neighbour: str, news: News, check: int) -> list[int]:
        """Measure the ends that were told x and z for a check; return their slots."""
        agents, _, halves = self._arrays
        found = []
        for i in self._place.get(neighbour, ()):
            told = self._told_to(i, news)
            if told and told.check == check:
                shape = (1, 2, self.state.n_features + 1)
                xs, zs = (np.ascontiguousarray(np.broadcast_to(v, shape)) for v in told.numbers)
                compare(self.ends[i].half, agents, halves, xs, zs)
                found.append(self.ends[i].half)
        return found

    def hear(self, neighbour: str, news: News) -> None:
        """Have what a neighbour told taken in at the end of this round."""
        for i in self._place.get(neighbour, ()):
            told = self._told_to(i, news)
            if told is not None:
                q = self._read(i, told)
                self._heard[i, : len(q)] = q
                self._is_heard[i] = True

    def _read(self, i: int, told: Told) -> Floats:
        """Return q, which in a check is told as x and z."""
        if not told.check:
            return told.numbers
        penalty = self.state.halves["penalty"][self.ends[i].half]
        rho = np.repeat(penalty, [self.state.n_features, 1])
        return np.asarray(2.0 * rho * told.numbers[0] - told.numbers[1])

    def distance(self, neighbour: str, news: News) -> float:
        """Return the worst residual that a neighbour's values would leave, taking in none."""
        agents, _, halves = self._arrays
        worst = 0.0
        for i in self._place.get(neighbour, ()):
            told = self._told_to(i, news)
            if told is not None:
                q = self._read(i, told)
                wide = q if len(q) == 2 else np.concatenate([q, q])
                # With κ = 0 nothing is taken in; what is left of `receive` is the residual.
                worst = max(worst, receive(self.ends[i].half, agents, halves, wide, 0.0))
        return worst

    def _told_to(self, i: int, news: News) -> Told | None:
        """Return what an end was told, if the other end pulls as hard."""
        (task, _, other), _, penalty = self.ends[i]
        told = news.values.get((other, task))
        if told is None or told.penalty == penalty:
            return told
        mine, theirs = np.frombuffer(penalty, "<f4"), np.frombuffer(told.penalty, "<f4")
        return told if (np.abs(mine - theirs) <= ALIKE * mine).all() else None

    def take_in(self) -> float:
        """Set z ← (1 − κ) z + κ q where something was heard; return the worst residual."""
        agents, _, halves = self._arrays
        state = self.state
        worst = _take_in_all(
            state.used, state.firsts, agents, halves, state.settings.relaxation,
            self._slots, self._is_heard, self._heard, self._residual,
        )  # fmt: skip
        self._is_heard[:] = False
        return float(worst)


@njit(cache=True, nogil=True)
def _solve_all(
    used: Ints,
    agents: AgentArrays,
    rows: RowArrays,
    halves: HalfArrays,
    box: float,
    accuracy: Accuracy,
    age: int,
    ends: Ints,
    q: Floats,
) -> None:
    local_step(used, agents, rows, halves, box, tightened(accuracy, age))
    for i in range(len(ends)):
        send(ends[i], agents, halves, q[i])


@njit(cache=True, nogil=True)
def _take_in_all(
    used: Ints,
    firsts: Ints,
    agents: AgentArrays,
    halves: HalfArrays,
    kappa: float,
    ends: Ints,
    is_heard: NDArray[np.bool_],
    q: Floats,
    residual: Floats,
) -> float:
    primal, dual = exchange(firsts, agents, halves, kappa, np.zeros((0, 2), np.bool_), True)
    worst: float = max(primal, dual)
    for i in range(len(ends)):
        if is_heard[i]:
            residual[i] = receive(ends[i], agents, halves, q[i], kappa)
        worst = max(worst, residual[i])
    for a in used:
        if agents.norm[a] > 0.0:
            worst = max(worst, agents.drift[a] / agents.norm[a])
    return worst
