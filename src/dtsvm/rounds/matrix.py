"""The features of all rows here, dense or sparse.

A row's place stays until it is released. Several rows of the tables may lie at one place. Large
matrices are used where they lie in the caller's memory. Of others, dense rows that a sweep would
have to pick from all over are copied to lie side by side: what comes next is then on its way from
memory before it is asked for, which makes rounds two to three times as fast. What is zero in eight
features side by side is left out of the copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array, vstack

from dtsvm.rounds.blocks import Blocks

__all__ = ["Matrix"]

Ints = NDArray[np.int64]
CACHED_BYTES = 1 << 20  # rows up to here are at hand wherever they lie
COPIED_BYTES = 1 << 28  # the most that is copied, unless it is half of a matrix or less
IN_ORDER = 0.5  # the share of rows that follow the one before them, from which on nothing is gained


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
        return not isinstance(self.X, np.ndarray | Blocks)

    def adopt(self, X: Any, at: Ints) -> Ints:
        """Take over all rows, of which those at `at` will be swept over in this order.

        Return their places: row i of X is at place i, unless rows were laid side by side.
        """
        is_laid = isinstance(X, np.ndarray) and _is_worth_laying(X, at)
        if is_laid:
            wanted, at = _in_turn(at, len(X))
            X = Blocks.lay(X, wanted) or X[wanted]
        self.X = X if isinstance(X, np.ndarray | Blocks) else _plain(X)
        self._is_owned, self._end = is_laid and isinstance(X, np.ndarray), X.shape[0]
        return at

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


def _is_worth_laying(X: NDArray[Any], at: Ints) -> bool:
    """Whether rows lie apart, do not fit in a cache, and a copy of them takes little memory."""
    n_bytes = len(at) * X.shape[1] * X.itemsize
    if n_bytes <= CACHED_BYTES or np.mean(np.diff(at) == 1) >= IN_ORDER:
        return False
    return bool(n_bytes <= max(COPIED_BYTES, X.nbytes // 2))


def _in_turn(at: Ints, n: int) -> tuple[Ints, Ints]:
    """Return which of 0 … n − 1 are at `at`, as they first appear, and where each stands there."""
    first = np.empty(n, np.int64)
    first[at[::-1]] = np.arange(len(at) - 1, -1, -1)
    is_first = first[at] == np.arange(len(at))
    return at[is_first], (np.cumsum(is_first) - 1)[first[at]]


def _plain(X: Any) -> Any:
    """Return CSR rows with the widths of index that compiled code takes: 32 and 64 bits."""
    X = csr_array(X, copy=False)
    X.indices = X.indices.astype(np.int32, copy=False)
    X.indptr = X.indptr.astype(np.int64, copy=False)
    return X
