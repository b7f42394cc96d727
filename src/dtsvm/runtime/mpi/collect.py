"""What all ranks say, one rank's after the other's: rows of numbers, or plain values."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError

__all__ = ["gather_json", "gather_rows"]

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


def gather_json(comm: Any, value: Any) -> list[Any]:
    """Return what every rank says, in the order of ranks: lists, text, numbers and None."""
    if comm.size == 1:
        return [value]
    try:
        text = np.frombuffer(json.dumps(value).encode(), np.uint8)
    except TypeError as error:
        raise DataError(
            f"Ranks tell each other names and labels that are text or numbers ({error})."
        ) from error
    counts = np.empty(comm.size, np.int64)
    comm.Allgather(np.array([len(text)], np.int64), counts)
    starts = np.cumsum(counts) - counts
    found = np.empty(int(counts.sum()), np.uint8)
    comm.Allgatherv(text, [found, (counts, starts)])
    return [json.loads(part.tobytes()) for part in np.split(found, starts[1:])]
