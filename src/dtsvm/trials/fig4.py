"""Fig. 4: the risk over C and ε₂."""

from __future__ import annotations

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

PRICES = (0.0001, 0.001, 0.01, 0.1, 1.0)
COLUMNS = ("method", "task", "C", "specific_reg", "risk")


def one_repeat(
    features: DigitFeatures, regime: Regime, rng: np.random.Generator
) -> list[tuple[Cell, ...]]:
    """Draw once; train for every pair of C and ε₂. CSVM, which has no ε₂, is noted at 1."""
    network, draws, dealt = draw_world(features, regime, rng)
    rows: list[tuple[Cell, ...]] = []
    for C in PRICES:
        for specific in REGS:
            model = converged(network, dealt, C=C, specific_reg=specific)
            for task, name in NAMES.items():
                rows.append(("DTSVM", name, C, specific, global_risk(model, task, draws[task])))
        rows += [("CSVM", NAMES[task], C, 1.0, risk) for task, risk in csvm_risks(draws, C).items()]
    return rows


def run(repeats: Repeats) -> Table:
    """Return risks by regime, repeat, method, task, C and ε₂."""
    return repeats.table(COLUMNS, one_repeat)


def judge(table: Table) -> list[Claim]:
    """Judge whether C and ε₂ matter to DTSVM."""
    regime = str(table["regime"][0])
    findings = []
    for task in NAMES.values():
        at = table.where(task=task, method="DTSVM")
        by_price = np.stack([at.where(C=C).by_repeat(per="specific_reg") for C in PRICES])
        # At each repeat the other parameter stands where it is best for all other repeats.
        prices = np.column_stack([chosen(risks) for risks in by_price])
        regs = np.column_stack([chosen(by_price[:, :, k].T) for k in range(len(REGS))])
        for word, risks in (("C, ε₂ at its best", prices), ("ε₂, C at its best", regs)):
            difference = chosen(risks) - chosen(risks, worst=True)
            findings.append(Finding(f"{task}: best − worst {word}", interval(difference)))
    sentence = "Parameters C, ε₁ and ε₂ are related to the performance of transfer learning."
    return [Claim("fig4", sentence, regime, tuple(findings), "C, ε₁ and ε₂ matter")]


@styled
def draw(table: Table) -> Any:
    """Draw risk over C, a line for each ε₂."""
    words = ("C, price of a row's hinge loss", "ε₂")
    return draw_grid(table, "C", "specific_reg", words, REGS)


EXPERIMENT = Experiment(
    "fig4",
    "Fig. 4: what C and ε₂ do",
    "As Fig. 3, with ε₁ = 1 and C from "
    f"{shown_power(PRICES[0])} to {shown_power(PRICES[-1])}. CSVM is shown at every C.",
    {"C": PRICES, "common_reg": 1, "specific_reg": REGS, "n_nodes": N_NODES, "degree": DEGREE,
     "n_train": N_TRAIN, "n_test": N_TEST},
    50,
    24,
    run,
    judge,
    draw,
)  # fmt: skip
