"""Rows dealt to folds for probabilities: a node deals its own, and needs nobody for it."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["FOLDS", "cell_name", "deal"]

FOLDS = 5
Ints = NDArray[np.int64]


def deal(cell: Ints, names: Sequence[str], n_folds: int = FOLDS) -> Ints:
    """Return each row's fold: the rows of a cell in turn, from a fold that its name says.

    Rows that come later change nobody's fold.

    Parameters
    ----------
    cell : ndarray of int
        Which node, task and label a row belongs to, a position in `names`.
    names : sequence of str
        The cells' names.
    n_folds : int
        How many folds.

    Examples
    --------
    >>> import numpy as np
    >>> deal(np.array([0, 0, 1, 0]), [cell_name("north", "flu", k) for k in (0, 1)], 3).tolist()
    [1, 2, 0, 0]
    """
    counts = np.bincount(cell, minlength=len(names))
    order = np.argsort(cell, kind="stable")
    turn = np.empty(len(cell), np.int64)
    turn[order] = np.arange(len(cell)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.zeros(len(names), np.int64)
    for k in np.unique(cell).tolist():
        digest = hashlib.blake2b(names[k].encode(), digest_size=8).digest()
        first[k] = int.from_bytes(digest, "little") % n_folds
    return np.asarray((turn + first[cell]) % n_folds)


def cell_name(node: Hashable, task: Hashable, code: int) -> str:
    """Name the rows of one node, task and label, so that memory and agents deal them alike."""
    return f"{node}\n{task}\n{code}"
