"""The objective and its dual from sums over agents, compiled: a bound on what can be reached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dtsvm.problem import Certificate

__all__ = ["Tally", "certify", "lacks_room"]

Floats = NDArray[np.float64]


class Tally(NamedTuple):
    """What the rows contribute, summed over the agents of each task; the bias entry is last.

    loss : (T,) hinge loss. pull : (T, p+1) Σ y λ x̃.
    room : (T, p+1) Σ min(λ, C − λ) x̃, how far λ may go both ways. slant : (T,) Σ y min(λ, C − λ).
    positive, negative : (T, p+1) Σ λ x̃ over rows with y = +1 and y = −1; of the weights only where
    a task lacks room.
    """

    loss: Floats
    pull: Floats
    room: Floats
    slant: Floats
    positive: Floats
    negative: Floats


@njit(cache=True, nogil=True)
def certify(
    tally: Tally,
    common: Floats,
    specific: Floats,
    share: Floats,
    reg: tuple[float, float],
    C: float,
) -> Certificate:
    """Certify the classifiers of one group from sums that agents can add up between them.

    With v_t = Σ_{i in t} yᵢλᵢxᵢ any λ in [0, C] with Σ yλ = 0 in each task bounds the optimum from
    below:

        D(λ) = Σ λᵢ − ‖Σ_t v_t‖² / 2ε₁ − Σ_t ‖v_t‖² / (2 ε₂ A_t/A)

    λ is made feasible by moving rows inside the box, λ − θ y min(λ, C − λ). That costs little near
    the optimum: such rows lie on the margin. Where they have no room for it, the heavier class is
    scaled down.
    """
    loss = tally.loss
    primal = 0.5 * reg[0] * _square(common)
    T, p1 = specific.shape
    duals = np.zeros((T, p1))  # v, and Σλ last
    for t in range(T):
        primal += 0.5 * reg[1] * share[t] * _square(specific[t]) + C * loss[t]
        if lacks_room(tally, t):
            _scale(tally, t, duals[t])
        else:
            _move(tally, t, duals[t])
    return Certificate(primal, _bound(duals, share, reg))


@njit(cache=True, nogil=True)
def lacks_room(tally: Tally, t: int) -> bool:
    """Whether a task's rows inside the box cannot make up for what one class weighs more."""
    excess = tally.positive[t, -1] - tally.negative[t, -1]
    return not abs(excess) <= tally.room[t, -1]


@njit(cache=True, nogil=True)
def _scale(tally: Tally, t: int, out: Floats) -> None:
    """Scale the heavier class of a task down."""
    positive, negative = tally.positive[t], tally.negative[t]
    both = min(positive[-1], negative[-1])
    plus = both / positive[-1] if positive[-1] > 0.0 else 0.0
    minus = both / negative[-1] if negative[-1] > 0.0 else 0.0
    out[:] = plus * positive - minus * negative
    out[-1] = 2.0 * both


@njit(cache=True, nogil=True)
def _move(tally: Tally, t: int, out: Floats) -> None:
    """Move the rows inside the box of a task."""
    plus, minus, room = tally.positive[t, -1], tally.negative[t, -1], tally.room[t]
    theta = (plus - minus) / room[-1] if room[-1] > 0.0 else 0.0
    out[:] = tally.pull[t] - theta * room
    out[-1] = plus + minus - theta * tally.slant[t]


@njit(cache=True, nogil=True)
def _bound(duals: Floats, share: Floats, reg: tuple[float, float]) -> float:
    """D of the best multiple in [0, 1] of a feasible λ, which is feasible too."""
    total = np.zeros(duals.shape[1])
    curved = 0.0
    for t in range(len(duals)):
        total += duals[t]
        if share[t] > 0.0:  # a task of relays alone has neither rows nor a regulariser
            curved += _square(duals[t]) / (share[t] * reg[1])
    curved += _square(total) / reg[0]
    gain = total[-1]
    scale = min(1.0, gain / curved) if curved > 0.0 else 1.0
    return float(scale * gain - 0.5 * scale**2 * curved)


@njit(cache=True, nogil=True)
def _square(v: Floats) -> float:
    """‖v‖² without its last entry."""
    total = 0.0
    for j in range(len(v) - 1):
        total += v[j] * v[j]
    return total
