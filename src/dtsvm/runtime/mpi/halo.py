"""What neighbouring ranks tell each other in a round: x of the agents at their border.

Both ends of a link that is cut by a border are kept at both its ranks. What end a→b needs of b is
q = 2 ρ x_b − z[b→a], and z[b→a] follows the same rule at both ranks from the same numbers; so x_b
is all that travels, once to a rank however many links lead there, and both ranks see both
residuals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Borders", "Halo", "find_borders"]

Slots = NDArray[np.int64]
Floats = NDArray[np.float64]


class Borders(NamedTuple):
    """Whom this rank tells, and of whom it is told, by neighbouring rank; agents ascending."""

    told: dict[int, Slots]
    heard: dict[int, Slots]


def find_borders(rank: Slots, a: Slots, b: Slots, here: int) -> Borders:
    """Find the agents at the borders of a rank; `rank` is by slot, links join a[i] and b[i].

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.runtime.mpi.halo import find_borders
    >>> find_borders(np.array([0, 0, 1]), np.array([0, 1]), np.array([1, 2]), 0)
    Borders(told={1: array([1])}, heard={1: array([2])})
    """
    mine, other = np.concatenate([a, b]), np.concatenate([b, a])
    is_cut = (rank[mine] == here) & (rank[other] != here)
    mine, other = mine[is_cut], other[is_cut]
    around = np.unique(rank[other]).tolist()
    return Borders(
        {r: np.unique(mine[rank[other] == r]) for r in around},
        {r: np.unique(other[rank[other] == r]) for r in around},
    )


class Halo:
    """A persistent exchange between neighbouring ranks.

    Parameters
    ----------
    comm : mpi4py communicator
        The ranks.
    borders : Borders
        Who tells whom.
    estimate, norm : array
        x and ‖x‖ by agent slot: read before and written after the exchange.
    """

    def __init__(self, comm: Any, borders: Borders, estimate: Floats, norm: Floats) -> None:
        around = list(borders.told)
        self._x, self._norm = estimate.reshape(len(estimate), -1), norm
        self._told = np.concatenate([np.zeros(0, np.int64), *borders.told.values()])
        self._heard = np.concatenate([np.zeros(0, np.int64), *borders.heard.values()])
        width = self._x.shape[1] + 1
        self._out, self._in = (np.zeros((len(v), width)) for v in (self._told, self._heard))
        self._graph = comm.Create_dist_graph_adjacent(around, around, reorder=False)
        self._buffers = [
            [buffer, _extents(list(parts.values()), width)]
            for buffer, parts in ((self._out, borders.told), (self._in, borders.heard))
        ]
        try:
            self._request = self._graph.Neighbor_alltoallv_init(*self._buffers)
        except NotImplementedError:  # an MPI before version 4
            self._request = None
        self._running: Any = None

    @property
    def bytes_sent(self) -> int:
        """Bytes this rank sends in a round."""
        return self._out.nbytes

    def start(self) -> None:
        """Begin to tell x of the agents at the border."""
        width = self._x.shape[1]
        self._out[:, :width] = self._x[self._told]
        self._out[:, width] = self._norm[self._told]
        if self._request is None:
            self._running = self._graph.Ineighbor_alltoallv(*self._buffers)
        else:
            self._running = self._request
            self._running.Start()

    def finish(self) -> None:
        """Wait for the neighbours' x and take it in."""
        self._running.Wait()
        width = self._x.shape[1]
        self._x[self._heard] = self._in[:, :width]
        self._norm[self._heard] = self._in[:, width]

    def free(self) -> None:
        """Give back what MPI holds for this."""
        if self._request is not None:
            self._request.Free()
        self._graph.Free()


def _extents(parts: list[Slots], width: int) -> tuple[list[int], list[int]]:
    counts = [len(part) * width for part in parts]
    return counts, (np.cumsum([0, *counts])[:-1]).tolist()
