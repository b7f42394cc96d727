"""What neighbours say: checked whole, then kept; what is refused is counted and logged."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dtsvm.kernel import boxes
from dtsvm.runtime.agent.node.entry import Entry
from dtsvm.runtime.agent.node.hearsay import Hearsay
from dtsvm.runtime.agent.node.holdings import Holding
from dtsvm.runtime.agent.node.identity import Identity
from dtsvm.runtime.agent.node.lanes import task_of
from dtsvm.runtime.agent.node.mail import Mail
from dtsvm.runtime.agent.node.names import shown
from dtsvm.runtime.agent.node.pattern import Pattern
from dtsvm.runtime.agent.node.refuse import (
    MOST_TASKS,
    ROSTER_BYTES,
    News,
    Refused,
    parse,
    read_roster,
    read_values,
)
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.node.summing import Summing

__all__ = ["Inbox", "digest"]

log = logging.getLogger(__name__)
REFUSAL_LOG_SECONDS = 60.0
SUM_BYTES = 4096  # a feature: two sums of a certificate, of some sixty tasks


@dataclass
class Inbox:
    """The mailboxes of one node, and the rules for what gets in.

    Parameters
    ----------
    node : str
        The node.
    network : int
        The network's id.
    settings : str
        What all nodes have in common, as JSON.
    n_numbers : int
        Length of a row and one.
    identity : Identity
        Whose signatures are believed.
    remember : callable
        Called with what the others remember of the node itself.
    post : Post
        Where it is noted whether the node has settled.
    """

    node: str
    network: int
    settings: str
    n_numbers: int
    identity: Identity
    remember: Callable[[Entry], None]
    roster: Roster
    sums: Summing
    holdings: dict[str, Holding]
    mail: dict[str, Mail]
    post: boxes.Post
    refused: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)  # the last one, by neighbour
    logged_at: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.hearsay = Hearsay(self.node, self.roster, self.mail, lambda: self.post.is_settled)

    @property
    def most_bytes(self) -> int:
        """How long a message may be."""
        values = 32 * self.n_numbers * (1 + len(self.holdings)) ** 2
        return int(ROSTER_BYTES + values + SUM_BYTES * self.n_numbers)

    def take(self, peer: str, data: bytes, now: float) -> bool | None:
        """Keep a message; return whether there is a new total, None if it was refused."""
        mail = self.mail.get(peer)
        if mail is not None and now < mail.barred_until:
            return None  # why was said when it was barred
        try:
            message, news = self._check(peer, data)
            has_total = self._keep(peer, message, news, now)
            self.mail[peer].pattern = Pattern.of(data, message, news, self._known)
            return has_total
        except Refused as reason:
            self.complain(peer, str(reason), now)
            return None

    @property
    def _known(self) -> tuple[int, int]:
        """What checks depend on beside the message."""
        return self.roster.digest, self.sums.begun

    def _check(self, peer: str, data: bytes) -> tuple[Any, News]:
        if peer not in self.mail:
            raise Refused("the sender is no neighbour")
        message = parse(data, self.most_bytes)
        if message.network != self.network:
            raise Refused("it belongs to another network")
        if message.sender != peer:
            raise Refused(f"it says that it comes from {shown(message.sender)}")
        if message.settings != digest(self.settings):
            raise Refused(f"the sender has other settings{self._differences(message)}")
        self._check_counts(message)
        if len(message.sums) > 2 * MOST_TASKS:
            raise Refused("it has too many sums")
        self.mail[peer].check(message)
        news = read_values(message, self.n_numbers)
        self._check_tasks(message)
        return message, news

    def _check_counts(self, message: Any) -> None:
        latest = self.identity.latest()
        if message.round > latest:
            raise Refused(f"its round {message.round} is more than anybody can have counted")
        if message.incarnation > latest:
            raise Refused("it began too far in the future, or a clock is wrong")

    def _differences(self, message: Any) -> str:
        """Name the settings that differ, if the sender says its own."""
        try:
            theirs, mine = json.loads(message.said_settings[:10_000]), json.loads(self.settings)
            names = sorted(mine.keys() | theirs.keys())
        except (ValueError, AttributeError, RecursionError):
            return ""
        found = [
            f"{shown(name)[1:-1]} = {shown(theirs.get(name))[1:-1]} instead of {mine.get(name)}"
            for name in names
            if theirs.get(name) != mine.get(name)
        ]
        return ": " + ", ".join(found[:20]) if found else ""

    def _keep(self, peer: str, message: Any, news: News, now: float) -> bool:
        self._check_stay(peer, now)
        roster: list[Entry] = []
        if message.HasField("roster"):
            roster, left_out = read_roster(message.roster, self.network, self.identity)
            theirs = {member.name for member in message.roster.members}
            self.hearsay.note(peer, theirs, left_out, now)
            roster = [entry for entry in roster if not self.roster.twin_of(entry.name)]
            self._check_labels(peer, roster)
            for entry in roster:
                if entry.name == self.node:
                    self.remember(entry)
                if entry.name == peer:
                    self._check_rest(peer, entry, now)
        has_entry = self._check_begun(peer, message, roster)
        if roster:
            self.roster.merge(self.hearsay.fair(peer, roster, now))
        self.mail[peer].put(message, news, now)
        if not has_entry:
            self.mail[peer].incarnation = -1  # it has not signed when it began
        return self.sums.hear(peer, message, self.most_bytes)

    def _check_tasks(self, message: Any) -> None:
        """Refuse tasks and groups that are not as the roster says.

        Where one of the two has news to hear first they may differ: then values without a link end
        here are simply not used.
        """
        if message.roster_digest != self.roster.digest:
            return
        theirs = self.roster.tasks_at(message.sender)
        for value in message.values:
            to_task = value.to_task or value.task
            if value.task not in theirs:
                raise Refused(f"the sender does not hold task {shown(value.task)}")
            if to_task not in self.holdings:
                raise Refused(f"task {shown(to_task)} is not held here")
            if (value.group or value.task) != self.roster.group(value.task):
                raise Refused(f"task {shown(value.task)} is not in group {shown(value.group)}")

    def _check_rest(self, peer: str, entry: Entry, now: float) -> None:
        """Bar who says something new of itself all the time: the others would never settle."""
        seconds = self.hearsay.rest(entry, now)
        if seconds:
            self.mail[peer].bar(now, seconds)
            raise Refused(
                f"it says something new of itself too often; it is barred for {seconds:.0f} s"
            )

    def _check_stay(self, peer: str, now: float) -> None:
        """Bar who falls silent and comes back all the time."""
        seconds = self.hearsay.back(peer, now) if self.mail[peer].heard_at is None else 0.0
        if seconds:
            self.mail[peer].bar(now, seconds)
            raise Refused(f"it comes and goes too often; it is barred for {seconds:.0f} s")

    def _check_begun(self, peer: str, message: Any, entries: list[Entry]) -> bool:
        """Refuse a start of which a neighbour's own entry does not tell; return whether it has one.

        Who starts anew begins after what the others remember of it, and that is its entry.
        """
        known = self.roster.entries.get(peer)
        said = [entry for entry in (*entries, known) if entry and entry.name == peer]
        if said and message.incarnation > max(entry.incarnation for entry in said):
            raise Refused("it began anew, and does not say so of itself")
        return bool(said)

    def _check_labels(self, peer: str, entries: list[Entry]) -> None:
        """Refuse a neighbour for which another label of a task is positive."""
        for entry in entries:
            theirs = {name: labels for name, _, labels, _ in entry.tasks if entry.name == peer}
            shared = theirs.keys() & self.holdings.keys()
            mine = {task_of(name): name for name in self.holdings}
            for name, labels in theirs.items():
                held = self.holdings[name].labels if name in shared else 0
                is_apart = task_of(name) in mine and not any(
                    task_of(other) == task_of(name) for other in shared
                )
                if (held and labels and held != labels) or is_apart:
                    raise Refused(
                        f"it has other labels for task {shown(task_of(name))}, "
                        "or the other one is positive"
                    )

    def complain(self, peer: str, reason: str, now: float) -> None:
        """Count something that a neighbour should not have said, and log it once a minute."""
        self.refused[peer] += 1
        self.reasons[peer] = reason
        last = self.logged_at.get(peer)
        if last is None or now - last >= REFUSAL_LOG_SECONDS:
            self.logged_at[peer] = now
            log.warning(
                "Node %s refused a message from node %s (%d so far): %s.",
                self.node, peer, self.refused[peer], reason,
            )  # fmt: skip


@functools.cache
def digest(settings: str) -> int:
    """Return a short name of what all nodes have in common."""
    return int.from_bytes(hashlib.blake2b(settings.encode(), digest_size=8).digest(), "little")
