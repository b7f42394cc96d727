"""What a node says about itself, in words that only it can sign."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace

from dtsvm.runtime.agent.node.identity import Identity

__all__ = ["NO_ROWS", "Entry", "Owner", "Statement"]

NO_ROWS = -100  # what an agent without rows says of its weight, as a power of two

ELSEWHERE = 0.1  # what it counts that a node hears another, or hears it no more
Statement = tuple[str, str, int, bool]  # two tasks, how often that was said, do they train together
Owner = tuple[str, bytes]  # a name and a certificate


@dataclass(frozen=True)
class Entry:
    """One node's entry in everybody's roster.

    Parameters
    ----------
    name : str
        The node.
    incarnation, sequence : int
        Of two entries the one with the larger pair is the newer.
    has_left : bool
        Whether the node has left politely.
    tasks : tuple
        Name, scale of features, digest of the labels and scale of C · rows of every task held.
    links : tuple
        Every neighbour's name, and whether it is heard.
    round : int
        In which the entry was made.
    told : int
        How many changes the node has acknowledged to its owner, ever.
    couples : tuple
        What the node was told about tasks that train together.
    agreement : bytes
        Its half of a key agreement, new with every start.
    certificate, signature : bytes
        Who signed; empty in a network without certificates.
    """

    name: str
    incarnation: int
    sequence: int
    has_left: bool = False
    tasks: tuple[tuple[str, int, int, int], ...] = ()
    links: tuple[tuple[str, bool], ...] = ()
    round: int = 0
    told: int = 0
    couples: tuple[Statement, ...] = ()
    agreement: bytes = b""
    certificate: bytes = b""
    signature: bytes = b""

    @property
    def age(self) -> tuple[int, int]:
        """What makes one entry newer than another."""
        return self.incarnation, self.sequence

    @property
    def owner(self) -> Owner:
        """Who is to blame for it: of a stolen certificate the thief, not the site with another."""
        return self.name, self.certificate

    @property
    def count(self) -> int:
        """The largest of what its owner counts."""
        stamps = (stamp for _, _, stamp, _ in self.couples)
        return max(self.incarnation, self.round, self.told, *stamps)

    @property
    def heard(self) -> frozenset[str]:
        """The neighbours it hears."""
        return frozenset(name for name, is_heard in self.links if is_heard)

    def is_newer_than(self, other: Entry) -> bool:
        """Whether this one counts; of two of one age, which only its owner can make, the larger."""
        if self.age != other.age:
            return self.age > other.age
        return self.content(0) > other.content(0)

    def says_the_same_as(self, other: Entry) -> bool:
        """Whether two entries differ in nothing but their age."""
        return _aged(self) == _aged(other)

    def restlessness(self, old: Entry, here: str) -> float:
        """How much the node is to blame, at `here`, for saying this after `old`.

        Whom else it hears may be the other's doing, which comes and goes and is blamed for that by
        all its neighbours: such a change counts little, but it counts.
        """
        one, other = (replace(e, links=_linked(e, here)) for e in (old, self))
        is_own = old.says_the_same_as(self) or not one.says_the_same_as(other)
        return 1.0 if is_own else ELSEWHERE

    def content(self, network: int) -> bytes:
        """Return what is signed: every field, in one spelling; with 0, what entries are told by."""
        return self._plain if network == 0 else self._spelled(network)

    @functools.cached_property
    def _plain(self) -> bytes:
        return self._spelled(0)

    def _spelled(self, network: int) -> bytes:
        said = [
            "dtsvm entry", network, self.name, self.incarnation, self.sequence, self.has_left,
            self.tasks, self.links, self.round, self.told, self.couples, self.agreement.hex(),
            self.certificate.hex(),
        ]  # fmt: skip
        return json.dumps(said, separators=(",", ":")).encode()

    def signed(self, network: int, identity: Identity) -> Entry:
        """Return the entry as its owner signs it."""
        mine = replace(self, agreement=identity.agreement, certificate=identity.certificate)
        return replace(mine, signature=identity.sign(mine.content(network)))


def _linked(entry: Entry, here: str) -> tuple[tuple[str, bool], ...]:
    return tuple(link for link in entry.links if link[0] == here)


def _aged(entry: Entry) -> Entry:
    return replace(entry, incarnation=0, sequence=0, round=0, signature=b"")
