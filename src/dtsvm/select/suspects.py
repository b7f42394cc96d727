"""Tasks whose labels look drawn by lot: the others are better off without their rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

__all__ = ["suspects"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
LEVEL = 0.05
PASSES = 10


def suspects(wrong: Floats) -> Mask:
    """Return which tasks to set aside: worse than the others, and no better than a coin.

    A task is set aside if so many held-out errors would be rare at the rate of the tasks that are
    not, and if a coin would often (more than 5 %) make as few as the better of training alone and
    as chosen. Rare is such that of those found 5 % are expected to be found by chance (Benjamini
    and Hochberg, 1995): who is set aside keeps what it had with the others, so that a mistake costs
    these some rows, and itself next to nothing. A task that is merely hard, or unlike the others,
    is better than a coin as soon as it has a few dozen rows; where all tasks are near chance nobody
    stands out.

    Parameters
    ----------
    wrong : ndarray of shape (n_tasks, 5)
        Held-out rows a task: all, wrong alone, wrong as chosen, and where these differ.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import suspects
    >>> rows, errors = np.full(6, 20.0), np.array([2.0, 1.0, 11.0, 3.0, 0.0, 6.0])
    >>> suspects(np.stack([rows, errors, errors], axis=1)).tolist()
    [False, False, True, False, False, False]
    """
    n, alone, chosen = wrong[:, :3].T
    is_like_a_coin = _at_most(np.minimum(alone, chosen), n, 0.5) > LEVEL
    found = np.zeros(len(n), bool)
    for _ in range(PASSES):
        rate = (chosen[~found].sum() + 0.5) / (n[~found].sum() + 1.0)
        is_rare = _are_rare(1.0 - _at_most(chosen - 1.0, n, rate))
        new = is_rare & is_like_a_coin & (n > 0)
        if (new == found).all():
            break
        found = new
    return found


def _are_rare(chance: Floats) -> Mask:
    """Return the k smallest of m chances, for the largest k whose k-th is below k LEVEL / m."""
    ranked = np.sort(chance)
    is_below = ranked < LEVEL * np.arange(1, len(chance) + 1) / len(chance)
    return np.asarray(chance <= ranked[is_below].max(initial=-1.0))


def _at_most(k: Floats, n: Floats, rate: float) -> Floats:
    """P(X ≤ k) for a binomial X of n rows."""
    some = np.clip(k, 0.0, np.maximum(n - 1.0, 0.0))
    part = betainc(np.maximum(n - some, 1.0), some + 1.0, 1.0 - rate)
    return np.asarray(np.where(k < 0, 0.0, np.where(k >= n, 1.0, part)))
