"""How much of its biases a candidate keeps: one number for all its tasks, fitted to held-out rows.

The hinge loss puts a bias where the rows it was trained on want it, and the fewer they are and the
more their labels err, the shorter are weights beside biases: the rarer label is said too seldom. So
the biases of a candidate with company are multiplied by one number, whatever the task.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dtsvm.select.held import Held
from dtsvm.select.margins import counting, rounded

__all__ = ["stretching"]

Floats = NDArray[np.float64]
N_STEPS = 6
BITS = 24  # after the point, of terms: their sums are exact
LEAST_SLOPE, MOST_CHANGE = 1e-3, 1.0  # a bias keeps its sign, and is at most doubled
RIDGE, PULL = 1e-3, 3.0


def stretching(
    held: Held, decisions: Floats, biases: Floats, votes: NDArray[np.bool_]
) -> Generator[Floats, Floats, Floats]:
    """Find what to multiply each candidate's biases by, 1 + δ, from sums over the network.

        min over a, δ of  Σ c log(1 + exp(−y a (f + δ b))) + ½ρa² + ½λδ²

    f is the decision value of a held-out row, b the bias in it; λ = 3, so that δ is held back by as
    much as some rows say, and |δ| ≤ 1. Six steps of Fisher scoring from a = 1 / mean |f|, δ = 0.

    Parameters
    ----------
    held : Held
        The rows that are here.
    decisions, biases : ndarray of shape (n_rows, n_candidates)
        f and b of the candidate that did not see the row.
    votes : ndarray of shape (n_tasks,)
        The tasks it is learnt from.

    Yields
    ------
    ndarray
        What this node adds to a sum: (candidate, 2, 3), Fisher information and gradient beside it.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import Held, stretching
    >>> from dtsvm.select.weighing import answered
    >>> y = np.tile([1.0, 1.0, -1.0], 20)  # and a bias that hides what weights tell
    >>> held = Held(np.zeros((60, 1)), y, np.zeros(60, int), np.arange(60) % 3, 1, 3)
    >>> f = 2.0 + 0.5 * y[:, None]
    >>> steps = stretching(held, f, np.full((60, 1), 2.0), np.array([True]))
    >>> answered(steps, np.asarray).round(1).tolist()
    [0.0]
    """
    scale, c, _ = yield from counting(held, decisions)
    c = (c * votes[held.task])[:, None]
    f, b, y = decisions / scale, biases / scale, held.y[:, None]
    a, change = np.ones(f.shape[1]), np.zeros(f.shape[1])
    for _ in range(N_STEPS):
        value = f + change * b
        wrongness = expit(-y * a * value)
        slopes = np.stack([value, a * b])  # of the decision value in a and δ
        information = c * wrongness * (1.0 - wrongness)
        sums = np.empty((f.shape[1], 2, 3))
        for i in range(2):
            for j in range(2):
                sums[:, i, j] = rounded(information * slopes[i] * slopes[j], BITS).sum(axis=0)
            sums[:, i, 2] = rounded(c * wrongness * y * slopes[i], BITS).sum(axis=0)
        total = yield sums
        one, other, both = total[:, 0, 0] + RIDGE, total[:, 1, 1] + PULL, total[:, 0, 1]
        pulls = total[:, 0, 2] - RIDGE * a, total[:, 1, 2] - PULL * change
        whole = one * other - both * both  # solved here: LAPACK promises no bits
        a = a + np.clip((other * pulls[0] - both * pulls[1]) / whole, -1.0, 1.0)
        change = change + np.clip((one * pulls[1] - both * pulls[0]) / whole, -1.0, 1.0)
        a, change = np.maximum(a, LEAST_SLOPE), np.clip(change, -MOST_CHANGE, MOST_CHANGE)
    return np.asarray(1.0 + change)
