"""Fig. 3: the risk over ε₁ and ε₂."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from dtsvm.data import DigitFeatures
from dtsvm.trials.experiment import Experiment
from dtsvm.trials.grids import (
    DEGREE,
    N_NODES,
    N_TEST,
    N_TRAIN,
    NAMES,
    REGS,
    C,
    chosen,
    draw_grid,
    draw_world,
    shown_power,
)  # fmt: skip
from dtsvm.trials.intervals import Claim, Finding, interval
from dtsvm.trials.picture import styled
from dtsvm.trials.regimes import Regime
from dtsvm.trials.repeats import Repeats
from dtsvm.trials.tables import Cell, Table
from dtsvm.trials.training import converged, csvm_risks, global_risk

__all__ = ["EXPERIMENT", "draw", "judge", "run"]

COLUMNS = ("method", "task", "common_reg", "specific_reg", "risk")


def one_repeat(
    features: DigitFeatures, regime: Regime, rng: np.random.Generator
) -> list[tuple[Cell, ...]]:
    """Draw once; train for every ε₁ and ε₂. CSVM, which has neither, is noted at 1 and 1."""
    network, draws, dealt = draw_world(features, regime, rng)
    rows: list[tuple[Cell, ...]] = []
    for common, specific in product(REGS, REGS):
        model = converged(network, dealt, C=C, common_reg=common, specific_reg=specific)
        for task, name in NAMES.items():
            rows.append(("DTSVM", name, common, specific, global_risk(model, task, draws[task])))
    rows += [("CSVM", NAMES[task], 1.0, 1.0, risk) for task, risk in csvm_risks(draws, C).items()]
    return rows


def run(repeats: Repeats) -> Table:
    """Return risks by regime, repeat, method, task, ε₁ and ε₂."""
    return repeats.table(COLUMNS, one_repeat)


def judge(table: Table) -> list[Claim]:
    """Judge what the paper says of ε₁/ε₂, and whether tuning is needed and enough."""
    regime = str(table["regime"][0])
    ends = {"large": (REGS[-1], REGS[0]), "small": (REGS[0], REGS[-1])}
    inner = [pair for pair in product(REGS, REGS) if pair not in ends.values()]
    extremes, tuning = [], []
    for task in NAMES.values():
        at = table.where(task=task, method="DTSVM")
        risk = {
            (a, b): at.where(common_reg=a, specific_reg=b).by_repeat()
            for a, b in product(REGS, REGS)
        }
        grid = np.column_stack([risk[pair] for pair in inner])
        best = chosen(grid)
        for end in ends.values():
            what = f"{task}: best between − ε₁/ε₂ = {shown_power(end[0] / end[1])}"
            extremes.append(Finding(what, interval(best - risk[end])))
        pooled = table.where(task=task, method="CSVM").by_repeat()
        worst = chosen(np.column_stack(list(risk.values())), worst=True)
        tuning += [
            Finding(f"{task}: best choice − CSVM", interval(best - pooled)),
            Finding(f"{task}: CSVM − worst choice", interval(pooled - worst)),
        ]
    return [
        Claim("fig3", "When ε₁/ε₂ is large all tasks tend to be not related, when it is small all "
              "tasks tend to be the same; both of the cases decrease the classification accuracy.",
              regime, tuple(extremes), "Too large or too small ε₁/ε₂ does harm"),
        Claim("fig3", "The improvement of the performance requires a proper tuning of these "
              "parameters.", regime, tuple(tuning), "Gains need tuned ε₁ and ε₂"),
    ]  # fmt: skip


@styled
def draw(table: Table) -> Any:
    """Draw risk over ε₂, a line for each ε₁."""
    words = ("ε₂, regularisation of the specific part", "ε₁")
    return draw_grid(table, "specific_reg", "common_reg", words, REGS)


EXPERIMENT = Experiment(
    "fig3",
    "Fig. 3: what ε₁ and ε₂ do",
    "Task 1 (3/6) with 50 and Task 3 (8/9) with 400 training rows, 1,800 test rows each; 10 nodes "
    "with degree 0.8667; C = 0.01. “Best” and “worst” choices are made for each repeat by all the "
    "others, so no choice is flattered.",
    {"C": C, "common_reg": REGS, "specific_reg": REGS, "n_nodes": N_NODES, "degree": DEGREE,
     "n_train": N_TRAIN, "n_test": N_TEST},
    150,
    60,
    run,
    judge,
    draw,
)  # fmt: skip
