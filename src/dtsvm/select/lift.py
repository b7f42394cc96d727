"""All tasks as one: rows made longer, so that training together is an ordinary SVM a node.

A row x of task t becomes (√(1−θ) x, 0, …, √θ x at block t, …, 0, β at place t). Then

    ½‖v‖² + C Σ max(0, 1 − y (x̃ᵀv + b))

is the multi-task objective with ε₁ = 1/(1−θ) and ε₂ = 1/θ a task, whatever the network and whoever
holds what: w_t = √(1−θ) v₀ + √θ v_t and b_t = b + β v_{β,t}. One agent a node carries it, so many
tasks inside a node cost no links.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dtsvm.select.candidates import Family

__all__ = ["Lift", "compact"]

Floats = NDArray[np.float64]
DENSE = 0.3  # longer rows with a larger share of numbers that are not 0 are kept dense
FREEDOM = 1.0  # a bias of the task's own is a feature whose square is so many mean squared rows


@dataclass(frozen=True)
class Lift:
    """The longer rows of one family, and the way back.

    Parameters
    ----------
    family : Family
        Which biases, and θ.
    n_features, n_tasks : int
        Of the rows as they are.
    mean_square : float
        Mean squared length of a row over the network.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import Family, Lift
    >>> lift = Lift(Family("mixed", 0.5), n_features=2, n_tasks=2, mean_square=4.0)
    >>> lift.rows(np.array([[2.0, 0.0]]), np.array([1])).toarray().round(2).tolist()
    [[1.41, 0.0, 0.0, 0.0, 1.41, 0.0, 0.0, 1.0]]
    """

    family: Family
    n_features: int
    n_tasks: int
    mean_square: float

    @property
    def gains(self) -> tuple[float, float, float]:
        """√(1−θ), √θ and β."""
        bias, share, _ = self.family
        squared = {
            "task": FREEDOM * self.mean_square,
            "common": 0.0,
            "mixed": share * self.mean_square / self.n_features,
        }[bias]
        return float(np.sqrt(1.0 - share)), float(np.sqrt(share)), float(np.sqrt(squared))

    @property
    def is_longer(self) -> bool:
        """Whether rows are other than they are."""
        return self.gains != (1.0, 0.0, 0.0)

    @property
    def width(self) -> int:
        """Length of a longer row."""
        common, own, constant = (gain > 0 for gain in self.gains)
        return self.n_features * (common + own * self.n_tasks) + constant * self.n_tasks

    def n_filled(self, X: Floats | sparse.csr_array) -> int:
        """How many numbers of the longer rows are not 0."""
        common, own, constant = (gain > 0 for gain in self.gains)
        n = np.count_nonzero(X) if isinstance(X, np.ndarray) else X.nnz
        return int(n * (common + own) + X.shape[0] * constant)

    def dense_rows(self, X: Floats, task: NDArray[np.int64]) -> Floats:
        """Return the longer rows of a dense matrix, dense."""
        common, own, constant = self.gains
        n, p, at = len(X), self.n_features, 0
        out = np.zeros((n, self.width), X.dtype)
        if common > 0:
            out[:, :p], at = common * X, p
        if own > 0:
            blocks = out[:, at : at + p * self.n_tasks].reshape(n, self.n_tasks, p)
            blocks[np.arange(n), task] = own * X
            at += p * self.n_tasks
        if constant > 0:
            out[np.arange(n), at + task] = constant
        return out

    def rows(self, X: Floats | sparse.csr_array, task: NDArray[np.int64]) -> sparse.csr_array:
        """Return the longer rows, sparse."""
        common, own, constant = self.gains
        X = sparse.csr_array(X)
        n, blocks = X.shape[0], []
        if common > 0:
            blocks.append(common * X)
        if own > 0:
            columns = X.indices + np.repeat(task, np.diff(X.indptr)) * self.n_features
            columns = columns.astype(X.indices.dtype)
            shape = (n, self.n_features * self.n_tasks)
            blocks.append(sparse.csr_array((own * X.data, columns, X.indptr), shape=shape))
        if constant > 0:
            index = X.indices.dtype
            places = (np.full(n, constant), task.astype(index), np.arange(n + 1, dtype=index))
            blocks.append(sparse.csr_array(places, shape=(n, self.n_tasks)))
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    def classifiers(self, v: Floats) -> Floats:
        """Return every task's weights and bias, (…, n_tasks, p + 1), from (…, width + 1)."""
        common, own, constant = self.gains
        p, n_tasks = self.n_features, self.n_tasks
        out = np.zeros((*v.shape[:-1], n_tasks, p + 1))
        at = 0
        if common > 0:
            out[..., :p] += common * v[..., None, :p]
            at = p
        if own > 0:
            blocks = v[..., at : at + n_tasks * p]
            out[..., :p] += own * blocks.reshape(*v.shape[:-1], n_tasks, p)
            at += n_tasks * p
        out[..., p] = v[..., -1:]
        if constant > 0:
            out[..., p] += constant * v[..., at : at + n_tasks]
        return out


def compact(
    lift: Lift,
    X: Floats | sparse.csr_array,
    task: NDArray[np.int64],
    share: float | None = None,
) -> Floats | sparse.csr_array:
    """Return longer rows as they are quicker to use: dense where many of their numbers are not 0.

    `share` says how many of all numbers, if not all rows are here.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import Family, Lift, compact
    >>> lift = Lift(Family("task", 0.5), n_features=2, n_tasks=2, mean_square=4.0)
    >>> compact(lift, np.array([[2.0, 1.0]]), np.array([1])).round(2).tolist()
    [[1.41, 0.71, 0.0, 0.0, 1.41, 0.71, 0.0, 2.0]]
    """
    if share is None:
        share = lift.n_filled(X) / max(X.shape[0] * lift.width, 1)
    if share <= DENSE:
        return lift.rows(X, task)
    return lift.dense_rows(X if isinstance(X, np.ndarray) else X.toarray(), task)
