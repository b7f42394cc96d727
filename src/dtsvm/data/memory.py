"""Little memory at a time: columns in pieces, and what was freed given back to the machine."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGE_BYTES", "give_back", "in_pieces"]

PIECE = 1 << 14  # numbers
LARGE_BYTES = 1 << 26  # of rows from which on looking for free memory costs less than it gives


def give_back(n_bytes: int) -> None:
    """Give back what reading or arranging so many bytes of rows left behind, if they are many.

    The C library and Arrow keep what was freed, for whoever asks next in this process.
    """
    if n_bytes < LARGE_BYTES:
        return
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # of glibc alone
        trim(0)


def in_pieces(numbers: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Give a column piece by piece, so that everything that is made of one stays in the cache."""
    return (numbers[first : first + PIECE] for first in range(0, len(numbers), PIECE))
