"""Ways of training the tasks of one split: three that are tuned by hand, and `DTSVMCV`'s choice.

All are trained by the same code from the same candidates, on pooled rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.transfer_sets import Split
from dtsvm import Network
from dtsvm.select import (
    SMALL,
    Candidate,
    Family,
    Held,
    Job,
    Lane,
    candidates,
    choose,
    moments,
    out_of_fold,
    split,
)
from dtsvm.svm.lanes import Lanes

__all__ = ["Posed", "by_hand", "chosen", "errors", "told"]

THETAS = (0.02, 0.1, 0.3, 0.6, 0.9)


class Posed:
    """A split as a problem, and a trainer that trains nothing twice."""

    def __init__(self, rows: Split, seed: int, tol: float) -> None:
        n_tasks = int(rows.task.max()) + 1
        square, n = moments(rows.X).tolist()
        fold = split(rows.y, rows.task, 3, seed)
        self.held = Held(rows.X, rows.y, rows.task, fold, n_tasks, 3)
        where = [0], np.zeros(len(rows.y), np.int64)
        lanes = Lanes(self.held, where, Network([0], []), square / n, tol, 2000, 1)
        self.train = Remembered(lanes)
        self.candidates = candidates(SMALL, n_tasks=n_tasks, mean_square=square / n)


def by_hand(problem: Posed) -> dict[str, np.ndarray]:
    """Return every task's classifier (task, p + 1) by the three ways by hand."""
    prices = sorted({c.C for c in problem.candidates})
    return tune_by_hand(problem.held, problem.train, prices)


def chosen(problem: Posed) -> dict[str, np.ndarray]:
    """Return every task's classifier as chosen, and with the guard."""
    held, some, train = problem.held, problem.candidates, problem.train
    return {
        way: choose(held, some, train, reference=1, guard=guard).classifiers
        for way, guard in (("chosen", None), ("guarded", "alone"))
    }


def told(problem: Posed) -> list[float]:
    """Return every task's held-out error as chosen, which is what a choice tells a person."""
    found = choose(problem.held, problem.candidates, problem.train, reference=1).found
    return (found.wrong[:, 2] / np.maximum(found.wrong[:, 0], 1.0)).tolist()


class Remembered:
    """A trainer that trains nothing twice."""

    def __init__(self, train: Lanes) -> None:
        self.train = train
        self.known: dict[Any, np.ndarray] = {}

    def __call__(self, jobs: list[Job]) -> list[np.ndarray]:
        """Train what is new, remember it, and give all."""
        keys = [self._key(job) for job in jobs]
        new = {key: job for key, job in zip(keys, jobs, strict=True) if key not in self.known}
        if new:
            self.known.update(zip(new, self.train(list(new.values())), strict=True))
        return [self.known[key] for key in keys]

    @staticmethod
    def _key(job: Job) -> tuple[Any, ...]:
        lanes = tuple((lane.rows.tobytes(), lane.side.tobytes()) for lane in job.lanes)
        return (*job.candidate.family[:2], job.candidate.C, lanes)


def tune_by_hand(held: Held, train: Remembered, prices: list[float]) -> dict[str, np.ndarray]:
    """Return classifiers (task, p + 1) with the fewest held-out errors, ties to the smaller C."""
    families = {
        "alone": [Family("task", 1.0)],
        "one for all": [Family("common", 0.0)],
        "multi-task": [Family("task", theta) for theta in THETAS],
    }
    return {
        way: _tune(held, train, [Candidate(f, C) for C in prices for f in some], way == "alone")
        for way, some in families.items()
    }


def _tune(held: Held, train: Remembered, some: list[Candidate], by_task: bool) -> np.ndarray:
    plain = np.ones(held.n_tasks)
    folds = [Lane(np.flatnonzero(held.fold != k), plain) for k in range(held.n_folds)]
    trained = np.stack(train([Job(candidate, folds) for candidate in some]))
    wrong = (out_of_fold(held, trained) > 0) != (held.y > 0)[:, None]
    tasks = np.unique(held.task)
    rates = np.stack([wrong[held.task == t].mean(axis=0) for t in tasks])
    best = np.full(held.n_tasks, rates.mean(axis=0).argmin())
    if by_task:
        best[tasks] = rates.argmin(axis=1)
    everything = [Lane(np.arange(len(held.y)), plain)]
    used = {m: train([Job(some[m], everything)])[0][0] for m in np.unique(best).tolist()}
    return np.stack([used[m][t] for t, m in enumerate(best.tolist())])


def errors(u: np.ndarray, rows: Split) -> list[float | None]:
    score = (rows.X_test * u[rows.task_test, :-1]).sum(axis=1) + u[rows.task_test, -1]
    wrong = (score > 0) != (rows.y_test > 0)
    by_task = [wrong[rows.task_test == t] for t in range(len(u))]
    return [float(mine.mean()) if len(mine) else None for mine in by_task]
