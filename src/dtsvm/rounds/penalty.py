"""How hard a link pulls: penalties chosen from the network and the data, then from the multipliers.

A penalty changes the speed, never the answer. `start_penalty` says where to begin:

    ρ = 9 τ √(C √(ε₁ε₂) / A) for the weights,   ½ ρ / σ² for the bias

with τ the flow a link carries for a unit of imbalance at a node, and σ² the mean squared feature.
Where C is tiny and rows are few a bias has far to go and little that drives it, n̄ C a node: lanes
of a choice begin with ½ ρ min(1/σ², 8 n̄ C (1/ε₁ + 1/ε₂)), see `light_bias`.
`kernel.decide_level` then looks, at checks, at what links really carry: multipliers of length
‖λ‖ for classifiers of length ‖x‖, so the scale of a penalty is ‖λ‖ / ‖x‖. It is 2½ times that at
first, in lanes of a choice 0.4 times as much: there x is wanted roughly and may have far to go, and
agents that agree long before they are right go slowly. Later, when the tail of the iteration shows
itself, more while linked agents disagree more than they still move and less while they disagree
less, up to a factor of 4. The checks are finitely many, so from some round on the penalties are
fixed and the convergence of the relaxed Peaceman-Rachford iteration applies (Eckstein & Bertsekas,
1992; with lost messages Bastianello, Carli, Schenato & Todescato, 2021).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, diags_array
from scipy.sparse.linalg import splu

__all__ = ["LIGHT", "light_bias", "link_flow", "start_penalty"]

Floats = NDArray[np.float64]
DENSE_NODES, PROBES = 200, 32
LIGHT = 0.4  # what lanes of a choice take for what the tail will teach: see `kernel.decide_level`


def start_penalty(
    flow: Floats, C: Floats, reg: Floats, n_agents: Floats, mean_square: Floats
) -> Floats:
    """Return ρ of the weights and of the bias to begin with, a row a set, in the step's units."""
    weights = 9.0 * flow * np.sqrt(C * np.sqrt(reg[:, 0] * reg[:, 1]) / n_agents)
    return np.stack([weights, 0.5 * weights / mean_square], axis=1)


def light_bias(box: Floats, reg: tuple[Floats, Floats], mean_square: Floats) -> Floats:
    """What share of its usual penalty a bias begins with, if Σ box of an agent's rows is `box`."""
    return np.minimum(1.0, 8.0 * box * (1.0 / reg[0] + 1.0 / reg[1]) * mean_square)


def link_flow(n_nodes: int, links: NDArray[np.int64]) -> float:
    """τ = √(trace(L⁺) / links): the typical flow over a link when nodes differ by one unit.

    Large networks estimate the trace from a few fixed probes; a few per cent do not matter here.
    """
    return _known_flow(n_nodes, links.tobytes()) if len(links) else 1.0


@lru_cache(maxsize=64)  # networks come back: in sweeps, folds and every change of rows
def _known_flow(n_nodes: int, links: bytes) -> float:
    pairs = np.frombuffer(links, np.int64).reshape(-1, 2)
    trace = _exact_trace if n_nodes <= DENSE_NODES else _estimated_trace
    return float(np.sqrt(trace(n_nodes, pairs) / len(pairs)))


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
