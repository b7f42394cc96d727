"""Fig. 2: risk round by round, transfer against none, on two networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtsvm import Network, Session
from dtsvm.data import DigitDraw, DigitFeatures
from dtsvm.trials.experiment import Experiment
from dtsvm.trials.intervals import Claim, Finding, interval
from dtsvm.trials.picture import COLOURS, canvas, label_lines, styled
from dtsvm.trials.regimes import TASK_1, TASK_3, Regime
from dtsvm.trials.repeats import Repeats
from dtsvm.trials.tables import Cell, Table
from dtsvm.trials.training import (
    DSVM_REG,
    ETA,
    PAPER_STEP,
    Dealt,
    csvm_risks,
    deal_tasks,
    enter_all,
    session_risk,
)  # fmt: skip

__all__ = ["EXPERIMENT", "draw", "judge", "run"]

C, ROUNDS, N_TEST = 0.01, 200, 1800
N_TRAIN = {TASK_1: 200, TASK_3: 800}
NAMES = {TASK_1: "Task 1", TASK_3: "Task 3"}
NETWORKS = {20: 0.6368, 10: 0.8889}
DTSVM_REG = {"common_reg": 1.0, "specific_reg": 1.0, "task_penalty": ETA, "node_penalty": ETA}

LEAD = {"Task 1": "3/6: 200 rows, balanced", "Task 3": "8/9: 800 rows, balanced"}

COLUMNS = ("nodes", "method", "task", "round", "risk")


def one_repeat(
    features: DigitFeatures, regime: Regime, rng: np.random.Generator
) -> list[tuple[Cell, ...]]:
    """Draw both tasks, balanced as the caption says; train them on both networks."""
    draws = {
        task: regime.draw(features, task, n, N_TEST, rng, "stratified")
        for task, n in N_TRAIN.items()
    }
    rows: list[tuple[Cell, ...]] = []
    pooled = csvm_risks(draws, C)
    for n_nodes, degree in NETWORKS.items():
        network = Network.random(n_nodes, degree, seed=int(rng.integers(2**31)))
        dealt = deal_tasks(draws, n_nodes, rng)
        for method, settings in (("DTSVM", DTSVM_REG), ("DSVM", DSVM_REG)):
            session = Session(network, C=C, **PAPER_STEP, **settings)
            rows += [(n_nodes, method, *row) for row in _watched(session, dealt, draws, method)]
        rows += [(n_nodes, "CSVM", NAMES[task], ROUNDS, risk) for task, risk in pooled.items()]
    return rows


def _watched(
    session: Session, dealt: Dealt, draws: dict[str, DigitDraw], method: str
) -> list[tuple[str, int, float]]:
    """Train; note every task's global risk after every round."""
    enter_all(session, dealt)
    if method == "DTSVM":
        session.couple(*draws)
    seen: list[tuple[str, int, float]] = []

    def note(info: Any) -> None:
        for task, rows in draws.items():
            seen.append((NAMES[task], info.n_rounds, session_risk(session, task, rows)))

    session.run(rounds=ROUNDS, on_round=note)
    return seen


def run(repeats: Repeats) -> Table:
    """Return risks by regime, repeat, network, method, task and round; CSVM at the last round."""
    return repeats.table(COLUMNS, one_repeat)


def judge(table: Table) -> list[Claim]:
    """Judge both sentences on Fig. 2 by the risks of the last round."""
    last = table.where(round=ROUNDS)
    regime = str(table["regime"][0])

    def risk(nodes: int, method: str, task: str) -> Any:
        return last.where(nodes=nodes, method=method, task=task).by_repeat()

    lower = [
        Finding(f"{task}, {nodes} nodes: DTSVM − {other}",
                interval(risk(nodes, "DTSVM", task) - risk(nodes, other, task)),
                LEAD[task] if (nodes, other) == (10, "DSVM") else "")
        for task in NAMES.values() for nodes in NETWORKS for other in ("DSVM", "CSVM")
    ]  # fmt: skip
    more = []
    for nodes in NETWORKS:
        first, third = (
            risk(nodes, "DTSVM", task) - risk(nodes, "DSVM", task) for task in NAMES.values()
        )
        what = f"{nodes} nodes: change of Task 1 − change of Task 3, each DTSVM − DSVM"
        more.append(Finding(what, interval(first - third)))
    return [
        Claim("fig2", "The classification risks of DTSVM are lower than the risks of both DSVM and "
              "CSVM.", regime, tuple(lower), "DTSVM errs less than DSVM and CSVM"),
        Claim("fig2", "Task 1 benefits more than Task 3.", regime, tuple(more),
              "Task 1 gains more than Task 3"),
    ]  # fmt: skip


@styled
def draw(table: Table) -> Any:
    """Draw risk over rounds: a panel a task and regime, a line a method and network."""
    regimes = table.levels("regime")
    figure, axes = canvas(len(regimes), 2)
    rounds = np.arange(1, ROUNDS + 1)
    for line, regime in zip(axes, regimes, strict=True):
        for axis, task in zip(line, NAMES.values(), strict=True):
            shown = table.where(regime=regime, task=task)
            for method in ("DTSVM", "DSVM"):
                for nodes, style in zip(NETWORKS, ("-", ":"), strict=True):
                    risks = shown.where(nodes=nodes, method=method).by_repeat(per="round")
                    label = f"{method}, {nodes} nodes" + (" (dotted)" if style == ":" else "")
                    axis.plot(rounds, risks.mean(axis=0), style, color=COLOURS[method], label=label)
            pooled = shown.where(method="CSVM", nodes=10)["risk"].mean()
            axis.axhline(pooled, color=COLOURS["CSVM"], ls="--", label="CSVM, pooled")
            axis.set_xscale("log")
            axis.set_xlim(1, ROUNDS)
            axis.set_ylim(0, None)
            label_lines(axis)
            axis.set_title(f"{task}, {regime} regime", loc="left")
            axis.set_xlabel("round")
        line[0].set_ylabel("global risk (%)")
    return figure


EXPERIMENT = Experiment(
    "fig2",
    "Fig. 2: risk round by round",
    "Task 1 (3/6) with 200 and Task 3 (8/9) with 800 training rows, both balanced, 1,800 test rows "
    "each. Network 1 has 20 nodes with degree 0.6368, network 2 has 10 with degree 0.8889. The "
    "paper's own iteration: ε₁ = ε₂ = η₁ = η₂ = 1, C = 0.01. Means over the repeats.",
    {"C": C, "rounds": ROUNDS, "common_reg": 1, "specific_reg": 1, "task_penalty": ETA,
     "node_penalty": ETA, "n_train": N_TRAIN, "n_test": N_TEST, "degree": NETWORKS},
    40,
    20,
    run,
    judge,
    draw,
)  # fmt: skip
