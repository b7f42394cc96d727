"""How hard the links of each group pull, agreed without a centre: levels, and tallies for the next.

A ledger only ever grows newer, as the roster does: of two levels of a group the greater stays (more
checks, then the larger factors), of two tallies of a node the newer. Whoever has the tallies of all
nodes of a group decides the next level from them, and all decide alike; whoever lacks one hears the
level from its neighbours. So all who can hear each other end at the same level, in whatever order
and however often messages arrive. A node tallies finitely often after the last change, and every
decision uses tallies up, so levels stop changing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dtsvm.rounds.agreement import decide, total
from dtsvm.runtime.agent.node import wire_pb2 as wire

__all__ = ["Ledger", "Level", "Tally"]

# Six numbers, `kernel.Ends.residual`, summed; then, if the node has all its snapshots, the inner
# products of the moves between them.
Found = tuple[float, ...]


class Level(NamedTuple):
    """A group's level, by number of checks that led to it."""

    decided: int = 0
    weights: float = 1.0
    bias: float = 1.0
    tail: float = 1.0
    leap: tuple[float, ...] = ()  # γ of `rounds.snapshots`, if all nodes had their snapshots


@dataclass(frozen=True)
class Tally:
    """What one node measured at a check, summed over its ends of a group's links."""

    group: str
    node: str
    incarnation: int
    round: int
    decided: int  # of the level at which it was measured
    check: int
    found: Found

    @property
    def age(self) -> tuple[int, int]:
        """What makes one tally newer than another."""
        return self.incarnation, self.round


@dataclass
class Ledger:
    """The levels known, and the tallies measured at them."""

    levels: dict[str, Level] = field(default_factory=dict)
    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)  # by group and node

    def __post_init__(self) -> None:
        self._seal()

    def level(self, group: str) -> Level:
        """Return a group's level."""
        return self.levels.get(group, Level())

    def has_tallied(self, group: str, node: str, check: int) -> bool:
        """Whether a node's tally of a check is known, or no longer needed."""
        tally = self.tallies.get((group, node))
        return tally is not None and tally.check == check

    def merge(self, levels: dict[str, Level], tallies: Iterable[Tally]) -> bool:
        """Take in what is newer; return whether anything was."""
        before = self.digest
        for group, level in levels.items():
            self._raise(group, level)
        for tally in tallies:
            key = tally.group, tally.node
            known = self.tallies.get(key)
            is_current = tally.decided == self.level(tally.group).decided
            if is_current and (known is None or tally.age > known.age):
                self.tallies[key] = tally
        self._seal()
        return self.digest != before

    def decide(self, group: str, nodes: Iterable[str], check: int, start: float) -> bool:
        """Set the next level if all these nodes have tallied this check; return whether.

        `start` is the weights' penalty begun with, the same at all nodes.
        """
        if not all(self.has_tallied(group, node, check) for node in nodes):
            return False
        now = self.level(group)
        found = [self.tallies[group, node].found for node in nodes]
        length = min(len(each) for each in found)  # no leap unless all have their snapshots
        shown = total(np.array([each[:length] for each in found]))
        decision = decide(np.array(now[1:4]), shown, start, check)
        self._raise(group, Level(now.decided + 1, *decision.level, decision.leap))
        self._seal()
        return True

    def _raise(self, group: str, level: Level) -> None:
        if level <= self.level(group):
            return
        self.levels[group] = level
        self.tallies = {
            key: tally
            for key, tally in self.tallies.items()
            if key[0] != group or tally.decided == level.decided
        }

    def _seal(self) -> None:
        self.digest = 0
        if self.levels or self.tallies:
            known = [astuple(tally) for _, tally in sorted(self.tallies.items())]
            text = repr((sorted(self.levels.items()), known)).encode()
            digest = hashlib.blake2b(text, digest_size=8).digest()
            self.digest = int.from_bytes(digest, "little") or 1

    def to_wire(self) -> Any:
        """Return the ledger as a message."""
        message = wire.Ledger()
        for group, level in sorted(self.levels.items()):
            message.levels.add(group=group, **level._asdict())
        for _, tally in sorted(self.tallies.items()):
            message.tallies.add(
                group=tally.group,
                node=tally.node,
                incarnation=tally.incarnation,
                round=tally.round,
                decided=tally.decided,
                check=tally.check,
                found=tally.found,
            )
        return message
