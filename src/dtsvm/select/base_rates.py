"""How much a held-out row of each label says: as much as new rows of its task will have the label.

Folds have as many rows of each label as the whole task, so held out a task's own bias meets the
very shares of labels that it was fitted to. New rows do not: where all tasks have about the same
share and a task of ten rows has drawn another, its next rows are nearer to the others' again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["expected_rates", "label_weights"]

Floats = NDArray[np.float64]


def expected_rates(counts: Floats) -> Floats:
    """Return every task's expected share of positive rows, from what all tasks have drawn.

    Shares vary between tasks as a beta distribution of mean p and intraclass correlation ρ:

        E[p_t] = (k_t + ν p) / (n_t + ν),   ν = (1 − ρ) / ρ,
        ρ = (Q − (T − 1)) / (N − Σ n_t²/N − (T − 1)),   Q = Σ n_t (k_t/n_t − p)² / p (1 − p)

    with k_t of n_t rows positive and p = Σ k_t / N: the moment estimator (Kleinman, 1973).

    Parameters
    ----------
    counts : ndarray of shape (n_tasks, 2)
        Rows of either label, the positive one last.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import expected_rates
    >>> expected_rates(np.array([[3.0, 7.0], [6.0, 4.0], [4.0, 6.0]])).round(2).tolist()
    [0.57, 0.57, 0.57]
    >>> expected_rates(np.array([[18.0, 2.0], [3.0, 17.0], [9.0, 11.0]])).round(2).tolist()
    [0.12, 0.84, 0.55]
    """
    n, k = counts.sum(axis=1), counts[:, 1]
    n_tasks, rows = int((n > 0).sum()), float(n.sum())
    p = float(k.sum()) / (rows or 1.0)
    drawn = np.divide(k, n, out=np.full(len(n), p), where=n > 0)
    free = rows - float((n**2).sum()) / (rows or 1.0) - (n_tasks - 1)
    if n_tasks < 2 or free <= 0 or not 0 < p < 1:
        return np.asarray(drawn)
    spread = float((n * (drawn - p) ** 2).sum()) / (p * (1 - p))
    rho = min(max((spread - (n_tasks - 1)) / free, 0.0), 1.0)
    return np.asarray((rho * k + (1 - rho) * p) / (rho * n + (1 - rho)))


def label_weights(counts: Floats) -> Floats:
    """Return for how much a held-out row counts, by task and label; n_t rows still count for n_t.

    Where a task has rows of one label only there is no row of the other to count for more.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import label_weights
    >>> label_weights(np.array([[2.0, 8.0], [8.0, 2.0], [5.0, 5.0]])).round(2).tolist()
    [[1.3, 0.93], [0.93, 1.3], [1.0, 1.0]]
    """
    n, rate = counts.sum(axis=1), expected_rates(counts)
    expected = np.stack([n * (1 - rate), n * rate], axis=1)
    has_both = (counts > 0).all(axis=1, keepdims=True)
    return np.asarray(np.divide(expected, counts, out=np.ones_like(expected), where=has_both))
