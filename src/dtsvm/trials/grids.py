"""Figs. 3 and 4: the risk over two parameters at a time, and the choice made without peeking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm import Network
from dtsvm.data import DigitDraw, DigitFeatures
from dtsvm.trials.picture import COLOURS, LADDER, MARKERS, canvas, label_lines
from dtsvm.trials.regimes import TASK_1, TASK_3, Regime
from dtsvm.trials.tables import Table
from dtsvm.trials.training import Dealt, deal_tasks

__all__ = [
    "DEGREE",
    "NAMES",
    "N_NODES",
    "N_TEST",
    "N_TRAIN",
    "REGS",
    "C",
    "chosen",
    "draw_grid",
    "draw_world",
    "shown_power",
]  # fmt: skip

C, N_NODES, DEGREE, N_TEST = 0.01, 10, 0.8667, 1800
N_TRAIN = {TASK_1: 50, TASK_3: 400}
NAMES = {TASK_1: "Task 1", TASK_3: "Task 3"}
REGS = (0.01, 0.1, 1.0, 10.0, 100.0)


def draw_world(
    features: DigitFeatures, regime: Regime, rng: np.random.Generator
) -> tuple[Network, dict[str, DigitDraw], Dealt]:
    """Draw a network and both tasks' rows, and deal them."""
    draws = {task: regime.draw(features, task, n, N_TEST, rng) for task, n in N_TRAIN.items()}
    network = Network.random(N_NODES, DEGREE, seed=int(rng.integers(2**31)))
    return network, draws, deal_tasks(draws, N_NODES, rng)


def chosen(risks: NDArray[np.float64], worst: bool = False) -> NDArray[np.float64]:
    """Return each repeat's risk at the choice that is best, or worst, over all other repeats.

    Choosing by the same repeats that are then reported would make any choice look good.

    Parameters
    ----------
    risks : ndarray of shape (n_repeats, n_choices)
        The risks.
    worst : bool, default=False
        Whether to choose the worst.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.trials.grids import chosen
    >>> chosen(np.array([[1.0, 9.0], [9.0, 2.0], [2.0, 8.0]]))
    array([9., 9., 2.])
    """
    n = len(risks)
    others = (risks.sum(axis=0) - risks) / max(n - 1, 1) if n > 1 else risks
    pick = others.argmax(axis=1) if worst else others.argmin(axis=1)
    return np.asarray(risks[np.arange(n), pick])


def shown_power(value: float) -> str:
    """Write a power of ten as one.

    Examples
    --------
    >>> from dtsvm.trials.grids import shown_power
    >>> shown_power(0.01), shown_power(1.0), shown_power(10.0)
    ('10⁻²', '1', '10')
    """
    power = round(np.log10(value))
    if power in (0, 1):
        return f"{value:g}"
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def draw_grid(
    table: Table, along: str, steps: str, words: tuple[str, str], levels: Sequence[float]
) -> Any:
    """Draw risk along one parameter, a line for each step of the other, and CSVM's line."""
    regimes = table.levels("regime")
    figure, axes = canvas(len(regimes), 2, height=3.6)
    for line, regime in zip(axes, regimes, strict=True):
        for axis, task in zip(line, NAMES.values(), strict=True):
            shown = table.where(regime=regime, task=task)
            _draw_steps(axis, shown.where(method="DTSVM"), along, steps, words[1], levels)
            pooled = shown.where(method="CSVM")
            x = np.unique(pooled[along])
            mean = pooled.by_repeat(per=along).mean(axis=0)
            if len(x) == 1:
                axis.axhline(mean[0], color=COLOURS["CSVM"], ls="--", label="CSVM, pooled")
            else:
                axis.plot(x, mean, "--", color=COLOURS["CSVM"], label="CSVM, pooled")
            axis.set_xscale("log")
            axis.set_ylim(0, None)
            label_lines(axis)
            axis.set_title(f"{task}, {regime} regime", loc="left")
            axis.set_xlabel(words[0])
        line[0].set_ylabel("global risk (%), mean ± STD")
    return figure


def _draw_steps(
    axis: Any, table: Table, along: str, steps: str, word: str, levels: Sequence[float]
) -> None:
    for k, level in enumerate(levels):
        at = table.where(**{steps: level})
        risks = at.by_repeat(per=along)
        spread = risks.std(axis=0, ddof=1) if len(risks) > 1 else None
        # Side by side, so that no error bar hides another.
        x = np.unique(at[along]) * 10 ** (0.06 * (k - (len(levels) - 1) / 2))
        axis.errorbar(
            x, risks.mean(axis=0), spread, fmt=MARKERS[k] + "-", color=LADDER[k], ms=4.5,
            lw=1.4, capsize=2, elinewidth=0.8, label=f"{word} = {shown_power(level)}",
        )  # fmt: skip
