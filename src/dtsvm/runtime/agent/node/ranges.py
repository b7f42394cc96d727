"""The range of every term of a sum: a total that honest terms cannot have is not used.

Terms are masked, so that nobody sees another's. But whoever has a total knows its own term, and
what is left was added by the others: that, too, must be in the range that honest terms have. What a
liar can do is then bounded by what all the others could have said.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled

__all__ = ["LEVEL_BANDS", "are_counts", "are_within", "is_gram"]

Floats = NDArray[np.float64]
STEPS = int(compiled.constants()["STEPS"])
LEVEL_BANDS = np.log([[0.01, 1000.0], [0.5, 2.0], [0.25, 4.0]])  # as `kernel.decide_level` keeps
ROUNDING = 1e-9


def are_within(total: Floats | float, mine: Floats | float, most: Floats | float = np.inf) -> bool:
    """Whether the others' part of a total is from 0 to `most`.

    >>> are_within(3.0, 1.0, 2.0), are_within(0.5, 1.0), are_within(9.0, 1.0, 2.0)
    (True, False, False)
    """
    others = np.asarray(total) - mine
    slack = ROUNDING * (1.0 + np.abs(mine) + np.abs(np.minimum(most, np.abs(total))))
    return bool(((others >= -slack) & (others <= most + slack)).all())


def are_counts(total: Floats, mine: Floats, most: Floats | float) -> bool:
    """Whether the others counted whole things, each of them at most so many."""
    return bool((total == np.round(total)).all()) and are_within(total, mine, most)


def is_gram(total: Floats, mine: Floats) -> bool:
    """Whether inner products of moves, each pair once, are some of the others' moves."""
    upper = np.triu_indices(STEPS)
    others = np.zeros((STEPS, STEPS))
    others[upper] = total - mine
    others = others + np.triu(others, 1).T
    size = np.abs(np.diag(others)).sum() + np.abs(mine).max(initial=0.0)
    with np.errstate(all="ignore"):
        least = np.linalg.eigvalsh(others)[0]
    return bool(least >= -ROUNDING * size - 2.0**-60)
