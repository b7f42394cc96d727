"""Rows of numbers from all ranks, one rank's after the other's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["gather_rows"]

Floats = NDArray[np.float64]


def gather_rows(comm: Any, mine: NDArray[Any]) -> Floats:
    """Return the rows (n, …) of all ranks, stacked in the order of ranks, at every rank.

    Every rank's rows have the same shape; integers up to 2⁵³ stay exact.
    """
    rows = np.ascontiguousarray(mine, dtype=np.float64)
    if comm.size == 1:
        return rows
    counts = np.empty(comm.size, np.int64)
    comm.Allgather(np.array([rows.size], np.int64), counts)
    starts = np.cumsum(counts) - counts
    found = np.empty(int(counts.sum()))
    comm.Allgatherv(rows.reshape(-1), [found, (counts, starts)])
    shape = rows.shape[1:]
    return found.reshape(len(found) // max(int(np.prod(shape)), 1), *shape)
