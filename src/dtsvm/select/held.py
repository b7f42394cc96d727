"""What is trained and held out: rows with their folds, lanes of them, and jobs for a trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.select.candidates import Candidate

__all__ = ["Held", "Job", "Lane", "first_alike", "moments", "out_of_fold", "products", "unit_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 1 << 12  # rows at a time
NEAR = 0.1, 10.0  # features whose root mean square is between these are trained as they are


@dataclass(frozen=True)
class Held:
    """The rows of the nodes that are here: `y` is ±1, `task` and `fold` count from 0.

    `weight` is what each row's loss is multiplied by, in training and when it is held out; 1 if it
    is None.
    """

    X: Any  # dense or CSR
    y: Floats
    task: Ints
    fold: Ints
    n_tasks: int
    n_folds: int
    weight: Floats | None = None


class Lane(NamedTuple):
    """One set of rows to train on, and each task's side: ±1, or 0 if its rows are left out."""

    rows: Ints
    side: Floats


class Job(NamedTuple):
    """A candidate and the lanes it is to be trained on."""

    candidate: Candidate
    lanes: list[Lane]


def moments(X: Any) -> Floats:
    """Return Σ‖x‖² and the number of rows: to be added up over nodes."""
    squares = X.multiply(X) if hasattr(X, "multiply") else np.square(X)
    return np.array([float(squares.sum()), float(X.shape[0])])


def unit_of(mean_square: float, n_features: int) -> float:
    """Return in which unit rows are trained: a power of two, so that no bit is lost.

    A bias has no unit: where weights are far larger or smaller, both take many rounds to agree. It
    is what makes a feature's root mean square nearest to 1, and 1 where that is near it anyway.

    Examples
    --------
    >>> from dtsvm.select import unit_of
    >>> [unit_of(mean_square, 4) for mean_square in (8.0, 4e6, 0.0)]
    [1.0, 1024.0, 1.0]
    """
    root = (mean_square / max(n_features, 1)) ** 0.5
    is_near = root == 0.0 or NEAR[0] <= root <= NEAR[1]
    return 1.0 if is_near else float(2.0 ** np.rint(np.log2(root)))


def out_of_fold(held: Held, trained: Floats) -> Floats:
    """Return f(x) of every row by every candidate, from the lane that did not see it."""
    out = np.zeros((len(held.y), len(trained)))
    for t in range(held.n_tasks):
        mine = np.flatnonzero(held.task == t)
        for k in range(held.n_folds):
            rows = mine[held.fold[mine] == k]
            if len(rows):
                u = trained[:, k, t]
                out[rows] = products(held.X, rows, u[:, :-1]) + u[:, -1]
    return out


def products(X: Any, rows: Ints, W: Floats) -> Floats:
    """Return X[rows] Wᵀ, a row to the same bits whichever others are here: BLAS promises no such.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import products
    >>> products(np.eye(3), np.array([2, 0]), np.array([[1.0, 2.0, 3.0]])).tolist()
    [[3.0], [1.0]]
    """
    out = np.empty((len(rows), len(W)))
    for first in range(0, len(rows), BLOCK):
        block = X[rows[first : first + BLOCK]]
        if isinstance(block, np.ndarray):
            found = np.einsum("ij,kj->ik", block.astype(np.float64, copy=False), W)
        else:
            found = block @ W.T
        out[first : first + BLOCK] = found
    return out


def first_alike(jobs: list[Job]) -> list[int]:
    """Return each job's first that is the same: where no task is turned, sides change nothing."""
    seen: dict[Any, int] = {}
    return [
        seen.setdefault(
            (*job.candidate.family[:2], job.candidate.C, *(s.side.tobytes() for s in job.lanes)), k
        )
        for k, job in enumerate(jobs)
    ]
