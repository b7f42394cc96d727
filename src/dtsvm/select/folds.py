"""Which rows are held out when: every node splits its own rows of each task, by label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["split"]


def split(
    y: NDArray[np.float64],
    agent: NDArray[np.int64],
    n_folds: int,
    seed: int | np.random.Generator = 0,
) -> NDArray[np.int64]:
    """Return each row's fold: rows of one agent and label are dealt in turn, from a random start.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Labels, ±1.
    agent : ndarray of shape (n_rows,)
        Which node and task a row belongs to, as one number.
    n_folds : int
        How many folds.
    seed : int or Generator
        Of the order of the rows and the starts.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import split
    >>> y, agent = np.array([1.0, -1.0] * 6), np.repeat([0, 1], 6)
    >>> fold = split(y, agent, 3)
    >>> [sorted(fold[(agent == a) & (y == s)].tolist()) for a in (0, 1) for s in (-1, 1)]
    [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """
    rng = np.random.default_rng(seed)
    _, cell = np.unique(2 * agent + (y > 0), return_inverse=True)
    order = np.lexsort((rng.random(len(y)), cell))
    counts = np.bincount(cell)
    turn = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    start = np.repeat(rng.integers(n_folds, size=len(counts)), counts)
    fold = np.empty(len(y), np.int64)
    fold[order] = (turn + start) % n_folds
    return fold
