"""One agent alone: its box QP by dual coordinate descent, compiled.

With gains g₀ = 1/U₀, g_t = 1/U_t and D = g₀ + g_t (one number for the weights, one for the bias),
an agent's round is

    minimise over 0 ≤ λ ≤ C    ½ λᵀ Y X̃ D X̃ᵀ Y λ − (1 − Y X̃ m)ᵀ λ

whose gradient y xᵀu − 1 needs only the decision vector u = D X̃ᵀYλ + m (Hsieh et al., 2008). A row
that sits at a bound with some slack is not looked at again until u has travelled far enough to use
the slack up: |xᵀΔu| ≤ ‖x‖_D ‖Δu‖_{1/D}, so this skips work, never accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["dot", "pull", "solve", "squared_norms", "tally"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[Any]


@njit(cache=True, nogil=True)
def dot(x: Rows, u: Floats) -> float:
    """xᵀu over the features, in eight lanes: the order of additions, and so every bit, is fixed."""
    p = x.shape[0]
    whole = p - p % 8
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for j in range(0, whole, 8):
        s0 += x[j] * u[j]
        s1 += x[j + 1] * u[j + 1]
        s2 += x[j + 2] * u[j + 2]
        s3 += x[j + 3] * u[j + 3]
        s4 += x[j + 4] * u[j + 4]
        s5 += x[j + 5] * u[j + 5]
        s6 += x[j + 6] * u[j + 6]
        s7 += x[j + 7] * u[j + 7]
    for j in range(whole, p):
        s0 += x[j] * u[j]
    return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))


@njit(cache=True, nogil=True)
def _sweep(
    X: Rows,
    y: Floats,
    dual: Floats,
    norms: Floats,
    until: Floats,
    ids: Ints,
    u: Floats,
    d_weights: float,
    d_bias: float,
    box: float,
    travel: float,
) -> tuple[float, float]:
    """Minimise over each λᵢ in turn; return the largest violation met and how far u has travelled.

    λᵢ ← clip(λᵢ − (yᵢ xᵢᵀu − 1) / Qᵢᵢ, 0, C),   u ← u + D xᵢ yᵢ Δλᵢ,   Qᵢᵢ = D_w ‖xᵢ‖² + D_b

    A violation is measured as the way u would go to mend it, |yᵢ xᵢᵀu − 1| / √Qᵢᵢ.
    """
    p = X.shape[1]
    violation = 0.0
    for k in range(ids.shape[0]):
        i = ids[k]
        if travel < until[i]:
            continue
        x = X[i]
        slope = y[i] * (dot(x, u) + u[p]) - 1.0
        old = dual[i]
        curvature = d_weights * norms[i] + d_bias
        way = abs(slope) / np.sqrt(curvature)
        if (old == 0.0 and slope >= 0.0) or (old == box and slope <= 0.0):
            until[i] = travel + way
            continue
        violation = max(violation, way)
        new = min(max(old - slope / curvature, 0.0), box)
        change = new - old
        if change != 0.0:
            dual[i] = new
            step = change * y[i]
            scaled = step * d_weights
            for j in range(p):
                u[j] += scaled * x[j]
            u[p] += step * d_bias
            travel += abs(change) * np.sqrt(curvature)
        slack = abs(slope + change * curvature)
        at_bound = new == 0.0 or new == box
        until[i] = travel + slack / np.sqrt(curvature) if at_bound else 0.0
    return violation, travel


@njit(cache=True, nogil=True)
def solve(
    X: Rows,
    y: Floats,
    dual: Floats,
    norms: Floats,
    until: Floats,
    ids: Ints,
    u: Floats,
    d_weights: float,
    d_bias: float,
    box: float,
    travel: float,
    moved: float,
    shrink: float,
    floor: float,
    max_sweeps: int,
    max_lagging: int,
) -> tuple[int, float, float]:
    """Sweep until the violation met first has fallen by `shrink`, or to `floor`.

    Because the first violation of a round is as large as what the neighbours changed, the accuracy
    tightens with the residuals by itself. `max_sweeps` are enough to keep up with them; while the
    violation is more than ten times the way m has `moved`, the agent itself lags behind and may do
    up to `max_lagging`. Returns sweeps done, last violation, and travel.
    """
    violation, travel = _sweep(X, y, dual, norms, until, ids, u, d_weights, d_bias, box, travel)
    target = max(shrink * violation, floor)
    sweeps = 1
    while violation > target and (
        sweeps < max_sweeps or (violation > 10.0 * moved and sweeps < max_lagging)
    ):
        violation, travel = _sweep(X, y, dual, norms, until, ids, u, d_weights, d_bias, box, travel)
        sweeps += 1
    return sweeps, violation, travel


@njit(cache=True, nogil=True)
def pull(X: Rows, y: Floats, dual: Floats, ids: Ints, out: Floats) -> None:
    """Add X̃ᵀYλ over the rows `ids` to `out`."""
    p = X.shape[1]
    for k in range(ids.shape[0]):
        i = ids[k]
        weight = y[i] * dual[i]
        if weight != 0.0:
            for j in range(p):
                out[j] += weight * X[i, j]
            out[p] += weight


@njit(cache=True, nogil=True)
def squared_norms(X: Rows, ids: Ints, out: Floats) -> None:
    """out[i] = ‖xᵢ‖² for the rows `ids`."""
    for k in range(ids.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[ids[k], j] * X[ids[k], j]
        out[ids[k]] = total


@njit(cache=True, nogil=True)
def tally(
    X: Rows, y: Floats, dual: Floats, ids: Ints, w: Floats, positive: Floats, negative: Floats
) -> float:
    """Return the hinge loss of classifier `w` over the rows `ids`, and sum λ x̃ class by class.

    `positive` and `negative` receive Σ λᵢ x̃ᵢ over yᵢ = +1 and yᵢ = −1: what the certificate needs.
    """
    p = X.shape[1]
    loss = 0.0
    for k in range(ids.shape[0]):
        i = ids[k]
        loss += max(0.0, 1.0 - y[i] * (dot(X[i], w) + w[p]))
        weight = dual[i]
        if weight != 0.0:
            out = positive if y[i] > 0.0 else negative
            for j in range(p):
                out[j] += weight * X[i, j]
            out[p] += weight
    return loss
