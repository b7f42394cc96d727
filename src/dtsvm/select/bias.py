"""One bias among all that are best: few rows often leave an interval of them."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_bias", "finding_bias"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DIGIT, N_DIGITS = 7, 5  # bits: sign and exponent are 12, so 23 of the fraction


def best_bias(
    scores: Floats,
    y: Floats,
    group: NDArray[np.int64],
    n_groups: int,
    weight: Floats | None = None,
) -> Floats:
    """Return, for given weights, the bias nearest to 0 that minimises each group's hinge loss.

    Σ cᵢ max(0, 1 − y (s + b)) bends at the points y − s. Its slope is minus the total c of positive
    rows on the far left and rises by cᵢ at every bend: it is least where it changes its sign.
    `finding_bias` finds it where rows are at many nodes.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        s = xᵀw.
    y : ndarray of shape (n_rows,)
        Labels ±1.
    group : ndarray of shape (n_rows,)
        Which classifier each row belongs to, from 0.
    n_groups : int
        How many there are; one without rows gets 0.
    weight : ndarray of shape (n_rows,), optional
        c, 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import best_bias
    >>> s, y = np.array([-2.0, -3.0, 4.0, 5.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> best_bias(s, y, np.zeros(4, int), 1).tolist()  # anything from -3 to 1 does as well
    [0.0]
    """
    bends = y - scores
    if weight is None:
        return _middle(bends, y, group, n_groups)
    order = _by_group(bends, group, n_groups)
    counts = np.bincount(group, minlength=n_groups)
    first = np.cumsum(counts) - counts
    risen = np.concatenate([[0.0], np.cumsum(weight[order])])
    positive = np.bincount(group, weight * (y > 0), n_groups)
    slope = risen[1:] - np.repeat(risen[first] + positive, counts)  # right of every bend
    little = 1e-9 * np.repeat(risen[first + counts] - risen[first], counts)
    ends = np.concatenate([[-np.inf], bends[order], [np.inf]])
    # So many bends of a group lie where the slope is still below 0, or not yet above it.
    mine = group[order]
    falling = np.bincount(mine, slope < -little, n_groups).astype(np.int64)
    level = np.bincount(mine, slope <= little, n_groups).astype(np.int64)
    low = np.where(positive > 0, ends[np.minimum(first + falling + 1, len(ends) - 1)], -np.inf)
    high = np.where(level < counts, ends[np.minimum(first + level + 1, len(ends) - 1)], np.inf)
    return np.asarray(np.clip(0.0, np.minimum(low, high), high))


def _middle(bends: Floats, y: Floats, group: Ints, n_groups: int) -> Floats:
    """The same where all rows count alike: right of as many bends as there are positive rows."""
    counts = np.bincount(group, minlength=n_groups)
    positive = np.bincount(group, y > 0, n_groups).astype(np.int64)
    ends = np.concatenate([[-np.inf], bends[_by_group(bends, group, n_groups)], [np.inf]])
    place = np.cumsum(counts) - counts + positive
    low = np.where(positive > 0, ends[place], -np.inf)
    high = np.where(positive < counts, ends[place + 1], np.inf)
    return np.asarray(np.clip(0.0, low, high))


def _by_group(bends: Floats, group: Ints, n_groups: int) -> Ints:
    """Return the order of groups, and of bends in each: few groups are sorted by counting."""
    order = np.argsort(bends)
    narrow = group.astype(np.min_scalar_type(n_groups))
    return order[np.argsort(narrow[order], kind="stable")]


def finding_bias(
    scores: Floats, y: Floats, group: Ints, n_groups: int, weight: Floats | None = None
) -> Generator[Floats, Floats, Floats]:
    """Find what `best_bias` returns of the rows of all nodes, to seven digits, from counts alone.

    The first sum tells on which side of 0 the bias lies and how many bends come before it; each
    further one finds the next seven bits of it, by counting the bends under each of their values.

    Parameters
    ----------
    scores, y, group, n_groups, weight
        As in `best_bias`, of the rows that are here.

    Yields
    ------
    ndarray
        What this node adds to a sum.
    """
    bends = y - scores
    c = np.ones(len(y)) if weight is None else weight
    parts = (c * (bends < 0), c * (bends <= 0), c * (y > 0), c)
    counts = np.stack([np.bincount(group, part, n_groups).astype(float) for part in parts])
    below, upto, positives, whole = (yield counts.ravel()).reshape(4, n_groups)
    little = 1e-9 * whole
    side = np.where(upto < positives - little, 1, np.where(below > positives + little, -1, 0))
    # Which of the bends on that side it is, counted from 0 outwards.
    rank = np.where(side > 0, positives - upto, below - positives) - little
    if not side.any():
        return np.zeros(n_groups)
    words = np.abs(bends).view(np.int64)  # as large as the numbers they stand for
    mine = np.flatnonzero(np.sign(bends) == side[group]) if len(bends) else np.zeros(0, np.int64)
    mine = mine[side[group[mine]] != 0]
    found = np.zeros(n_groups, np.int64)
    for digit in range(N_DIGITS):
        shift = 64 - DIGIT * (digit + 1)
        mine = mine[words[mine] >> (shift + DIGIT) == found[group[mine]]]
        cell = (group[mine] << DIGIT) + ((words[mine] >> shift) & (2**DIGIT - 1))
        found_here = np.bincount(cell, c[mine], minlength=n_groups << DIGIT).astype(float)
        above = np.cumsum((yield found_here).reshape(n_groups, -1), axis=1)
        place = np.minimum((above < rank[:, None]).sum(axis=1), 2**DIGIT - 1)
        rank = rank - np.where(place > 0, above[np.arange(n_groups), place - 1], 0.0)
        found = (found << DIGIT) + place
    half = np.int64(1) << np.int64(shift - 1)
    size = ((found << np.int64(shift)) + half).view(np.float64)
    return np.asarray(np.where(side == 0, 0.0, side * np.where(np.isfinite(size), size, 0.0)))
