"""Who is in the network, as one node knows it: everybody's own entry, passed on along the links.

A roster only ever grows newer: of two entries of a node the one with the larger (incarnation,
sequence) stays. Merging is therefore the same in whatever order and however often entries arrive,
and all who can hear each other end with the same roster. From it each derives the same answers: who
is present, which agents must agree, how many they are, which tasks train together.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dtsvm.rounds.penalty import link_flow
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.entry import NO_ROWS, Entry
from dtsvm.runtime.agent.node.lanes import aspect, is_main, task_of

__all__ = ["ROSTER_BYTES", "Pair", "Part", "Roster"]

Agent = tuple[str, str]  # (node, task)
ROSTER_BYTES = 4_000_000  # that fit into a message
ODD = 10  # powers of two by which scales may differ from their median
Pair = tuple[str, str]


@dataclass(frozen=True)
class Part:
    """The agents that must agree with one agent, and how they are linked."""

    agents: frozenset[Agent]
    graph: tuple[int, tuple[Pair, ...]]  # nodes, links by position
    square: float  # mean squared feature
    teams: tuple[frozenset[Agent], ...]  # those of one task that agree on the specific part too
    links: frozenset[Pair]  # between their nodes
    weight: float  # C times all their rows, or somewhat more

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes at which they are."""
        return frozenset(node for node, _ in self.agents)

    @property
    def flow(self) -> float:
        """What a link carries for a unit of imbalance at a node."""
        n, links = self.graph
        return link_flow(n, np.array(links, np.int64).reshape(-1, 2))


@dataclass
class Roster:
    """The entries known; `on_change` is called when one is another."""

    entries: dict[str, Entry] = field(default_factory=dict)
    on_change: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)
    left_out: set[str] = field(default_factory=set)  # too long for a message with all the others

    def __post_init__(self) -> None:
        self._seal()

    def put(self, entry: Entry) -> None:
        """Set an entry, newer or not."""
        self.entries[entry.name] = entry
        self._seal()

    def drop(self, name: str) -> None:
        """Forget a node whose certificate is good no more."""
        if self.entries.pop(name, None):
            self._seal()

    def merge(self, entries: Iterable[Entry]) -> bool:
        """Take in what is newer; return whether anything was."""
        before = self.digest
        for entry in entries:
            known = self.entries.get(entry.name)
            if known is None or entry.is_newer_than(known):
                self.entries[entry.name] = entry
        self._trim()
        self._seal()
        return self.digest != before

    def _trim(self) -> None:
        """Leave out the longest entries where all are too long for a message.

        Several in league could make them so. The shorter ones stay wherever they are heard of, so
        all end with the same.
        """
        sizes = {name: len(entry.content(0)) for name, entry in self.entries.items()}
        total = sum(sizes.values())
        self.left_out -= sizes.keys()
        for name in sorted(sizes, key=lambda name: (sizes[name], name), reverse=True):
            if total <= ROSTER_BYTES:
                return
            total -= sizes[name]
            del self.entries[name]
            self.left_out.add(name)

    def twin_of(self, name: str) -> str | None:
        """Return a node known whose name differs from this one in case only."""
        folded = name.casefold()
        return next((n for n in self.entries if n != name and n.casefold() == folded), None)

    def _seal(self) -> None:
        total = hashlib.blake2b(digest_size=8)
        for _, entry in sorted(self.entries.items()):
            total.update(entry.content(0))
        self._groups: dict[str, str] | None = None
        self._around: dict[str, list[str]] = {}
        self.digest = int.from_bytes(total.digest(), "little")
        self.on_change()

    # Which tasks train together

    def stamps(self) -> dict[Pair, tuple[int, bool]]:
        """Return the last word about every two tasks: how often it was said, and what.

        Who leaves, or is heard no more, takes along what it said; at the same stamp tasks train
        together.
        """
        last: dict[Pair, tuple[int, bool]] = {}
        for entry in self.entries.values():
            for one, other, stamp, is_coupled in () if self._is_gone(entry) else entry.couples:
                said = (stamp, is_coupled)
                last[one, other] = max(said, last.get((one, other), said))
        return last

    @property
    def couples(self) -> set[Pair]:
        """The pairs of tasks that train together."""
        return {pair for pair, (_, is_coupled) in self.stamps().items() if is_coupled}

    # Who is here

    def neighbours(self, node: str) -> list[str]:
        """Return the nodes that hear `node` and are heard by it."""
        if node not in self._around:
            self._around[node] = self._find_neighbours(node)
        return self._around[node]

    def _find_neighbours(self, node: str) -> list[str]:
        entry = self.entries.get(node)
        if entry is None or entry.has_left:
            return []
        return sorted(n for n in entry.heard if self._hears(n, node))

    def _hears(self, node: str, other: str) -> bool:
        entry = self.entries.get(node)
        return entry is not None and not entry.has_left and other in entry.heard

    def distances(self, node: str) -> dict[str, int]:
        """Return the nodes that messages reach from `node`, and over how many links."""
        found, edge = {node: 0}, [node]
        while edge:
            edge = [n for v in edge for n in self.neighbours(v) if n not in found]
            edge = list(dict.fromkeys(edge))
            step = max(found.values()) + 1
            found.update(dict.fromkeys(edge, step))
        return found

    def map(self, node: str) -> tuple[list[str], list[Pair]]:
        """Return the nodes that messages reach from `node`, and the links between them."""
        names = sorted(self.distances(node))
        return names, [(n, o) for n in names for o in self.neighbours(n) if n < o]

    def last_change(self, nodes: Iterable[str], most: int) -> int:
        """Return the round in which the newest of these nodes' entries was made, up to `most`."""
        rounds = [self.entries[node].round for node in nodes if node in self.entries]
        return max((round_ for round_ in rounds if round_ <= most), default=0)

    def _is_gone(self, entry: Entry) -> bool:
        """Whether a node has left, or nobody whom it says to hear hears it any more."""
        return entry.has_left or bool(entry.heard and not self.neighbours(entry.name))

    def has_parted(self, node: str, other: str) -> bool:
        """Whether a link or a task that two nodes shared ended because one of them said so."""
        one, two = self.entries.get(node), self.entries.get(other)
        if one is None or two is None:
            return False
        is_cut = other not in dict(one.links) or node not in dict(two.links)
        return two.has_left or is_cut or other in self.neighbours(node)

    @property
    def has_offsets(self) -> bool:
        """Whether somebody has left politely, or was told to part with a task or a link."""
        return any(entry.has_left or entry.told for entry in self.entries.values())

    def is_whole(self, node: str) -> bool:
        """Whether everybody whom somebody counts as a neighbour is here and heard."""
        seen, edge = {node}, [node]
        while edge:
            entry = self.entries.get(edge.pop())
            if entry is None:
                return False
            for other, is_heard in entry.links:
                has_left = other in self.entries and self.entries[other].has_left
                if has_left or entry.has_left:
                    continue
                if not is_heard or not self._hears(other, entry.name):
                    return False
                if other not in seen:
                    seen.add(other)
                    edge.append(other)
        return True

    def tasks_at(self, node: str) -> tuple[str, ...]:
        """Return the lanes of the tasks a node holds."""
        entry = self.entries.get(node)
        return tuple(task for task, *_ in entry.tasks) if entry and not entry.has_left else ()

    def main_lanes(self, nodes: Iterable[str]) -> dict[str, list[str]]:
        """Return the tasks that these nodes hold, and the lanes that answer for each, in order."""
        names = sorted({name for node in nodes for name in self.tasks_at(node) if is_main(name)})
        return {
            task: list(lanes)
            for task, lanes in itertools.groupby(sorted(names, key=_place), task_of)
        }

    def group(self, task: str) -> str:
        """Return the name of a lane's group: the least of its tasks, and what it is about."""
        if self._groups is None:
            self._groups = self._find_groups()
        held = task_of(task)
        return self._groups.get(held, held) + aspect(task)

    def _find_groups(self) -> dict[str, str]:
        """Return the group of every task that is coupled with another."""
        around: dict[str, set[str]] = {}
        for one, other in self.couples:
            around.setdefault(one, set()).add(other)
            around.setdefault(other, set()).add(one)
        groups: dict[str, str] = {}
        for task in sorted(around):
            edge = [] if task in groups else [task]
            while edge:
                found = edge.pop()
                if found not in groups:
                    groups[found] = task
                    edge += around[found]
        return groups

    def grouped(self, tasks: Iterable[str]) -> list[list[str]]:
        """Return tasks by group."""
        by = sorted(tasks, key=lambda task: (self.group(task), task))
        return [list(group) for _, group in itertools.groupby(by, key=self.group)]

    # Who must agree

    def around(self, agent: Agent, is_personal: bool) -> list[tuple[Agent, bool]]:
        """Return the agents one is linked to, and whether the task is the same."""
        return self._beside(agent) + self._across(agent, is_personal)

    def _beside(self, agent: Agent) -> list[tuple[Agent, bool]]:
        """Return the agents at the same node one is linked to: those of its group."""
        node, task = agent
        group = self.group(task)
        others = [t for t in self.tasks_at(node) if t != task and self.group(t) == group]
        return [((node, t), False) for t in others]

    def _across(self, agent: Agent, is_personal: bool) -> list[tuple[Agent, bool]]:
        """Return the agents at other nodes one is linked to."""
        node, task = agent
        group = self.group(task)
        return [
            ((other, t), t == task)
            for other in self.neighbours(node)
            for t in self.tasks_at(other)
            if t == task or (is_personal and self.group(t) == group)
        ]

    def part(self, agent: Agent, is_personal: bool) -> Part:
        """Find all with whom an agent must agree on the common part."""
        found, edge = {agent}, [agent]
        across: set[Pair] = set()
        wide: dict[Agent, set[Agent]] = {}
        seen: set[str] = set()  # nodes whose agents are all found: they agree among themselves
        while edge:
            one = edge.pop()
            wide[one] = set()
            around = self._across(one, is_personal)
            for other, is_wide in around:
                across.add(_ordered(one[0], other[0]))
                wide[one] |= {other} if is_wide else set()
            if one[0] not in seen:
                seen.add(one[0])
                around += self._beside(one)
            fresh = {other for other, _ in around} - found
            found |= fresh
            edge += sorted(fresh)
        known = {(e.name, t): (s, w) for e in self.entries.values() for t, s, _, w in e.tasks}
        said = np.array([known[a] for a in sorted(found)], float)
        mean = float(np.exp2(_near(said[:, 0])).mean())
        heavy = said[said[:, 1] > NO_ROWS, 1]  # an agent without rows says nothing of how many
        weight = float(np.exp2(_near(heavy)).sum()) if len(heavy) else 0.0
        links: Iterable[Any] = across or itertools.combinations(sorted(found), 2)
        return Part(
            frozenset(found), _graph(links), float(mean), _teams(wide), frozenset(across),
            float(weight),
        )  # fmt: skip

    # To the wire and back

    def to_wire(self) -> Any:
        """Return the roster as a message."""
        message = wire.Roster()
        for _, entry in sorted(self.entries.items()):
            member = message.members.add(
                name=entry.name,
                incarnation=entry.incarnation,
                sequence=entry.sequence,
                has_left=entry.has_left,
                round=entry.round,
                told=entry.told,
                agreement=entry.agreement,
                certificate=entry.certificate,
                signature=entry.signature,
            )
            for task, scale, labels, weight in entry.tasks:
                member.tasks.add(task=task, scale=scale, labels=labels, weight=weight)
            for name, is_heard in entry.links:
                member.links.add(name=name, is_heard=is_heard)
            for one, other, stamp, is_coupled in entry.couples:
                member.couples.add(one=one, other=other, stamp=stamp, is_coupled=is_coupled)
        return message


def _near(exponents: Any) -> Any:
    """Bring what is out of all proportion near the median: one node may say what it likes."""
    middle = np.median(exponents)
    return np.clip(exponents, middle - ODD, middle + ODD)


def _teams(wide: dict[Agent, set[Agent]]) -> tuple[frozenset[Agent], ...]:
    """Split agents into those who are linked, each team's least agent in order."""
    left, teams = set(wide), []
    while left:
        team, edge = set[Agent](), {min(left)}
        while edge:
            team |= edge
            edge = {other for one in edge for other in wide[one]} - team
        left -= team
        teams.append(frozenset(team))
    return tuple(teams)


def _graph(links: Iterable[tuple[Any, Any]]) -> tuple[int, tuple[Pair, ...]]:
    """The graph messages travel on: the nodes, or the agents if all are on one node."""
    ends = list(links)
    place = {end: i for i, end in enumerate(sorted({e for link in ends for e in link}))}
    return len(place), tuple(sorted({_ordered(place[a], place[b]) for a, b in ends}))


def _place(lane: str) -> tuple[str, str]:
    return task_of(lane), lane


def _ordered(i: Any, j: Any) -> Any:
    return (min(i, j), max(i, j))
