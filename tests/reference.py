"""An independent answer: the pooled problem handed to Clarabel through cvxpy."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np


@dataclass(frozen=True)
class Pooled:
    """The pooled optimum of one group."""

    objective: float
    common: np.ndarray  # (p + 1,)
    specific: np.ndarray  # (n_tasks, p + 1)

    @property
    def decision(self):
        return self.common + self.specific


def solve_pooled(X, y, task, share, *, C, common_reg, specific_reg, weight=None):
    """Minimise ε₁/2 ‖w₀‖² + Σ_t (A_t/A) ε₂/2 ‖w_t‖² + C Σ c hinge, straight from the formula."""
    weight = np.ones(len(y)) if weight is None else weight
    n_tasks, p = len(share), X.shape[1]
    w0, W, b = cp.Variable(p), cp.Variable((n_tasks, p)), cp.Variable(n_tasks)
    value = 0.5 * common_reg * cp.sum_squares(w0)
    value += sum(0.5 * specific_reg * share[t] * cp.sum_squares(W[t]) for t in range(n_tasks))
    for t in range(n_tasks):
        mine = task == t
        if mine.any():
            margin = cp.multiply(y[mine], X[mine] @ (w0 + W[t]) + b[t])
            value += C * weight[mine] @ cp.pos(1 - margin)
    problem = cp.Problem(cp.Minimize(value))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    bias = b.value if b.value is not None else np.zeros(n_tasks)
    return Pooled(float(problem.value), np.append(w0.value, 0.0), np.column_stack([W.value, bias]))


def objective(X, y, task, common, specific, share, *, C, common_reg, specific_reg):
    """ε₁/2 ‖w₀‖² + Σ_t (A_t/A) ε₂/2 ‖w_t‖² + C Σ max(0, 1 − y (xᵀ(w₀+w_t) + b₀ + b_t))."""
    u = common + specific[task]
    margin = y * (np.einsum("ij,ij->i", X, u[:, :-1]) + u[:, -1])
    return float(
        0.5 * common_reg * common[:-1] @ common[:-1]
        + 0.5 * specific_reg * share @ (specific[:, :-1] ** 2).sum(axis=1)
        + C * np.maximum(0.0, 1.0 - margin).sum()
    )


def solve_kinds(X, y, task, share, weight, chosen, square):
    """Minimise the objective straight from its formula; return its value and (w₀, W, b₀, b)."""
    n_tasks, p = len(share), X.shape[1]
    w0, W, b0, b = cp.Variable(p), cp.Variable((n_tasks, p)), cp.Variable(), cp.Variable(n_tasks)
    value = 0.5 * chosen.common_reg * cp.sum_squares(w0)
    held = []
    for t in range(n_tasks):
        value += 0.5 * chosen.specific_reg * share[t] * cp.sum_squares(W[t])
        if chosen.bias == "mixed":
            value += 0.5 * chosen.specific_reg / square * share[t] * cp.square(b[t])
        elif chosen.bias == "common":
            held.append(b[t] == 0)
        mine = task == t
        if mine.any():
            margin = cp.multiply(y[mine], X[mine] @ (w0 + W[t]) + b0 + b[t])
            value += chosen.C * cp.sum(cp.multiply(weight[mine], cp.pos(1 - margin)))
    problem = cp.Problem(cp.Minimize(value), held)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(problem.value), w0.value + W.value
