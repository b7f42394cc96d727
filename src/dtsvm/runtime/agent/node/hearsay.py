"""What neighbours pass on of other nodes: whom only one of two believes, and who never rests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dtsvm.runtime.agent.node.entry import Entry, Owner
from dtsvm.runtime.agent.node.mail import Mail
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.node.unrest import CALMING, MOST_RESTLESS, Unrest

__all__ = ["Hearsay"]

LASTS = 20.0  # seconds before it is said that two nodes differ: files are looked at every ten
FORGOTTEN = 60.0  # seconds after which one has to differ anew
MOST_NAMES = 5  # in a sentence
REMEDY = {
    "revoked": "copy revoked.pem to every folder",
    "expired": "set the clocks of all right, or give it a new certificate",
    "counted": "set the clocks of all right",
}


@dataclass
class Hearsay:
    """What one node's neighbours say of others.

    A node is not believed here and at a neighbour alike while a list of revoked certificates is at
    one of the two only, or a clock is wrong. Then rosters differ, and no sum over the network ends.

    Who says something new of itself too often is barred by its neighbours, each for itself. What
    they pass on they have borne themselves: twice as much is taken over at once, and then so much a
    second, in case somebody is in league with a restless node; when that rests all have its last
    word. To hold it longer would part those who have taken it over from those who have not.

    Parameters
    ----------
    node : str
        The node.
    roster : Roster
        Whom it believes.
    mail : dict of str to Mail
        Its neighbours.
    is_at_rest : callable
        Whether the node has settled.
    """

    node: str
    roster: Roster
    mail: Mapping[str, Mail]
    is_at_rest: Callable[[], bool] = lambda: False
    most: float = MOST_RESTLESS  # changes of another node at once
    calming: float = CALMING  # changes a second after that
    _differ: dict[tuple[str, str, str], tuple[float, float]] = field(default_factory=dict)
    _unrest: dict[Owner, Unrest] = field(default_factory=dict)
    _ages: dict[Owner, tuple[int, int]] = field(default_factory=dict)  # of entries counted last
    _held: dict[str, tuple[str, float]] = field(default_factory=dict)  # by whom passed on, when

    # Who never rests

    def rest(self, entry: Entry, now: float) -> float:
        """Count what a neighbour says of itself; return for how long it is barred, if it is."""
        known = self.roster.entries.get(entry.name)
        if known is not None and not entry.is_newer_than(known):
            return 0.0
        return self._blame(entry.owner, self._weigh(entry, known), now)

    def back(self, peer: str, now: float) -> float:
        """Count that a neighbour is heard which was not; return for how long it is barred, if so.

        Who falls silent and comes back again and again says nothing new of itself. All its
        neighbours do, and would be blamed for it by theirs.
        """
        known = self.roster.entries.get(peer)
        return self._blame(known.owner, 1.0, now) if known else 0.0

    def _blame(self, owner: Owner, weight: float, now: float) -> float:
        unrest = self._unrest.setdefault(owner, Unrest(self.most, self.calming))
        if unrest.allows(weight, now, is_at_rest=self.is_at_rest()):
            return 0.0
        return unrest.seconds(now)

    def _weigh(self, entry: Entry, known: Entry | None) -> float:
        """How much somebody is to blame for what it says; for its first word, not at all."""
        self._unrest.setdefault(entry.owner, Unrest(self.most, self.calming))
        is_first = self._ages.get(entry.owner) in (None, entry.age)
        self._ages[entry.owner] = entry.age
        return float(not is_first) if known is None else entry.restlessness(known, self.node)

    def fair(self, peer: str, entries: Iterable[Entry], now: float) -> list[Entry]:
        """Return the entries that are taken over: of another node only so often something new."""
        return [one for one in entries if self._is_fair(peer, one, now)]

    def _is_fair(self, peer: str, entry: Entry, now: float) -> bool:
        known = self.roster.entries.get(entry.name)
        is_old = known is not None and not entry.is_newer_than(known)
        if entry.name in (peer, self.node) or is_old:
            return True
        weight, unrest = self._weigh(entry, known), self._unrest[entry.owner]
        if unrest.bears(weight, now, is_at_rest=self.is_at_rest()):
            return True
        self._held[entry.name] = peer, now
        return False

    # Whom only one of two believes

    def note(self, peer: str, theirs: set[str], left_out: Mapping[str, str], now: float) -> None:
        """Compare whom a neighbour believes with whom this node does, and why it does not."""
        found = {(peer, name, why) for name, why in left_out.items()}
        found |= {(peer, name, "") for name in self.roster.entries.keys() - theirs - {self.node}}
        kept = {
            key: (since, last)
            for key, (since, last) in self._differ.items()
            if (key[0] != peer or key in found) and now - last < FORGOTTEN
        }
        self._differ = {**kept, **{key: (kept.get(key, (now, now))[0], now) for key in found}}

    def words(self, now: float) -> list[str]:
        """Say who is not believed by whom once that has lasted, who never rests, and what helps."""
        found: dict[tuple[str, str], list[str]] = {}
        for (peer, name, why), (since, last) in sorted(self._differ.items()):
            if now - since >= LASTS and now - last < FORGOTTEN and self._is_apart(peer):
                found.setdefault((peer, why), []).append(name)
        said = [self._sentence(peer, why, names) for (peer, why), names in found.items()]
        held = [(name, by) for name, (by, last) in self._held.items() if now - last < LASTS]
        if self.roster.left_out:
            said.append(
                f"what nodes {', '.join(sorted(self.roster.left_out)[:MOST_NAMES])} say of "
                "themselves is too long for a message with all that the others say, so the network "
                "goes on without them: give them fewer tasks, or revoke them."
            )
        return said + [
            f"node {name}, of which node {by} tells, says something new of itself too often: it is "
            "taken over once in a while, and nobody settles. Find out why, and revoke it."
            for name, by in sorted(held)[:MOST_NAMES]
        ]

    def _is_apart(self, peer: str) -> bool:
        mail = self.mail.get(peer)
        if mail is None or mail.heard_at is None:
            return False
        return mail.roster_digest != self.roster.digest

    def _sentence(self, peer: str, why: str, names: list[str]) -> str:
        who = f"node{'s' * (len(names) > 1)} {', '.join(names[:MOST_NAMES])}"
        end = "so no sum over the network ends"
        if not why:
            return (
                f"node {peer} does not believe {who}, and this node does, {end}: copy revoked.pem "
                "to every folder, and set the clocks of all right."
            )
        remedy = next(words for key, words in REMEDY.items() if key in why)
        return f"node {peer} believes {who}, and this node does not ({why}), {end}: {remedy}."
