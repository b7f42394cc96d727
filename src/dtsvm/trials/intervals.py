"""How sure a mean is after so many repeats, and what that says of a claim."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

__all__ = ["NEGLIGIBLE", "Claim", "Finding", "Interval", "Verdict", "interval", "verdict"]

NEGLIGIBLE = 0.1  # percentage points: fewer than two of 1,800 test rows
LEAST_REPEATS = 5


class Interval(NamedTuple):
    """A mean over repeats with its 95 % confidence limits."""

    mean: float
    low: float
    high: float
    n: int


class Verdict(StrEnum):
    """What the repeats say of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


class Finding(NamedTuple):
    """One difference that the claim says is below zero, in percentage points.

    `lead` names it in the report's leading picture, if it says what training together gains.
    """

    what: str
    difference: Interval
    lead: str = ""


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what was measured about it in one regime.

    Parameters
    ----------
    source : str
        The experiment.
    sentence : str
        What the paper says.
    regime : str
        Where it was measured.
    findings : tuple of Finding
        The differences that must all be below zero.
    short : str, optional
        The sentence in a few words, for a table.
    """

    source: str
    sentence: str
    regime: str
    findings: tuple[Finding, ...]
    short: str = ""

    @property
    def verdict(self) -> Verdict:
        """Holds if every finding does, does not hold if one does not."""
        verdicts = {verdict(finding.difference) for finding in self.findings}
        if Verdict.FAILS in verdicts:
            return Verdict.FAILS
        return Verdict.HOLDS if verdicts == {Verdict.HOLDS} else Verdict.UNDECIDED


def interval(values: ArrayLike) -> Interval:
    """Return mean ± t₀.₉₇₅ s/√n; with one value the limits are infinite.

    Values of two methods on the same draws are compared by passing their differences.

    Examples
    --------
    >>> from dtsvm.trials.intervals import interval
    >>> mean, low, high, n = interval([1.0, 2.0, 3.0])
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    x = np.asarray(values, float)
    n = len(x)
    mean = float(x.mean())
    if n < 2:
        return Interval(mean, -np.inf, np.inf, n)
    half = float(stdtrit(n - 1, 0.975) * x.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half, n)


def verdict(difference: Interval) -> Verdict:
    """Judge "this difference is below zero".

    It holds when the whole interval is below zero. It does not hold when the interval leaves no
    room for a gain of a tenth of a point. Fewer than five repeats decide nothing, and neither do
    repeats that are all the same: their interval has no width, which is not certainty.

    Examples
    --------
    >>> from dtsvm.trials.intervals import interval, verdict
    >>> str(verdict(interval([-3.0, -2.0, -2.5, -2.0, -3.0]))), str(verdict(interval([-1.0, -1.1])))
    ('holds', 'undecided')
    """
    _, low, high, n = difference
    if n < LEAST_REPEATS or not low < high:
        return Verdict.UNDECIDED
    if high < 0:
        return Verdict.HOLDS
    return Verdict.FAILS if low > -NEGLIGIBLE else Verdict.UNDECIDED
