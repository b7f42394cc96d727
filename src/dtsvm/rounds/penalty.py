"""How hard a link pulls: penalties chosen from the network and the data, then from the multipliers.

A penalty changes the speed, never the answer. `start_penalty` says where to begin:

    ρ = 9 τ √(C √(ε₁ε₂) / A) for the weights,   ½ ρ / σ² for the bias

with τ the flow a link carries for a unit of imbalance at a node, and σ² the mean squared feature.
`balanced` then looks, at checks, at what links really carry: multipliers of length
‖λ‖ for classifiers of length ‖x‖, so the scale of a penalty is ‖λ‖ / ‖x‖. It is 2½ times that at
first; later, when the tail of the iteration shows itself, more while linked agents disagree more
than they still move and less while they disagree less, up to a factor of 4. The checks are finitely
many, so from some round on the penalties are fixed and the convergence of the relaxed
Peaceman-Rachford iteration applies (Eckstein & Bertsekas, 1992; with lost messages Bastianello,
Carli, Schenato & Todescato, 2021).
"""

from __future__ import annotations

import sys

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, diags_array
from scipy.sparse.linalg import splu

__all__ = [
    "NEVER",
    "balanced",
    "is_check",
    "last_check",
    "link_flow",
    "loosened",
    "next_check",
    "start_penalty",
    "sum_of_nodes",
]

Floats = NDArray[np.float64]

CHECKS = tuple(10 << k for k in range(16))  # ages at which penalties are balanced
WARM_FIRST = 20  # the first, in a network that was at work before the change and has its level
SCALE = 2.5  # ρ ‖x‖ / ‖λ‖ to aim at
TAIL, BAND = 60, 4.0  # from which age on disagreement and movement count, and how far they may lead
MOST, LEAST = 5.0, 1.2  # how far a check believes them, and the least change that is made
BIAS_BAND = (0.5, 2.0)  # how far the bias may go its own way
LEVELS = (0.01, 1000.0)  # how far all checks together may lead away from the start
NEVER = sys.maxsize
TINY = 1e-300
DENSE_NODES, PROBES = 200, 32


def start_penalty(
    flow: float, C: float, reg: tuple[float, float], n_agents: float, mean_square: float
) -> tuple[float, float]:
    """Return ρ of the weights and of the bias to begin with, in the units of `rounds.step`."""
    weights = 9.0 * flow * np.sqrt(C * np.sqrt(reg[0] * reg[1]) / n_agents)
    return float(weights), float(0.5 * weights / mean_square)


def link_flow(n_nodes: int, links: NDArray[np.int64]) -> float:
    """τ = √(trace(L⁺) / links): the typical flow over a link when nodes differ by one unit.

    Large networks estimate the trace from a few fixed probes; a few per cent do not matter here.
    """
    if not len(links):
        return 1.0
    trace = _exact_trace if n_nodes <= DENSE_NODES else _estimated_trace
    return float(np.sqrt(trace(n_nodes, links) / len(links)))


def _exact_trace(n: int, links: NDArray[np.int64]) -> float:
    laplacian = np.zeros((n, n))
    laplacian[links[:, 0], links[:, 1]] = laplacian[links[:, 1], links[:, 0]] = -1.0
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    values = np.linalg.eigvalsh(laplacian)
    return float((1.0 / values[values > 1e-9 * values[-1]]).sum())


def _estimated_trace(n: int, links: NDArray[np.int64]) -> float:
    """trace(L⁺) = trace(G) − 1ᵀG1/n with G the inverse of L grounded at one node (Hutchinson)."""
    both = np.concatenate([links, links[:, ::-1]])
    adjacency = coo_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(n, n))
    laplacian = csc_array(diags_array(adjacency.sum(axis=1)) - adjacency)
    factor = splu(csc_array(laplacian[1:, 1:]))
    probes = np.where(np.random.default_rng(0).random((n - 1, PROBES)) < 0.5, -1.0, 1.0)
    trace = float((probes * factor.solve(probes)).sum() / PROBES)
    return max(trace - float(factor.solve(np.ones(n - 1)).sum()) / n, 1e-12)


@njit(cache=True, nogil=True)
def is_check(age: int, is_warm: bool) -> bool:
    """Whether penalties are balanced after this many rounds since something changed."""
    return age > 0 and age == last_check(age, is_warm)


@njit(cache=True, nogil=True)
def next_check(age: int, is_warm: bool) -> int:
    """Return the next age at which penalties are balanced; `NEVER` when no more checks follow."""
    for check in CHECKS:
        if check > age and (check >= WARM_FIRST or not is_warm):
            return check
    return NEVER


@njit(cache=True, nogil=True)
def last_check(age: int, is_warm: bool) -> int:
    """Return the age of the last check up to this age, or 0 if there was none."""
    last = 0
    for check in CHECKS:
        if check <= age and (check >= WARM_FIRST or not is_warm):
            last = check
    return last


@njit(cache=True, nogil=True)
def balanced(level: Floats, found: Floats, start: float, age: int) -> Floats:
    """Return a group's new level from what its links show at a check.

    Parameters
    ----------
    level : array, shape (3,)
        Penalty of the weights over the one begun with, that of the bias over its usual share of it,
        and what the tail has taught about the first.
    found : array, shape (6,)
        Squared disagreement of weights and of bias, squared movement of weights and of bias,
        squared multipliers and squared classifiers. Sums over all links.
    start : float
        The weights' penalty begun with.
    age : int
        Rounds since something changed.
    """
    ratio = _within(np.sqrt(found[0] / max(found[2], TINY)), 1.0 / MOST, MOST)
    ratio_bias = _within(np.sqrt(found[1] / max(found[3], TINY)), 1.0 / MOST, MOST)
    flow, size = found[4], found[5]
    scale = SCALE * np.sqrt(flow / max(size, TINY)) / start
    weights, bias, tail = level
    if age >= TAIL:
        tail = _within(tail * ratio, 1.0 / BAND, BAND)
    if size > 0.0 and not 1.0 / LEAST <= scale * tail / weights <= LEAST:
        weights = _within(scale * tail, *LEVELS)
    return np.array([weights, _within(bias * ratio_bias / ratio, *BIAS_BAND), tail])


@njit(cache=True, nogil=True)
def _within(value: float, least: float, most: float) -> float:
    return min(max(value, least), most)


@njit(cache=True, nogil=True)
def sum_of_nodes(values: Floats) -> Floats:
    """Add up the rows of an array, one a node, each column in ascending order.

    Nodes come to the same bits, in whatever order they stand.
    """
    out = np.zeros(values.shape[1])
    for j in range(len(out)):
        for value in np.sort(values[:, j]):
            out[j] += value
    return out


@njit(cache=True, nogil=True)
def loosened(hold: float, drift: float, before: float) -> float:
    """Return how firmly a free bias is held near its last value from now on.

    One that has not come to rest since the last check, half as many rounds ago, is held a fifth as
    firmly: a bias that no link holds may have far to go, at a constant pace.
    """
    return max(hold / MOST, 1e-4) if drift > 0.25 * before else hold
