"""A leap along the slow directions of the iteration, at checks: reduced-rank extrapolation.

Late rounds repeat themselves: what the links hold moves along a few slow directions, each round by
a little less. Seven snapshots z₀ … z₆ of what all links hold, evenly taken over the last rounds
before a check, show these directions. The leap goes to the mixture

    z ← Σ γᵢ zᵢ,   i = 1 … 6,   Σ γᵢ = 1,   that makes ‖Σ γᵢ (zᵢ − zᵢ₋₁)‖ smallest

(Eddy, 1979; Mešina, 1977). An agent needs its own snapshots and γ; γ needs 21 inner products,
summed over all links along with what penalties are balanced by. Checks are finitely many and from
any z the iteration converges to the same answer, so a leap can change the speed alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dtsvm.rounds.penalty import NEVER, last_check, next_check
from dtsvm.rounds.step import AgentArrays, HalfArrays

__all__ = [
    "MOST_LEAP",
    "NOTHING",
    "N_PRODUCTS",
    "STEPS",
    "Past",
    "inner_products",
    "is_whole",
    "leap",
    "mixture",
    "plan",
    "remember",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST = 40  # no leap at an earlier check, unless warm
STEPS = 6  # between snapshots
SPAN, WARM_SPAN = 0.5, 0.9  # which share of the rounds since the last check they cover
N_PRODUCTS = STEPS * (STEPS + 1) // 2
RIDGE = 1e-8
MOST_LEAP = 1e8  # a γ beyond it is out of all measure


class Past(NamedTuple):
    """Snapshots of z by link end and of x by agent."""

    ages: Ints  # at which they were taken; −1 if not
    z: Floats  # (snapshots, ends, 2, p + 1)
    x: Floats  # (snapshots, agents, 2, p + 1)

    @classmethod
    def empty(cls, n_ends: int, n_agents: int, p1: int) -> Past:
        """Make room for the snapshots before a check."""
        n = STEPS + 1
        ages = np.full(n, -1, np.int64)
        return cls(ages, np.zeros((n, n_ends, 2, p1)), np.zeros((n, n_agents, 2, p1)))


NOTHING = Past.empty(0, 0, 0)


@njit(cache=True, nogil=True)
def plan(check: int, is_warm: bool) -> tuple[int, int]:
    """Return the age of the first snapshot before a check, or `NEVER`, and the rounds between.

    A network that was at work before it changed is in its slow tail from the first round on: it
    leaps at every check, from nearly all rounds since the last.
    """
    if check == NEVER or (check < FIRST and not is_warm):
        return NEVER, 1
    since = check - last_check(check - 1, is_warm)
    step = max(1, int((WARM_SPAN if is_warm else SPAN) * since) // STEPS)
    return check - STEPS * step, step


@njit(cache=True, nogil=True)
def remember(age: int, is_warm: bool, past: Past, agents: AgentArrays, halves: HalfArrays) -> None:
    """Take a snapshot if one is due at this age and there is room for it."""
    begin, step = plan(next_check(age - 1, is_warm), is_warm)
    k = (age - begin) // step
    if age < begin or age != begin + k * step or past.z.shape[1] == 0:
        return
    past.z[k] = halves.state
    past.x[k] = agents.estimate
    past.ages[k] = age


@njit(cache=True, nogil=True)
def is_whole(past: Past, check: int, is_warm: bool) -> bool:
    """Whether every snapshot before a check was taken when it was due."""
    begin, step = plan(check, is_warm)
    n_taken = 0
    for k in range(STEPS + 1):
        n_taken += past.ages[k] == begin + k * step
    return n_taken == STEPS + 1


@njit(cache=True, nogil=True)
def inner_products(ends: Ints, nodes: Ints, past: Past, penalty: Floats) -> Floats:
    """Σ (zᵢ − zᵢ₋₁)ᵀ(zⱼ − zⱼ₋₁) / ρ over each node's link ends, for i ≤ j.

    A node's ends are those from one entry of `nodes` up to the next.
    """
    out = np.zeros((len(nodes), N_PRODUCTS))
    z = past.z
    p = z.shape[3] - 1
    moves, each = np.empty(STEPS), np.empty(N_PRODUCTS)
    for v in range(len(nodes)):
        for k in range(nodes[v], nodes[v + 1] if v + 1 < len(nodes) else len(ends)):
            h = ends[k]
            each[:] = 0.0
            for c in range(2):
                for f in range(p + 1):
                    scale = 1.0 / penalty[h, 1 if f == p else 0]
                    for i in range(STEPS):
                        moves[i] = z[i + 1, h, c, f] - z[i, h, c, f]
                    n = 0
                    for i in range(STEPS):
                        for j in range(i, STEPS):
                            each[n] += scale * moves[i] * moves[j]
                            n += 1
            out[v] += each
    return out


@njit(cache=True, nogil=True)
def mixture(products: Floats) -> Floats:
    """Return γ from the summed inner products; empty if nothing moves or γ is beyond measure."""
    gram = np.zeros((STEPS, STEPS))
    n = 0
    for i in range(STEPS):
        for j in range(i, STEPS):
            gram[i, j] = gram[j, i] = products[n]
            n += 1
    trace = np.trace(gram)
    if not 0.0 < trace < np.inf:
        return np.zeros(0)
    solved = np.linalg.solve(gram / trace + RIDGE * np.eye(STEPS), np.ones(STEPS))
    gamma = solved / solved.sum()
    return gamma if np.abs(gamma).max() < MOST_LEAP else np.zeros(0)


@njit(cache=True, nogil=True)
def leap(gamma: Floats, some: Ints, ends: Ints, past: Past, x: Floats, z: Floats) -> None:
    """Set z at these link ends and x at some agents to the mixture of their snapshots."""
    for h in ends:
        _mix(gamma, past.z, h, z)
    for a in some:
        _mix(gamma, past.x, a, x)


@njit(cache=True, nogil=True)
def _mix(gamma: Floats, taken: Floats, k: int, out: Floats) -> None:
    for c in range(2):
        for f in range(out.shape[2]):
            total = 0.0
            for i in range(STEPS):
                total += gamma[i] * taken[i + 1, k, c, f]
            out[k, c, f] = total
