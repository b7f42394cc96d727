"""The step that makes agents agree, compiled; every runtime runs these functions and no others.

Everything is divided by A, the number of agents in the group: the regularisers are ε/A, the box is
C and a link's penalty is ρ = 2η/A. The iterates are the paper's; a join or a departure then changes
every other agent's numbers by a little instead of rescaling them all.

    x_a      = argmin  f_a(x) − (Σ_b z[a→b])ᵀ x + ½ Σ_b ρ_ab ‖x‖²
    sends b    q[a→b] = 2 ρ x_a − z[a→b]
    on q from b:  z[a→b] ← (1 − κ) z[a→b] + κ q[b→a]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dtsvm.qp import solve

__all__ = [
    "Accuracy",
    "AgentArrays",
    "HalfArrays",
    "RowArrays",
    "compare",
    "exchange",
    "local_step",
    "receive",
    "send",
    "tightened",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class RowArrays(NamedTuple):
    """The rows of all agents here, by slot."""

    X: NDArray[Any]  # (n, p), float64 or float32
    y: Floats
    dual: Floats  # λ
    norms: Floats  # ‖x‖²
    until: Floats  # how far the agent may travel before this bound row can matter
    ids: Ints  # slots, one agent's after the other's


class AgentArrays(NamedTuple):
    """The agents here, by slot. Axes: (agent, common or specific, feature with the bias last)."""

    row_start: Ints
    row_count: Ints
    half_start: Ints
    half_count: Ints
    gain: Floats  # (·, 2, 2): 1/U for the weights and for the bias
    prox: Floats  # (·, 2): weight holding an unlinked bias near its last value
    estimate: Floats  # (·, 2, p+1): x
    inflow: Floats  # (·, 2, p+1): Σ_b z[a→b], and the proximal pull
    pull: Floats  # (·, p+1): X̃ᵀYλ
    shift: Floats  # (·, p+1): m
    decision: Floats  # (·, p+1): u = w₀ + w_t, the agent's classifier
    travel: Floats
    norm: Floats  # ‖x‖
    drift: Floats  # how far an unlinked bias moved
    sweeps: Ints


class HalfArrays(NamedTuple):
    """The links' ends: half a→b belongs to a; its twin is b→a, or −1 if b is in another process."""

    ids: Ints  # slots, one agent's after the other's
    owner: Ints
    twin: Ints
    is_wide: NDArray[np.bool_]  # same task: agree on the specific part too
    penalty: Floats  # (·, 2): ρ for the weights and for the bias
    state: Floats  # (·, 2, p+1): z
    residual: Floats  # (·, 2, 2): last squared primal and dual residual, of weights and of biases


class Accuracy(NamedTuple):
    """How well an agent solves its own problem in one round."""

    shrink: float
    floor: float
    max_sweeps: int
    max_lagging: int


@njit(cache=True, nogil=True)
def tightened(accuracy: Accuracy, age: int) -> Accuracy:
    """Ask for more as rounds go by, so that in the end every agent's problem is solved exactly."""
    return Accuracy(
        accuracy.shrink * 100.0 / (100.0 + age),
        accuracy.floor,
        accuracy.max_sweeps + age // 50,
        accuracy.max_lagging,
    )


@njit(cache=True, nogil=True)
def local_step(
    a: int, agents: AgentArrays, rows: RowArrays, halves: HalfArrays, box: float, accuracy: Accuracy
) -> None:
    """x_a = argmin f_a(x) − (Σ_b z[a→b])ᵀx + ½ Σ_b ρ_ab‖x‖², from where λ stood last round."""
    p = rows.X.shape[1]
    gain, x = agents.gain[a], agents.estimate[a]
    inflow, shift, u = agents.inflow[a], agents.shift[a], agents.decision[a]
    _sum_inflow(a, agents, halves)

    d_weights, d_bias = gain[0, 0] + gain[1, 0], gain[0, 1] + gain[1, 1]
    moved = 0.0
    for j in range(p + 1):
        k = 1 if j == p else 0
        m = inflow[0, j] * gain[0, k] + inflow[1, j] * gain[1, k]
        d = d_bias if j == p else d_weights
        moved += (m - shift[j]) ** 2 / d
        shift[j] = m
        u[j] = d * agents.pull[a, j] + m

    count = agents.row_count[a]
    agents.sweeps[a] = 0
    if count > 0:
        ids = rows.ids[agents.row_start[a] : agents.row_start[a] + count]
        # Nobody waits for an agent with a free bias: it may take its proximal step with care.
        is_free = agents.prox[a, 0] > 0.0 or agents.prox[a, 1] > 0.0
        sweeps, _, travel = solve(
            rows.X,
            rows.y,
            rows.dual,
            rows.norms,
            rows.until,
            ids,
            u,
            d_weights,
            d_bias,
            box,
            agents.travel[a] + np.sqrt(moved),
            np.sqrt(moved),
            accuracy.shrink * (0.1 if is_free else 1.0),
            accuracy.floor,
            accuracy.max_lagging if is_free else accuracy.max_sweeps,
            accuracy.max_lagging,
        )
        agents.travel[a] = travel
        agents.sweeps[a] = sweeps

    drift = 0.0
    norm = 0.0
    for j in range(p + 1):
        k = 1 if j == p else 0
        agents.pull[a, j] = (u[j] - shift[j]) / (d_bias if j == p else d_weights)
        for c in range(2):
            new = (agents.pull[a, j] + inflow[c, j]) * gain[c, k]
            if j == p and agents.prox[a, c] > 0.0:
                drift = max(drift, abs(new - x[c, j]))
            x[c, j] = new
            norm += new * new
    agents.drift[a] = drift
    agents.norm[a] = np.sqrt(norm)


@njit(cache=True, nogil=True)
def _sum_inflow(a: int, agents: AgentArrays, halves: HalfArrays) -> None:
    inflow = agents.inflow[a]
    p = inflow.shape[1] - 1
    inflow[:] = 0.0
    for c in range(2):
        inflow[c, p] = agents.prox[a, c] * agents.estimate[a, c, p]
    start = agents.half_start[a]
    for k in range(start, start + agents.half_count[a]):
        h = halves.ids[k]
        for c in range(2 if halves.is_wide[h] else 1):
            total, z = inflow[c], halves.state[h, c]
            for j in range(p + 1):
                total[j] += z[j]


@njit(cache=True, nogil=True)
def exchange(
    h: int, agents: AgentArrays, halves: HalfArrays, kappa: float, there: bool, back: bool
) -> tuple[float, float]:
    """Both ends of a link send q and take in the other's; return the primal and dual residual.

    `there` and `back` say whether the message from h's owner and the one to it arrived; an end that
    hears nothing keeps its z. With s = (z[a→b] + z[b→a]) / 2ρ, what the link holds,

        primal = ‖x_a − x_b‖,   dual = ‖x_a + x_b − 2s‖,   both relative to (‖x_a‖ + ‖x_b‖) / 2.
    """
    g = halves.twin[h]
    a, b = halves.owner[h], halves.owner[g]
    p = agents.pull.shape[1] - 1
    residual = halves.residual[h]
    residual[:] = 0.0
    for c in range(2 if halves.is_wide[h] else 1):
        xa, xb = agents.estimate[a, c], agents.estimate[b, c]
        za, zb = halves.state[h, c], halves.state[g, c]
        for k in range(2):  # the weights, then the bias
            first, last = (p, p + 1) if k else (0, p)
            rho = halves.penalty[h, k]
            inverse = 1.0 / rho
            apart = moving = 0.0
            for j in range(first, last):
                apart += (xa[j] - xb[j]) ** 2
                moving += (xa[j] + xb[j] - (za[j] + zb[j]) * inverse) ** 2
            residual[0, k] += apart
            residual[1, k] += moving
            for j in range(first, last):
                to_b = 2.0 * rho * xa[j] - za[j]
                to_a = 2.0 * rho * xb[j] - zb[j]
                if back:
                    za[j] = (1.0 - kappa) * za[j] + kappa * to_a
                if there:
                    zb[j] = (1.0 - kappa) * zb[j] + kappa * to_b
    size = 0.5 * (agents.norm[a] + agents.norm[b])
    if size == 0.0:
        return 0.0, 0.0
    return (
        np.sqrt(residual[0, 0] + residual[0, 1]) / size,
        np.sqrt(residual[1, 0] + residual[1, 1]) / size,
    )


@njit(cache=True, nogil=True)
def send(h: int, agents: AgentArrays, halves: HalfArrays, q: Floats) -> None:
    """One end's half of `exchange`: write q[a→b] = 2 ρ x_a − z[a→b] for the other process."""
    a = halves.owner[h]
    p = agents.pull.shape[1] - 1
    for c in range(2 if halves.is_wide[h] else 1):
        for j in range(p + 1):
            rho = halves.penalty[h, 1 if j == p else 0]
            q[c, j] = 2.0 * rho * agents.estimate[a, c, j] - halves.state[h, c, j]


@njit(cache=True, nogil=True)
def receive(h: int, agents: AgentArrays, halves: HalfArrays, q: Floats, kappa: float) -> float:
    """One end's other half: z[a→b] ← (1 − κ) z[a→b] + κ q[b→a]; return the residual.

    An end sees neither x_b nor z[b→a] alone. What it sees, ‖q − z[a→b]‖ / ρ, is the length of the
    dual minus the primal residual vector of `exchange`; the other end sees that of their sum, so
    both are small when, and only when, both residuals are. It is relative to ‖x_a‖.
    """
    a = halves.owner[h]
    p = agents.pull.shape[1] - 1
    total = 0.0
    for c in range(2 if halves.is_wide[h] else 1):
        for j in range(p + 1):
            rho = halves.penalty[h, 1 if j == p else 0]
            z = halves.state[h, c, j]
            total += ((q[c, j] - z) / rho) ** 2
            halves.state[h, c, j] = (1.0 - kappa) * z + kappa * q[c, j]
    if agents.norm[a] == 0.0:
        return 0.0 if total == 0.0 else 1.0
    return float(np.sqrt(total) / agents.norm[a])


@njit(cache=True, nogil=True)
def compare(h: int, agents: AgentArrays, halves: HalfArrays, xs: Floats, zs: Floats) -> None:
    """Note the squared residuals of `exchange` at one end that was told x_b and z[b→a]."""
    a = halves.owner[h]
    p = agents.pull.shape[1] - 1
    residual = halves.residual[h]
    residual[:] = 0.0
    for c in range(2 if halves.is_wide[h] else 1):
        xa, xb = agents.estimate[a, c], xs[c]
        za, zb = halves.state[h, c], zs[c]
        for k in range(2):
            first, last = (p, p + 1) if k else (0, p)
            inverse = 1.0 / halves.penalty[h, k]
            apart = moving = 0.0
            for j in range(first, last):
                apart += (xa[j] - xb[j]) ** 2
                moving += (xa[j] + xb[j] - (za[j] + zb[j]) * inverse) ** 2
            residual[0, k] += apart
            residual[1, k] += moving
