"""The one objective, and how good an answer provably is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Certificate", "objective"]

Floats = NDArray[np.float64]


class Certificate(NamedTuple):
    """Objective, a lower bound on what any pooled training could reach, and their distance."""

    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """(objective − bound) / bound: never smaller than the relative suboptimality.

        Infinite while the bound is not yet above zero.
        """
        if self.objective <= self.bound:
            return 0.0
        return (self.objective - self.bound) / self.bound if self.bound > 0 else float("inf")


def objective(
    X: Floats,
    y: Floats,
    task: NDArray[np.int64],
    common: Floats,
    specific: Floats,
    share: Floats,
    *,
    C: float,
    common_reg: float,
    specific_reg: float,
) -> float:
    """Evaluate the one objective on pooled rows of one group.

    ε₁/2 ‖w₀‖² + Σ_t (A_t/A) ε₂/2 ‖w_t‖² + C Σ max(0, 1 − y (xᵀ(w₀+w_t) + b₀ + b_t))

    Parameters
    ----------
    X, y : ndarray
        Rows and labels ±1 of all nodes and tasks.
    task : ndarray of int
        Index of every row's task.
    common : ndarray of shape (p + 1,)
        w₀ with b₀ last.
    specific : ndarray of shape (n_tasks, p + 1)
        w_t with b_t last.
    share : ndarray of shape (n_tasks,)
        A_t / A.
    C, common_reg, specific_reg : float
        C, ε₁ and ε₂.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.problem import objective
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> objective(X, y, np.array([0, 0]), np.array([0.25, 0.0]), np.array([[0.25, 0.0]]),
    ...           np.array([1.0]), C=1.0, common_reg=2.0, specific_reg=2.0)
    1.125
    """
    u = common + specific[task]
    margin = y * (np.einsum("ij,ij->i", X, u[:, :-1]) + u[:, -1])
    return float(
        0.5 * common_reg * common[:-1] @ common[:-1]
        + 0.5 * specific_reg * share @ (specific[:, :-1] ** 2).sum(axis=1)
        + C * np.maximum(0.0, 1.0 - margin).sum()
    )
