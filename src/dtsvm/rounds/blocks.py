"""Rows that are mostly zero, laid as their blocks of eight features that are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled

__all__ = ["Blocks"]

WIDTH = 8  # features a block, as many as the lanes in which a dense row is multiplied
MOST = 0.6  # the share of blocks that are not zero up to which leaving out the others pays
ASKED = 1000  # rows that are asked first
LINE = 64  # bytes


@dataclass(frozen=True)
class Blocks:
    """Block-sparse rows, (n, p): a row's blocks that are not all zero, one after the other.

    Sums over a row are made in the lanes and the order of a dense one, and zeros change none of
    them, so training has the same bits.

    values : (n_blocks, 8); a block at the end of a row may be shorter and is filled with zeros.
    columns : a block's first feature. starts : a row's first block.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.rounds.blocks import Blocks
    >>> X = np.zeros((3, 40))
    >>> X[:, 9] = 1.0, 2.0, 3.0
    >>> laid = Blocks.lay(X, np.array([2, 0]))
    >>> laid.values.shape, laid[0:1][0, 9]
    ((2, 8), np.float64(3.0))
    """

    values: NDArray[Any]
    columns: NDArray[np.int32]
    starts: NDArray[np.int64]
    shape: tuple[int, int]

    @classmethod
    def lay(cls, X: NDArray[Any], at: NDArray[Any]) -> Self | None:
        """Copy the rows at `at` in this order; None where too few of their blocks are zero."""
        n_features, at = X.shape[1], at.astype(np.int64, copy=False)
        most = MOST * -(-n_features // WIDTH)
        some = at[:: max(len(at) // ASKED, 1)].copy()
        if _starts(X, some)[-1] > most * len(some):
            return None
        starts = _starts(X, at)
        if starts[-1] > most * len(at):
            return None
        values = _in_lines(int(starts[-1]), X.dtype)
        columns = np.empty(len(values), np.int32)
        compiled.fill_blocks(X, at, values, columns)
        return cls(values, columns, starts, (len(at), n_features))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the features."""
        return self.values.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, places: Any) -> NDArray[Any]:
        """Return a copy of these rows as an array."""
        places = np.arange(self.shape[0])[places]
        first, n_blocks = self.starts[places], np.diff(self.starts)[places]
        before = np.cumsum(n_blocks) - n_blocks
        k = np.arange(n_blocks.sum()) + np.repeat(first - before, n_blocks)
        n_wide = -(-self.shape[1] // WIDTH)
        out = np.zeros((len(places), n_wide, WIDTH), self.dtype)
        out[np.repeat(np.arange(len(places)), n_blocks), self.columns[k] // WIDTH] = self.values[k]
        return np.ascontiguousarray(out.reshape(len(places), n_wide * WIDTH)[:, : self.shape[1]])


def _starts(X: NDArray[Any], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the blocks of the rows at `at` begin, and where the last one's end."""
    starts = np.zeros(len(at) + 1, np.int64)
    compiled.count_blocks(X, at, starts)
    return starts


def _in_lines(n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return room for `n` blocks, none of which lies across two lines of a cache."""
    room = np.empty(n * WIDTH * dtype.itemsize + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    return room[first : first + n * WIDTH * dtype.itemsize].view(dtype).reshape(n, WIDTH)
