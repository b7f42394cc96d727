"""Who is there: the node's own entry, the neighbours it hears, and when a first round may begin."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from dtsvm.kernel import boxes
from dtsvm.runtime.agent.node.entry import Entry
from dtsvm.runtime.agent.node.holdings import Holdings
from dtsvm.runtime.agent.node.identity import Identity
from dtsvm.runtime.agent.node.mail import Mail
from dtsvm.runtime.agent.node.refuse import MOST_COUNT
from dtsvm.runtime.agent.node.roster import Pair, Roster
from dtsvm.runtime.agent.node.timing import Timing

__all__ = ["Presence", "Said"]

log = logging.getLogger(__name__)
Said = dict[Pair, tuple[int, bool]]


@dataclass
class Presence:
    """One node's place in the roster.

    Parameters
    ----------
    name : str
        The node.
    network, incarnation : int
        The network's id, and a number that grows with every start of the node.
    roster : Roster
        Who is known.
    post : Post
        The neighbours' mailboxes.
    held : Holdings
        The tasks held here.
    timing : Timing
        How long a silent neighbour is waited for.
    identity : Identity
        What the node signs with.
    born : float
        When it began.
    """

    name: str
    network: int
    incarnation: int
    roster: Roster
    post: boxes.Post
    held: Holdings
    timing: Timing
    identity: Identity
    born: float
    has_left: bool = False
    told: int = 0  # changes acknowledged to the node's owner, ever
    said: Said = field(default_factory=dict)  # what it was told of tasks
    restored: int | None = None  # changes that the checkpoint knew of
    linked: set[str] = field(default_factory=set)  # neighbours that the checkpoint knew of

    def __post_init__(self) -> None:
        self._sequence = 0
        self._announced: tuple[int, list[bool]] = (-1, [])  # with which roster, whom it heard
        self.mail: dict[str, Mail] = self.post.boxes
        self.roster.on_change = self._look_around

    # The node's own entry

    def announce(self, now: float, round_: int, *, is_news: bool = False) -> bool:
        """Renew the node's own entry if something in it has changed; return whether."""
        old = self.roster.entries.get(self.name)
        if old and old.age > (self.incarnation, self._sequence):
            self.incarnation, self._sequence = old.incarnation + 1, 0
            old = None
        entry = self._entry(now, round_)
        heard = dict(entry.links)
        self._announced = (self.roster.digest, [heard[name] for name in self.mail])
        if old and old.says_the_same_as(entry) and not is_news:
            return False
        self._sequence += 1
        self.roster.put(self._entry(now, round_).signed(self.network, self.identity))
        return True

    def is_announced(self, now: float) -> bool:
        """Whether nothing that happens by itself has changed since the node's entry was renewed.

        Neighbours are heard or fall silent, and rosters come; all else is told to `announce`.
        """
        roster, heard = self._announced
        if roster != self.roster.digest:
            return False
        return self.post.are_heard(heard, now - self.timing.evict_seconds)

    @property
    def announced(self) -> list[bool]:
        """Whether each neighbour was heard when the entry was last renewed."""
        return self._announced[1]

    def remember(self, old: Entry) -> None:
        """Compare what the others remember of this node with what its checkpoint knows."""
        if self.restored is not None and old.told > self.restored:
            log.warning(
                "Node %s went on from an old checkpoint: the network remembers %d changes that it "
                "acknowledged and does not know. Put back the newest checkpoint, or tell it again.",
                self.name, old.told - self.restored,
            )  # fmt: skip
            self.told, self.restored = max(self.told, old.told), None

    def _entry(self, now: float, round_: int) -> Entry:
        return Entry(
            self.name,
            self.incarnation,
            self._sequence,
            self.has_left,
            self.held.describe(),
            tuple((name, self._is_heard(name, now)) for name in sorted(self.mail)),
            round_,
            self.told,
            tuple((*pair, *said) for pair, said in sorted(self.said.items())),
            self.identity.agreement,
            self.identity.certificate,
        )

    def _is_heard(self, name: str, now: float) -> bool:
        """Whether a neighbour is heard, or was until a moment ago, when the node was put on disk.

        So who comes back says nothing that has its neighbours give up what they agreed on with it.
        """
        mail = self.mail[name]
        if mail.heard_at is None:
            return name in self.linked and now - self.born <= self.timing.evict_seconds
        self.linked.discard(name)
        entry = self.roster.entries.get(name)
        if entry and entry.has_left:  # it says so itself when it is back
            mail.forget()
            return False
        if now - mail.heard_at > self.timing.evict_seconds:
            log.warning(
                "Node %s heard nothing from node %s since round %d (%.0f s); "
                "it goes on without it.",
                self.name, name, mail.newest, now - mail.heard_at,
            )  # fmt: skip
            mail.forget()
            return False
        return True

    # Which tasks train together

    def coupled(self, tasks: list[str]) -> Said:
        """Return what the node says once tasks train together."""
        first, *others = sorted(set(tasks))
        return self._saying({(first, other): True for other in others})

    def decoupled(self, task: str) -> Said:
        """Return what the node says once a task trains alone and the rest of its group goes on."""
        couples, group = self.roster.couples, self.roster.group(task)
        rest = {t for pair in couples for t in pair if self.roster.group(t) == group} - {task}
        first, *others = sorted(rest) or [task]
        kept = {(first, other): True for other in others if (first, other) not in couples}
        return self._saying({**{pair: False for pair in couples if task in pair}, **kept})

    def _saying(self, new: dict[Pair, bool]) -> Said:
        last = self.roster.stamps()
        stamps = {pair: last.get(pair, (0, False))[0] + 1 for pair in new}
        said = {pair: (min(stamps[pair], MOST_COUNT - 1), is_so) for pair, is_so in new.items()}
        return {**self.said, **said}

    # Who is here

    def _look_around(self) -> None:
        names = self.roster.neighbours(self.name)
        self.post.present = [name for name in names if name in self.mail]
        self.post.digest = self.roster.digest

    def may_begin(self, now: float, round_: int) -> bool:
        """Whether everybody is here, or has been waited for long enough."""
        if now - self.born > self.timing.start_seconds:
            return True
        has_begun = any(mail.newest > 0 for mail in self.mail.values())
        if has_begun and round_ > 0:  # it was part of this: whom it misses may have gone
            return all(
                self._knows(mail) for mail in self.mail.values() if mail.heard_at is not None
            )
        everyone_knows = all(self._knows(mail) for mail in self.mail.values())
        return self.roster.is_whole(self.name) and (everyone_knows or has_begun)

    def _knows(self, mail: Mail) -> bool:
        return mail.roster_digest == self.roster.digest
