"""Growable columns with recycled slots: where agents, rows and links keep their numbers."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dtsvm.errors import DataError

__all__ = ["Columns"]


class Columns:
    """Named columns that grow together; a slot keeps its place until it is released.

    Parameters
    ----------
    slot : dtype, default=int64
        Of slots.
    **columns : (shape of one entry, dtype)
        The columns.

    Examples
    --------
    >>> from dtsvm.rounds.columns import Columns
    >>> links = Columns(penalty=((), float))
    >>> slots = links.take(2)
    >>> links.open("penalty")[slots] = 1.5
    >>> links.release(slots[:1])
    >>> links.used.tolist()
    [1]
    """

    def __init__(
        self, slot: DTypeLike = np.int64, /, **columns: tuple[tuple[int, ...], DTypeLike]
    ) -> None:
        self._slot = np.dtype(slot)
        self._most = (1 << (8 * self._slot.itemsize - 1)) - 1
        self._kinds = columns
        self._columns: dict[str, NDArray[Any]] = {}  # made when first needed
        self._views: dict[str, NDArray[Any]] = {}  # to read, made when first asked for
        self._is_used = np.zeros(0, dtype=bool)
        self._used: NDArray[Any] | None = None  # found when first asked for
        self._high = 0  # slots from here on were never used
        self._released: list[int] = []  # a heap

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column to read."""
        view = self._views.get(column)
        if view is None:
            view = self._views[column] = self.open(column).view()
            view.setflags(write=False)
        return view

    def open(self, column: str) -> NDArray[Any]:
        """Return a column to write: for the one module whose column it is, and compiled code."""
        if not self._columns:
            self._grow(0)
        return self._columns[column]

    def __contains__(self, column: str) -> bool:
        return column in self._kinds

    def add(self, column: str, value: float) -> None:
        """Begin one more column of numbers, with this one in every slot."""
        self.open(next(iter(self._kinds)))
        self._kinds[column] = (), np.dtype(float)
        self._columns[column] = np.full(self.capacity, value)

    def __len__(self) -> int:
        return self._high - len(self._released)

    @property
    def capacity(self) -> int:
        """How many slots there are, used or not."""
        return len(self._is_used)

    @property
    def used(self) -> NDArray[Any]:
        """The slots in use, ascending; to read."""
        if self._used is None:
            self._used = self._is_used.nonzero()[0].astype(self._slot, copy=False)
        return self._used

    def take(self, n: int) -> NDArray[Any]:
        """Return `n` zeroed slots, released ones first, growing if there are too few."""
        if self._high + n > self._most:
            raise DataError(
                f"{self._high + n:,} rows are more than one process can number, "
                f"{self._most:,}; spread the nodes over more ranks (engine='mpi')."
            )
        n_reused = min(n, len(self._released))
        reused = [heapq.heappop(self._released) for _ in range(n_reused)] if n_reused else []
        fresh, old = n - n_reused, self.capacity
        if self._high + fresh > old:
            self._grow(max(self._high + fresh, 2 * old))
        slots = np.arange(self._high - n_reused, self._high + fresh, dtype=self._slot)
        places: Any = slice(self._high, self._high + fresh)
        if reused:
            slots[:n_reused], places = reused, slots
        self._is_used[places] = True
        self._used = None
        if reused or self._high < old:  # what has just grown is zero
            for values in self._columns.values():
                values[places] = 0
        self._high += fresh
        return slots

    def release(self, slots: NDArray[Any]) -> None:
        """Give slots back."""
        self._is_used[slots] = False
        self._used = None
        for slot in slots.tolist():
            heapq.heappush(self._released, slot)

    def _grow(self, capacity: int) -> None:
        kinds = self._kinds.items()
        grown = {name: np.zeros((capacity, *shape), dtype) for name, (shape, dtype) in kinds}
        for name, values in self._columns.items():
            grown[name][: len(values)] = values
        self._columns = grown
        is_used, self._is_used = self._is_used, np.zeros(capacity, dtype=bool)
        self._is_used[: len(is_used)] = is_used
        self._views.clear()

    def dump(self) -> dict[str, NDArray[Any]]:
        """Return every array that `restore` needs."""
        return {**{name: self.open(name) for name in self._kinds}, "is_used": self._is_used}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what `dump` returned."""
        for name, values in arrays.items():
            if name != "is_used":
                self._kinds.setdefault(name, (values.shape[1:], values.dtype))
        self._columns = {
            name: arrays[name].astype(dtype, copy=False) for name, (_, dtype) in self._kinds.items()
        }
        self._views.clear()
        self._is_used = arrays["is_used"].astype(bool)
        self._used = None
        used = np.flatnonzero(self._is_used)
        self._high = int(used[-1]) + 1 if len(used) else 0
        self._released = np.flatnonzero(~self._is_used[: self._high]).tolist()
