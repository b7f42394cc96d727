"""How good an answer provably is: the one objective, its dual, and the gap between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["Certificate", "Tally", "certify", "lacks_room", "objective"]

Floats = NDArray[np.float64]


class Certificate(NamedTuple):
    """Objective, a lower bound on what any pooled training could reach, and their distance."""

    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """(objective − bound) / bound: never smaller than the relative suboptimality.

        Infinite while the bound is not yet above zero.
        """
        if self.objective <= self.bound:
            return 0.0
        return (self.objective - self.bound) / self.bound if self.bound > 0 else float("inf")


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


def objective(
    X: Floats,
    y: Floats,
    task: NDArray[np.int64],
    common: Floats,
    specific: Floats,
    share: Floats,
    *,
    C: float,
    common_reg: float,
    specific_reg: float,
) -> float:
    """Evaluate the one objective on pooled rows of one group.

    ε₁/2 ‖w₀‖² + Σ_t (A_t/A) ε₂/2 ‖w_t‖² + C Σ max(0, 1 − y (xᵀ(w₀+w_t) + b₀ + b_t))

    Parameters
    ----------
    X, y : ndarray
        Rows and labels ±1 of all nodes and tasks.
    task : ndarray of int
        Index of every row's task.
    common : ndarray of shape (p + 1,)
        w₀ with b₀ last.
    specific : ndarray of shape (n_tasks, p + 1)
        w_t with b_t last.
    share : ndarray of shape (n_tasks,)
        A_t / A.
    C, common_reg, specific_reg : float
        C, ε₁ and ε₂.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.problem import objective
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> objective(X, y, np.array([0, 0]), np.array([0.25, 0.0]), np.array([[0.25, 0.0]]),
    ...           np.array([1.0]), C=1.0, common_reg=2.0, specific_reg=2.0)
    1.125
    """
    u = common + specific[task]
    margin = y * (np.einsum("ij,ij->i", X, u[:, :-1]) + u[:, -1])
    return float(
        0.5 * common_reg * common[:-1] @ common[:-1]
        + 0.5 * specific_reg * share @ (specific[:, :-1] ** 2).sum(axis=1)
        + C * np.maximum(0.0, 1.0 - margin).sum()
    )


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
