"""LIBLINEAR on pooled rows: scikit-learn's LinearSVC (hinge loss, dual), fed our objective.

LIBLINEAR minimises ½‖v‖² + C Σ hinge. With several tasks, v = [√ε₁ w₀, √(ε₂/T) w₁, …] and a row of
task t becomes [x/√ε₁, 0 …, x/√(ε₂/T), 0 …]; with one task, x/√ε where 1/ε = 1/ε₁ + 1/ε₂. It has no
free bias: each task gets a column of a constant, the larger the freer its bias and the slower the
solver. Constant and tolerance are searched beforehand; the quickest that reaches the target runs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks.problems import Problem

__all__ = ["Liblinear", "quickest"]

CONSTANTS = (1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class Liblinear:
    """Rows as LIBLINEAR likes them, made outside the clock: sparse if that is smaller."""

    problem: Problem
    rows: Any
    constant: float
    tol: float

    @classmethod
    def prepare(cls, problem: Problem, constant: float, tol: float = 0.1) -> Liblinear:
        """Make the rows."""
        n, T = len(problem.y), problem.n_tasks
        X = sp.csr_matrix(problem.X)
        if T == 1:
            blocks = [X / np.sqrt(_one_task_reg(problem))]
        else:
            masks = [sp.diags((problem.task == t).astype(float)) for t in range(T)]
            blocks = [X / np.sqrt(problem.common_reg)]
            blocks += [mask @ X / np.sqrt(problem.specific_reg / T) for mask in masks]
        bias = np.zeros((n, T))
        bias[np.arange(n), problem.task] = constant
        rows = sp.hstack([*blocks, sp.csr_matrix(bias)], format="csr")
        rows.eliminate_zeros()
        is_dense = rows.nnz > 0.5 * np.prod(rows.shape)
        return cls(problem, rows.toarray() if is_dense else rows, constant, tol)

    def with_tol(self, tol: float) -> Liblinear:
        """Return the same rows with another tolerance."""
        return Liblinear(self.problem, self.rows, self.constant, tol)

    def fit(self) -> LinearSVC:
        """Train."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return LinearSVC(
                loss="hinge",
                dual=True,
                fit_intercept=False,
                C=self.problem.C,
                tol=self.tol,
                max_iter=20_000,
                random_state=0,
            ).fit(self.rows, self.problem.y)

    def decision(self, fitted: LinearSVC) -> np.ndarray:
        """Return the classifiers, (T, p + 1)."""
        problem, v = self.problem, fitted.coef_[0]
        T, p = problem.n_tasks, problem.X.shape[1]
        bias = v[-T:] * self.constant
        if T == 1:
            return np.append(v[:p] / np.sqrt(_one_task_reg(problem)), bias)[None]
        parts = v[:-T].reshape(T + 1, p)
        w = parts[0] / np.sqrt(problem.common_reg)
        w = w + parts[1:] / np.sqrt(problem.specific_reg / T)
        return np.column_stack([w, bias])


def quickest(problem: Problem, optimum: float, target: float) -> tuple[Liblinear | None, list]:
    """Search constants and tolerances; return the quickest that reaches the target, and the log."""
    best: Liblinear | None = None
    least = np.inf
    log = []
    for rival in _candidates(problem):
        for tol in 10.0 ** np.arange(0, -6.5, -0.5):
            timed = rival.with_tol(float(tol))
            before = time.perf_counter()
            fitted = timed.fit()
            seconds = time.perf_counter() - before
            reached = float(problem.objective(timed.decision(fitted)) / optimum - 1.0)
            log.append(
                {
                    "constant": rival.constant,
                    "tol": tol,
                    "seconds": seconds,
                    "suboptimality": reached,
                }
            )
            if reached <= target and seconds < least:
                best, least = timed, seconds
            if reached <= target or seconds > max(10 * least, 1.0) or seconds > 120.0:
                break
    return best, log


def _candidates(problem: Problem) -> Iterator[Liblinear]:
    for constant in CONSTANTS:
        yield Liblinear.prepare(problem, constant)


def _one_task_reg(problem: Problem) -> float:
    return 1.0 / (1.0 / problem.common_reg + 1.0 / problem.specific_reg)
