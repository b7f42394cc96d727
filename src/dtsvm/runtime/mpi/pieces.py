"""What ranks hold of one array, brought to rank 0 a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["pass_on"]

BLOCK_BYTES = 1 << 24


def pass_on(comm: Any, mine: Any) -> Iterator[NDArray[Any]]:
    """Give at rank 0 the length of all pieces together, then the pieces in blocks, rank by rank.

    Every rank calls it; elsewhere it gives nothing, and is to be run to its end. `mine` has a
    length, a shape and a dtype, and slices of it are arrays.
    """
    counts = np.empty(comm.size, np.int64)
    comm.Allgather(np.array([len(mine)], np.int64), counts)
    width = int(np.prod(mine.shape[1:], dtype=np.int64)) * mine.dtype.itemsize
    step = max(BLOCK_BYTES // max(width, 1), 1)
    if comm.rank:
        for first in range(0, len(mine), step):
            comm.Send(_bytes(mine[first : first + step]), dest=0)
        return
    yield np.array([counts.sum()])
    for first in range(0, len(mine), step):
        yield np.asarray(mine[first : first + step])
    for rank in range(1, comm.size):
        for first in range(0, int(counts[rank]), step):
            n = min(step, int(counts[rank]) - first)
            block = np.empty(n * width, np.uint8)
            comm.Recv(block, source=rank)
            yield block.view(mine.dtype).reshape(n, *mine.shape[1:])


def _bytes(block: Any) -> NDArray[np.uint8]:
    return np.ascontiguousarray(block).reshape(-1).view(np.uint8)
