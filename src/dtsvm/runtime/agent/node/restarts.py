"""Who makes all begin anew again and again: each node watches its own neighbours for that."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dtsvm.runtime.agent.node.entry import Entry
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.roster import Roster

__all__ = ["Restarts"]

MOST, SECONDS = 50.0, 20.0  # changes at once, and seconds after which one more is forgiven


@dataclass
class Restarts:
    """Counts how often each neighbour changed since all last began, and bars who does too often.

    A neighbour is blamed for what it says of itself, for coming and going here, and for links that
    the other end does not know of; not for whom else it hears or misses, which may be the other's
    doing, and is then seen at that one's neighbours.
    """

    _entries: dict[str, Entry] = field(default_factory=dict)
    _present: frozenset[str] = frozenset()
    _counts: dict[str, tuple[float, float]] = field(default_factory=dict)  # how many, when

    def watch(self, node: Node, now: float) -> None:
        """Count what has changed since the last time."""
        present, known = frozenset(node.present), self._entries
        changed = set(present ^ self._present if known else ())
        entries = dict(node.roster.entries)
        changed |= {
            name
            for name in node.mail
            if name in known and name in entries and _is_own_doing(node, known[name], entries[name])
        }
        self._entries, self._present = entries, present
        for name in sorted(changed & node.mail.keys()):
            if self._is_too_often(name, now):
                seconds = node.mail[name].bar(now)
                words = f"it makes all choose anew too often; it is barred for {seconds:.0f} s"
                node.inbox.complain(name, words, now)

    def _is_too_often(self, name: str, now: float) -> bool:
        n, then = self._counts.get(name, (0.0, now))
        n = max(n - (now - then) / SECONDS, 0.0) + 1.0
        self._counts[name] = (0.0 if n > MOST else n, now)
        return n > MOST


def _is_own_doing(node: Node, old: Entry, new: Entry) -> bool:
    """Whether a neighbour's entry changed otherwise than by whom else it hears."""
    if old.says_the_same_as(new):
        return old.age != new.age
    one, other = (_own(entry, node.roster, node.name) for entry in (old, new))
    return not one.says_the_same_as(other)


def _own(entry: Entry, roster: Roster, here: str) -> Entry:
    """Return an entry without links whose other end hears it."""
    links = (link for link in entry.links if link[0] == here or not _hears(roster, link[0], entry))
    return replace(entry, links=tuple(links))


def _hears(roster: Roster, name: str, other: Entry) -> bool:
    entry = roster.entries.get(name)
    return entry is not None and not entry.has_left and other.name in entry.heard
