"""The same iteration as ours, with a general QP solver for every agent's problem.

What anyone would write who reads the paper and knows a good solver: every round hands each agent's
dual box QP to it. Who knows the solver well sets it up once and then changes its linear term only.
Messages are plain NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from benchmarks.problems import Problem
from dtsvm import Session

__all__ = ["Links", "LocalQP", "clarabel_box", "cvxpy_box", "every_round", "osqp_box"]


class BoxQP(Protocol):
    """Minimises ½λᵀQλ + qᵀλ over 0 ≤ λ ≤ C, again and again with another q."""

    def __call__(self, q: np.ndarray) -> np.ndarray:
        """Return λ."""


MakeBoxQP = Callable[[np.ndarray, float], BoxQP]


@dataclass(frozen=True)
class Links:
    """Every link end: whose it is, its other end, whether the specific part is agreed on, ρ."""

    owner: np.ndarray
    twin: np.ndarray
    is_wide: np.ndarray
    penalty: np.ndarray  # (ends, p + 1)

    @classmethod
    def of(cls, live: Session) -> Links:
        """Take over the penalties that a session of ours chose; agents are numbered as entered."""
        state = live._members.state
        halves, agents = state.tables.ends, state.tables.agents
        ids = halves.used
        place = np.zeros(halves.capacity, int)
        place[ids] = np.arange(len(ids))
        rho = halves["penalty"][ids]
        by_feature = np.repeat(rho[:, :1], state.n_features + 1, axis=1)
        by_feature[:, -1] = rho[:, 1]
        agent = np.zeros(agents.capacity, int)
        agent[agents.used] = np.arange(len(agents.used))
        return cls(
            agent[halves["owner"][ids]],
            place[halves["twin"][ids]],
            halves["is_wide"][ids] > 0,
            by_feature,
        )


class LocalQP:
    """All agents, each with a QP of its own.

        x_a      = argmin  f_a(x) − (Σ_b z[a→b])ᵀ x + ½ Σ_b ρ_ab ‖x‖²
        z[a→b] ← (1 − κ) z[a→b] + κ (2 ρ x_b − z[b→a])

    Agents are numbered (node, task); everything is divided by their number.
    """

    def __init__(self, problem: Problem, links: Links, kappa: float, make: MakeBoxQP) -> None:
        n_agents = len(problem.network) * problem.n_tasks
        p1 = problem.X.shape[1] + 1
        self.links, self.kappa = links, kappa
        self.n_tasks = problem.n_tasks
        U = np.zeros((n_agents, 2, p1))
        np.add.at(U[:, 0], links.owner, links.penalty)
        np.add.at(U[:, 1], links.owner, links.penalty * links.is_wide[:, None])
        U[:, 0, :-1] += problem.common_reg / n_agents
        U[:, 1, :-1] += problem.specific_reg / n_agents
        self.gain = 1.0 / U
        self.signed = []
        self.solvers = []
        for a in range(n_agents):
            mine = (problem.node == a // problem.n_tasks) & (problem.task == a % problem.n_tasks)
            rows = np.column_stack([problem.X[mine], np.ones(mine.sum())])
            signed = problem.y[mine, None] * rows
            self.signed.append(signed)
            self.solvers.append(make((signed * self.gain[a].sum(axis=0)) @ signed.T, problem.C))
        self.x = np.zeros((n_agents, 2, p1))
        self.z = np.zeros((len(links.owner), 2, p1))

    def round(self) -> None:
        """Let every agent solve, then exchange."""
        links, z = self.links, self.z
        inflow = np.zeros_like(self.x)
        np.add.at(inflow, links.owner, z)
        shift = (inflow * self.gain).sum(axis=1)
        for a, (signed, solve) in enumerate(zip(self.signed, self.solvers, strict=True)):
            dual = solve(signed @ shift[a] - 1.0)
            self.x[a] = (signed.T @ dual + inflow[a]) * self.gain[a]
        sent = 2.0 * links.penalty[:, None] * self.x[links.owner] - z
        self.z = (1.0 - self.kappa) * z + self.kappa * sent[links.twin]
        self.z[~links.is_wide, 1] = 0.0

    def run(self, rounds: int) -> None:
        """Run so many rounds."""
        for _ in range(rounds):
            self.round()

    def decisions(self) -> np.ndarray:
        """Return what every node found, (V, T, p + 1)."""
        return self.x.sum(axis=1).reshape(-1, self.n_tasks, self.x.shape[2])


def every_round(box: Callable[[float], MakeBoxQP]) -> Callable[[float], MakeBoxQP]:
    """Return a solver that is set up anew in every round."""

    def anew(eps: float) -> MakeBoxQP:
        make = box(eps)
        return lambda Q, C: lambda q: make(Q, C)(q)

    return anew


def osqp_box(eps: float) -> MakeBoxQP:
    """OSQP, warm-started: setup once, then update(q) and solve."""
    import osqp

    def make(Q: np.ndarray, C: float) -> BoxQP:
        n = len(Q)
        solver = osqp.OSQP()
        solver.setup(
            P=sp.csc_matrix(np.triu(Q)),
            q=np.zeros(n),
            A=sp.eye(n, format="csc"),
            l=np.zeros(n),
            u=np.full(n, C),
            eps_abs=eps,
            eps_rel=eps,
            max_iter=50_000,
            verbose=False,
            warm_starting=True,
        )

        def solve(q: np.ndarray) -> np.ndarray:
            solver.update(q=q)
            return np.clip(solver.solve(raise_error=False).x, 0.0, C)

        return solve

    return make


def clarabel_box(eps: float) -> MakeBoxQP:
    """Clarabel, an interior-point method: no warm start, but its factors' structure is kept."""
    import clarabel

    def make(Q: np.ndarray, C: float) -> BoxQP:
        n = len(Q)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.presolve_enable = False  # update() needs the problem as it was given
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = eps
        eye = sp.eye(n, format="csc")
        solver = clarabel.DefaultSolver(
            sp.csc_matrix(np.triu(Q)),
            np.zeros(n),
            sp.vstack([eye, -eye], format="csc"),
            np.concatenate([np.full(n, C), np.zeros(n)]),
            [clarabel.NonnegativeConeT(2 * n)],
            settings,
        )

        def solve(q: np.ndarray) -> np.ndarray:
            solver.update(q=q)
            return np.clip(np.array(solver.solve().x), 0.0, C)

        return solve

    return make


def cvxpy_box(eps: float) -> MakeBoxQP:
    """CVXPY: the problem modelled once, its linear term a parameter, solved by OSQP."""
    import cvxpy as cp

    def make(Q: np.ndarray, C: float) -> BoxQP:
        n = len(Q)
        dual, linear = cp.Variable(n), cp.Parameter(n)
        value = 0.5 * cp.quad_form(dual, cp.psd_wrap(Q)) + linear @ dual
        model = cp.Problem(cp.Minimize(value), [dual >= 0, dual <= C])

        def solve(q: np.ndarray) -> np.ndarray:
            linear.value = q
            model.solve(solver=cp.OSQP, warm_start=True, eps_abs=eps, eps_rel=eps, max_iter=50_000)
            return np.clip(dual.value, 0.0, C)

        return solve

    return make
