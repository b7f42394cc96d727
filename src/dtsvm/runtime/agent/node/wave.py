"""The sum over the network: a wave up a tree of sums of subtrees, and down again with the total.

Every node derives the same breadth-first tree from the same roster; a node in the middle is its
root. A sum has a name and a number; of each name one sum is under way at a time, with a larger
number than the last. Each node adds its masked term to what its children sent and passes that to
its parent; the root has the total and everybody passes it on to its children. What is sent is sent
again until the other end shows that it has it, so lost messages only delay. When the roster
changes, all begins anew: terms of two rosters never meet, for the masks would not cancel.

A node may begin a sum while it waits for the total of an earlier one, which may never come: some
other node has missed it. If it comes after all, as it does once the root has it, the node takes it
and withdraws from the later sum, which it may begin anew. A part counts only from a child that has
the same last total, and a total only if all parts of this subtree were passed on for it. So
everybody has had every total when the next is made, in the same order, whatever a liar hands down.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.runtime.agent.node.masks import WIDTH, add, decode, encode, masked

__all__ = ["Parcel", "Tree", "Wave", "parcel_words", "reached", "read_parcel"]

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
MOST_LOOKED_AT = 200  # nodes among which the middle is looked for
Secrets = Callable[[], list[tuple[bytes, bool]]]


@dataclass(frozen=True)
class Tree:
    """One node's place in a breadth-first tree."""

    parent: str | None
    children: tuple[str, ...]
    depth: int = 0  # of the whole tree
    level: int = field(default=0, repr=False)  # links from here to the root
    heights: dict[str, int] = field(default_factory=dict, repr=False)  # of children's subtrees

    @classmethod
    def of(cls, name: str, links: Iterable[tuple[str, str]]) -> Tree:
        """Find a node's place; `links` are those between the nodes that add up.

        >>> Tree.of("b", [("a", "b"), ("b", "c"), ("a", "c")])
        Tree(parent='a', children=(), depth=1)
        """
        around = _around(name, links)
        parent, depth = _from(_centre(around), around)
        children = tuple(sorted(n for n, by in parent.items() if by == name))
        heights = dict.fromkeys(parent, 0)
        levels: dict[str | None, int] = {None: -1}
        for node, by in parent.items():  # the root first, and whoever is farther later
            levels[node] = levels[by] + 1
        for node, by in reversed(parent.items()):
            if by is not None:
                heights[by] = max(heights[by], heights[node] + 1)
        below = {child: heights[child] for child in children}
        return cls(parent.get(name), children, depth, levels[name], below)

    def links_to(self, neighbour: str) -> int:
        """Over how many links what a neighbour has to send may have to come, one after another.

        A part comes up its subtree and a link more; a total comes up all of the tree, and down.

        >>> middle = Tree.of("b", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")])
        >>> middle.parent, middle.links_to("c"), middle.links_to("a")
        ('c', 3, 1)
        """
        if neighbour in self.heights:
            return self.heights[neighbour] + 1
        return self.depth + self.level


def reached(name: str, links: Iterable[tuple[str, str]]) -> set[str]:
    """Return the nodes that links join with one, itself too.

    >>> sorted(reached("b", [("a", "b"), ("c", "d")]))
    ['a', 'b']
    """
    return set(_from(name, _around(name, links))[0])


def _around(name: str, links: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    around: dict[str, set[str]] = {name: set()}
    for one, other in links:
        around.setdefault(one, set()).add(other)
        around.setdefault(other, set()).add(one)
    return around


def _centre(around: dict[str, set[str]]) -> str:
    """Return a node from which the farthest is nearest; in large networks the least name."""
    if len(around) > MOST_LOOKED_AT:
        return min(around)
    return min(sorted(around), key=lambda node: _from(node, around)[1])


def _from(root: str, around: dict[str, set[str]]) -> tuple[dict[str, str | None], int]:
    """Return the parents in a breadth-first tree, and its depth."""
    parent: dict[str, str | None] = {root: None}
    edge, depth = [root], -1
    while edge:
        depth += 1
        reached = [(n, v) for v in edge for n in sorted(around[v]) if n not in parent]
        for node, by in reached:
            parent.setdefault(node, by)
        edge = sorted({node for node, _ in reached})
    return parent, depth


@dataclass(frozen=True)
class Parcel:
    """What one node tells another of one sum.

    Parameters
    ----------
    wanted, done : int
        The sum that the sender works at, and the last whose total it has.
    up : bytes
        Sum of the sender's subtree, for `wanted`, to its parent.
    down : bytes
        The total of `done`, to a child.
    """

    wanted: int = 0
    done: int = 0
    up: bytes = b""
    down: bytes = b""


@dataclass
class Wave:
    """One node's part in the sums of one name.

    Parameters
    ----------
    name : str
        What is summed, and for whom.
    tree : Tree
        The node's place.
    epoch : int
        Digest of the roster.
    secrets : callable
        Returns what the node shares with those it is masked with.
    """

    name: str
    tree: Tree
    epoch: int
    secrets: Secrets
    wanted: int = 0
    done: int = 0
    total: Floats | None = None
    on_change: Callable[[], None] = lambda: None
    changes: int = 0  # of anything here
    _mine: Words | None = None
    _passed: dict[int, int] = field(default_factory=dict)  # bytes of totals that may yet come
    _down: bytes = b""
    _ups: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    _acknowledged: dict[str, int] = field(default_factory=dict)
    _working: dict[str, int] = field(default_factory=dict)

    def begin(self, number: int, term: Floats) -> None:
        """Add this node's term to the sum with this number."""
        if number <= max(self.wanted, self.done):
            raise ValueError(f"sum {number} of {self.name} was begun already")
        self._mine = masked(encode(term), self.secrets(), self._id(number))
        self.wanted = number
        self._count()
        self._pass_on()

    def _count(self) -> None:
        self.changes += 1
        self.on_change()

    @property
    def is_open(self) -> bool:
        """Whether this node waits for a total."""
        return self.wanted > self.done

    @property
    def is_called(self) -> bool:
        """Whether a neighbour works at a sum that this node has not begun."""
        return max(self._working.values(), default=0) > self.wanted

    def holds(self, child: str) -> int:
        """Return how many bytes of a child's part are kept until all have come."""
        return len(self._ups.get(child, (0, b""))[1])

    def works_at(self, neighbour: str) -> int:
        """Return the number of the sum that a neighbour works at, or has."""
        return self._working.get(neighbour, 0)

    def lacks(self) -> list[str]:
        """Return the children that have not sent their part, or else the parent."""
        if not self.is_open or self._mine is None:
            return []
        good = (self.wanted, WIDTH * len(self._mine))
        sent = {child: (number, len(data)) for child, (number, data) in self._ups.items()}
        late = [child for child in self.tree.children if sent.get(child) != good]
        return late or [self.tree.parent or ""]

    def is_known_to(self, neighbour: str) -> bool:
        """Whether a neighbour has the total that this node waits for: then it is on its way."""
        return self.is_open and self._acknowledged.get(neighbour, 0) >= self.wanted

    def _id(self, number: int) -> bytes:
        """Name a sum; one begun anew after another total is another one, with other masks."""
        text = f"{self.epoch:x} {self.done} {number} {self.name}".encode()
        return hashlib.sha256(text).digest()

    # Telling

    def parcel(self, neighbour: str) -> Parcel:
        """Return what a neighbour is to be told."""
        up = down = b""
        if neighbour == self.tree.parent and self.is_open:
            up = self._sum() or b""
            self._passed |= {self.wanted: len(up)} if up else {}
        is_child = neighbour in self.tree.children
        if is_child and self.done and self._acknowledged.get(neighbour, 0) < self.done:
            down = self._down
        return Parcel(self.wanted, self.done, up, down)

    def has_something_for(self, neighbour: str) -> bool:
        """Whether a neighbour lacks something that is here."""
        parcel = self.parcel(neighbour)
        return bool(parcel.up or parcel.down)

    # Being told

    def hear(self, neighbour: str, parcel: Parcel) -> bool:
        """Take what a neighbour says; return whether there is a new total."""
        known = self._working.get(neighbour), self._acknowledged.get(neighbour)
        if known != (parcel.wanted, parcel.done) or parcel.up or parcel.down:
            self._count()
        self._working[neighbour] = parcel.wanted
        self._acknowledged[neighbour] = parcel.done
        before = self.done
        has_same = parcel.done == self.done < parcel.wanted
        if neighbour in self.tree.children and parcel.up and has_same:
            self._ups[neighbour] = (parcel.wanted, parcel.up)
        is_for_me = len(parcel.down) == self._passed.get(parcel.done)
        if neighbour == self.tree.parent and is_for_me:
            self._finish(parcel.done, parcel.down)
        self._pass_on()
        return self.done > before

    def _pass_on(self) -> None:
        if self.tree.parent is None and self.is_open:
            total = self._sum()
            if total is not None:
                self._finish(self.wanted, total)

    def _sum(self) -> bytes | None:
        """Return the sum of this subtree, once all of it is known."""
        assert self._mine is not None
        total = self._mine
        for child in self.tree.children:
            number, data = self._ups.get(child, (0, b""))
            if number != self.wanted or len(data) != WIDTH * len(total):
                return None
            total = add(total, _words(data))
        return np.ascontiguousarray(total, "<u8").tobytes()

    def _finish(self, number: int, data: bytes) -> None:
        """Have a total; what was begun or sent for a later sum was so without it."""
        self.wanted = self.done = number
        self._down, self.total = data, decode(_words(data))
        self._mine = None
        self._passed.clear()
        self._ups.clear()


def _words(data: bytes) -> Words:
    return np.frombuffer(data, "<u8").reshape(-1, 2).astype(np.uint64)


def parcel_words(parcel: Parcel) -> list[Any]:
    """Return a parcel as plain JSON values."""
    up, down = (base64.b64encode(part).decode() for part in (parcel.up, parcel.down))
    return [parcel.wanted, parcel.done, up, down]


def read_parcel(words: Any) -> Parcel:
    """Read what `parcel_words` wrote."""
    wanted, done, up, down = words
    return Parcel(int(wanted), int(done), base64.b64decode(up), base64.b64decode(down))
