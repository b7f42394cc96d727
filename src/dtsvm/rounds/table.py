"""Growable columns with recycled slots: where agents, rows and links keep their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["Table"]


class Table:
    """Named columns that grow together; a slot keeps its place until it is released.

    Parameters
    ----------
    **columns : (shape of one entry, dtype)
        The columns.

    Examples
    --------
    >>> from dtsvm.rounds.table import Table
    >>> links = Table(penalty=((), float))
    >>> slots = links.take(2)
    >>> links["penalty"][slots] = 1.5
    >>> links.release(slots[:1])
    >>> links.used.tolist()
    [1]
    """

    def __init__(self, **columns: tuple[tuple[int, ...], DTypeLike]) -> None:
        self._columns: dict[str, NDArray[Any]] = {
            name: np.zeros((0, *shape), dtype) for name, (shape, dtype) in columns.items()
        }
        self._is_used = np.zeros(0, dtype=bool)
        self._n_used = 0

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._columns[column]

    def __len__(self) -> int:
        return self._n_used

    @property
    def capacity(self) -> int:
        """How many slots there are, used or not."""
        return len(self._is_used)

    @property
    def used(self) -> NDArray[np.int64]:
        """The slots in use, ascending."""
        return np.flatnonzero(self._is_used).astype(np.int64, copy=False)

    def take(self, n: int) -> NDArray[np.int64]:
        """Return `n` zeroed slots, the lowest free ones, growing if there are too few."""
        if self._n_used + n > len(self._is_used):
            self._grow(max(self._n_used + n, 2 * len(self._is_used)))
        slots = np.flatnonzero(~self._is_used)[:n].astype(np.int64, copy=False)
        self._is_used[slots] = True
        self._n_used += n
        for values in self._columns.values():
            values[slots] = 0
        return slots

    def release(self, slots: NDArray[np.int64]) -> None:
        """Give slots back."""
        self._is_used[slots] = False
        self._n_used -= len(slots)

    def _grow(self, capacity: int) -> None:
        for name, values in self._columns.items():
            self._columns[name] = _grown(values, capacity)
        self._is_used = _grown(self._is_used, capacity)

    def adopt(self, column: str, values: NDArray[Any]) -> NDArray[np.int64]:
        """Fill an empty table with `values` as they lie in the caller's memory, one slot a row.

        Later growth copies them; until then no second copy exists.
        """
        if len(self._is_used):
            raise ValueError("only an empty table can adopt rows")
        self._columns[column] = values[:0]
        self._grow(len(values))
        self._columns[column] = values
        self._is_used[:] = True
        self._n_used = len(values)
        return np.arange(len(values), dtype=np.int64)

    def dump(self) -> dict[str, NDArray[Any]]:
        """Return every array that `restore` needs."""
        return {**self._columns, "is_used": self._is_used}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what `dump` returned."""
        self._columns = {name: arrays[name] for name in self._columns}
        self._is_used = arrays["is_used"].astype(bool)
        self._n_used = int(self._is_used.sum())


def _grown(values: NDArray[Any], capacity: int) -> NDArray[Any]:
    larger = np.zeros((capacity, *values.shape[1:]), values.dtype)
    larger[: len(values)] = values
    return larger
