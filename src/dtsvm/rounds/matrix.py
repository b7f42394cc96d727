"""The features of all rows here, dense or sparse, where they lie; no row is ever copied to be used.

A row's place stays until it is released. Several rows of the tables may lie at one place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array, vstack

__all__ = ["Matrix"]

Ints = NDArray[np.int64]


class Matrix:
    """Rows of features, (n, p): float64 or float32, a C-ordered array or CSR.

    Parameters
    ----------
    n_features : int
        Length of a row.
    dtype : dtype, default=float64
        Of rows that are added one block after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.rounds.matrix import Matrix
    >>> matrix = Matrix(2)
    >>> matrix.add(np.ones((3, 2)))
    array([0, 1, 2])
    """

    def __init__(self, n_features: int, dtype: DTypeLike = np.float64) -> None:
        self.X: Any = np.zeros((0, n_features), dtype)
        self.n_features = n_features
        self._is_owned = True
        self._end = 0  # places from here on were never used
        self._free: list[int] = []

    @property
    def is_sparse(self) -> bool:
        """Whether rows are CSR."""
        return not isinstance(self.X, np.ndarray)

    def adopt(self, X: Any) -> None:
        """Take over all rows where they lie in the caller's memory: row i is at place i."""
        self.X = X if isinstance(X, np.ndarray) else _plain(X)
        self._is_owned, self._end = False, X.shape[0]

    def add(self, X: Any) -> Ints:
        """Add rows, copied; return their places."""
        if self.is_sparse or not isinstance(X, np.ndarray):
            return self._append(X)
        n = len(X)
        self._make_room(n)
        taken = self._free[-n:][::-1] if n else []
        del self._free[len(self._free) - len(taken) :]
        fresh = n - len(taken)
        places = np.array([*taken, *range(self._end, self._end + fresh)], np.int64)
        self._end += fresh
        self.X[places] = X
        return places

    def release(self, places: Ints) -> None:
        """Give places back that no row lies at any more; of CSR rows they stay empty."""
        if not self.is_sparse:
            self._free += places.tolist()

    def rows(self, places: Ints) -> Any:
        """Return a copy of the rows at these places."""
        return self.X[places]

    def _make_room(self, n: int) -> None:
        wanted = self._end + max(n - len(self._free), 0)
        if self._is_owned and wanted <= len(self.X):
            return
        grown = np.zeros((max(wanted, 2 * self._end), self.n_features), self.X.dtype)
        grown[: self._end] = self.X[: self._end]
        self.X, self._is_owned = grown, True

    def _append(self, X: Any) -> Ints:
        first = self._end
        more = csr_array(X).astype(self.X.dtype, copy=False)
        self.X = _plain(vstack([csr_array(self.X[:first]), more], format="csr") if first else more)
        self._is_owned, self._end, self._free = True, first + more.shape[0], []
        return np.arange(first, self._end, dtype=np.int64)

    def dump(self) -> dict[str, NDArray[Any]]:
        """Return every array that `restore` needs."""
        free = np.array(self._free, np.int64)
        if not self.is_sparse:
            return {"X": self.X[: self._end], "free": free}
        return {
            "values": self.X.data,
            "columns": self.X.indices,
            "starts": self.X.indptr,
            "free": free,
        }

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what `dump` returned."""
        if "X" in arrays:
            self.X = arrays["X"]
        else:
            parts = arrays["values"], arrays["columns"], arrays["starts"]
            self.X = _plain(csr_array(parts, shape=(len(arrays["starts"]) - 1, self.n_features)))
        self._is_owned, self._end = True, self.X.shape[0]
        self._free = arrays["free"].tolist()


def _plain(X: Any) -> Any:
    """Return CSR rows with the widths of index that compiled code takes: 32 and 64 bits."""
    X = csr_array(X, copy=False)
    X.indices = X.indices.astype(np.int32, copy=False)
    X.indptr = X.indptr.astype(np.int64, copy=False)
    return X
