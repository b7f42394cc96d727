"""Fig. 5: a target task with few rows and unbalanced labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtsvm import Network
from dtsvm.data import DigitFeatures
from dtsvm.trials.experiment import Experiment
from dtsvm.trials.intervals import Claim, Finding, interval
from dtsvm.trials.picture import COLOURS, canvas, label_lines, styled
from dtsvm.trials.regimes import TASK_1, TASK_3, Regime
from dtsvm.trials.repeats import Repeats
from dtsvm.trials.tables import Cell, Table
from dtsvm.trials.training import converged, csvm_risks, deal_tasks, global_risk

__all__ = ["EXPERIMENT", "draw", "judge", "run"]

C, N_NODES, N_TEST = 0.01, 4, 1800
N_TARGET, N_SOURCE = 12, 200
THREES = (2, 3, 4, 5, 6)
NAMES = {TASK_1: "Task 1", TASK_3: "Task 3"}

COLUMNS = ("threes", "method", "task", "risk")


def one_repeat(
    features: DigitFeatures, regime: Regime, rng: np.random.Generator
) -> list[tuple[Cell, ...]]:
    """Draw Task 3 once and Task 1 with 2 to 6 rows of "3"; train together and pooled apart."""
    source = regime.draw(features, TASK_3, N_SOURCE, N_TEST, rng, "stratified")
    rows: list[tuple[Cell, ...]] = []
    for threes in THREES:
        counts = (threes, N_TARGET - threes)
        target = regime.draw(features, TASK_1, N_TARGET, N_TEST, rng, counts)
        draws = {TASK_1: target, TASK_3: source}
        model = converged(Network.complete(N_NODES), deal_tasks(draws, N_NODES, rng), C=C)
        pooled = csvm_risks(draws, C)
        for task, name in NAMES.items():
            rows.append((threes, "DTSVM", name, global_risk(model, task, draws[task])))
            rows.append((threes, "CSVM", name, pooled[task]))
    return rows


def run(repeats: Repeats) -> Table:
    """Return risks by regime, repeat, rows of "3", method and task."""
    return repeats.table(COLUMNS, one_repeat)


def judge(table: Table) -> list[Claim]:
    """Judge both sentences on Fig. 5."""
    regime = str(table["regime"][0])
    target = table.where(task="Task 1")
    findings = [
        Finding(
            f"Task 1, {threes} rows of “3”: DTSVM − CSVM",
            interval(
                target.where(threes=threes, method="DTSVM").by_repeat()
                - target.where(threes=threes, method="CSVM").by_repeat()
            ),
            f"3/6: 12 rows, {threes} of them “3”",
        )
        for threes in THREES
    ]
    return [
        Claim("fig5", "Transfer learning can also improve the classification accuracy when the "
              "target has unbalanced labels.", regime, tuple(findings[:-1]),
              "Transfer helps with unbalanced labels"),
        Claim("fig5", "With only 2 training samples of “3”, DTSVM can still find classifiers "
              "better than CSVM.", regime, tuple(findings[:1]),
              "… even with 2 rows of “3”"),
    ]  # fmt: skip


@styled
def draw(table: Table) -> Any:
    """Draw risk over the number of rows of "3": mean and STD."""
    regimes = table.levels("regime")
    figure, axes = canvas(len(regimes), 2)
    for line, regime in zip(axes, regimes, strict=True):
        for axis, task in zip(line, NAMES.values(), strict=True):
            shown = table.where(regime=regime, task=task)
            for k, (method, style) in enumerate((("DTSVM", "o-"), ("CSVM", "--"))):
                risks = shown.where(method=method).by_repeat(per="threes")
                spread = risks.std(axis=0, ddof=1) if len(risks) > 1 else None
                axis.errorbar(
                    np.array(THREES) + 0.06 * (k - 0.5), risks.mean(axis=0), spread, fmt=style,
                    color=COLOURS[method], capsize=3, elinewidth=1,
                    label=method,
                )  # fmt: skip
            axis.set_xticks(THREES)
            axis.set_ylim(0, None)
            label_lines(axis)
            axis.set_title(f"{task}, {regime} regime", loc="left")
            axis.set_xlabel(f"training rows of “3” among {N_TARGET} of Task 1")
        line[0].set_ylabel("global risk (%), mean ± STD")
    return figure


EXPERIMENT = Experiment(
    "fig5",
    "Fig. 5: few rows, unbalanced labels",
    "Task 1 (3/6) with 12 training rows, 2 to 6 of them “3”; Task 3 (8/9) with 200, balanced; four "
    "nodes, all linked; ε₁ = ε₂ = 1, C = 0.01. CSVM sees all rows of a task at one place. Six of "
    "twelve is balanced and has no part in the first claim.",
    {"C": C, "common_reg": 1, "specific_reg": 1, "n_nodes": N_NODES, "n_train_task1": N_TARGET,
     "n_train_task3": N_SOURCE, "n_test": N_TEST},
    200,
    100,
    run,
    judge,
    draw,
)  # fmt: skip
