"""One bias among all that are best: few rows often leave an interval of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_bias"]

Floats = NDArray[np.float64]


def best_bias(scores: Floats, y: Floats, group: NDArray[np.int64], n_groups: int) -> Floats:
    """Return, for given weights, the bias nearest to 0 that minimises each group's hinge loss.

    Σ max(0, 1 − y (s + b)) bends at the points y − s. Its slope is minus the number P of positive
    rows on the far left and rises by one at every bend, so it is least between the P-th and the
    next of them. (Counts of bends below a value add up over nodes: the place is found by halving.)

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        s = xᵀw.
    y : ndarray of shape (n_rows,)
        Labels ±1.
    group : ndarray of shape (n_rows,)
        Which classifier each row belongs to, from 0.
    n_groups : int
        How many there are; one without rows gets 0.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import best_bias
    >>> s, y = np.array([-2.0, -3.0, 4.0, 5.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> best_bias(s, y, np.zeros(4, int), 1).tolist()  # anything from -3 to 1 does as well
    [0.0]
    """
    bends = y - scores
    order = np.lexsort((bends, group))
    counts = np.bincount(group, minlength=n_groups)
    positives = np.bincount(group, y > 0, n_groups).astype(np.int64)
    ends = np.concatenate([[-np.inf], bends[order], [np.inf]])
    at = np.cumsum(counts) - counts + positives  # of the P-th bend, one being in front
    low = np.where(positives > 0, ends[at], -np.inf)
    high = np.where(positives < counts, ends[np.minimum(at + 1, len(ends) - 1)], np.inf)
    return np.asarray(np.clip(0.0, low, high))
