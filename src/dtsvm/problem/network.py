"""Who can talk to whom: the graph the messages travel on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import NetworkError, did_you_mean

__all__ = ["Network"]

Node = Hashable
Link = tuple[Node, Node]


class Network:
    """An undirected graph of nodes; immutable.

    Parameters
    ----------
    nodes : sequence of hashable
        The nodes' labels, in the order every per-node result is given in.
    links : iterable of pairs
        The links, as pairs of labels.

    Attributes
    ----------
    nodes : tuple
        The labels.
    links : ndarray of shape (n_links, 2)
        Positions of both ends in `nodes`, the smaller one first, sorted.

    Examples
    --------
    >>> from dtsvm import Network
    >>> net = Network(["a", "b", "c"], [("a", "b"), ("b", "c")])
    >>> net.neighbours("b")
    ('a', 'c')
    >>> Network.ring(5)
    Network(n_nodes=5, n_links=5, degree=0.5)
    """

    def __init__(self, nodes: Sequence[Node], links: Iterable[Link]) -> None:
        self.nodes: tuple[Node, ...] = tuple(nodes)
        if not self.nodes:
            raise NetworkError("A network needs at least one node; got none.")
        self._position = {node: i for i, node in enumerate(self.nodes)}
        if len(self._position) != len(self.nodes):
            twice = next(n for i, n in enumerate(self.nodes) if n in self.nodes[:i])
            raise NetworkError(f"Node {twice!r} is listed twice; every node needs its own label.")
        self.links = self._checked(links)
        self._neighbours: list[list[int]] = [[] for _ in self.nodes]
        for i, j in self.links.tolist():
            self._neighbours[i].append(j)
            self._neighbours[j].append(i)
        for around in self._neighbours:
            around.sort()

    def _checked(self, links: Iterable[Link]) -> NDArray[np.intp]:
        seen: set[tuple[int, int]] = set()
        for link in links:
            a, b = _ends_of(link)
            for end in (a, b):
                if end not in self._position:
                    raise NetworkError(
                        f"Link ({a!r}, {b!r}) names node {end!r}, which is not in the network."
                    )
            if a == b:
                raise NetworkError(f"Node {a!r} is linked to itself; a link joins two nodes.")
            i, j = self._position[a], self._position[b]
            pair = (min(i, j), max(i, j))
            if pair in seen:
                raise NetworkError(f"Link ({a!r}, {b!r}) is given twice; give each link once.")
            seen.add(pair)
        return np.array(sorted(seen), dtype=np.intp).reshape(-1, 2)

    @classmethod
    def complete(cls, nodes: int | Sequence[Node]) -> Network:
        """Every node linked to every other one."""
        labels = _labels(nodes)
        n = len(labels)
        return cls._from_positions(labels, [(i, j) for i in range(n) for j in range(i + 1, n)])

    @classmethod
    def ring(cls, nodes: int | Sequence[Node]) -> Network:
        """Every node linked to the next, the last to the first."""
        labels = _labels(nodes)
        n = len(labels)
        closing = [(0, n - 1)] if n > 2 else []
        return cls._from_positions(labels, [(i, i + 1) for i in range(n - 1)] + closing)

    @classmethod
    def line(cls, nodes: int | Sequence[Node]) -> Network:
        """Every node linked to the next."""
        labels = _labels(nodes)
        return cls._from_positions(labels, [(i, i + 1) for i in range(len(labels) - 1)])

    @classmethod
    def star(cls, nodes: int | Sequence[Node]) -> Network:
        """The first node linked to all others."""
        labels = _labels(nodes)
        return cls._from_positions(labels, [(0, i) for i in range(1, len(labels))])

    @classmethod
    def grid(cls, nodes: int | Sequence[Node], columns: int | None = None) -> Network:
        """Nodes in rows of `columns`, each linked to its right and lower neighbour.

        `columns` defaults to the square root of the number of nodes, rounded up; the last row may
        be shorter.
        """
        labels = _labels(nodes)
        n = len(labels)
        columns = int(np.ceil(np.sqrt(n))) if columns is None else columns
        if columns < 1:
            raise NetworkError(f"A grid needs at least one column; got {columns}.")
        right = [(i, i + 1) for i in range(n - 1) if (i + 1) % columns]
        down = [(i, i + columns) for i in range(n - columns)]
        return cls._from_positions(labels, right + down)

    @classmethod
    def random(cls, nodes: int | Sequence[Node], degree: float, seed: int | None = None) -> Network:
        """A connected random network with the asked degree, to the nearest link.

        Parameters
        ----------
        nodes : int or sequence of hashable
            How many nodes, or their labels.
        degree : float
            Mean over the nodes of (number of neighbours) / (n_nodes - 1), as in the paper.
        seed : int, optional
            Seed of the draw.

        Examples
        --------
        >>> from dtsvm import Network
        >>> round(Network.random(20, degree=0.6368, seed=0).degree, 4)
        0.6368
        """
        labels = _labels(nodes)
        n = len(labels)
        most = n * (n - 1) // 2
        wanted = round(degree * most)
        if not 0 <= degree <= 1 or wanted < n - 1:
            raise NetworkError(
                f"No connected network of {n} nodes has degree {degree}: "
                f"choose a degree from {_least_degree(n):.4g} to 1."
            )
        rng = np.random.default_rng(seed)
        order = rng.permutation(n)
        # A random recursive tree keeps it connected; the other links are drawn from the rest.
        tree = {_pair(order[i], order[rng.integers(i)]) for i in range(1, n)}
        rest = [(i, j) for i in range(n) for j in range(i + 1, n) if (i, j) not in tree]
        extra: Iterable[int] = (
            rng.choice(len(rest), size=wanted - len(tree), replace=False) if rest else ()
        )
        return cls._from_positions(labels, [*tree, *(rest[k] for k in extra)])

    @classmethod
    def named(cls, shape: str, nodes: int | Sequence[Node]) -> Network:
        """The network of a given shape: complete, ring, line, star or grid."""
        shapes = {
            "complete": cls.complete,
            "ring": cls.ring,
            "line": cls.line,
            "star": cls.star,
            "grid": cls.grid,
        }
        if shape not in shapes:
            raise NetworkError(f"Unknown network {shape!r}. {did_you_mean(shape, list(shapes))}")
        return shapes[shape](nodes)

    @classmethod
    def from_links(cls, links: Iterable[Link]) -> Network:
        """The network of these links; its nodes are the links' ends, in order of appearance."""
        pairs = [_ends_of(link) for link in links]
        return cls(list(dict.fromkeys(end for link in pairs for end in link)), pairs)

    @classmethod
    def from_networkx(cls, graph: Any) -> Network:
        """The network of an undirected networkx graph."""
        return cls(list(graph.nodes), list(graph.edges))

    def to_networkx(self) -> Any:
        """Return a networkx graph of the same nodes and links."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self)
        return graph

    @classmethod
    def _from_positions(cls, labels: Sequence[Node], pairs: Iterable[tuple[int, int]]) -> Network:
        return cls(labels, [(labels[i], labels[j]) for i, j in pairs])

    @property
    def n_nodes(self) -> int:
        """How many nodes."""
        return len(self.nodes)

    @property
    def n_links(self) -> int:
        """How many links."""
        return len(self.links)

    @property
    def degree(self) -> float:
        """Mean over the nodes of (number of neighbours) / (n_nodes - 1), as in the paper."""
        n = self.n_nodes
        return 2 * self.n_links / (n * (n - 1)) if n > 1 else 0.0

    def neighbours(self, node: Node) -> tuple[Node, ...]:
        """Return the nodes linked to `node`."""
        return self._around[self.position(node)]

    @cached_property
    def _around(self) -> list[tuple[Node, ...]]:
        """The nodes linked to each, by position."""
        return [tuple(self.nodes[j] for j in around) for around in self._neighbours]

    def position(self, node: Node) -> int:
        """Return where `node` stands in `nodes`."""
        if node not in self._position:
            raise NetworkError(
                f"Unknown node {node!r}. {did_you_mean(node, [str(n) for n in self.nodes])}"
            )
        return self._position[node]

    def components(self) -> list[tuple[Node, ...]]:
        """Return the parts of the network that cannot hear each other, the largest first."""
        named = [tuple(self.nodes[i] for i in sorted(part)) for part in self._parts]
        return sorted(named, key=len, reverse=True)

    @property
    def is_connected(self) -> bool:
        """Whether every node can reach every other one."""
        return len(self._parts) == 1

    @cached_property
    def _parts(self) -> list[list[int]]:
        """The nodes that can reach each other, by position."""
        left, found = dict.fromkeys(range(self.n_nodes)), []
        while left:
            part = [left.popitem()[0]]
            for i in part:
                around = [j for j in self._neighbours[i] if j in left]
                part += around
                for j in around:
                    del left[j]
            found.append(part)
        return found[::-1]

    def __iter__(self) -> Iterator[Link]:
        for i, j in self.links.tolist():
            yield self.nodes[i], self.nodes[j]

    def __contains__(self, node: object) -> bool:
        return node in self._position

    def __len__(self) -> int:
        return len(self.nodes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        return self.nodes == other.nodes and np.array_equal(self.links, other.links)

    def __hash__(self) -> int:
        return hash((self.nodes, self.links.tobytes()))

    def __repr__(self) -> str:
        return (
            f"Network(n_nodes={self.n_nodes}, n_links={self.n_links}, "
            f"degree={float(f'{self.degree:.4g}')})"
        )


def _labels(nodes: int | Sequence[Node]) -> Sequence[Node]:
    if isinstance(nodes, int | np.integer):
        if nodes < 1:
            raise NetworkError(f"A network needs at least one node; got {nodes}.")
        return range(int(nodes))
    return list(nodes)


def _pair(i: int, j: int) -> tuple[int, int]:
    return (int(min(i, j)), int(max(i, j)))


def _least_degree(n: int) -> float:
    return 2 / n if n > 1 else 0.0


def _ends_of(link: Any) -> Link:
    """Return the two ends of a link, or refuse what has not two."""
    try:
        a, b = link
    except (TypeError, ValueError):
        raise NetworkError(f"Link {link!r} is no pair; a link joins two nodes: (a, b).") from None
    return a, b
