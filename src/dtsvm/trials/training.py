"""Drawn rows to trained classifiers to risks: what every figure does between draw and table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm import CSVM, DTSVM, Network, Session
from dtsvm.data import DigitDraw, deal

__all__ = [
    "DSVM_REG", "ETA", "PAPER_STEP", "Dealt", "converged", "csvm_risks", "deal_tasks", "enter_all",
    "global_risk", "node_risks", "session_risk",
]  # fmt: skip

# The paper's own iteration: penalty 1 on every link, plain steps, every local problem to the end.
ETA = 1.0
PAPER_STEP: dict[str, Any] = {"relaxation": 0.5, "local": "exact"}
# ε₁ = ε₂ = 2 has ½‖w‖² as its regulariser, and penalty 2η then gives the iterates of DSVM at η.
DSVM_REG: dict[str, Any] = {"common_reg": 2.0, "specific_reg": 2.0, "node_penalty": 2 * ETA}


class Dealt(NamedTuple):
    """Training rows of all tasks, and the node that holds each."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    task: NDArray[np.str_]
    node: NDArray[np.int64]


def deal_tasks(
    draws: Mapping[str, DigitDraw],
    nodes: int | Mapping[str, Sequence[int]],
    rng: np.random.Generator,
) -> Dealt:
    """Deal each task's training rows evenly to the nodes, or to the nodes that hold the task."""
    where = []
    for task, rows in draws.items():
        holders = np.arange(nodes) if isinstance(nodes, int) else np.array(nodes[task])
        where.append(holders[deal(len(rows.y_train), len(holders), seed=rng)])
    sizes = [len(rows.y_train) for rows in draws.values()]
    return Dealt(
        np.concatenate([rows.X_train for rows in draws.values()]),
        np.concatenate([rows.y_train for rows in draws.values()]),
        np.repeat(list(draws), sizes),
        np.concatenate(where),
    )


def enter_all(session: Session, dealt: Dealt) -> None:
    """Let every node's rows of every task enter a session."""
    for task in dict.fromkeys(dealt.task.tolist()):
        for node in session.nodes:
            mine = (dealt.task == task) & (dealt.node == node)
            if mine.any():
                session.enter(node, task, dealt.X[mine], dealt.y[mine])


def session_risk(session: Session, task: str, rows: DigitDraw) -> float:
    """Return a task's global risk now, in percent, of rows that need no checking any more.

    What `Session.risk` returns as its mean, quickly enough to be asked for after every round.
    """
    W = np.array(list(session.decisions(task).values()))
    is_positive = rows.X_test @ W[:, :-1].T + W[:, -1] > 0
    return float(100 * (is_positive != (rows.y_test > 0)[:, None]).mean(axis=0).mean())


def node_risks(model: Any, task: str, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the share of rows, in percent, that each node's classifier gets wrong."""
    t = model.tasks_.tolist().index(task)
    scores = X @ model.node_coef_[:, t].T + model.node_intercept_[:, t]
    return np.asarray(100 * ((scores > 0) != (y > 0)[:, None]).mean(axis=0))


def global_risk(model: Any, task: str, rows: DigitDraw) -> float:
    """Return the mean over the nodes of their risks on a task's test rows, in percent."""
    return float(node_risks(model, task, rows.X_test, rows.y_test).mean())


def csvm_risks(draws: Mapping[str, DigitDraw], C: float) -> dict[str, float]:
    """Return the risk of an ordinary SVM on the pooled rows of each task, in percent."""
    dealt = deal_tasks(draws, 1, np.random.default_rng(0))
    model = CSVM(C=C).fit(dealt.X, dealt.y, task=dealt.task)
    return {task: global_risk(model, task, rows) for task, rows in draws.items()}


def converged(network: Network, dealt: Dealt, **settings: Any) -> DTSVM:
    """Train DTSVM to its optimum with automatic penalties, which do not change the answer.

    Notes
    -----
    The paper's own iteration ends at the same risks to 0.1 point, except where the optimum leaves
    the bias open: rows so close together that none reaches its margin, as many of either label.
    """
    model = DTSVM(network, max_rounds=200_000, **settings)
    return model.fit(dealt.X, dealt.y, task=dealt.task, node=dealt.node)
