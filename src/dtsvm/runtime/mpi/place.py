"""Which rank a node is at: few links cut, rows dealt evenly.

Nodes are put in the order of reverse Cuthill and McKee (1969), in which neighbours stand close
together, and the order is cut into pieces of equal weight. Then nodes at a border move to where
most of their neighbours are as long as that cuts fewer links and no rank grows beyond its fair
share by more than a tenth, or by its heaviest node (one node at a time, after Fiduccia and
Mattheyses, 1982, without their buckets). METIS cuts fewer links still in networks without
geometry, but has no maintained wheel for every platform.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

__all__ = ["cut_links", "place_nodes"]

Ints = NDArray[np.int64]
SLACK = 1.1  # times the fair share a rank may have
SWEEPS = 4  # over the nodes at borders


def place_nodes(weight: Ints, links: Ints, n_ranks: int) -> Ints:
    """Return the rank of every node.

    Parameters
    ----------
    weight : array of shape (n_nodes,)
        How much work a node is: its rows.
    links : array of shape (n_links, 2)
        Which nodes are linked.
    n_ranks : int
        How many ranks there are.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.runtime.mpi.place import cut_links, place_nodes
    >>> ring = np.array([(v, (v + 1) % 8) for v in range(8)])
    >>> rank = place_nodes(np.ones(8, int), ring, 2)
    >>> np.bincount(rank).tolist(), cut_links(rank, ring)
    ([4, 4], 2)
    """
    n_nodes = len(weight)
    if not n_nodes:
        return np.zeros(0, np.int64)
    load = np.maximum(np.asarray(weight, np.float64), 1e-3)  # a node without rows is some work, too
    graph = _graph(n_nodes, links)
    order = np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), np.int64)
    middle = np.cumsum(load[order]) - 0.5 * load[order]
    rank = np.zeros(n_nodes, np.int64)
    rank[order] = np.minimum(middle * n_ranks / max(load.sum(), 1e-300), n_ranks - 1).astype(int)
    if n_ranks > 1:
        _refine(rank, load, graph, n_ranks)
    return rank


def cut_links(rank: Ints, links: Ints) -> int:
    """How many links join nodes of different ranks."""
    return int((rank[links[:, 0]] != rank[links[:, 1]]).sum()) if len(links) else 0


def _graph(n_nodes: int, links: Ints) -> csr_array:
    ends = np.asarray(links, np.int64).reshape(-1, 2)
    both = np.concatenate([ends, ends[:, ::-1]])
    ones = np.ones(len(both))
    graph = csr_array((ones, (both[:, 0], both[:, 1])), shape=(n_nodes, n_nodes))
    graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
    return graph


def _refine(rank: Ints, load: NDArray[np.float64], graph: csr_array, n_ranks: int) -> None:
    """Move nodes at borders, in the order of their numbers, while that cuts fewer links."""
    total = np.bincount(rank, weights=load, minlength=n_ranks)
    fair = load.sum() / n_ranks
    most = max(SLACK * fair, fair + 0.5 * load.max(initial=0.0))
    owner = np.repeat(np.arange(len(rank)), np.diff(graph.indptr))
    for _ in range(SWEEPS):
        at_border = np.unique(owner[rank[owner] != rank[graph.indices]])
        n_moved = 0
        for v in at_border.tolist():
            around = rank[graph.indices[graph.indptr[v] : graph.indptr[v + 1]]]
            votes = np.bincount(around, minlength=n_ranks)
            there = int(votes.argmax())
            here = int(rank[v])
            if votes[there] > votes[here] and total[there] + load[v] <= most:
                rank[v] = there
                total[here] -= load[v]
                total[there] += load[v]
                n_moved += 1
        if n_moved == 0:
            break
