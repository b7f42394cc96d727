"""One agent alone: its box QP by dual coordinate descent, compiled.

With gains g₀ = 1/U₀, g_t = 1/U_t and D = g₀ + g_t (one number for the weights, one for the bias),
an agent's round is

    minimise over 0 ≤ λ ≤ C    ½ λᵀ Y X̃ D X̃ᵀ Y λ − (1 − Y X̃ m)ᵀ λ

whose gradient y xᵀu − 1 needs only the decision vector u = D X̃ᵀYλ + m (Hsieh et al., 2008). A row
that sits at a bound with some slack is not looked at again until u has travelled far enough to use
the slack up: |xᵀΔu| ≤ ‖x‖_D ‖Δu‖_{1/D}, so this skips work, never accuracy. A list names the rows
that are awake or soon will be; the others are not even asked until the first of them may matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["class_sums", "distance", "dot", "pull", "solve", "squared_norms", "tally"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[Any]
Listed = NDArray[np.int32]

AHEAD = 3.0  # a list is made for so many times the way of the last sweep


@njit(cache=True, nogil=True, forceinline=True)
def dot(X: Rows, i: int, u: Floats) -> float:
    """Row i times u, in eight lanes: the order of additions, and so every bit, is fixed."""
    p = X.shape[1]
    whole = p - p % 8
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for j in range(0, whole, 8):
        s0 += X[i, j] * u[j]
        s1 += X[i, j + 1] * u[j + 1]
        s2 += X[i, j + 2] * u[j + 2]
        s3 += X[i, j + 3] * u[j + 3]
        s4 += X[i, j + 4] * u[j + 4]
        s5 += X[i, j + 5] * u[j + 5]
        s6 += X[i, j + 6] * u[j + 6]
        s7 += X[i, j + 7] * u[j + 7]
    for j in range(whole, p):
        s0 += X[i, j] * u[j]
    return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))


@njit(cache=True, nogil=True, forceinline=True)
def _sweep(
    X: Rows,
    at: Ints,
    y: Floats,
    dual: Floats,
    norms: Floats,
    until: Floats,
    ids: Ints,
    listed: Listed,
    begin: int,
    end: int,
    n_listed: int,
    wake: float,
    u: Floats,
    d_weights: float,
    d_bias: float,
    box: float,
    travel: float,
    slept: Listed,
) -> tuple[float, float, int, int, float, int]:
    """Minimise over each λᵢ that is awake; return the worst violation, and u's travel since.

    λᵢ ← clip(λᵢ − (yᵢ xᵢᵀu − 1) / Qᵢᵢ, 0, C),   u ← u + D xᵢ yᵢ Δλᵢ,   Qᵢᵢ = D_w ‖xᵢ‖² + D_b

    A violation is measured as the way u would go to mend it, |yᵢ xᵢᵀu − 1| / √Qᵢᵢ. Then follow how
    many rows were looked at, how many are listed, when the first of the others wakes, and how many
    fell asleep (`slept` says where they are). Every row is asked in its turn, listed or not, as
    soon as u has travelled far enough: the list changes no bit.
    """
    p = X.shape[1]
    violation = 0.0
    looks = n_slept = q = 0
    is_whole = True
    if travel >= wake:
        n_listed, wake = _list_all(listed, begin, begin, end)
    while q < n_listed:
        k = listed[begin + q]
        q += 1
        i = ids[k]
        if travel < until[i]:
            continue
        looks += 1
        r = at[k]  # not X[r]: a view of a row costs as much as a short row
        slope = y[i] * (dot(X, r, u) + u[p]) - 1.0
        old = dual[i]
        curvature = d_weights * norms[i] + d_bias
        root = np.sqrt(curvature)
        way = abs(slope) / root
        if (old == 0.0 and slope >= 0.0) or (old == box and slope <= 0.0):
            until[i] = travel + way
            slept[n_slept] = k
            n_slept += 1
            continue
        violation = max(violation, way)
        new = min(max(old - slope / curvature, 0.0), box)
        change = new - old
        if change != 0.0:
            dual[i] = new
            step = change * y[i]
            scaled = step * d_weights
            for j in range(p):
                u[j] += scaled * X[r, j]
            u[p] += step * d_bias
            travel += abs(change) * root
        until[i] = 0.0
        if new == 0.0 or new == box:
            until[i] = travel + abs(slope + change * curvature) / root
            slept[n_slept] = k
            n_slept += 1
        if travel >= wake:
            n_listed, wake = _list_all(listed, begin, k + 1, end)
            q, is_whole = 0, False
    return violation, travel, looks, n_listed, wake if is_whole else -1.0, n_slept


@njit(cache=True, nogil=True, forceinline=True)
def _list_all(listed: Listed, begin: int, first: int, end: int) -> tuple[int, float]:
    """List every row from `first` on: nobody is left to wake."""
    for k in range(first, end):
        listed[begin + k - first] = k
    return end - first, np.inf


@njit(cache=True, nogil=True, forceinline=True)
def _list_awake(
    until: Floats, ids: Ints, listed: Listed, begin: int, end: int, horizon: float
) -> tuple[int, float]:
    """List the rows that wake up to `horizon`; return how many, and when the next one wakes."""
    n, wake = 0, np.inf
    for k in range(begin, end):
        if until[ids[k]] <= horizon:
            listed[begin + n] = k
            n += 1
        else:
            wake = min(wake, until[ids[k]])
    return n, wake


@njit(cache=True, nogil=True, forceinline=True)
def solve(
    X: Rows,
    at: Ints,
    y: Floats,
    dual: Floats,
    norms: Floats,
    until: Floats,
    ids: Ints,
    listed: Listed,
    begin: int,
    end: int,
    n_listed: int,
    wake: float,
    u: Floats,
    d_weights: float,
    d_bias: float,
    box: float,
    before: Floats,
    travel: float,
    moved: float,
    shrink: float,
    floor: float,
    max_sweeps: int,
    slept: Listed,
) -> tuple[int, float, float, int, int, float]:
    """Sweep until the violation met first has fallen by `shrink`, or to `floor`, or `max_sweeps`.

    The agent's rows are begin ≤ k < end: their numbers are in slot `ids[k]`, their features in X at
    `at[k]`. `listed` from `begin` on names `n_listed` of them; the others sleep until u's travel
    comes to `wake`, which is −1 if there is no list yet.

    Because the first violation of a round is as large as what the neighbours changed, by which u
    has `moved` away from where it was `before`, the accuracy tightens with the residuals by itself.
    A sweep's steps largely undo each other: after it, travel counts how far u has come, not the
    way it went, and who fell asleep on that way keeps the slack that is left.

    `before` and `slept` are overwritten. Returns sweeps done, last violation, travel, rows looked
    at, `n_listed` and `wake`.
    """
    target = violation = np.inf
    sweeps = looks = 0
    while sweeps == 0 or (violation > target and sweeps < max_sweeps):
        violation, way, met, n_listed, wake, n_slept = _sweep(
            X, at, y, dual, norms, until, ids, listed, begin, end, n_listed, wake,
            u, d_weights, d_bias, box, travel + moved, slept,
        )  # fmt: skip
        far = min(way, travel + distance(u, before, d_weights, d_bias))
        before[:] = u
        for k in range(n_slept):
            until[ids[slept[k]]] -= way - far
        is_open = wake < 0.0 or wake == np.inf
        if (is_open and 2 * met < end - begin) or 8 * met + 64 < n_listed:
            horizon = far + AHEAD * (way - travel)
            n_listed, wake = _list_awake(until, ids, listed, begin, end, horizon)
        if sweeps == 0:
            target = max(shrink * violation, floor)
        travel, moved = far, 0.0
        looks += met
        sweeps += 1
    return sweeps, violation, travel, looks, n_listed, wake


@njit(cache=True, nogil=True, forceinline=True)
def distance(u: Floats, v: Floats, d_weights: float, d_bias: float) -> float:
    """‖u − v‖ in the metric 1/D."""
    p = u.shape[0] - 1
    total = 0.0
    for j in range(p):
        total += (u[j] - v[j]) ** 2
    bias = u[p] - v[p]
    return float(np.sqrt(total / d_weights + bias * bias / d_bias))


@njit(cache=True, nogil=True)
def pull(X: Rows, at: Ints, y: Floats, dual: Floats, ids: Ints, out: Floats) -> None:
    """Add X̃ᵀYλ over the rows `ids` to `out`."""
    p = X.shape[1]
    for k in range(ids.shape[0]):
        weight = y[ids[k]] * dual[ids[k]]
        if weight != 0.0:
            for j in range(p):
                out[j] += weight * X[at[k], j]
            out[p] += weight


@njit(cache=True, nogil=True)
def squared_norms(X: Rows, at: Ints, ids: Ints, out: Floats) -> None:
    """out[ids[k]] = ‖x‖² of the row at `at[k]`."""
    for k in range(ids.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[at[k], j] * X[at[k], j]
        out[ids[k]] = total


@njit(cache=True, nogil=True)
def tally(
    X: Rows,
    at: Ints,
    y: Floats,
    dual: Floats,
    until: Floats,
    ids: Ints,
    box: float,
    w: Floats,
    horizon: float,
    pull: Floats,
    room: Floats,
) -> tuple[float, float, float, float]:
    """Return the hinge loss of `w` over rows, Σ λ of either class, and Σ y min(λ, C − λ).

    `room` receives Σ min(λᵢ, C − λᵢ) x̃ᵢ. Rows that sleep beyond `horizon`, the agent's travel and
    the way from its u to w, are on the same side of their margins for w as for u. So they need no
    look: those with λ = 0 lose nothing, and what those with λ = C lose follows, up to the rounding
    of many rounds, from `pull` = X̃ᵀYλ, less what the rows looked at have part in it.
    """
    p = X.shape[1]
    seen = np.zeros(p + 1)
    loss = plus = minus = slant = 0.0
    n_bound = 0
    for k in range(ids.shape[0]):
        i, r = ids[k], at[k]
        weight = dual[i]
        if y[i] > 0.0:
            plus += weight
        else:
            minus += weight
        if until[i] > horizon and (weight == 0.0 or weight == box):
            n_bound += weight == box
            continue
        loss += max(0.0, 1.0 - y[i] * (dot(X, r, w) + w[p]))
        if weight == 0.0:
            continue
        signed, inside = y[i] * weight, min(weight, box - weight)
        for j in range(p):
            seen[j] += signed * X[r, j]
        seen[p] += signed
        if inside > 0.0:
            for j in range(p):
                room[j] += inside * X[r, j]
            room[p] += inside
            slant += inside * y[i]
    if n_bound > 0:
        reached = 0.0
        for j in range(p + 1):
            reached += (pull[j] - seen[j]) * w[j]
        loss += max(0.0, n_bound - reached / box)
    return loss, plus, minus, slant


@njit(cache=True, nogil=True)
def class_sums(
    X: Rows, at: Ints, y: Floats, dual: Floats, ids: Ints, positive: Floats, negative: Floats
) -> None:
    """Add Σ λᵢ xᵢ over yᵢ = +1 and over yᵢ = −1 to two vectors, biases left alone."""
    for k in range(ids.shape[0]):
        weight = dual[ids[k]]
        if weight != 0.0:
            out = positive if y[ids[k]] > 0.0 else negative
            for j in range(X.shape[1]):
                out[j] += weight * X[at[k], j]
