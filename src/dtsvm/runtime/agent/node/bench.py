"""Lanes side by side at one node, on one matrix of rows: the arithmetic of their rounds.

A lane is one training of a choice: a task, or all of them as one, on some of the rows at one C. All
lanes of a bench begin together and are stepped together; one that is certified drops out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.problem import Settings
from dtsvm.problem.track import Track, Whole
from dtsvm.rounds import Elsewhere, State
from dtsvm.rounds.agreement import N_SHOWN, apply, decide, measure, revise, take_snapshot
from dtsvm.rounds.penalty import link_flow
from dtsvm.rounds.state import ACCURACY
from dtsvm.runtime.agent.node.bounds import Bounds
from dtsvm.runtime.agent.node.ranges import are_within, is_gram
from dtsvm.runtime.agent.node.team import Team
from dtsvm.runtime.privacy.veil import Veil

__all__ = ["N_LEVEL", "Bench", "Kept", "Lane", "Where"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FAR = 100.0  # where C fell by more than this, neighbours could refuse what a lane found before
N_LEVEL = N_SHOWN + int(compiled.constants()["N_PRODUCTS"])  # what a lane adds at a check


class Where(NamedTuple):
    """A node's place: all nodes in order, the links between them, and who is next to it."""

    name: str
    names: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    neighbours: tuple[str, ...]


class Kept(NamedTuple):
    """Where a lane stood.

    Parameters
    ----------
    C : float
        Its price of a row's loss.
    estimate : ndarray of shape (2, p + 1)
        What the node found.
    marks, dual : ndarray of shape (n_rows,)
        Marks of its rows with their sides, and their λ.
    flows : dict of str to ndarray
        Multipliers of its links, by neighbour.
    """

    C: float
    estimate: Floats
    marks: Ints
    dual: Floats
    flows: dict[str, Floats]


@dataclass(frozen=True)
class Lane:
    """A lane: its number among all of a question, its track and place, and how many nodes it has.

    `slot` is its agent's, −1 where this node takes no part.
    """

    number: int
    track: Track
    place: str
    whole: Whole
    n_nodes: int
    slot: int = -1

    @property
    def name(self) -> str:
        """What it is known by when it goes on."""
        return f"{self.track.name}; {self.place}"


@dataclass
class _Held:
    """What a veil must know of a lane to hide where its links begin."""

    slot: int
    scale: int


class Bench:
    """The lanes of tracks on the same rows.

    Parameters
    ----------
    tracks : sequence of Track
        What they train; all of one kind.
    first : int
        The number of the first lane.
    where : Where
        The node's place in the network.
    settings : Settings
        Of every lane, but for C.
    veil : Veil
        What stands between rows and messages.
    """

    def __init__(
        self, tracks: Sequence[Track], first: int, where: Where, settings: Settings, veil: Veil
    ) -> None:
        self.where, self.veil = where, veil
        self.state = State(tracks[0].width, settings)
        self.state.pull_lightly()
        lanes = self._all_lanes(tracks, first)
        mine = [lane for lane in lanes if lane.place in lane.track.tasks]
        slots = self.state.add_agents([0] * len(mine), [0] * len(mine)).tolist()
        held = {lane.number: replace(lane, slot=s) for lane, s in zip(mine, slots, strict=True)}
        self.lanes = [held.get(lane.number, lane) for lane in lanes]
        self.mine = [lane for lane in self.lanes if lane.slot >= 0]
        self._enter_rows()
        self._link()
        self._learn()
        self._limits = {lane.number: self._bounds(lane) for lane in self.mine}
        pace = dict.fromkeys(("age", "begun", "next_look", "has_checks"), 0.0)
        pace |= dict.fromkeys(("residual_tol", "gap_tol", "heavy", "long"), 0.0)
        pace |= {**ACCURACY[settings.local], "kappa": settings.relaxation}
        self._job = compiled.Job(np.zeros((0, 6)), np.zeros((0, 0, 2), np.uint8), pace)
        self.residual = np.inf
        self.drop(set())

    def _all_lanes(self, tracks: Sequence[Track], first: int) -> list[Lane]:
        every = [(track, place, whole) for track in tracks for place, whole in track.lanes.items()]
        n = len(self.where.names)
        return [
            Lane(number, *one, n if one[2].members is None else len(one[2].members))
            for number, one in enumerate(every, first)
        ]

    def _enter_rows(self) -> None:
        state = self.state
        parts = [
            (lane.slot, *lane.track.tasks[lane.place], lane.track.weight) for lane in self.mine
        ]
        if any(len(at) for _, at, _, _ in parts):
            at = np.concatenate([at for _, at, _, _ in parts])
            y = np.concatenate([y for _, _, y, _ in parts])
            agent = np.repeat([slot for slot, *_ in parts], [len(at) for _, at, _, _ in parts])
            weight = self.mine[0].track.weight
            own = None if weight is None else weight[at]
            state.adopt_rows(self.mine[0].track.X, y, agent.astype(np.int64), own, at)
        for C in {lane.track.C for lane in self.mine}:
            state.price(np.array([one.slot for one in self.mine if one.track.C == C], np.int64), C)

    def _link(self) -> None:
        """Link agents to those of the same lane next door, in the order of lanes and names."""
        where, index = self.where, {name: i for i, name in enumerate(self.where.names)}
        self.ends: list[tuple[Lane, str, int]] = []
        for lane in self.mine:
            who = lane.whole.members
            for other in where.neighbours:
                if who is None or other in who:
                    half = self.state.link_elsewhere(lane.slot, True)
                    self.ends.append((lane, other, half))
        self.state.rank(
            index[where.name],
            {lane.slot: lane.number for lane in self.mine},
            {half: (index[other], lane.number) for lane, other, half in self.ends},
        )
        for lane, _, half in self.ends:
            whole = lane.whole
            feature = whole.square / max(whole.rows, 1.0) / self.state.n_features
            scale = round(float(np.log2(feature))) if feature > 0 else 0
            hidden = self.veil.start(self.state, _Held(lane.slot, scale))
            if hidden is not None:
                price = lane.track.C / self.state.settings.C
                self.state.iterates.begin_end(half, np.zeros(2), price * hidden)

    def _learn(self) -> None:
        """Tell the state what only all nodes know."""
        capacity = self.state.tables.agents.capacity
        sums = np.zeros((capacity, 3))
        for lane in self.mine:
            sums[lane.slot] = lane.whole.rows, lane.whole.square, lane.whole.box
        flow = {lane.slot: _flow(self.where, lane.whole.members) for lane in self.mine}
        size = {lane.slot: float(lane.n_nodes) for lane in self.mine}
        self.state.know(Elsewhere(size=size, flow=flow, row_sums=sums))

    def _bounds(self, lane: Lane) -> Bounds:
        whole, p = lane.whole, self.state.n_features
        square = max(whole.square / max(whole.rows, 1.0) / p, 1e-12)
        team = Team("", np.array([lane.slot]), frozenset(), (), frozenset(), (lane.n_nodes,), (0,),
                    whole.box, square)  # fmt: skip
        return Bounds.of(team, self.state.settings, p)

    # Where it begins and stands

    def go_on(self, kept: dict[str, Kept]) -> None:
        """Begin lanes where those of their names stood, or those at a smaller C ended."""
        p1 = self.state.n_features + 1
        for lane in self.mine:
            own = kept.get(lane.name)
            old = own or kept.get(f"{lane.track.after}; {lane.place}")
            if old is None or old.estimate.shape[-1] != p1:
                continue
            if (FAR if own else 1.0) * lane.track.C < old.C:
                continue
            at, y = lane.track.tasks[lane.place]
            dual = _recalled(old, _sided(lane.track.marks[at], y))
            dual *= lane.track.C / old.C if own else 1.0
            self.state.iterates.begin_at(lane.slot, old.estimate, dual)
            for one, other, half in self.ends:
                if one is lane and other in old.flows:
                    self.state.iterates.begin_end(half, np.zeros(2), old.flows[other])

    def keep(self) -> dict[str, Kept]:
        """Return where lanes stand, by name."""
        found = {}
        tables = self.state.tables
        for lane in self.mine:
            at, y = lane.track.tasks[lane.place]
            dual = np.array(tables.rows["dual"][tables.row_slots[lane.slot]])
            found[lane.name] = Kept(
                lane.track.C,
                self.state.estimate(lane.slot),
                _sided(lane.track.marks[at], y),
                dual,
                {},
            )
        ends = tables.ends
        for lane, other, half in self.ends:
            rho = np.repeat(ends["penalty"][half], [self.state.n_features, 1])
            x = found[lane.name].estimate
            found[lane.name].flows[other] = np.array(ends["state"][half] - rho * x)
        return found

    # A round

    def drop(self, done: set[int]) -> None:
        """Step no more the lanes of these numbers."""
        self.active = [lane for lane in self.mine if lane.number not in done]
        self._agents = np.array([lane.slot for lane in self.active], np.int64)
        ends = [(lane, other, half) for lane, other, half in self.ends if lane.number not in done]
        self._halves = np.array([half for _, _, half in ends], np.int64)
        self._to = {
            other: np.flatnonzero([other == to for _, to, _ in ends])
            for other in self.where.neighbours
        }
        self._numbers = np.array([lane.number for lane, _, _ in ends], np.int64)
        self._limit = [self._limits[lane.number] for lane, _, _ in ends]
        far = np.full(len(ends), np.inf)
        self._across = compiled.Across(self._halves, far, self.state.n_features + 1)

    @property
    def is_check(self) -> bool:
        """Whether the round that is going on ends with a check."""
        age = self.state.age + 1
        return bool(compiled.last_check(age, False) == age)

    def solve(self) -> None:
        """Solve every agent's own problem; write what ends are told."""
        plan = self.state.plan
        compiled.local_steps(
            self._agents, plan.rows, plan.agents, plan.ends, plan.work, self._job, self.state.age
        )
        self.veil.cover(self.state, self._agents)
        compiled.send(self._across, plan.agents, plan.ends)

    def told_to(self, neighbour: str) -> tuple[Ints, Floats]:
        """Return the lanes shared with a neighbour, and q of each, or x and z at a check.

        The shape is (lane, 2, p + 1), or (lane, 2, 2, p + 1).
        """
        at = self._to[neighbour]
        if not self.is_check:
            return self._numbers[at], self._across.arrays["told"][at]
        halves, tables = self._halves[at], self.state.tables
        x = tables.agents["estimate"][tables.ends["owner"][halves]]
        return self._numbers[at], np.stack([x, tables.ends["state"][halves]], axis=1)

    def hear(self, neighbour: str, numbers: Ints, told: Floats) -> None:
        """Have what a neighbour told of lanes taken in at the end of this round."""
        at = self._to[neighbour]
        at = at[np.isin(self._numbers[at], numbers)]
        told = told[np.searchsorted(numbers, self._numbers[at])]
        if self.is_check:
            told = self._compare(at, told)
        square = np.einsum("icj,icj->i", told, told)
        penalty = self.state.tables.ends["penalty"]
        for i, k in enumerate(at.tolist()):
            limit, rho = self._limit[k], penalty[self._halves[k]]
            if not square[i] <= limit.most(rho) ** 2 and not limit.allows(told[i], rho):
                raise ValueError("its values are larger than the data allow")
        self._across.arrays["heard"][at] = told
        self._across.arrays["is_heard"][at] = True

    def _compare(self, at: Ints, told: Floats) -> Floats:
        """Measure ends that were told x and z; return q."""
        plan, penalty = self.state.plan, self.state.tables.ends["penalty"][self._halves[at]]
        for i, k in enumerate(at.tolist()):
            x, z = told[i]
            if not self._limit[k].allow_check(x, z, penalty[i]):
                raise ValueError("its values are larger than the data allow")
            xs, zs = np.ascontiguousarray(x[None]), np.ascontiguousarray(z[None])
            compiled.note_end(int(self._halves[k]), plan.agents, plan.ends, xs, zs)
        rho = np.repeat(penalty, [self.state.n_features, 1], axis=1)[:, None]
        return np.asarray(2.0 * rho * told[:, 0] - told[:, 1])

    def finish(self) -> None:
        """Set z ← (1 − κ) z + κ q where something was heard; count the round."""
        plan, state = self.state.plan, self.state
        before = state.tables.ends["state"][self._halves] if self.veil.stirs else None
        self.residual = compiled.take_in(self._across, plan.agents, plan.ends, self._job)
        if before is not None:
            self.veil.stir(state, self._halves, before)
        take_snapshot(state)
        state.age += 1

    # A check

    def measured(self) -> Floats:
        """Return what the links of every lane show here, (lane, N_LEVEL)."""
        out = np.zeros((len(self.lanes), N_LEVEL))
        place = {lane.number: i for i, lane in enumerate(self.lanes)}
        for lane in self.active:
            found = measure(self.state, self.state.plan.set_of(lane.slot))
            if found is not None:
                out[place[lane.number], : found.shape[1]] = found[0]
        return out

    def follow(self, total: Floats, mine: Floats) -> None:
        """Set levels and leap as the totals of a check say; `mine` are this node's terms.

        What no honest nodes could have shown is not followed.
        """
        state, age = self.state, self.state.age
        width = N_LEVEL if state.snapshots.is_whole(age, False) else N_SHOWN
        place = {lane.number: i for i, lane in enumerate(self.lanes)}
        linked = {lane.number for lane, _, _ in self.ends}
        for lane in self.active:
            i = place[lane.number]
            if lane.number in linked and _is_possible(total[i], mine[i]):
                level = np.array(state.tables.agents["level"][lane.slot])
                found = np.ascontiguousarray(total[i, :width])
                start = float(state.plan.start[lane.slot, 0])
                apply(state, state.plan.set_of(lane.slot), decide(level, found, start, age))
        revise(state, age)
        state.pull_anew()

    # What was found

    def found(self, lane: Lane) -> Floats:
        """Return what an agent adds to its lane's answer."""
        return np.asarray(self.veil.told(self.state, lane.slot).sum(axis=0))

    def tally(self, lane: Lane, answer: Floats, has_room: bool) -> dict[str, Floats]:
        """Return what the rows here contribute to the certificate of an answer."""
        plan = self.state.plan
        sums = compiled.Sums(1, self.state.n_features + 1)
        sums.arrays["common"][:], sums.arrays["specific"][0] = 0.5 * answer, 0.5 * answer
        compiled.tally_agent(lane.slot, 0, plan.rows, plan.agents, sums, has_room)
        return dict(sums.arrays)

    def box(self, lane: Lane) -> float:
        """Return Σ box of the rows here."""
        tables = self.state.tables
        return float(tables.boxes(np.array([lane.slot])).sum())


def _is_possible(total: Floats, mine: Floats) -> bool:
    """Whether squares and inner products of moves can be some of honest nodes."""
    return are_within(total[:N_SHOWN], mine[:N_SHOWN]) and is_gram(total[N_SHOWN:], mine[N_SHOWN:])


def _sided(marks: Ints, y: Floats) -> Ints:
    """A row on its other side is another row."""
    return np.asarray(2 * marks + (y > 0), np.int64)


def _recalled(old: Kept, marks: Ints) -> Floats:
    """Return λ of the rows that were there; of others 0."""
    if not len(old.marks):
        return np.zeros(len(marks))
    order = np.argsort(old.marks)
    place = np.minimum(np.searchsorted(old.marks[order], marks), len(order) - 1)
    known = order[place]
    return np.asarray(np.where(old.marks[known] == marks, old.dual[known], 0.0))


def _flow(where: Where, members: frozenset[str] | None) -> float:
    """Return what a link between members carries for a unit of imbalance at a node."""
    who = [name for name in where.names if members is None or name in members]
    index = {name: i for i, name in enumerate(who)}
    links = sorted((index[a], index[b]) for a, b in where.links if a in index and b in index)
    return link_flow(len(who), np.array(links, np.int64).reshape(-1, 2))
