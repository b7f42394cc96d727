"""LIBLINEAR one against the rest on pooled CSR rows, at the loosest tolerance that is good enough.

Both sides are judged by Σ_classes ½‖w‖² + C Σ hinge, bias not regularised, against a bound that our
certificate proves. LIBLINEAR's bias is a column of a constant, which it regularises.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

__all__ = ["Rows", "loosest", "loosest_pooled", "pooled"]

TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01)
CONSTANTS = (1.0, 10.0)  # of the bias, from the quickest


@dataclass(frozen=True)
class Rows:
    """Pooled rows, their labels and C."""

    X: Any
    y: Any
    C: float

    def objective(self, coef: Any, intercept: Any) -> float:
        """Σ_classes ½‖w‖² + C Σ hinge of one classifier, or of one a class."""
        classes = np.unique(self.y)
        sides = [classes[1]] if len(classes) == 2 else classes
        values = self.X @ np.asarray(coef).T + intercept
        signs = np.where(self.y[:, None] == np.array(sides), 1.0, -1.0)
        loss = np.maximum(0.0, 1.0 - signs * values).sum()
        return float(0.5 * (np.asarray(coef) ** 2).sum() + self.C * loss)

    @property
    def n_bytes(self) -> int:
        """Size of X."""
        return int(self.X.data.nbytes + self.X.indices.nbytes + self.X.indptr.nbytes)


def pooled(rows: Rows, tol: float, constant: float = 1.0) -> LinearSVC:
    """Train LIBLINEAR."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LinearSVC(
            loss="hinge", C=rows.C, tol=tol, intercept_scaling=constant, max_iter=20_000
        ).fit(rows.X, rows.y)


def loosest(distance: Callable[[float], float], target: float) -> float | None:
    """Return the first tolerance at which `distance` is within the target, or None."""
    for tol in TOLERANCES:
        found = distance(tol)
        print(f"  tol={tol:g}: {found:.1e}", flush=True)
        if found <= target:
            return tol
    return None


def loosest_pooled(rows: Rows, bound: float, target: float) -> tuple[float, float] | None:
    """Return LIBLINEAR's tolerance and bias constant that are good enough, or None."""
    for constant in CONSTANTS:

        def distance(tol: float, constant: float = constant) -> float:
            clf = pooled(rows, tol, constant)
            return rows.objective(clf.coef_, clf.intercept_) / bound - 1

        tol = loosest(distance, target)
        if tol is not None:
            return tol, constant
    return None
