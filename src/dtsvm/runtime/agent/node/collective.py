"""Masked sums over the whole network beside training: one carrier for all that is asked that way.

Each kind has a protocol number of its own, and what it says stands in the field for text. Whoever
hears of a sum that it has not begun is called to add its own part. Neighbours tell each other which
total they were handed, so that one who hands each a different one is noticed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from dtsvm.runtime.agent.node.identity import Identity
from dtsvm.runtime.agent.node.masks import pairs
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.node.spoken import is_spoken, said_by, speak, survives
from dtsvm.runtime.agent.node.wave import Tree, Wave, parcel_words, read_parcel

__all__ = ["Collective"]


@dataclass
class Collective:
    """One node's part in such sums. It has no clock and no sockets.

    Parameters
    ----------
    name : str
        The node.
    network : int
        The network's id.
    roster : Roster
        Who is there, and who holds which task.
    identity : Identity
        With whom secrets are shared.
    """

    name: str
    network: int
    roster: Roster
    identity: Identity
    refused: int = 0
    n_lies: int = 0  # totals that no honest nodes could have, or that not all were told
    _is_in_doubt: bool = False  # until the network changes
    _wave: Wave | None = None
    _lanes: dict[str, list[str]] = field(default_factory=dict)  # of all tasks there are
    _heard_of: set[str] = field(default_factory=set)

    protocol = 0
    title = ""

    @classmethod
    def is_mine(cls, data: bytes) -> bool:
        """Whether a message belongs here: its first field is the protocol."""
        return is_spoken(cls.protocol, data)

    def _called(self, wave: Wave, number: int) -> None:
        """Take part in a sum that a neighbour works at."""
        raise NotImplementedError

    def _changed(self, wave: Wave, was_open: bool) -> None:
        """Go on after the network has changed; `was_open` tells whether a sum was under way."""
        raise NotImplementedError

    def _doubt(self) -> None:
        """Use no total until the network changes; neighbours hear of that and do the same."""
        self.n_lies += not self._is_in_doubt
        self._is_in_doubt = True

    def _fresh(self) -> Wave:
        """The wave of the network as it is now."""
        if self._wave is None or self._wave.epoch != self.roster.digest:
            names, links = self.roster.map(self.name)
            tree = Tree.of(self.name, links)
            self._lanes = self.roster.main_lanes(names)
            was_open = self._wave is not None and self._wave.is_open
            self._is_in_doubt = False
            self._wave = Wave(self.title, tree, self.roster.digest, lambda: self._secrets(names))
            self._changed(self._wave, was_open)
        return self._wave

    def _secrets(self, names: list[str]) -> list[tuple[bytes, bool]]:
        others = pairs(self.name, names, self.roster.neighbours(self.name))
        halves = [(other, self.roster.entries[other].agreement) for other in others]
        return [(self.identity.shared(half), self.name < other) for other, half in halves]

    # Saying and being told

    def owed(self) -> dict[str, bytes]:
        """Return what neighbours lack, by neighbour."""
        wave = self._wave
        if wave is None:
            return {}
        around = self.roster.neighbours(self.name)
        found = {n for n in around if wave.is_open or wave.has_something_for(n)} | self._heard_of
        self._heard_of = set()
        return {name: self._message(name, wave) for name in found if name in around}

    def _message(self, neighbour: str, wave: Wave) -> bytes:
        said = {
            "epoch": wave.epoch,
            "parcel": parcel_words(wave.parcel(neighbour)),
            "total": _digest(wave),
            "is_in_doubt": self._is_in_doubt,
        }
        more = self._said(neighbour)
        return speak(self.protocol, self.network, self.name, {**said, **more})

    def _said(self, neighbour: str) -> dict[str, Any]:
        """Return what else a neighbour is told."""
        return {}

    def _heard(self, peer: str, said: Any) -> None:
        """Take what else a neighbour told."""

    def hear(self, peer: str, data: bytes) -> None:
        """Take a neighbour's message; a bad one is counted and changes nothing."""
        self.refused += not survives(lambda: self._hear(peer, said_by(peer, self.network, data)))

    def _hear(self, peer: str, said: Any) -> None:
        parcel, wave = read_parcel(said["parcel"]), self._fresh()
        if said["epoch"] != wave.epoch:
            return
        self._heard(peer, said)
        if not 0 <= parcel.wanted <= max(wave.wanted, wave.done) + 1:
            raise ValueError("a number out of turn")
        if said["is_in_doubt"] or (parcel.done == wave.done and said["total"] != _digest(wave)):
            self._doubt()
        wave.hear(peer, parcel)
        if parcel.wanted > wave.wanted and not wave.is_open:  # one after the other, and no faster
            self._called(wave, parcel.wanted)
        if parcel.down or (self._is_in_doubt and not said["is_in_doubt"]):
            self._heard_of.add(peer)  # it waits to hear that this has come, or for what never will


def _digest(wave: Wave) -> str:
    """Name the last total."""
    return "" if wave.total is None else hashlib.sha256(wave.total.tobytes()).hexdigest()[:16]
