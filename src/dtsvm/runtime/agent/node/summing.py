"""A node's part in all sums over the network: a wave for each group and each thing summed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.identity import Identity
from dtsvm.runtime.agent.node.masks import pairs
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.node.team import Team
from dtsvm.runtime.agent.node.wave import Parcel, Tree, Wave

__all__ = ["BALANCE", "CERTIFICATE", "HANDOVER", "SCALE", "Summing"]

BALANCE, CERTIFICATE, HANDOVER, SCALE = "b", "c", "h", "s"


@dataclass
class Summing:
    """The waves of one node.

    Parameters
    ----------
    name : str
        The node.
    roster : Roster
        Who is there; terms of two rosters never meet.
    identity : Identity
        With whom secrets are shared.
    """

    name: str
    roster: Roster
    identity: Identity
    waves: dict[str, Wave] = field(default_factory=dict)
    epoch: int = 0
    version: int = 0  # grows when there is something to tell
    begun: int = 0  # how often all began anew
    changes: int = 0  # grows whenever anything about any sum has changed
    _around: dict[str, list[str]] = field(default_factory=dict)  # waves, by neighbour
    _packed: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # parcels as last told

    def begin(self, teams: list[Team]) -> None:
        """Begin anew with these teams."""
        self.epoch = self.roster.digest
        self.begun += 1
        self._count()
        self.waves, self._around, self._packed = {}, {}, {}
        for team in teams:
            tree = Tree.of(self.name, team.links)
            around = team.neighbours(self.name)
            for kind in (BALANCE, CERTIFICATE, HANDOVER, SCALE):
                name = kind + team.group
                secrets = self._secrets(team, around)
                self.waves[name] = Wave(name, tree, self.epoch, secrets, on_change=self._count)
                for other in around:
                    self._around.setdefault(other, []).append(name)

    def _count(self) -> None:
        self.changes += 1

    def wave(self, kind: str, team: Team) -> Wave:
        """Return a team's wave."""
        return self.waves[kind + team.group]

    def _secrets(self, team: Team, around: list[str]) -> Callable[[], list[tuple[bytes, bool]]]:
        """Return what this node shares with those it is masked with, once that is needed."""
        found: list[tuple[bytes, bool]] = []

        def secrets() -> list[tuple[bytes, bool]]:
            if not found:
                for other in pairs(self.name, list(team.nodes), around):
                    half = self.roster.entries[other].agreement
                    found.append((self.identity.shared(half), self.name < other))
            return found

        return secrets

    def shared(self, other: str) -> bytes:
        """Return the secret shared with another node."""
        return self.identity.shared(self.roster.entries[other].agreement)

    def parcels(self, neighbour: str) -> bytes:
        """Return what a neighbour is told of all sums, packed."""
        if self.epoch != self.roster.digest:
            return b""
        last = self._packed.get(neighbour)
        if last is None or last[0] != self.changes:
            last = self._packed[neighbour] = self.changes, self._pack(neighbour)
        return last[1]

    def _pack(self, neighbour: str) -> bytes:
        message = wire.Message()
        for name in self._around.get(neighbour, ()):
            parcel = self.waves[name].parcel(neighbour)
            if parcel.wanted or parcel.done:
                message.sums.add(
                    name=name,
                    wanted=parcel.wanted,
                    done=parcel.done,
                    up=parcel.up,
                    down=parcel.down,
                )
        return bytes(message.SerializeToString())

    def hear(self, neighbour: str, message: Any, most: float = inf) -> bool:
        """Take what a neighbour with the same roster tells; return whether there is a total.

        Of its parts in all sums so many bytes are kept at most: all of them fit into a message.
        """
        if message.roster_digest != self.epoch or self.epoch != self.roster.digest:
            return False
        has_total = False
        for said in message.sums:
            if said.name in self._around.get(neighbour, ()):
                wave = self.waves[said.name]
                before = wave.has_something_for(wave.tree.parent or "")
                up = said.up if self._fits(neighbour, wave, said.up, most) else b""
                has_new = wave.hear(neighbour, Parcel(said.wanted, said.done, up, said.down))
                has_more = not before and wave.has_something_for(wave.tree.parent or "")
                self.version += has_new or has_more
                has_total = has_total or has_new
        return has_total

    def _fits(self, neighbour: str, wave: Wave, up: bytes, most: float) -> bool:
        if not up:
            return True
        others = (self.waves[name] for name in self._around[neighbour])
        held = sum(one.holds(neighbour) for one in others if one is not wave)
        return held + len(up) <= most

    def is_on_its_way(self, neighbour: str) -> bool:
        """Whether a neighbour has a total that this node waits for."""
        names = self._around.get(neighbour, ())
        return any(self.waves[name].is_known_to(neighbour) for name in names)

    def waits_for(self) -> list[str]:
        """Return the neighbours whose part of a sum this node waits for."""
        return sorted({name for wave in self.waves.values() for name in wave.lacks()})

    def is_owed(self, neighbour: str) -> bool:
        """Whether a neighbour lacks something that is here."""
        if self.epoch != self.roster.digest:
            return False
        return any(
            self.waves[name].has_something_for(neighbour)
            for name in self._around.get(neighbour, ())
        )
