"""LIBLINEAR one against the rest on pooled CSR rows, beside ours at several tolerances each.

Both sides are judged by what they reach of Σ_classes ½‖w‖² + C Σ hinge, bias not regularised,
against the best bound that our certificates prove. LIBLINEAR's bias is a column of a constant,
which it regularises.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks.results import measured

__all__ = ["Point", "Rows", "best", "compare", "pooled", "pooled_curve", "walk", "worst_node"]

TOLERANCES = (1.0, 0.3, 0.1, 0.03)
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


def worst_node(rows: Rows, clf: Any) -> float:
    """The objective of the node that is furthest behind."""
    each = zip(clf.node_coef_, clf.node_intercept_, strict=True)
    return max(rows.objective(*own) for own in each)


def pooled(rows: Rows, tol: float, constant: float = 1.0) -> LinearSVC:
    """Train LIBLINEAR."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LinearSVC(
            loss="hinge", C=rows.C, tol=tol, intercept_scaling=constant, max_iter=20_000
        ).fit(rows.X, rows.y)


class Point(NamedTuple):
    """A side at one of its tolerances: what was set, the seconds, the objective, the fit."""

    setting: tuple[float, ...]
    seconds: float
    objective: float
    clf: Any


def walk(
    fit: Callable[..., Any],
    settings: Sequence[tuple[float, ...]],
    objective: Callable[[Any], float],
    repeats: int,
) -> list[Point]:
    """Fit with each of these settings; the seconds are the median of the repeats."""
    points = []
    for setting in settings:
        seconds = []
        for _ in range(repeats):
            before = time.perf_counter()
            clf = fit(*setting)
            seconds.append(time.perf_counter() - before)
        points.append(Point(setting, float(np.median(seconds)), objective(clf), clf))
        print(f"  {setting}: {points[-1].seconds:.2f} s, {points[-1].objective:.6g}", flush=True)
    return points


def pooled_curve(rows: Rows, repeats: int, enough: float) -> list[Point]:
    """LIBLINEAR from its loosest setting on, until one has an objective that is good enough."""
    points: list[Point] = []
    for setting in [(tol, constant) for constant in CONSTANTS for tol in TOLERANCES]:
        points += walk(
            lambda tol, constant: pooled(rows, tol, constant),
            [setting],
            lambda clf: rows.objective(clf.coef_, clf.intercept_),
            repeats,
        )
        if points[-1].objective <= enough:
            break
    return points


def best(points: list[Point]) -> Point:
    """The point with the least objective."""
    return min(points, key=lambda one: one.objective)


def compare(ours: list[Point], theirs: list[Point], bound: float) -> list[dict[str, Any]]:
    """Judge each of our points beside LIBLINEAR's quickest that is at least as good.

    Where none is, LIBLINEAR's best stands beside it, and the note says so.
    """
    found = []
    for point in ours:
        as_good = [other for other in theirs if other.objective <= point.objective]
        rival = min(as_good, key=lambda other: other.seconds) if as_good else best(theirs)
        here, there = (one.objective / bound - 1 for one in (point, rival))
        note = f"ours {100 * here:.2f} % above the bound, LIBLINEAR {100 * there:.2f} %"
        note += "" if as_good else ", its best; it does not get there"
        found.append(
            measured(
                f"whole fit, tol {point.setting[0]:g}", point.seconds / rival.seconds,
                ours=point.seconds, rival=rival.seconds, goal=("at most", 3.0, 1.0), note=note,
                their_setting=rival.setting, cores=os.cpu_count(),
            )
        )  # fmt: skip
    return found
