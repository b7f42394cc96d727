"""Where nodes are drawn: distances on paper are the network's, the same way every time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import KDTree

__all__ = ["Place", "place_beside", "place_nodes"]

Place = tuple[float, float]
Floats = NDArray[np.float64]
SWEEPS = 60
APART = 0.7  # of the side of a square that each of n nodes could have for itself


def place_nodes(
    nodes: Sequence[Hashable], links: Iterable[tuple[Hashable, Hashable]]
) -> dict[Hashable, Place]:
    """Give every node a place in the unit square.

    A network in which most nodes are linked to each other stands on a circle; any other is placed
    so that its distances on paper are those along its links.

    Examples
    --------
    >>> places = place_nodes("abcd", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    >>> sorted(places) == list("abcd"), all(0 <= x <= 1 for x, _ in places.values())
    (True, True)
    """
    n = len(nodes)
    rank = {node: i for i, node in enumerate(nodes)}
    pairs = np.array([(rank[u], rank[v]) for u, v in links], np.int64).reshape(-1, 2)
    at = _circle(n)
    if n > 2 and len(pairs) < n * (n - 1) / 4:
        at = _unfold(_distances(n, pairs))
        at = _spread(_turn(at))
    at = _fit(at)
    return {node: (float(x), float(y)) for node, (x, y) in zip(nodes, at, strict=True)}


def place_beside(places: Mapping[Hashable, Place], neighbours: Sequence[Hashable]) -> Place:
    """Give a newcomer the emptiest place on a small circle round its neighbours' middle."""
    middle = np.mean([places[v] for v in neighbours], axis=0)
    others = np.array(list(places.values()))
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    tries = middle + 0.16 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    tries = np.clip(tries, 0.0, 1.0)
    room = np.linalg.norm(tries[:, None] - others[None], axis=2).min(axis=1)
    x, y = tries[int(np.argmax(room))]
    return float(x), float(y)


def _circle(n: int) -> Floats:
    angle = 2 * np.pi * np.arange(n) / max(n, 1) - np.pi / 2
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _distances(n: int, pairs: NDArray[np.int64]) -> Floats:
    """Links on the shortest way between two nodes; parts of a split network stand apart."""
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    steps = np.asarray(shortest_path(graph.tocsr(), directed=False, unweighted=True))
    most = steps[np.isfinite(steps)].max(initial=1.0)
    return np.where(np.isfinite(steps), steps, most + 2.0)


def _unfold(steps: Floats) -> Floats:
    """Classical scaling, then majorisation of Σ (‖x_i − x_j‖ − d_ij)² / d_ij²."""
    n = len(steps)
    squares = steps**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    vectors = np.linalg.eigh(-centred / 2)[1][:, -2:]
    at = vectors * steps.mean() * np.sqrt(n) + 1e-3 * _circle(n)
    weight = 1 / (squares + np.eye(n))
    np.fill_diagonal(weight, 0.0)
    total = weight.sum(axis=1)[:, None]
    for _ in range(SWEEPS):
        span = at[:, None] - at[None]
        length = np.maximum(np.linalg.norm(span, axis=2), 1e-9)
        pull = weight * steps / length
        at = (weight @ at + (pull[:, :, None] * span).sum(axis=1)) / total
    return np.asarray(at)


def _spread(at: Floats) -> Floats:
    """Push nodes apart that would cover each other, a little at a time."""
    at = _fit(at)
    least = APART / np.sqrt(len(at))
    for _ in range(SWEEPS):
        pairs = KDTree(at).query_pairs(least, output_type="ndarray")
        span = at[pairs[:, 0]] - at[pairs[:, 1]]
        length = np.maximum(np.linalg.norm(span, axis=1), 1e-9)
        push = 0.3 * (least / length - 1)[:, None] * span
        np.add.at(at, pairs[:, 0], push)
        np.add.at(at, pairs[:, 1], -push)
    return at


def _turn(at: Floats) -> Floats:
    """Turn the longest side level."""
    centred = at - at.mean(axis=0)
    turn = np.linalg.svd(centred.T @ centred)[2]
    return np.asarray(centred @ (turn * np.where(turn[:, :1] < 0, -1.0, 1.0)).T)


def _fit(at: Floats) -> Floats:
    """Stretch both axes alike into the unit square."""
    low, high = at.min(axis=0), at.max(axis=0)
    size = max(float((high - low).max()), 1e-9)
    return np.asarray((at - (low + high) / 2) / size + 0.5)
