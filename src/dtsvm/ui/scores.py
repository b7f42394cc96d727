"""How good answers are: counts that add up over tasks and nodes, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Scores", "count_scores", "no_better", "wilson"]

Z = 1.959964  # 95 %
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Scores:
    """What was counted on some rows of one task, or of several together.

    Attributes
    ----------
    confusion : ndarray of int, shape (n_labels, n_labels)
        Rows by the label they have (line) and the label they were given (column). Of several tasks
        together: by each task's negative and positive label.
    auc : float
        The chance that a positive row has a larger decision value than a negative one; NaN where
        there are not two labels or not both of them occur.
    guessed_right : int
        Rows that have their task's commonest label.
    """

    confusion: NDArray[np.int64]
    auc: float
    guessed_right: int

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.confusion.sum())

    @property
    def n_wrong(self) -> int:
        """How many rows were given another label than they have."""
        return self.n_rows - int(np.trace(self.confusion))

    @property
    def error(self) -> float:
        """The share of wrong labels."""
        return _ratio(self.n_wrong, self.n_rows)

    @property
    def guess_error(self) -> float:
        """The error of always guessing each task's commonest label."""
        return _ratio(self.n_rows - self.guessed_right, self.n_rows)

    @property
    def recalls(self) -> NDArray[np.float64]:
        """Of the rows with each label, the share that was given it; NaN without rows."""
        have = self.confusion.sum(axis=1)
        return np.array([_ratio(*pair) for pair in zip(np.diag(self.confusion), have, strict=True)])

    @property
    def precisions(self) -> NDArray[np.float64]:
        """Of the rows given each label, the share that has it; NaN for a label never given."""
        given = self.confusion.sum(axis=0)
        pairs = zip(np.diag(self.confusion), given, strict=True)
        return np.array([_ratio(*pair) for pair in pairs])

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the recalls of the labels that occur."""
        found = self.recalls[~np.isnan(self.recalls)]
        return float(found.mean()) if len(found) else math.nan

    @property
    def error_interval(self) -> Interval:
        """95 % for the error."""
        return wilson(self.n_wrong, self.n_rows)

    @property
    def balanced_interval(self) -> Interval:
        """95 % for the balanced accuracy."""
        have, right = self.confusion.sum(axis=1), np.diag(self.confusion)
        occurs = have > 0
        if not occurs.any():
            return math.nan, math.nan
        # Two of each added: no label is so rare that nothing is left open.
        share = (right[occurs] + 2) / (have[occurs] + 4)
        spread = np.sqrt((share * (1 - share) / (have[occurs] + 4)).sum()) / occurs.sum()
        middle = self.balanced_accuracy
        return max(0.0, middle - Z * spread), min(1.0, middle + Z * spread)

    @property
    def auc_interval(self) -> Interval:
        """95 % for the AUC (Hanley and McNeil, 1982)."""
        if math.isnan(self.auc):
            return math.nan, math.nan
        n_negative, n_positive = (int(n) for n in self.confusion.sum(axis=1))
        a = self.auc
        square = a * (1 - a)
        square += (n_positive - 1) * (a / (2 - a) - a * a)
        square += (n_negative - 1) * (2 * a * a / (1 + a) - a * a)
        spread = Z * math.sqrt(max(square, 0.0) / (n_positive * n_negative))
        return max(0.0, a - spread), min(1.0, a + spread)

    def __add__(self, other: Scores) -> Scores:
        """Return the scores of both together, where both have two labels or the same."""
        confusion = self.confusion + other.confusion
        return Scores(confusion, math.nan, self.guessed_right + other.guessed_right)

    def to_dict(self) -> dict[str, Any]:
        """Return everything for machines."""
        return {
            "rows": self.n_rows,
            "wrong": self.n_wrong,
            "error": self.error,
            "error_interval": list(self.error_interval),
            "guess_error": self.guess_error,
            "balanced_accuracy": self.balanced_accuracy,
            "balanced_accuracy_interval": list(self.balanced_interval),
            "recall": self.recalls.tolist(),
            "precision": self.precisions.tolist(),
            "auc": self.auc,
            "auc_interval": list(self.auc_interval),
            "confusion": self.confusion.tolist(),
        }


def count_scores(
    truth: NDArray[np.int64],
    given: NDArray[np.int64],
    values: NDArray[np.float64],
    n_labels: int = 2,
) -> Scores:
    """Count one task's answers.

    Parameters
    ----------
    truth, given : ndarray of int, shape (n_rows,)
        Positions of the label a row has and of the one it was given.
    values : ndarray of shape (n_rows,)
        Decision values, for the AUC.
    n_labels : int, default=2
        How many labels the task has.

    Examples
    --------
    >>> import numpy as np
    >>> truth, given = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    >>> found = count_scores(truth, given, np.array([-1.0, 0.5, 0.4, 2.0]))
    >>> found.error, found.guess_error, found.auc
    (0.25, 0.5, 0.75)
    """
    confusion = np.zeros((n_labels, n_labels), np.int64)
    np.add.at(confusion, (truth, given), 1)
    most = int(confusion.sum(axis=1).max()) if len(truth) else 0
    return Scores(confusion, _auc(truth, values) if n_labels == 2 else math.nan, most)


def wilson(n_hits: int, n: int) -> Interval:
    """Return the 95 % interval of a share.

    Examples
    --------
    >>> [round(end, 3) for end in wilson(5, 100)]
    [0.022, 0.112]
    """
    if not n:
        return math.nan, math.nan
    share, z2 = n_hits / n, Z * Z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    spread = Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, middle - spread), min(1.0, middle + spread)


def no_better(found: Scores, owner: str, commonest: Any) -> str | None:
    """Say in words that answers are no better than guessing, or None if they are better."""
    have = found.confusion.sum(axis=1)
    if (have > 0).sum() < 2:
        return f"{owner}: the rows have one label only, so these figures say little."
    guess, error = found.guess_error, found.error
    if found.balanced_interval[0] <= 1 / (have > 0).sum():
        return (
            f"{owner} is no better than guessing: {_percent(error)} error, "
            f"{_percent(guess)} by always saying {commonest!r}; balanced accuracy "
            f"{_percent(found.balanced_accuracy)}."
        )
    if error >= guess:
        return (
            f"{owner} errs in {_percent(error)}, always saying {commonest!r} in "
            f"{_percent(guess)}; what it finds beyond that shows in balanced accuracy "
            f"({_percent(found.balanced_accuracy)}) and recall."
        )
    return None


def _auc(truth: NDArray[np.int64], values: NDArray[np.float64]) -> float:
    """The Mann–Whitney share: ties count half."""
    n_positive = int(truth.sum())
    n_negative = len(truth) - n_positive
    if not n_positive or not n_negative:
        return math.nan
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    above = ranks[place][truth == 1].sum() - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * n_negative))


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else math.nan


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
