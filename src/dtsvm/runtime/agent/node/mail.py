"""What a node keeps of one neighbour: its newest messages, and when it was last heard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dtsvm.runtime.agent.node.pattern import Numbers, Pattern
from dtsvm.runtime.agent.node.refuse import News, Refused

__all__ = ["MOST_ODD", "Mail"]

BAR_SECONDS, MOST_BAR_SECONDS = 10.0, 3600.0
MOST_RESTLESS, CALMING = 100.0, 1.0  # changes of what it says of itself: at once, and a second
MOST_ODD = 30  # after a change the network's bounds may be new to a neighbour


@dataclass
class Mail:
    """A mailbox that holds the two newest rounds and never more.

    Two, because in lock-step a neighbour may be one round ahead while another is waited for.
    """

    incarnation: int = -1
    newest: int = -1  # round of the newest message
    seen: int = -1  # round of the newest message when a round last ended here
    applied: int = -1  # round whose values were last used
    empty: int = -1  # the last round that it said without values
    calm: int = 0
    is_settled: bool = False
    roster_digest: int | None = None
    heard_at: float | None = None
    is_late: bool = False  # it missed a deadline and is not waited for until it is back
    letters: dict[int, News | Numbers] = field(default_factory=dict)
    barred_until: float = -1.0  # it sent what no honest neighbour sends
    n_barred: int = 0
    n_odd: int = 0  # messages in a row with values that the data do not allow
    pattern: Pattern | None = None  # of the last message that said nothing but numbers
    restless: float = 0.0  # how often it has said something new of itself, of late
    restless_at: float = 0.0

    def bar(self, now: float) -> float:
        """Hear a neighbour no more for a while, the longer the more often; return how long."""
        seconds = min(BAR_SECONDS * 2.0**self.n_barred, MOST_BAR_SECONDS)
        self.n_barred += 1
        self.n_odd, self.restless = 0, 0.0
        self.barred_until = now + seconds
        self.forget()
        return seconds

    def is_restless(self, now: float, weight: float) -> bool:
        """Count that it says something new of itself; return whether it does so too often."""
        calmed = CALMING * max(now - self.restless_at, 0.0)
        self.restless = max(self.restless - calmed, 0.0) + weight
        self.restless_at = now
        return self.restless > MOST_RESTLESS

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
            self.letters.clear()
        self.calm, self.is_settled = message.calm, message.is_settled
        self.roster_digest = message.roster_digest
        self.keep(news, now, bool(news.values))

    def keep(self, news: News | Numbers, now: float, has_values: bool) -> None:
        """Keep what was told, the two newest rounds of it."""
        round_ = news.round
        self.newest, self.heard_at = max(self.newest, round_), now
        if not has_values:
            self.empty = round_
        elif round_ > self.applied:
            letters = self.letters
            letters[round_] = news
            if len(letters) > 2:
                del letters[min(letters)]

    def lacks(self, round_: int) -> bool:
        """Whether values of this round are yet to come.

        Who is a round ahead has said them, waits for this node, and says both rounds again; or,
        where it went on from farther behind, that there are none.
        """
        newest = self.newest
        if newest != round_ + 1 or newest not in self.letters:
            return newest < round_
        return round_ not in self.letters and self.applied < round_ and self.empty != round_

    def take(self, round_: int) -> News | Numbers | None:
        """Return this round's message, or else the newest that has not been used."""
        letters = self.letters
        if not letters:
            return None
        news = letters.pop(round_, None) or letters.pop(max(letters))
        self.applied = news.round
        if letters:
            self.letters = {k: kept for k, kept in letters.items() if k > news.round}
        return news

    def forget(self) -> None:
        """Go back to knowing nothing but the incarnation: the neighbour was gone too long."""
        self.letters.clear()
        self.seen = -1
        self.calm, self.is_settled, self.is_late = 0, False, False
        self.heard_at = None
