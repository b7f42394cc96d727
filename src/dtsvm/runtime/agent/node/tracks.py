"""Trainings beside each other over one node's links, each a node of its own.

A runner drives such a node as `Process` drives the main one, without waiting: whenever messages
have come it goes as far as they allow. One that is certified computes no more and tells only what
others lack. Where it stood can be kept, so that the next of its name goes on there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import Settings
from dtsvm.problem.track import Track
from dtsvm.runtime.agent.node.ends import Key
from dtsvm.runtime.agent.node.node import Node

__all__ = ["Kept", "Runner", "enter"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Kept(NamedTuple):
    """Where a track stood.

    Parameters
    ----------
    round : int
        How far it was.
    C : float
        Its price of a row's loss.
    tasks : dict
        By task: its estimate, marks of its rows with their sides, and their λ.
    ends : dict
        ρ and z of every link end.
    levels : dict
        How hard links pull, by group.
    """

    round: int
    C: float
    tasks: dict[str, tuple[Floats, Ints, Floats]]
    ends: dict[Key, tuple[Floats, Floats]]
    levels: dict[str, list[float]]


def enter(node: Node, track: Track, kept: Kept | None) -> None:
    """Give a new node a track's tasks and rows; it begins where the last of its name stood."""
    for task, (at, y) in track.tasks.items():
        node.enter(task, track.X[at], y)
    if kept is None or any(z.shape[-1] != track.width + 1 for _, z in kept.ends.values()):
        return
    node.round = kept.round
    state = node.state
    for task, (estimate, marks, dual) in kept.tasks.items():
        if task in node.holdings:
            at, y = track.tasks[task]
            order = np.argsort(marks)
            mine = _sided(track.marks[at], y)
            place = np.minimum(np.searchsorted(marks[order], mine), max(len(marks) - 1, 0))
            known = order[place] if len(marks) else np.zeros(len(mine), np.int64)
            is_same = marks[known] == mine if len(marks) else np.zeros(len(mine), bool)
            again = np.where(is_same, dual[known] if len(marks) else 0.0, 0.0) * track.C / kept.C
            state.iterates.begin_at(node.holdings[task].slot, estimate, again)
    node.ends.remembered = {key: both for key, both in kept.ends.items() if key[1] in node.mail}
    node.balancer.remembered = {group: np.array(level) for group, level in kept.levels.items()}


def _sided(marks: Ints, y: Floats) -> Ints:
    """A row on its other side is another row."""
    return np.asarray(2 * marks + (y > 0), np.int64)


def _certified(node: Node) -> dict[str, Floats] | None:
    """Return u of every task as it was first certified, once all are; the same at every node."""
    node.follow()
    out = {}
    for task, holding in node.holdings.items():
        answer = node.certifier.first(holding.slot)
        if answer is None:
            return None
        out[task] = np.asarray(answer.common + answer.specific[holding.slot])
    return out


class Runner:
    """Drives one track's node.

    Parameters
    ----------
    node : Node
        The node, its tasks entered.
    track : Track
        What it trains.
    """

    def __init__(self, node: Node, track: Track) -> None:
        self.node, self.track = node, track
        self.found: dict[str, Floats] | None = None
        self.n_rounds = 0
        self._first_round = node.round
        self._has_begun = self._is_in_round = False
        self._until = 0.0
        self._greeted: tuple[float, int, int] = (-np.inf, 0, 0)

    @classmethod
    def open(
        cls,
        main: Node,
        track: Track,
        settings: Settings,
        network: int,
        kept: Kept | None,
        **more: Any,
    ) -> Runner:
        """Make a track's node beside the main one; what it says is of another network."""
        node = Node(
            main.name, list(main.present), track.width, settings, network,
            main.presence.incarnation, identity=main.identity, **more,
        )  # fmt: skip
        enter(node, track, kept)
        return cls(node, track)

    def step(self, now: float) -> dict[str, bytes]:
        """Go as far as what was heard allows; return what neighbours are to be told."""
        node = self.node
        self._has_begun = self._has_begun or node.may_begin(now)
        if not self._has_begun or self._is_found():
            return self._greet(now)
        if self._is_in_round:
            if not node.is_complete() and now < self._until:
                return {}
            node.finish(now)
            self.n_rounds += 1
            self._is_in_round = False
        if self._is_found() or node.is_balancing(now):
            return self._greet(now)
        self._is_in_round, self._until = True, now + node.timing.round_seconds
        return node.begin(now)

    def _is_found(self) -> bool:
        if self.found is None:
            self.found = _certified(self.node)
        return self.found is not None

    def _greet(self, now: float) -> dict[str, bytes]:
        """Give a sign of life when it is time for one, or there is news."""
        node, (then, *known) = self.node, self._greeted
        is_due = now - then >= node.timing.heartbeat_seconds
        has_changed = known != [node.roster.digest, node.sums.version]
        if not (is_due or has_changed or node.has_news_for_somebody(then)):
            return {}
        self._greeted = (now, node.roster.digest, node.sums.version)
        return node.hello(now)

    @property
    def gap(self) -> float:
        """The worst gap of what was found."""
        certifier, held = self.node.certifier, self.node.holdings.values()
        found = [certifier.first(holding.slot) for holding in held]
        good = [one.certificate for one in found if one is not None]
        return max((one.gap for one in good if one is not None), default=0.0)

    def keep(self) -> Kept:
        """Return where it stands."""
        node, tasks = self.node, {}
        tables = node.state.tables
        for task, (at, y) in self.track.tasks.items():
            slot = node.holdings[task].slot
            dual = np.array(tables.rows["dual"][tables.row_slots[slot]])
            tasks[task] = node.state.estimate(slot), _sided(self.track.marks[at], y), dual
        return Kept(
            node.round, self.track.C, tasks, node.ends.edge_states(), node.balancer.levels()
        )
