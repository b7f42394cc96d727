"""What a node says to each neighbour: a head, values, and news while the other lacks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.inbox import digest
from dtsvm.runtime.agent.node.mail import Mail
from dtsvm.runtime.agent.node.pack import Pieces
from dtsvm.runtime.agent.node.refuse import PROTOCOL
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.node.summing import Summing

__all__ = ["Outbox"]

ROUND_TAG = 0x30  # field 6, a varint


class _Round(NamedTuple):
    """What was told in a round, packed, and the roster it was made for."""

    round: int
    roster: int
    told: dict[str, bytes]


_NOTHING = _Round(-1, -1, {})


@dataclass
class Outbox:
    """Writes the messages of one node.

    Parameters
    ----------
    node : str
        The node.
    network : int
        The network's id.
    settings : str
        What all nodes have in common, as JSON.
    """

    node: str
    network: int
    settings: str
    roster: Roster
    sums: Summing
    mail: dict[str, Mail]

    def __post_init__(self) -> None:
        self._who: tuple[tuple[int, int], bytes] = ((-1, -1), b"")
        self._standing: tuple[tuple[int, bool], bytes] = ((-1, False), b"")
        self._head: tuple[int, tuple[int, bool]] = (-1, (0, False))
        self._before, self._last = _NOTHING, _NOTHING

    def messages(
        self, incarnation: int, round_: int, standing: tuple[int, bool], told: dict[str, Pieces]
    ) -> dict[str, bytes]:
        """Return a message for every neighbour; `told` has the values, packed.

        `standing` is what it says of its calm, and whether it has settled.
        """
        packed = {name: b"".join(pieces) for name, pieces in told.items()}  # they will change
        if round_ != self._last.round:
            self._before, self._last = self._last, _Round(round_, self.roster.digest, packed)
        self._head = incarnation, standing
        return self._write(round_, packed)

    def _write(self, round_: int, told: dict[str, bytes]) -> dict[str, bytes]:
        incarnation, standing = self._head
        roster, parcels = self.roster.digest, self.sums.parcels
        if self._who[0] != (incarnation, roster):
            self._who = (incarnation, roster), self._same(incarnation, roster)
        if self._standing[0] != standing:
            now = wire.Message(calm=standing[0], is_settled=standing[1])
            self._standing = standing, now.SerializeToString()
        top = self._who[1] + _counted(round_) + self._standing[1]
        out = {}
        for name, mail in self.mail.items():
            is_told = mail.roster_digest == roster and mail.heard_at is not None
            news = b"" if is_told else self._news(mail)
            out[name] = b"".join((top, told.get(name, b""), parcels(name), news))
        return out

    def earlier(self, names: list[str]) -> dict[str, bytes]:
        """Return what was told in the round before, for those that have not been heard since.

        Who went on from farther behind told nothing in it, and what was told before the roster
        changed is good no more: then a message without values says not to wait for any.
        """
        round_ = self._last.round - 1
        behind = [name for name in names if self.mail[name].newest <= round_]
        if not behind or round_ < 1:
            return {}
        is_good = (self._before.round, self._before.roster) == (round_, self.roster.digest)
        messages = self._write(round_, self._before.told if is_good else {})
        return {name: messages[name] for name in behind}

    def _same(self, incarnation: int, roster_digest: int) -> bytes:
        """Return what every message says until the network changes; the protocol comes first."""
        return bytes(
            wire.Message(
                protocol=PROTOCOL,
                network=self.network,
                settings=digest(self.settings),
                sender=self.node,
                incarnation=incarnation,
                roster_digest=roster_digest,
            ).SerializeToString()
        )

    def _news(self, mail: Mail) -> bytes:
        out = b""
        if mail.roster_digest != self.roster.digest:
            out += wire.Message(roster=self.roster.to_wire()).SerializeToString()
        if mail.heard_at is None:
            out += wire.Message(said_settings=self.settings).SerializeToString()
        return out

    def is_told(self, name: str) -> bool:
        """Whether a neighbour has the same roster, and every sum that is here for it."""
        has_roster = self.mail[name].roster_digest == self.roster.digest
        return has_roster and not self.sums.is_owed(name)


def _counted(round_: int) -> bytes:
    """Return the field of the round as protobuf writes it, in every message anew.

    >>> wire.Message.FromString(_counted(300)).round, _counted(0)
    (300, b'')
    """
    if not round_:
        return b""
    out = [ROUND_TAG]
    while round_ > 127:
        out.append(round_ & 127 | 128)
        round_ >>= 7
    out.append(round_)
    return bytes(out)
