"""Fig. 6: the networks of Table 1, every node coloured by its risk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dtsvm.trials import table1
from dtsvm.trials.intervals import Claim
from dtsvm.trials.picture import INK, RULE, canvas, styled
from dtsvm.trials.tables import Table

__all__ = ["EXPERIMENT", "draw", "judge"]

PLACES = ((0.0, 2.0), (0.0, 1.0), (0.0, 0.0), (1.0, 2.0), (1.0, 1.0), (1.0, 0.0))
WORDS = {
    "left": "left: DSVM, partners linked",
    "left, joined": "left: DSVM, links of the right",
    "right": "right: DTSVM at nodes 1–3",
}


def judge(table: Table) -> list[Claim]:
    """Leave the claims to Table 1."""
    return []


@styled
def draw(table: Table) -> Any:
    """Draw the networks, a row a regime."""
    regimes = table.levels("regime")
    figure, axes = canvas(len(regimes), len(WORDS), width=3.5, height=3.1)
    colours = None
    for line, regime in zip(axes, regimes, strict=True):
        for axis, side in zip(line, WORDS, strict=True):
            mean = table1.summary(table.where(regime=regime), side)[0]
            colours = _draw_network(axis, side, mean)
            axis.set_title(f"{WORDS[side]}\n{regime} regime, global {mean[-1]:.1f} %", loc="left",
                           fontsize=9.5)  # fmt: skip
    bar = figure.colorbar(colours, ax=axes, shrink=0.7, pad=0.02)
    bar.set_label("mean risk of Task 2 (%)")
    bar.outline.set_visible(False)
    return figure


def _draw_network(axis: Any, side: str, mean: Any) -> Any:
    along = np.linspace(0, 1, 21)
    for links in table1.SIDES[side][0]:
        for u, v in links:
            (x0, y0), (x1, y1) = PLACES[u], PLACES[v]
            # Nodes 1 and 3 are linked around node 2.
            bend = 0.9 * along * (1 - along) if (u, v) == (0, 2) else 0.0
            x, y = x0 + along * (x1 - x0) + bend, y0 + along * (y1 - y0)
            axis.plot(x, y, color=RULE, lw=2, zorder=1)
    colours = axis.scatter(
        *zip(*PLACES, strict=True), c=mean[:-1], s=780, cmap="cividis_r", vmin=0, vmax=50,
        edgecolors=INK, zorder=2,
    )  # fmt: skip
    for v, (x0, y0) in enumerate(PLACES):
        shade = "white" if mean[v] > 22 else "black"
        axis.text(x0, y0, f"{mean[v]:.1f}", ha="center", va="center", color=shade, fontsize=9)
        holds = "tasks 2, 3" if table1.SIDES[side][1] and v in table1.HOLDERS else "task 2"
        is_right = v not in table1.HOLDERS
        axis.text(
            x0 + (0.2 if is_right else -0.2), y0, f"node {v + 1}\n{holds}", fontsize=8,
            ha="left" if is_right else "right", va="center",
        )  # fmt: skip
    axis.set_xlim(-0.85, 1.75)
    axis.set_ylim(-0.4, 2.4)
    axis.set_axis_off()
    return colours


EXPERIMENT = replace(
    table1.EXPERIMENT,
    name="fig6",
    numbers="table1",
    title="Fig. 6: who is linked to whom",
    caption="The networks of Table 1 as they were read, with every node's mean risk. Numbers and "
    "claims are those of Table 1.",
    judge=judge,
    draw=draw,
)
