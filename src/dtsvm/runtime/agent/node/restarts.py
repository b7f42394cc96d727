"""Who makes all begin anew again and again: each node watches its own neighbours for that."""

from __future__ import annotations

from dataclasses import dataclass, field

from dtsvm.runtime.agent.node.entry import Entry
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.unrest import Unrest

__all__ = ["Restarts"]

MOST, SECONDS = 50.0, 20.0  # changes at once, and seconds after which one more is forgiven


@dataclass
class Restarts:
    """Counts how often each neighbour changed since all last began, and bars who does too often.

    A neighbour is blamed for what it says of itself and for coming and going here; a tenth as much
    for whom else it hears or misses, which may be the other's doing: see `Entry.restlessness`.
    """

    _entries: dict[str, Entry] = field(default_factory=dict)
    _present: frozenset[str] = frozenset()
    _unrest: dict[str, Unrest] = field(default_factory=dict)

    @staticmethod
    def hold(node: Node) -> None:
        """Have entries of others, whoever passes them on, change no more often than that either."""
        node.inbox.hearsay.most, node.inbox.hearsay.calming = MOST, 1.0 / SECONDS

    def watch(self, node: Node, now: float) -> None:
        """Count what has changed since the last time."""
        present, known = frozenset(node.present), self._entries
        entries = dict(node.roster.entries)
        changed = dict.fromkeys(present ^ self._present if known else (), 1.0)
        for name in node.mail.keys() & known.keys() & entries.keys() - changed.keys():
            if known[name] != entries[name]:
                changed[name] = entries[name].restlessness(known[name], node.name)
        self._entries, self._present = entries, present
        for name in sorted(changed.keys() & node.mail.keys()):
            unrest = self._unrest.setdefault(name, Unrest(MOST, 1.0 / SECONDS))
            if not unrest.allows(changed[name], now):
                seconds = node.mail[name].bar(now, unrest.seconds(now))
                words = f"it makes all choose anew too often; it is barred for {seconds:.0f} s"
                node.inbox.complain(name, words, now)
