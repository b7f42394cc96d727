"""A leap along the slow directions of the iteration, at checks: reduced-rank extrapolation.

Late rounds repeat themselves: what the links hold moves along a few slow directions, each round by
a little less. Seven snapshots z₀ … z₆ of what all links hold, evenly taken over the last quarter of
the rounds before a check, show these directions. The leap goes to the mixture

    z ← Σ γᵢ zᵢ,   i = 1 … 6,   Σ γᵢ = 1,   that makes ‖Σ γᵢ (zᵢ − zᵢ₋₁)‖ smallest

(Eddy, 1979; Mešina, 1977). An agent needs its own snapshots and γ; γ needs 21 inner products,
summed over all links along with what penalties are balanced by. Checks are finitely many and from
any z the iteration converges to the same answer, so a leap can change the speed alone.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dtsvm.rounds.step import AgentArrays, HalfArrays

__all__ = [
    "MOST_LEAP",
    "NOTHING",
    "N_PRODUCTS",
    "STEPS",
    "Past",
    "inner_products",
    "leap",
    "mixture",
    "plan",
    "remember",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST = 40  # no leap at an earlier check
STEPS, SPAN = 6, 0.25  # between snapshots, and which share of the rounds so far they cover
N_PRODUCTS = STEPS * (STEPS + 1) // 2
RIDGE = 1e-8
MOST_LEAP = 1e8  # a γ beyond it is out of all measure
UPPER = np.triu_indices(STEPS)


class Past(NamedTuple):
    """Snapshots of z by link end and of x by agent, taken every `step` rounds from age `begin`."""

    begin: int
    step: int
    ages: Ints  # at which they were taken; −1 if not
    z: Floats  # (snapshots, ends, 2, p + 1)
    x: Floats  # (snapshots, agents, 2, p + 1)

    @classmethod
    def empty(cls, begin: int, step: int, n_ends: int, n_agents: int, p1: int) -> Past:
        """Make room for the snapshots before a check."""
        n = STEPS + 1
        ages = np.full(n, -1, np.int64)
        return cls(begin, step, ages, np.zeros((n, n_ends, 2, p1)), np.zeros((n, n_agents, 2, p1)))

    @property
    def is_whole(self) -> bool:
        """Whether every snapshot was taken when it was due."""
        return bool((self.ages == self.begin + self.step * np.arange(STEPS + 1)).all())


NOTHING = Past.empty(sys.maxsize, 1, 0, 0, 0)


def plan(check: int) -> tuple[int, int] | None:
    """Return the age of the first snapshot before a check and the rounds between two, or None."""
    if check < FIRST:
        return None
    step = max(1, int(SPAN * check) // STEPS)
    return check - STEPS * step, step


@njit(cache=True, nogil=True)
def remember(age: int, past: Past, agents: AgentArrays, halves: HalfArrays) -> None:
    """Take a snapshot if one is due at this age."""
    since = age - past.begin
    if since < 0 or since % past.step != 0 or since // past.step >= len(past.ages):
        return
    k = since // past.step
    past.z[k] = halves.state
    past.x[k] = agents.estimate
    past.ages[k] = age


@njit(cache=True, nogil=True)
def inner_products(ends: Ints, past: Past, penalty: Floats) -> Floats:
    """(zᵢ − zᵢ₋₁)ᵀ(zⱼ − zⱼ₋₁) / ρ at each of these link ends, for i ≤ j."""
    out = np.zeros((len(ends), N_PRODUCTS))
    z = past.z
    p = z.shape[3] - 1
    moves = np.empty(STEPS)
    for k in range(len(ends)):
        h = ends[k]
        for c in range(2):
            for f in range(p + 1):
                scale = 1.0 / penalty[h, 1 if f == p else 0]
                for i in range(STEPS):
                    moves[i] = z[i + 1, h, c, f] - z[i, h, c, f]
                n = 0
                for i in range(STEPS):
                    for j in range(i, STEPS):
                        out[k, n] += scale * moves[i] * moves[j]
                        n += 1
    return out


def mixture(products: Floats) -> Floats | None:
    """Return γ from the summed inner products; None if nothing moves or γ is out of all measure."""
    gram = np.zeros((STEPS, STEPS))
    gram[UPPER] = products
    gram += np.triu(gram, 1).T
    trace = float(np.trace(gram))
    if not 0.0 < trace < np.inf:
        return None
    ridged = gram / trace + RIDGE * np.eye(STEPS)
    solved = np.linalg.solve(ridged, np.ones(STEPS))
    gamma = np.array((solved / solved.sum()).tolist())
    return gamma if (np.abs(gamma) < MOST_LEAP).all() else None


@njit(cache=True, nogil=True)
def leap(gamma: Floats, some: Ints, ends: Ints, past: Past, x: Floats, z: Floats) -> None:
    """Set z at these link ends and x at some agents to the mixture of their snapshots."""
    for h in ends:
        z[h] = 0.0
        for i in range(STEPS):
            z[h] += gamma[i] * past.z[i + 1, h]
    for a in some:
        x[a] = 0.0
        for i in range(STEPS):
            x[a] += gamma[i] * past.x[i + 1, a]
