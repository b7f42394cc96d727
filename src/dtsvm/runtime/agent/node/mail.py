"""What a node keeps of one neighbour: its newest messages, and how far it is believed."""

from __future__ import annotations

from typing import Any

from dtsvm.kernel import boxes
from dtsvm.runtime.agent.node.refuse import News, Refused

__all__ = ["MOST_ODD", "Mail"]

BAR_SECONDS, MOST_BAR_SECONDS = 10.0, 3600.0
MOST_ODD = 30  # after a change the network's bounds may be new to a neighbour


class Mail(boxes.Box):
    """The mailbox of a neighbour, with what it says of itself and how far it is believed."""

    def __init__(
        self, newest: int = -1, heard_at: float | None = None, *, is_settled: bool = False
    ) -> None:
        super().__init__()
        self.newest, self.heard_at, self.is_settled = newest, heard_at, is_settled
        self.incarnation = -1
        self.n_barred = 0

    def bar(self, now: float, seconds: float | None = None) -> float:
        """Hear a neighbour no more for so long, or the longer the more often; return how long."""
        if seconds is None:
            seconds = min(BAR_SECONDS * 2.0**self.n_barred, MOST_BAR_SECONDS)
        self.n_barred += 1
        self.n_odd = 0
        self.barred_until = now + seconds
        self.forget()
        return seconds

    def check(self, message: Any) -> None:
        """Refuse what comes from the past."""
        if message.incarnation < self.incarnation:
            raise Refused("it comes from before the sender's last start")
        if message.incarnation == self.incarnation and message.round < self.newest - 1:
            raise Refused(f"its round {message.round} is past; round {self.newest} was heard")

    def put(self, message: Any, news: News, now: float) -> None:
        """Keep a checked message."""
        if message.incarnation > self.incarnation:
            self.incarnation, self.newest = message.incarnation, -1
            self.applied = self.empty = -1
            self.clear()
        self.calm, self.is_settled = message.calm, message.is_settled
        self.roster_digest = message.roster_digest
        self.keep(news, now, bool(news.values))

    def forget(self) -> None:
        """Go back to knowing nothing but the incarnation: the neighbour was gone too long."""
        self.clear()
        self.seen = -1
        self.calm, self.is_settled, self.is_late = 0, False, False
        self.heard_at = None
