"""How every picture looks: one colour a method, one ink, readable in light and dark."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from dtsvm.errors import MissingExtraError
from dtsvm.trials.tables import Table

__all__ = [
    "COLOURS", "INK", "LADDER", "MARKERS", "PAPER", "RULE", "TASK_COLOURS", "canvas",
    "label_lines", "legend_below", "need_matplotlib", "save", "styled",
]  # fmt: skip

# Okabe and Ito's colours: told apart by everyone, on white and on black.
COLOURS = {"DTSVM": "#0072b2", "DSVM": "#009e73", "CSVM": "#d55e00"}
TASK_COLOURS = {"Task 1": "#0072b2", "Task 2": "#cc79a7", "Task 3": "#e69f00"}
# Steps of one parameter of DTSVM; markers tell them apart without colour.
LADDER = ("#8ccbf2", "#56b4e9", "#0072b2", "#5a5fbf", "#8d4fa8")
MARKERS = ("v", "s", "o", "D", "^")
# The page turns exactly these three into the colours of light or dark.
INK, RULE, PAPER = "#333334", "#bfbfc0", "#fefefe"

_STYLE = {
    "font.size": 10.5,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "grid.alpha": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "svg.hashsalt": "dtsvm",
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
}


def need_matplotlib() -> Any:
    """Return matplotlib, or say how to get it."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError(
            'Drawing the figures needs matplotlib. Install it: pip install "dtsvm[plot]"'
        ) from error
    return matplotlib


def styled(draw: Callable[[Table], Any]) -> Callable[[Table], Any]:
    """Give all that `draw` makes the same look."""

    @wraps(draw)
    def dressed(table: Table) -> Any:
        with need_matplotlib().rc_context(_STYLE):
            return draw(table)

    return dressed


def canvas(
    n_rows: int, n_columns: int, *, width: float = 5.0, height: float = 3.4, share_y: bool = False
) -> tuple[Any, Any]:
    """Return a figure and its axes, an array of shape (n_rows, n_columns); sizes are per panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False, sharey=share_y)
    return figure, np.asarray(axes)


def legend_below(figure: Any, axis: Any, columns: int = 4, **options: Any) -> None:
    """Put one legend under all panels, where it covers nothing."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, **options)


def label_lines(axis: Any, *, room: float = 0.075) -> None:
    """Write every line's name at its right end, in its colour; names keep apart by `room`.

    `room` is a share of the axis's height. Call it when the axis has its final limits.
    """
    names = []
    to_share = axis.transData + axis.transAxes.inverted()
    for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
        line = handle[0] if isinstance(handle, tuple) else handle
        x, y = line.get_xdata(), line.get_ydata()
        at = to_share.transform((axis.get_xlim()[1], float(np.asarray(y)[-1])))[1] if len(x) else 0
        names.append((float(at), label, line.get_color()))
    names.sort(key=lambda name: name[0])
    places = _spread([at for at, *_ in names], room)
    for place, (_, label, colour) in zip(places, names, strict=True):
        axis.annotate(
            label, (1.0, place), xycoords="axes fraction", xytext=(5, 0), color=colour,
            textcoords="offset points", va="center", ha="left", fontsize=9, annotation_clip=False,
        )  # fmt: skip


def _spread(places: list[float], room: float) -> list[float]:
    """Move places, in their order, apart to at least `room`, each as little as can be.

    Examples
    --------
    >>> [round(place, 2) for place in _spread([0.5, 0.5, 0.95], 0.1)]
    [0.45, 0.55, 0.95]
    """
    steps = room * np.arange(len(places))
    spread = isotonic_regression(np.array(places) - steps) + steps if places else steps
    over = max(float(spread.max(initial=0.0)) - 1.0, 0.0)
    return [float(place) for place in np.maximum(spread - over, steps)]


def save(figure: Any, stem: Path) -> None:
    """Write stem.png and stem.svg."""
    with need_matplotlib().rc_context(_STYLE):
        figure.savefig(stem.with_suffix(".png"), dpi=160, metadata={"Software": None})
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None, "Creator": None})
