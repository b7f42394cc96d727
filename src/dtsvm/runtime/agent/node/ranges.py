"""The range of every term of a sum: a total that honest terms cannot have is not used.

Terms are masked, so that nobody sees another's. But whoever has a total knows its own term, and
what is left was added by the others: that, too, must be in the range that honest terms have. What a
liar can do is then bounded by what all the others could have said.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled

__all__ = ["LEVEL_BANDS", "LIGHTEST", "Share", "are_counts", "are_within", "is_gram"]

Floats = NDArray[np.float64]
STEPS = int(compiled.constants()["STEPS"])
LEVEL_BANDS = np.log([[0.01, 1000.0], [0.5, 2.0], [0.25, 4.0]])  # as `kernel.decide_level` keeps
ROUNDING = 1e-9
LIGHTEST = 2.0**-10  # mean weight of a node's rows: entries say what rows weigh, not how many


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


class Share:
    """The others' part of a logistic fit: a convex function of (a, b) that some rows can have.

    Of rows of weight N and decision values up to F, targets t and P = 1 / (1 + exp(a f + b)):

        loss ≥ 0,   |Σ c (t − P)| ≤ N,   |Σ c (t − P) f| ≤ N F,
        Hessian ≥ 0,   Σ c P (1 − P) ≤ N / 4,   Σ c P (1 − P) f² ≤ N F² / 4,

    and every loss is above every tangent: L(y) ≥ L(x) + g(x)ᵀ(y − x).

    Parameters
    ----------
    claimed : ndarray of shape (n,)
        What rows weigh at most, by lane.
    largest : float
        F.
    """

    def __init__(self, claimed: Floats, largest: float) -> None:
        self.claimed, self.largest = claimed, largest
        self.weight = claimed
        self._at = np.zeros((len(claimed), 2))
        self._seen: list[tuple[Floats, Floats, Floats]] = []  # where, what was said, rounding

    def allow_counts(self, counts: Floats) -> bool:
        """Whether the others can have rows of such weights, (n, 2): positive and negative."""
        self.weight = counts.sum(axis=1)
        most = self.claimed * (1 + ROUNDING) + ROUNDING
        return bool((counts >= -ROUNDING * (1 + most[:, None])).all()) and bool(
            (self.weight <= most).all()
        )

    def at(self, ab: Floats) -> None:
        """Say where the next sums are taken."""
        self._at = ab.copy()

    def allow(self, sums: Floats, mine: Floats) -> bool:
        """Whether the others can have such sums there: loss, gradient, Hessian (aa, ab, bb)."""
        loss, _, _, haa, hab, hbb = sums.T
        n, far = np.maximum(self.weight, 0.0), self.largest
        steep = np.abs(self._at) @ [far, 1.0]  # the largest |a f + b|
        rounding = ROUNDING * (1.0 + np.abs(sums) + np.abs(mine))
        least, _, _, laa, _, lbb = -rounding.T
        are_in = (
            (loss >= least) & (haa >= laa) & (hbb >= lbb)
            & (hab**2 <= (haa - laa) * (hbb - lbb) * (1.0 + ROUNDING))
        )  # fmt: skip
        most = np.stack([n * (steep + 1), n * far, n, n * far**2 / 4, n * far / 4, n / 4], axis=1)
        are_in &= (np.abs(sums) <= most + rounding).all(axis=1)
        return bool(are_in.all()) and self._is_convex(sums, rounding)

    def _is_convex(self, sums: Floats, rounding: Floats) -> bool:
        """Whether all tangents seen so far lie below all losses."""
        is_good = True
        for there, said, little in self._seen:
            step = self._at - there
            slack = rounding[:, 0] + little[:, 0]
            slack = slack + ((rounding + little)[:, 1:3] * np.abs(step)).sum(axis=1)
            rise = sums[:, 0] - said[:, 0]
            is_good &= bool((rise >= (said[:, 1:3] * step).sum(axis=1) - slack).all())
            is_good &= bool((rise <= (sums[:, 1:3] * step).sum(axis=1) + slack).all())
        self._seen.append((self._at, sums.copy(), rounding))
        return is_good
