"""What a node says to each neighbour: a head, values, and news while the other lacks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dtsvm.kernel import boxes
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.inbox import digest
from dtsvm.runtime.agent.node.mail import Mail
from dtsvm.runtime.agent.node.pack import Pieces
from dtsvm.runtime.agent.node.refuse import PROTOCOL
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.node.summing import Summing

__all__ = ["ROUND_TAG", "Outbox"]

ROUND_TAG = 0x30  # field 6, a varint


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
    post: boxes.Post

    def __post_init__(self) -> None:
        self.mail: dict[str, Mail] = self.post.boxes
        self._head: tuple[int, tuple[int, bool]] = (-1, (0, False))
        self._roster: tuple[int, bytes] = (-1, b"")  # as last packed, with its digest
        self._framed: tuple[Any, ...] = (0, (0, False), 0, 0, 0, 0)  # for what
        self._told: Mapping[str, Pieces] | None = None  # as framed
        self._frames: dict[str, Pieces] = {}  # all of every message but its round
        self._places: dict[str, slice] = {}  # of values in them

    def messages(
        self, incarnation: int, standing: tuple[int, bool], round_: int, told: dict[str, Pieces]
    ) -> dict[str, bytes]:
        """Return a message for every neighbour; `told` has the values, packed.

        `standing` is what it says of its calm, and whether it has settled.
        """
        self._head = incarnation, standing
        roster, changes = self.roster.digest, self.sums.changes
        count = boxes.counted(ROUND_TAG, round_)
        wanted = (incarnation, standing, roster, changes, len(count), len(self.mail))
        if wanted != self._framed or told is not self._told:
            self._frame(told, len(count))
            self._framed, self._told = wanted, told
        out, behind = self.post.write(self._frames, count)
        for name in behind:
            out[name] += self._news(self.mail[name])
        if round_ > self.post.said[0]:
            said = round_, roster, out, self._places
            self.post.said_before, self.post.said = self.post.said, said
        return out

    @property
    def frames(self) -> tuple[int, int, dict[str, Pieces], dict[str, slice]]:
        """For which calm and how long a count, and all messages' pieces with values' places."""
        _, (calm, _), _, _, n_count, _ = self._framed
        return calm, n_count, self._frames, self._places

    def _frame(self, told: Mapping[str, Pieces], n_count: int) -> None:
        """Write all of every message but its round and what news there are."""
        incarnation, (calm, is_settled) = self._head
        who = self._same(incarnation)
        now = wire.Message(calm=calm, is_settled=is_settled).SerializeToString()
        begin = len(who) + n_count + len(now)
        self._frames, self._places = {}, {}
        for name in self.mail:
            values = told.get(name, [])
            self._frames[name] = [who, b"", now, *values, self.sums.parcels(name)]
            self._places[name] = slice(begin, begin + sum(map(len, values)))

    def earlier(self, names: list[str]) -> dict[str, bytes]:
        """Return what was told in the round before, for those that have not been heard since.

        Who went on from farther behind told nothing in it, and what was told before the roster
        changed is good no more: then a message without values says not to wait for any.
        """
        round_ = self.post.said[0] - 1
        behind = [name for name in names if self.mail[name].newest <= round_]
        if not behind or round_ < 1:
            return {}
        *told_for, told, places = self.post.said_before
        is_good = told_for == [round_, self.roster.digest]
        again: dict[str, Pieces] = {name: [told[name][places[name]]] for name in told}
        messages = self.messages(*self._head, round_, again if is_good else {})
        return {name: messages[name] for name in behind}

    def _same(self, incarnation: int) -> bytes:
        """Return what every message says until the network changes; the protocol comes first."""
        return bytes(
            wire.Message(
                protocol=PROTOCOL,
                network=self.network,
                settings=digest(self.settings),
                sender=self.node,
                incarnation=incarnation,
                roster_digest=self.roster.digest,
            ).SerializeToString()
        )

    def _news(self, mail: Mail) -> bytes:
        out = b""
        if mail.roster_digest != self.roster.digest:
            if self._roster[0] != self.roster.digest:  # a neighbour may say that it never has it
                packed = wire.Message(roster=self.roster.to_wire()).SerializeToString()
                self._roster = self.roster.digest, packed
            out += self._roster[1]
        if mail.heard_at is None:
            out += wire.Message(said_settings=self.settings).SerializeToString()
        return out

    def has_news_for_somebody(self, since: float) -> bool:
        """Whether a neighbour heard since then lacks something that is here."""
        return any(
            mail.heard_at is not None and mail.heard_at > since and not self.is_told(name)
            for name, mail in self.mail.items()
        )

    def is_told(self, name: str) -> bool:
        """Whether a neighbour has the same roster, and every sum that is here for it."""
        has_roster = self.mail[name].roster_digest == self.roster.digest
        return has_roster and not self.sums.is_owed(name)
