"""How the paper's regime was found: Table 1 under every reading of what its caption leaves open.

    python -m dtsvm.trials.search

draws 40 times for each combination of scale, labels and rows of Task 3, trains with every set of
links, and lists the 240 readings by their distance from the paper's six numbers: mean and STD of
both global risks, and a node's mean STD on either side.

What it shows: no reading has all six. 37 have both means near the paper's (38.3 ± 6 and 14.6 ± 3),
and they differ widely, so the table does not settle how the experiment was done. None of the 37 has
a left STD below 8 (paper: 4.9). In none are both sides joined; with partners only on both sides,
also a like-for-like comparison, a scale of 0.5 comes near (43.3 ± 8.0 and 13.7 ± 3.4). On the left
the labels are mostly out of balance among those who hear each other, and DSVM's bias, not its
direction, decides.

The paper's regime here (scale 0.2, labels as they fall, 600 rows in all) is one of them with the
left network of partners, the nearest of the three left networks, and 59th of all. Balanced labels
with the same links are the nearest of all; they were not taken because in Fig. 7, whose network is
complete, DSVM would then do well (6.6 % of Task 2) and transfer could only hurt.

Twenty repeats leave much to chance: over seeds 0 to 9 this regime's left mean is 40.3 to 47.1 and
its right mean 13.8 to 19.8 (200 repeats: 42.2 and 17.2), and both are near the paper's for four of
the ten seeds; seed 0, the default, is one of them (40.3 and 15.0).

With rows this close together and balanced labels no row reaches its margin, and the objective does
not depend on the bias at all (`open_bias`): the risk is then decided by where the iteration starts,
which the paper does not say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dtsvm.data import DigitFeatures
from dtsvm.trials.regimes import PAPER, STANDARD, Regime, load_features
from dtsvm.trials.table1 import (
    HALVES,
    JOINED,
    PAPER_TABLE,
    PARTNERS,
    draw_world,
    risks_over,
)  # fmt: skip

__all__ = ["Match", "Reading", "open_bias", "search"]

SCALES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7, 1.0)
LEFTS = {"joined": JOINED, "halves": HALVES, "partners": PARTNERS}
RIGHTS = {"joined": JOINED, "partners": PARTNERS}


class Reading(NamedTuple):
    """One way to read the caption."""

    scale: float
    labels: str
    n_source: int
    left: str
    right: str


class Match(NamedTuple):
    """How a reading compares with the paper: (left, right) each, and the distance in points."""

    reading: Reading
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    node_std: NDArray[np.float64]
    distance: float


def search(
    features: DigitFeatures, scales: tuple[float, ...] = SCALES, n_repeats: int = 40
) -> list[Match]:
    """Run Table 1 under every reading; return them, the closest first."""
    matches: list[Match] = []
    for scale, regime, n_source in product(scales, (PAPER, STANDARD), (600, 1800)):
        scaled = replace(regime, scale=scale)
        risks = _risks(features, scaled, n_source, n_repeats)
        for left, right in product(LEFTS, RIGHTS):
            reading = Reading(scale, regime.labels, n_source, left, right)
            both = np.stack([risks["left " + left], risks["right " + right]], axis=1)
            matches.append(_compare(reading, both))
    return sorted(matches, key=lambda match: match.distance)


def _risks(
    features: DigitFeatures, regime: Regime, n_source: int, n_repeats: int
) -> dict[str, NDArray[np.float64]]:
    """Every side and set of links on the same draws: risks of shape (repeat, node)."""
    found: dict[str, list[NDArray[np.float64]]] = {}
    for k in range(n_repeats):
        world = draw_world(features, regime, np.random.default_rng(k), n_source)
        for name, links in LEFTS.items():
            found.setdefault("left " + name, []).append(risks_over(world, links, False))
        for name, links in RIGHTS.items():
            found.setdefault("right " + name, []).append(risks_over(world, links, True))
    return {name: np.array(risks) for name, risks in found.items()}


def _compare(reading: Reading, risks: NDArray[np.float64]) -> Match:
    """Compare risks of shape (repeat, side, node) with the paper's table."""
    overall = risks.mean(axis=2)
    mean, std = overall.mean(axis=0), overall.std(axis=0, ddof=1)
    node_std = risks.std(axis=0, ddof=1).mean(axis=1)
    paper = np.array(
        [(means[-1], stds[-1], np.mean(stds[:-1])) for means, stds in PAPER_TABLE.values()]
    ).T
    distance = np.abs(np.array([mean, std, node_std]) - paper).sum()
    return Match(reading, mean, std, node_std, float(distance))


def open_bias(
    X: ArrayLike, y: ArrayLike, w: ArrayLike, accuracy: float = 1e-9
) -> tuple[float, float]:
    """Return the least and the largest b that minimise Σ max(0, 1 − y (xᵀw + b)).

    The sum is convex and piecewise linear in b, with a corner at y − xᵀw for each row.

    Examples
    --------
    >>> from dtsvm.trials.search import open_bias
    >>> open_bias([[-0.25], [0.25]], [-1, 1], [1.0])
    (-0.75, 0.75)
    >>> open_bias([[-4.0], [0.25], [0.5]], [-1, 1, 1], [1.0])
    (0.75, 3.0)
    """
    scores, labels = np.asarray(X, float) @ np.asarray(w, float), np.asarray(y, float)
    corners = np.sort(labels - scores)
    losses = np.maximum(0, 1 - labels * (scores + corners[:, None])).sum(axis=1)
    best = corners[losses <= losses.min() + accuracy * len(labels)]
    return float(best[0]), float(best[-1])


def _lines(matches: list[Match]) -> Iterator[str]:
    yield (
        "scale  labels      task 3  left      right     left risk    right risk   node STD   "
        "distance"
    )
    for reading, mean, std, node_std, distance in matches:
        yield (
            f"{reading.scale:<6g} {reading.labels:<11} {reading.n_source:<7} {reading.left:<9} "
            f"{reading.right:<9} {mean[0]:4.1f} ± {std[0]:4.1f}  {mean[1]:4.1f} ± {std[1]:4.1f}  "
            f"{node_std[0]:4.1f} {node_std[1]:4.1f}  {distance:8.1f}"
        )


if __name__ == "__main__":
    print("\n".join(_lines(search(load_features()))))
