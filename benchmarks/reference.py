"""The optimum that both sides are judged by, much more accurate than any target here.

Small problems: Clarabel, the formula handed over as it is written. Large ones: our own training on
pooled rows, whose λ proves a lower bound here, in plain NumPy, whoever found it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from benchmarks.problems import Problem
from benchmarks.results import ROOT
from dtsvm import Network

__all__ = ["Reference", "from_tests", "prove", "solve"]


@dataclass(frozen=True)
class Reference:
    """Classifiers u_t (T, p + 1), a value no classifier can beat, and how far apart they are.

    `bias` (T, 2) holds the lowest and the highest optimal bias of each task: where no row pins it
    down, a whole interval is optimal.
    """

    decision: np.ndarray
    optimum: float
    gap: float
    bias: np.ndarray

    def distance(self, by_node: np.ndarray) -> float:
        """Return the worst ‖u − u*‖ / ‖u*‖ over classifiers (V, T, p + 1)."""
        off = by_node - self.decision
        beyond = np.maximum(self.bias[:, 0] - by_node[..., -1], by_node[..., -1] - self.bias[:, 1])
        off[..., -1] = np.maximum(beyond, 0.0)
        size = np.linalg.norm(self.decision, axis=-1)
        return float((np.sqrt((off**2).sum(axis=-1)) / size).max())


def from_tests(name: str):
    """Import a module of the tests: their random worlds and their Clarabel formula."""
    folder = str(ROOT / "tests")
    if folder not in sys.path:
        sys.path.append(folder)
    return __import__(name)


def solve(problem: Problem) -> Reference:
    """Solve a small problem with Clarabel."""
    pooled = from_tests("reference").solve_pooled(
        problem.X,
        problem.y,
        problem.task,
        np.full(problem.n_tasks, 1 / problem.n_tasks),
        **problem.weights,
    )
    value = float(problem.objective(pooled.decision))
    gap = abs(value / pooled.objective - 1.0)
    return Reference(
        pooled.decision, min(value, pooled.objective), gap, _biases(problem, pooled.decision)
    )


def prove(problem: Problem, tol: float, seconds: float = 1800.0, *, pool: bool = True) -> Reference:
    """Train until the gap between value and proven bound is below `tol`, on pooled rows or not.

    The bound is proven by λ alone, wherever it comes from.
    """
    world = problem
    if pool:
        world = problem.replace(node=np.zeros_like(problem.node), network=Network([0], []))
    pooled = world.session(tol=tol)
    pooled.run(tol=tol, seconds=seconds)
    decision = np.stack(
        [
            np.append(c.coef_[0], c.intercept)
            for c in (pooled.classifier(t) for t in range(problem.n_tasks))
        ]
    )
    bound = _bound(problem, pooled)
    value = float(problem.objective(decision))
    return Reference(decision, bound, value / bound - 1.0, _biases(problem, decision))


def _bound(problem: Problem, pooled) -> float:
    """D(λ) = Σλ − ‖Σ_t v_t‖²/2ε₁ − T Σ_t ‖v_t‖²/2ε₂ for λ in [0, C] with Σ yλ = 0 in each task.

    v_t = Σ yλx; where Σ yλ ≠ 0 the heavier class is scaled down.
    """
    state = pooled._members.state
    total, curved, linear = 0.0, 0.0, 0.0
    for t in range(problem.n_tasks):
        agents = pooled._members.agents_of(t).values()
        slots = np.concatenate([state.row_slots[agent] for agent in agents])
        rows = state.tables.rows
        X, y = state.tables.matrix.rows(rows["at"][slots]), rows["y"][slots]
        dual = np.clip(rows["dual"][slots], 0.0, problem.C)
        plus, minus = dual[y > 0].sum(), dual[y < 0].sum()
        dual = dual * np.where(y > 0, min(plus, minus) / plus, min(plus, minus) / minus)
        v = (y * dual) @ X
        total = total + v
        curved += problem.n_tasks * (v @ v) / problem.specific_reg
        linear += dual.sum()
    curved += total @ total / problem.common_reg
    scale = min(1.0, linear / curved)
    return float(scale * linear - 0.5 * scale**2 * curved)


def _biases(problem: Problem, decision: np.ndarray) -> np.ndarray:
    """Return where the hinge loss is flat in each task's bias, at the optimal weights.

    Row i bends the loss at b = yᵢ − scoreᵢ, where the slope grows by one; it begins at minus the
    number of positives, so the loss is flat between as many bends as there are positives and one
    more.
    """
    out = np.empty((problem.n_tasks, 2))
    for t in range(problem.n_tasks):
        mine = problem.task == t
        score, y = problem.X[mine] @ decision[t, :-1], problem.y[mine]
        kinks, n_positive = np.sort(y - score), int((y > 0).sum())
        low, high = kinks[n_positive - 1], kinks[n_positive]
        out[t] = min(low, decision[t, -1]), max(high, decision[t, -1])
    return out
