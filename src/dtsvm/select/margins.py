"""Out-of-fold margins as tables that add up over nodes: what each node sends instead of rows.

A margin z = y f(x) is shared by the two nearest of 64 points on an asinh grid so that its mean is
kept: Σ g(z) is then the sum of g's linear interpolant, exact for straight g and continuous in z.
The grid is stretched to each candidate's mean |z|, which is itself a sum. Terms are rounded to
multiples of a power of two, so that their sums are exact: the same bits in whatever order, however
rows are dealt to processes.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dtsvm.select.base_rates import label_weights
from dtsvm.select.held import Held

__all__ = [
    "GRID",
    "Margins",
    "counting",
    "read_scales",
    "read_table",
    "rounded",
    "scale_sums",
    "table",
]

Floats = NDArray[np.float64]

GRID: Floats = np.sinh(np.linspace(-3.0, 3.0, 64))
FINE, COARSE = 30, 24  # bits after the point: of a grid's counts, and of |z|


@dataclass(frozen=True)
class Margins:
    """All out-of-fold margins, by task and candidate.

    Parameters
    ----------
    counts : ndarray of shape (n_tasks, n_candidates, 64)
        How many margins each point of the grid stands for.
    wrong : ndarray of shape (n_tasks, n_candidates)
        Rows labelled wrong.
    rows : ndarray of shape (n_tasks,)
        Rows.
    scale : ndarray of shape (n_candidates,)
        Mean |z|: the grid of candidate m is ``GRID * scale[m]``.
    labels : ndarray of shape (n_tasks, 2), optional
        For how much rows of either label count, the positive one last.
    """

    counts: Floats
    wrong: Floats
    rows: Floats
    scale: Floats
    labels: Floats | None = None

    def of(self, tasks: NDArray[np.bool_]) -> Margins:
        """Return those of some tasks."""
        return Margins(self.counts[tasks], self.wrong[tasks], self.rows[tasks], self.scale)

    def beside(self, more: Margins) -> Margins:
        """Return these candidates and more of them, over the same rows."""
        return Margins(
            np.concatenate([self.counts, more.counts], axis=1),
            np.concatenate([self.wrong, more.wrong], axis=1),
            self.rows,
            np.concatenate([self.scale, more.scale]),
            self.labels,
        )


def scale_sums(
    decisions: Floats,
    y: Floats,
    task: NDArray[np.int64],
    n_tasks: int,
    weight: Floats | None = None,
) -> Floats:
    """Return what a node adds to sums over the network that come before its table.

    Σ c|f(x)| of each candidate, Σ c by task and label, and the number of rows; c is a row's weight,
    1 by default.
    """
    c = np.ones(len(decisions)) if weight is None else weight
    sums = rounded(c[:, None] * np.abs(decisions), COARSE).sum(axis=0)
    labels = np.bincount(2 * task + (y > 0), rounded(c, COARSE), 2 * n_tasks)
    return np.concatenate([sums, labels, [len(decisions)]])


def read_scales(total: Floats, n_tasks: int) -> tuple[Floats, Floats, float]:
    """Name the parts of a total of `scale_sums`.

    Returns each candidate's mean |f(x)|, for how much rows count by task and label so that they
    count for 1 on average, and what a weight is to be multiplied by for that.
    """
    *sums, n = np.split(total, [len(total) - 2 * n_tasks - 1, len(total) - 1])
    weight = float(sums[1].sum()) or 1.0
    unit = float(n[0]) / weight
    return sums[0] / weight, unit * sums[1].reshape(n_tasks, 2), unit


def counting(
    held: Held, decisions: Floats
) -> Generator[Floats, Floats, tuple[Floats, Floats, Floats]]:
    """Return each candidate's mean |f(x)| over the network, and for how much each row here counts.

    Last, for how much all rows of a task and label do. Gives what this node adds to that sum.
    """
    sums = scale_sums(decisions, held.y, held.task, held.n_tasks, held.weight)
    scale, counts, unit = read_scales((yield sums), held.n_tasks)
    each = label_weights(counts)[held.task, (held.y > 0).astype(np.int64)]
    each = each if held.weight is None else each * (held.weight * unit)
    return np.where(scale > 0, scale, 1.0), each, counts


def rounded(terms: Floats, bits: int) -> Floats:
    """Terms whose sums are exact as long as they are below 2^(53 − bits)."""
    return np.asarray(np.ldexp(np.rint(np.ldexp(terms, bits)), -bits))


def table(
    decisions: Floats,
    y: Floats,
    task: NDArray[np.int64],
    n_tasks: int,
    scale: Floats,
    weight: Floats | None = None,
) -> Floats:
    """Return one node's part, (n_tasks, n_candidates, 66): the grid, rows wrong, rows.

    Parameters
    ----------
    decisions : ndarray of shape (n_rows, n_candidates)
        f(x) of the candidate that did not see the row.
    y, task : ndarray of shape (n_rows,)
        Labels ±1 and tasks from 0.
    n_tasks : int
        How many tasks there are in the network.
    scale : ndarray of shape (n_candidates,)
        Mean |f(x)| over the network.
    weight : ndarray of shape (n_rows,), optional
        For how many margins each row's stands; 1 by default. Rows are counted as they are.
    """
    n, m = decisions.shape
    c = np.ones((n, 1)) if weight is None else weight[:, None]
    z = y[:, None] * decisions / np.where(scale > 0, scale, 1.0)
    z = np.clip(z, GRID[0], GRID[-1])
    left = np.clip(np.searchsorted(GRID, z, side="right") - 1, 0, len(GRID) - 2)
    upper = (z - GRID[left]) / (GRID[left + 1] - GRID[left])
    width = len(GRID) + 2
    cell = (task[:, None] * m + np.arange(m)) * width
    size = n_tasks * m * width
    above = rounded(c * upper, FINE)
    below = rounded(np.broadcast_to(c, above.shape), FINE) - above
    out: Floats = np.bincount((cell + left).ravel(), below.ravel(), size).astype(float)
    out += np.bincount((cell + left + 1).ravel(), above.ravel(), size)
    is_wrong = (decisions > 0) != (y[:, None] > 0)
    out += np.bincount((cell + len(GRID)).ravel(), is_wrong.ravel().astype(float), size)
    out += np.bincount((cell + len(GRID) + 1).ravel(), np.ones(n * m), size)
    return out.reshape(n_tasks, m, width)


def read_table(total: Floats, scale: Floats) -> Margins:
    """Name the parts of a total of `table`."""
    n, stretch = len(GRID), np.where(scale > 0, scale, 1.0)
    return Margins(total[:, :, :n], total[:, :, n], total[:, 0, n + 1], stretch)
