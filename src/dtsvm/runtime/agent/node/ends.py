"""The ends of a node's links, and the arithmetic of a round on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import boxes, compiled
from dtsvm.problem import Settings
from dtsvm.rounds import State
from dtsvm.rounds.state import ACCURACY
from dtsvm.runtime.agent.node.bounds import Bounds
from dtsvm.runtime.agent.node.holdings import Holding
from dtsvm.runtime.agent.node.pattern import Letter, Pattern
from dtsvm.runtime.agent.node.refuse import Told
from dtsvm.runtime.privacy.veil import Veil

__all__ = ["End", "Ends", "Key"]

Floats = NDArray[np.float64]
Key = tuple[str, str, str]  # my task, the neighbour, its task
# Where a neighbour's numbers go, for compiled code: in messages of one pattern, with these bounds.
Way = tuple[boxes.Like | None, dict[str, Bounds] | None, Any]
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
    veil : Veil, optional
        What stands between rows and messages.
    """

    def __init__(self, state: State, veil: Veil | None = None) -> None:
        self.state, self.veil = state, veil or Veil()
        self.remembered: dict[Key, tuple[Floats, Floats]] = {}  # ρ and z from a checkpoint
        self.halves: dict[Key, int] = {}
        self.ends: list[End] = []
        self._plan = state.plan  # as last prepared
        self._place: dict[str, list[int]] = {}
        self._job = _make_job(state.settings)  # one is enough for all rounds
        self._most: tuple[Any, Any, list[float]] = (None, None, [])  # ‖q‖² of each end
        self.ways: dict[str, Way] = {}  # by neighbour, for `boxes.open_letters`
        self._longest = np.zeros(0, np.int64), np.zeros(0)
        self._across = compiled.Across(np.zeros(0, np.int64), np.zeros(0), state.n_features + 1)

    @property
    def told(self) -> Floats:
        """What every end tells, in order: q."""
        found: Floats = self._across.arrays["told"]
        return found

    # Who is linked

    def relink(
        self,
        wanted: dict[Key, bool],
        holdings: dict[str, Holding],
        has_parted: Callable[[str], bool],
    ) -> None:
        """Have exactly these links to other nodes; True where the task is the same.

        What is gone because a node has parted politely, that is kept.
        """
        gone = [key for key in self.halves if key not in wanted]
        kept = [] if self.veil.is_noisy else [key for key in gone if has_parted(key[1])]
        if kept:
            self.state.keep_flow(np.array([self.halves[key] for key in kept], np.int64))
        if gone:
            self.state.unlink(np.array([self.halves.pop(key) for key in gone], np.int64))
        for key in sorted(wanted):
            if key in self.halves:
                continue
            half = self.state.link_elsewhere(holdings[key[0]].slot, wanted[key])
            self.halves[key] = half
            if key in self.remembered:
                penalty, edge_state = self.remembered.pop(key)
                self.state.iterates.begin_end(half, penalty, edge_state)
                continue
            hidden = self.veil.start(self.state, holdings[key[0]])
            if hidden is not None:
                self.state.iterates.begin_end(half, np.zeros(2), hidden)

    def link_inside(self, wanted: set[tuple[str, str]], holdings: dict[str, Holding]) -> None:
        """Have exactly these links between tasks of this node; what others carried is kept."""
        halves = self.state.tables.ends
        task_of = {h.slot: task for task, h in holdings.items()}
        used = [h for h in halves.used.tolist() if halves["twin"][h] >= 0]
        here = {
            (task_of[int(halves["owner"][h])], task_of[int(halves["owner"][halves["twin"][h]])]): h
            for h in used
        }
        gone = [h for (a, b), h in here.items() if a < b and (a, b) not in wanted]
        if gone:
            self.state.cut(np.array(gone, np.int64))
        slots = [
            (holdings[a].slot, holdings[b].slot) for a, b in sorted(wanted) if (a, b) not in here
        ]
        if slots:
            one, other = np.array(slots, np.int64).T
            no = np.zeros(len(one), bool)
            self.state.link(one, other, no, no)

    def forget(self, task: str) -> None:
        """Know no more of a task that has left, and took its link ends with it."""
        self.halves = {key: half for key, half in self.halves.items() if key[0] != task}

    def edge_states(self) -> dict[Key, tuple[Floats, Floats]]:
        """Return ρ and z of every end."""
        halves = self.state.tables.ends
        return {
            key: (np.array(halves["penalty"][half]), np.array(halves["state"][half]))
            for key, half in self.halves.items()
        }

    def begin_anew(self, agents: list[int]) -> None:
        """Put agents and the ends of their links back to where they began."""
        state, zero = self.state, np.zeros((2, self.state.n_features + 1))
        state.iterates.rescale(np.array(agents, np.int64), 0.0)  # wakes rows that sleep
        for agent in agents:
            state.iterates.begin_at(agent, zero, np.zeros(state.n_rows(agent)))
        ends = state.tables.ends
        for half in ends.used[np.isin(ends["owner"][ends.used], agents)].tolist():
            state.iterates.begin_end(half, ends["penalty"][half], zero)

    def limit(self, longest: dict[int, float]) -> None:
        """Have `take_in` say whether estimates are no longer than that, by agent."""
        self._longest = np.array(list(longest), np.int64), np.array(list(longest.values()))
        self._across.limit(*self._longest)

    # A round

    def prepare(self) -> None:
        """Derive what the last changes made stale."""
        state = self.state
        self._plan = state.plan
        slots, residual = (self._across.arrays[name].tolist() for name in ("slots", "residual"))
        before = dict(zip(slots, residual, strict=True))
        halves = [self.halves[key] for key in sorted(self.halves)]
        self._across = compiled.Across(
            np.array(halves, np.int64),
            np.array([before.get(half, np.inf) for half in halves], np.float64),
            state.n_features + 1,
        )
        self._across.limit(*self._longest)
        self._read_penalties()

    def pull_anew(self) -> None:
        """Let new levels take effect; calm is only who has heard the others at theirs."""
        self.state.pull_anew()
        self._across.arrays["residual"][:] = np.inf
        self._read_penalties()

    def unused(self) -> list[str]:
        """Return the neighbours of which nothing was used at the levels that are here."""
        is_new = np.isinf(self._across.arrays["residual"])
        return sorted({end.key[1] for end, is_so in zip(self.ends, is_new, strict=True) if is_so})

    def _read_penalties(self) -> None:
        slots = self._across.arrays["slots"]
        penalty = self.state.tables.ends["penalty"][slots].astype("<f4")
        self.ends = [
            End(key, self.halves[key], penalty[i].tobytes())
            for i, key in enumerate(sorted(self.halves))
        ]
        self._place = {}
        for i, end in enumerate(self.ends):
            self._place.setdefault(end.key[1], []).append(i)
        self.ways = dict.fromkeys(self._place, (None, None, None))

    def solve(self) -> None:
        """Solve every agent's own problem, x = argmin …, then write q of every end.

        Where rows may be looked at no more, or nobody would be told, x stays as it was told last.
        """
        plan = self._plan
        known = plan.rows, plan.agents, plan.ends, plan.work, self._job, self.state.age
        if self.veil.is_noisy:
            self._solve_covered(plan.used, known)
            compiled.send(self._across, plan.agents, plan.ends)
        else:
            compiled.step_and_send(self._across, *known)

    def _solve_covered(self, agents: NDArray[np.int64], known: tuple[Any, ...]) -> None:
        some = self.veil.spend(self.state, agents, len(self.ends))
        if len(some):
            try:
                compiled.local_steps(some, *known)
                self.veil.cover(self.state, some)
            except BaseException:
                self.veil.give_up(self.state)
                raise

    @property
    def steps(self) -> tuple[Any, ...]:
        """What `boxes.Quiet` needs of a round's arithmetic; nothing if more belongs to it."""
        if self.veil.is_noisy or self.veil.stirs:
            return ()
        plan, job = self._plan, self._job
        taken, stepped = (plan.agents, plan.ends), (plan.rows, plan.agents, plan.ends, plan.work)
        calls = compiled.hear_numbers, compiled.take_in, compiled.step_and_send
        return *calls, self._across, (*taken, job), (*stepped, job)

    def compare(self, neighbour: str, news: Letter, check: int) -> list[int]:
        """Measure the ends that were told x and z for a check; return their slots."""
        plan = self.state.plan
        found = []
        for i in self._place.get(neighbour, ()):
            told = self._told_to(i, news)
            if told and told.check == check:
                shape = (1, 2, self.state.n_features + 1)
                xs, zs = (np.ascontiguousarray(np.broadcast_to(v, shape)) for v in told.numbers)
                compiled.note_end(self.ends[i].half, plan.agents, plan.ends, xs, zs)
                found.append(self.ends[i].half)
        return found

    def hear_numbers(self, neighbour: str, news: boxes.Numbers, bounds: dict[str, Bounds]) -> bool:
        """Have numbers taken in if they are far within what the data allow; return whether."""
        pattern, limits, way = self.ways.get(neighbour, (None, None, None))
        if pattern is not news.pattern or limits is not bounds:
            way = self._way(neighbour, news, bounds)
            if neighbour in self._place:
                self.ways[neighbour] = news.pattern, bounds, way
        is_good: bool = compiled.hear_numbers(news.data, news.squares, way)
        return is_good

    def _way(self, neighbour: str, news: boxes.Numbers, bounds: dict[str, Bounds]) -> Any:
        most, pattern = self._most_squares(bounds), news.pattern
        assert isinstance(pattern, Pattern)
        places = self._place.get(neighbour, ())
        known = {(self.ends[i].key[2], self.ends[i].key[0]): i for i in places}
        ends = [known.get(hole.pair, -1) for hole in pattern.holes]
        ends = [i if i >= 0 and self._told_to(i, news) is not None else -1 for i in ends]
        allowed = np.array([most[i] if i >= 0 else np.inf for i in ends])
        return compiled.Way(self._across, pattern.at, np.array(ends, np.int64), allowed)

    def hear(self, neighbour: str, news: Letter) -> None:
        """Have what a neighbour told taken in at the end of this round."""
        for i in self._place.get(neighbour, ()):
            told = self._told_to(i, news)
            if told is not None:
                q = self._read(i, told)
                self._across.arrays["heard"][i, : len(q)] = q
                self._across.arrays["is_heard"][i] = True

    def is_allowed(self, neighbour: str, news: Letter, bounds: dict[str, Bounds]) -> bool:
        """Whether the data allow what a neighbour told; `bounds` are by task."""
        if self.veil.is_noisy:
            return self._are_small(neighbour, news, bounds)
        most = self._most_squares(bounds)
        for i in self._place.get(neighbour, ()):
            told = self._told_to(i, news)
            if told is not None and (told.check or not told.square <= most[i]):
                penalty = self.state.tables.ends["penalty"][self.ends[i].half]
                mine = bounds[self.ends[i].key[0]]
                if not mine.allows(self._read(i, told), penalty):
                    return False
                if told.check and not mine.allow_check(told.numbers[0], told.numbers[1], penalty):
                    return False
        return True

    def _are_small(self, neighbour: str, news: Letter, bounds: dict[str, Bounds]) -> bool:
        """Whether what a neighbour told may be taken in although nothing bounds noise."""
        for i in self._place.get(neighbour, ()):
            told = self._told_to(i, news)
            if told is not None:
                half, ends = self.ends[i].half, self.state.tables.ends
                most = bounds[self.ends[i].key[0]].most_told(ends["penalty"][half])
                if not self.veil.allows(
                    self.state, int(ends["owner"][half]), self._read(i, told), most
                ):
                    return False
        return True

    def _most_squares(self, bounds: dict[str, Bounds]) -> list[float]:
        """Return ‖q‖² of each end up to which nothing need be looked at more closely."""
        ends, judge, most = self._most
        if ends is not self.ends or judge is not bounds:
            penalty = self.state.tables.ends["penalty"]
            most = [bounds[end.key[0]].most(penalty[end.half]) ** 2 for end in self.ends]
            self._most = (self.ends, bounds, most)
        return most

    def _read(self, i: int, told: Told) -> Floats:
        """Return q, which in a check is told as x and z."""
        if not told.check:
            return told.numbers
        penalty = self.state.tables.ends["penalty"][self.ends[i].half]
        rho = np.repeat(penalty, [self.state.n_features, 1])
        return np.asarray(2.0 * rho * told.numbers[0] - told.numbers[1])

    def distance(self, neighbour: str, news: Letter) -> float:
        """Return the worst residual that a neighbour's values would leave, taking in none."""
        plan = self.state.plan
        worst = 0.0
        for i in self._place.get(neighbour, ()):
            told = self._told_to(i, news)
            if told is not None:
                q = self._read(i, told)
                wide = np.ascontiguousarray(q if len(q) == 2 else np.concatenate([q, q]))[None]
                # With κ = 0 nothing is taken in; what is left of `receive` is the residual.
                end = self.ends[i].half
                far = compiled.receive(end, plan.agents, plan.ends, wide, 0, 0.0)
                worst = max(worst, far)
        return worst

    def _told_to(self, i: int, news: Letter) -> Told | None:
        """Return what an end was told, if the other end pulls as hard."""
        (task, _, other), _, penalty = self.ends[i]
        told = news.values.get((other, task))
        if told is None or told.penalty == penalty:
            return told
        mine, theirs = np.frombuffer(penalty, "<f4"), np.frombuffer(told.penalty, "<f4")
        return told if (np.abs(mine - theirs) <= ALIKE * mine).all() else None

    def take_in(self) -> tuple[float, bool]:
        """Set z ← (1 − κ) z + κ q where something was heard.

        Returns the worst residual, and whether all estimates are within their limits.
        """
        plan, across = self._plan, self._across
        if self.veil.stirs:
            slots = across.arrays["slots"]
            before = self.state.tables.ends["state"][slots]
        worst = compiled.take_in(across, plan.agents, plan.ends, self._job)
        if self.veil.stirs:
            self.veil.stir(self.state, slots, before)
        return worst, across.are_short


def _make_job(settings: Settings) -> Any:
    """Return what compiled code must know of the iteration."""
    pace = dict.fromkeys(("age", "begun", "next_look", "has_checks"), 0.0)
    pace |= dict.fromkeys(("residual_tol", "gap_tol", "heavy", "long"), 0.0)
    pace |= {**ACCURACY[settings.local], "kappa": settings.relaxation}
    return compiled.Job(np.zeros((0, 6)), np.zeros((0, 0, 2), np.uint8), pace)
