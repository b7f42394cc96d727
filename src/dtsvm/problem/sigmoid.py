"""From decision values to probabilities: two numbers a classifier, fitted by sums over the network.

With P = 1 / (1 + exp(a f + b)) of a decision value f, and targets t a little inside 0 and 1,

    minimise over (a, b)   − Σ_rows c_i (t_i log P_i + (1 − t_i) log(1 − P_i))

by Newton steps with halving (Platt, 1999; Lin, Lin & Weng, 2007). A step needs the loss, the
gradient and the Hessian: six sums over rows, so each node adds up its own and the network adds up
those.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BINS", "fit_histograms", "fit_sigmoids", "fitting", "histogram", "sigmoid", "sigmoid_counts",
    "sigmoid_sums",
]  # fmt: skip

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RIDGE = 1e-12  # keeps the Hessian of perfectly separated values regular
MAX_STEPS = 100
LEAST_GRADIENT = 1e-7  # relative to the number of rows
LEAST_STEP = 1e-10

# Where values are only counted: bins either side of 0 that double, and the values they stand for
SIDE = 8
BINS = 2 * SIDE
_UP = np.array([2.0**-6, *(0.75 * 2.0 ** np.arange(-4, 2)), 3.0])
MIDDLES = np.concatenate([-_UP[::-1], _UP])


def sigmoid(values: Floats, ab: Floats) -> Floats:
    """Return 1 / (1 + exp(a f + b)); `ab` ends in an axis of two.

    Examples
    --------
    >>> import numpy as np
    >>> sigmoid(np.array([0.0, 2.0]), np.array([-1.0, 0.0])).round(3).tolist()
    [0.5, 0.881]
    """
    return np.asarray(0.5 * (1.0 - np.tanh(0.5 * (ab[..., 0] * values + ab[..., 1]))))


def sigmoid_counts(is_positive: NDArray[np.bool_], which: Ints, n: int, weight: Floats) -> Floats:
    """Return the weight of positive and of negative rows, (n, 2): what `fit_sigmoids` asks first.

    `which` says which of the `n` classifiers a row's decision value is of.
    """
    plus = np.bincount(which, weight * is_positive, minlength=n)
    return np.stack([plus, np.bincount(which, weight, minlength=n) - plus], axis=1)


def sigmoid_sums(
    values: Floats,
    is_positive: NDArray[np.bool_],
    which: Ints,
    weight: Floats,
    ab: Floats,
    counts: Floats,
) -> Floats:
    """Return loss, gradient (2) and Hessian (aa, ab, bb) of some rows, (n, 6).

    Parameters
    ----------
    values, is_positive, which, weight : ndarray of shape (n_rows,)
        Decision values, labels, which classifier they are of, weights.
    ab : ndarray of shape (n, 2)
        Where.
    counts : ndarray of shape (n, 2)
        The network's `sigmoid_counts`: targets are (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2).
    """
    plus, minus = counts[which, 0], counts[which, 1]
    target = np.where(is_positive, (plus + 1.0) / (plus + 2.0), 1.0 / (minus + 2.0))
    z = ab[which, 0] * values + ab[which, 1]
    p = 0.5 * (1.0 - np.tanh(0.5 * z))
    # −t log P − (1 − t) log(1 − P) with P = 1/(1 + e^z): t z + log(1 + e^−z)
    loss = target * z + np.logaddexp(0.0, -z)
    slope, bend = target - p, p * (1.0 - p)
    terms = (loss, slope * values, slope, bend * values * values, bend * values, bend)
    return np.stack([np.bincount(which, weight * t, minlength=len(ab)) for t in terms], axis=1)


def fit_sigmoids(sums: Callable[[Floats, Floats], Floats], counts: Floats) -> Floats:
    """Return (a, b) of every classifier, (n, 2).

    Parameters
    ----------
    sums : callable
        sums(ab, counts) is the network's total of `sigmoid_sums`.
    counts : ndarray of shape (n, 2)
        The network's total of `sigmoid_counts`.

    Examples
    --------
    >>> import numpy as np
    >>> f, is_positive = np.array([-2.0, -1.0, 0.5, 1.0, 2.0]), np.array([0, 0, 1, 0, 1]) > 0
    >>> which, weight = np.zeros(5, int), np.ones(5)
    >>> counts = sigmoid_counts(is_positive, which, 1, weight)
    >>> rows = f, is_positive, which, weight
    >>> ab = fit_sigmoids(lambda ab, counts: sigmoid_sums(*rows, ab, counts), counts)
    >>> bool(ab[0, 0] < 0)
    True
    """
    steps = fitting(counts)
    ab = next(steps)
    while True:
        try:
            ab = steps.send(sums(ab, counts))
        except StopIteration as end:
            return np.asarray(end.value)


def fitting(counts: Floats) -> Generator[Floats, Floats, Floats]:
    """Fit sigmoids: a generator that gives (a, b) and is sent the total of `sigmoid_sums` there.

    Whoever runs it supplies the totals: memory adds, agents send waves.
    """
    ab = np.zeros((len(counts), 2))
    ab[:, 1] = np.log((counts[:, 1] + 1.0) / (counts[:, 0] + 1.0))
    now = np.array((yield ab))
    stride = np.ones(len(counts))
    step = _newton(now)
    for _ in range(MAX_STEPS):
        is_open = np.abs(now[:, 1:3]).max(axis=1) > LEAST_GRADIENT * counts.sum(axis=1)
        is_open &= stride >= LEAST_STEP
        if not is_open.any():
            break
        tried = ab + np.where(is_open, stride, 0.0)[:, None] * step
        then = yield tried
        descent = (now[:, 1:3] * step).sum(axis=1)
        is_better = is_open & (then[:, 0] <= now[:, 0] + 1e-4 * stride * descent)
        ab[is_better], now[is_better] = tried[is_better], then[is_better]
        step = _newton(now)
        stride = np.where(is_better, 1.0, np.where(is_open, stride / 2, stride))
    return ab


def _newton(sums: Floats) -> Floats:
    """−H⁻¹ g of every classifier."""
    ga, gb, haa, hab, hbb = sums[:, 1:].T
    haa, hbb = haa + RIDGE, hbb + RIDGE
    det = haa * hbb - hab * hab
    return np.stack([(hab * gb - hbb * ga) / det, (hab * ga - haa * gb) / det], axis=1)


# From counts alone


def histogram(values: Floats, is_positive: NDArray[np.bool_], weight: Floats) -> Floats:
    """Return the weight of negative and of positive rows by decision value, (2, BINS).

    Where bins end is fixed: at 0, ±2⁻⁵, ±2⁻⁴, … ±2.

    Examples
    --------
    >>> import numpy as np
    >>> found = histogram(np.array([-5.0, 0.7, 0.8]), np.array([0, 1, 1]) > 0, np.ones(3))
    >>> [(int(i), int(j), float(found[i, j])) for i, j in zip(*found.nonzero())]
    [(0, 0, 1.0), (1, 13, 2.0)]
    """
    size = np.clip(np.abs(values), 2.0**-6, 2.0)
    step = np.floor(np.log2(size)).astype(np.int64) + SIDE - 2
    place = np.where(values >= 0, SIDE + step, SIDE - 1 - step)
    cell = place + BINS * is_positive
    return np.asarray(np.bincount(cell, weight, minlength=2 * BINS), float).reshape(2, BINS)


def fit_histograms(counts: Floats) -> Floats:
    """Return (a, b) of every classifier, (n, 2), from `histogram` of each, with noise or without.

    Noise makes counts below nothing, so first the nearest ones are taken that are not and have the
    same sum.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> f = rng.normal(size=20_000)
    >>> counts = histogram(f, rng.random(20_000) < 1 / (1 + np.exp(-3 * f)), np.ones(20_000))
    >>> ab = fit_histograms((counts + 20 * rng.normal(size=counts.shape))[None])
    >>> bool(np.abs(ab - [[-3.0, 0.0]]).max() < 0.3)
    True
    """
    n = len(counts)
    weight = np.concatenate([np.zeros(0), *map(_possible, counts.reshape(n, -1))])
    values, which = np.tile(MIDDLES, 2 * n), np.repeat(np.arange(n), 2 * BINS)
    is_positive = np.tile(np.repeat([False, True], BINS), n)
    return fit_sigmoids(
        lambda ab, some: sigmoid_sums(values, is_positive, which, weight, ab, some),
        sigmoid_counts(is_positive, which, n, weight),
    )


def _possible(counts: Floats) -> Floats:
    """Return the nearest counts that are not negative and have the same sum."""
    total = max(float(counts.sum()), 0.0)
    falling = np.sort(counts)[::-1]
    shift = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    last = int(np.flatnonzero(falling > shift)[-1]) if total > 0 else 0
    return np.asarray(np.maximum(counts - shift[last], 0.0))
