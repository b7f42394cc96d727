"""What neighbours say: checked whole, then kept; what is refused is counted and logged."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from dtsvm.runtime.agent.node.holdings import Holding
from dtsvm.runtime.agent.node.ledger import Ledger
from dtsvm.runtime.agent.node.mail import Mail
from dtsvm.runtime.agent.node.refuse import (
    News,
    Refused,
    parse,
    read_ledger,
    read_roster,
    read_values,
)
from dtsvm.runtime.agent.node.roster import Entry, Roster

__all__ = ["Inbox"]

log = logging.getLogger(__name__)
REFUSAL_LOG_SECONDS = 60.0


@dataclass
class Inbox:
    """The mailboxes of one node, and the rules for what gets in.

    Parameters
    ----------
    node : str
        The node.
    network, settings : int
        The network's id, and the digest of what all nodes have in common.
    n_numbers : int
        Length of a row and one.
    """

    node: str
    network: int
    settings: int
    n_numbers: int
    roster: Roster
    ledger: Ledger
    holdings: dict[str, Holding]
    mail: dict[str, Mail]
    refused: Counter[str] = field(default_factory=Counter)
    logged_at: dict[str, float] = field(default_factory=dict)

    def take(self, peer: str, data: bytes, now: float) -> bool | None:
        """Keep a message; return whether roster or ledger have news, None if it was refused."""
        try:
            message, news = self._check(peer, data)
            return self._keep(peer, message, news, now)
        except Refused as reason:
            self._refuse(peer, str(reason), now)
            return None

    def _check(self, peer: str, data: bytes) -> tuple[Any, News]:
        if peer not in self.mail:
            raise Refused("the sender is no neighbour")
        most = 32 * self.n_numbers * (1 + len(self.holdings)) ** 2 + 65_536
        message = parse(data, most)
        if message.network != self.network:
            raise Refused("it belongs to another network")
        if message.sender != peer:
            raise Refused(f"it says that it comes from {message.sender[:80]!r}")
        if message.settings != self.settings:
            raise Refused("the sender has other settings")
        self.mail[peer].check(message)
        news = read_values(message, self.n_numbers)
        self._check_tasks(message)
        return message, news

    def _keep(self, peer: str, message: Any, news: News, now: float) -> bool:
        has_news = False
        roster = read_roster(message.roster) if message.HasField("roster") else None
        if roster:
            self._check_labels(peer, roster[0])
        ledger = read_ledger(message.ledger) if message.HasField("ledger") else None
        if roster:
            has_news = self.roster.merge(*roster)
        if ledger:
            has_news = self.ledger.merge(*ledger) or has_news
        self.mail[peer].put(message, news, now)
        return has_news

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
                raise Refused(f"the sender does not hold task {value.task[:80]!r}")
            if to_task not in self.holdings:
                raise Refused(f"task {to_task[:80]!r} is not held here")
            if (value.group or value.task) != self.roster.group(value.task):
                raise Refused(f"task {value.task[:80]!r} is not in group {value.group[:80]!r}")

    def _check_labels(self, peer: str, entries: list[Entry]) -> None:
        """Refuse a neighbour for which another label of a task is positive."""
        for entry in entries:
            for task, _, labels in entry.tasks if entry.name == peer else ():
                mine = self.holdings[task].labels if task in self.holdings else 0
                if mine and labels and mine != labels:
                    raise Refused(
                        f"it has other labels for task {task[:80]!r}, or the other one is positive"
                    )

    def _refuse(self, peer: str, reason: str, now: float) -> None:
        self.refused[peer] += 1
        last = self.logged_at.get(peer)
        if last is None or now - last >= REFUSAL_LOG_SECONDS:
            self.logged_at[peer] = now
            log.warning(
                "Node %s refused a message from node %s (%d so far): %s.",
                self.node, peer, self.refused[peer], reason,
            )  # fmt: skip
