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

from dtsvm.qp import borrowed, fetch, solve

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

AHEAD = 32  # rows of another agent that are fetched while one is solving


class RowArrays(NamedTuple):
    """The rows of all agents here, by slot."""

    X: NDArray[Any]  # (n, p), float64 or float32
    y: Floats
    dual: Floats  # λ
    norms: Floats  # ‖x‖²
    until: Floats  # how far the agent may travel before this bound row can matter
    ids: Ints  # slots, one agent's after the other's
    at: Ints  # where in X each of them lies
    listed: NDArray[np.int32]  # places in `ids` of an agent's rows that are awake, from its first


class AgentArrays(NamedTuple):
    """The agents here, by slot. Axes: (agent, common or specific, feature with the bias last)."""

    row_start: Ints
    row_count: Ints
    half_start: Ints
    half_count: Ints
    gain: Floats  # (·, 2, 2): 1/U for the weights and for the bias
    prox: Floats  # (·, 2): weight holding an unlinked bias near its last value
    estimate: Floats  # (·, 2, p+1): x
    offset: Floats  # (·, 2, p+1): what cut links left behind, see `handover`
    has_offset: NDArray[np.bool_]
    pull: Floats  # (·, p+1): X̃ᵀYλ
    decision: Floats  # (·, p+1): u = w₀ + w_t, the agent's classifier
    travel: Floats
    n_listed: Ints
    wake: Floats  # travel at which a row that is not listed may matter; −1 if there is no list
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
    residual: Floats  # (·, 3, 2): last squared primal and dual residual, of weights and of biases;
    # then squared multiplier and squared x of both ends, weights alone


class Accuracy(NamedTuple):
    """How well an agent solves its own problem in one round."""

    shrink: float
    floor: float
    max_sweeps: int
    max_free: int  # for agents with a bias that no link holds


@njit(cache=True, nogil=True)
def tightened(accuracy: Accuracy, age: int) -> Accuracy:
    """Ask for more as rounds go by, so that in the end every agent's problem is solved exactly."""
    return Accuracy(
        accuracy.shrink * 100.0 / (100.0 + age),
        accuracy.floor,
        accuracy.max_sweeps + age // 25,
        accuracy.max_free,
    )


@njit(cache=True, nogil=True)
def local_step(
    some: Ints,
    agents: AgentArrays,
    rows: RowArrays,
    halves: HalfArrays,
    box: float,
    accuracy: Accuracy,
) -> int:
    """x_a = argmin f_a(x) − (Σ_b z[a→b])ᵀx + ½ Σ_b ρ_ab‖x‖² for some agents, from the last λ.

    Returns how many rows were looked at.
    """
    p1 = agents.pull.shape[1]
    most = agents.row_count.max() if len(agents.row_count) else 0
    scratch = (np.empty((2, p1)), np.empty(p1), np.empty(p1), np.empty(most, np.int32))
    looks: int = _solve_all(some, agents, rows, halves, box, accuracy, scratch)
    return looks


@njit(cache=True, nogil=True)
def _solve_all(
    some: Ints,
    agents: AgentArrays,
    rows: RowArrays,
    halves: HalfArrays,
    box: float,
    accuracy: Accuracy,
    scratch: tuple[Floats, Floats, Floats, NDArray[np.int32]],
) -> int:
    some, agents, rows, halves = borrowed((some, agents, rows, halves))
    inflow, shift, before, slept = borrowed(scratch)
    X, y, dual, norms, until, row_ids, at, listed = rows
    estimate, pulls, offsets, z = agents.estimate, agents.pull, agents.offset, halves.state
    gains, proxes, decisions = agents.gain, agents.prox, agents.decision
    row_start, row_count, travels = agents.row_start, agents.row_count, agents.travel
    n_listed, wakes = agents.n_listed, agents.wake
    half_start, half_count = agents.half_start, agents.half_count
    drifts, all_norms, all_sweeps = agents.drift, agents.norm, agents.sweeps
    half_ids, is_wide, has_offset = halves.ids, halves.is_wide, agents.has_offset
    p = X.shape[1]
    both = 2 * (p + 1)
    # The common and the specific part end to end: one loop over both.
    flat_z, flat_offsets = z.reshape(z.shape[0], both), offsets.reshape(offsets.shape[0], both)
    flat = inflow.reshape(both)
    looks = 0
    for n in range(len(some)):
        a = some[n]
        # What the next agents need is on its way while this one solves.
        if n + 3 < len(some):
            fetch(listed, row_start[some[n + 3]])
        if n + 2 < len(some):
            b = some[n + 2]
            fetch(pulls, b)
            fetch(decisions, b)
            fetch(estimate, b)
            for k in range(row_start[b], row_start[b] + min(n_listed[b], AHEAD)):
                fetch(row_ids, listed[k])
                fetch(at, listed[k])
        if n + 1 < len(some):
            b = some[n + 1]
            for k in range(row_start[b], row_start[b] + min(n_listed[b], AHEAD)):
                i = row_ids[listed[k]]
                fetch(X, at[listed[k]])
                fetch(until, i)
                fetch(dual, i)
                fetch(y, i)
                fetch(norms, i)
        gain, x, u, pull = gains[a], estimate[a], decisions[a], pulls[a]
        flat[:] = 0.0
        if has_offset[a]:
            for j in range(both):
                flat[j] = flat_offsets[a, j]
        for c in range(2):
            inflow[c, p] += proxes[a, c] * x[c, p]
        for k in range(half_start[a], half_start[a] + half_count[a]):
            h = half_ids[k]
            for j in range(both if is_wide[h] else p + 1):
                flat[j] += flat_z[h, j]

        d_weights, d_bias = gain[0, 0] + gain[1, 0], gain[0, 1] + gain[1, 1]
        moved = 0.0
        for j in range(p):
            shift[j] = inflow[0, j] * gain[0, 0] + inflow[1, j] * gain[1, 0]
            before[j] = u[j]
            u[j] = d_weights * pull[j] + shift[j]
            moved += (u[j] - before[j]) ** 2
        shift[p] = inflow[0, p] * gain[0, 1] + inflow[1, p] * gain[1, 1]
        before[p] = u[p]
        u[p] = d_bias * pull[p] + shift[p]
        moved = np.sqrt(moved / d_weights + (u[p] - before[p]) ** 2 / d_bias)

        sweeps = 0
        if row_count[a] > 0:
            # Nobody waits for an agent with a free bias: it may take its proximal step with care.
            is_free = proxes[a, 0] > 0.0 or proxes[a, 1] > 0.0
            sweeps, _, travels[a], looked, n_listed[a], wakes[a] = solve(
                X,
                at,
                y,
                dual,
                norms,
                until,
                row_ids,
                listed,
                row_start[a],
                row_start[a] + row_count[a],
                n_listed[a],
                wakes[a],
                u,
                d_weights,
                d_bias,
                box,
                before,
                travels[a],
                moved,
                accuracy.shrink * (0.1 if is_free else 1.0),
                accuracy.floor,
                accuracy.max_free if is_free else accuracy.max_sweeps,
                slept,
            )
            looks += looked
        all_sweeps[a] = sweeps

        norm = 0.0
        for j in range(p):
            pull[j] = (u[j] - shift[j]) / d_weights
            for c in range(2):
                x[c, j] = (pull[j] + inflow[c, j]) * gain[c, 0]
                norm += x[c, j] * x[c, j]
        pull[p] = (u[p] - shift[p]) / d_bias
        drift = 0.0
        for c in range(2):
            new = (pull[p] + inflow[c, p]) * gain[c, 1]
            if proxes[a, c] > 0.0:
                drift = max(drift, abs(new - x[c, p]))
            x[c, p] = new
            norm += new * new
        drifts[a] = drift
        all_norms[a] = np.sqrt(norm)
    return looks


@njit(cache=True, nogil=True)
def exchange(
    firsts: Ints,
    agents: AgentArrays,
    halves: HalfArrays,
    kappa: float,
    heard: NDArray[np.bool_],
    is_check: bool,
) -> tuple[float, float]:
    """Both ends of every link send q and take in the other's; return the worst residuals.

    `firsts` names one end h of each link. `heard[i]` says whether the message from its owner and
    the one to it arrived; an end that hears nothing keeps its z; if `heard` is empty, all hear
    all. With s = (z[a→b] + z[b→a]) / 2ρ, what the link holds,

        primal = ‖x_a − x_b‖,   dual = ‖x_a + x_b − 2s‖,   both relative to (‖x_a‖ + ‖x_b‖) / 2.

    Before a check, every link's own numbers are noted in `halves.residual`.
    """
    firsts, agents, halves, heard = borrowed((firsts, agents, halves, heard))
    x, norm = agents.estimate, agents.norm
    z, rho, owner, twin = halves.state, halves.penalty, halves.owner, halves.twin
    is_wide, residual = halves.is_wide, halves.residual
    last = x.shape[2] - 1
    primal = dual = 0.0
    for i in range(firsts.shape[0]):
        h = firsts[i]
        g = twin[h]
        a, b = owner[h], owner[g]
        parts = 2 if is_wide[h] else 1
        if is_check:
            _measure(residual, h, x, a, x, b, z, z, g, parts, rho)
        to_a = to_b = kappa
        if heard.shape[0] > 0:
            to_b = kappa if heard[i, 0] else 0.0
            to_a = kappa if heard[i, 1] else 0.0
        twice, twice_bias, inverse = 2.0 * rho[h, 0], 2.0 * rho[h, 1], 1.0 / rho[h, 1]
        apart = moving = 0.0
        for c in range(parts):
            d, m = _distances(x, a, b, z, h, g, c, last, 1.0 / rho[h, 0])
            u, v, s, t = x[a, c, last], x[b, c, last], z[h, c, last], z[g, c, last]
            apart += d + (u - v) ** 2
            moving += m + (u + v - (s + t) * inverse) ** 2
            for j in range(last):
                q, r = z[h, c, j], z[g, c, j]
                z[h, c, j] = (1.0 - to_a) * q + to_a * (twice * x[b, c, j] - r)
                z[g, c, j] = (1.0 - to_b) * r + to_b * (twice * x[a, c, j] - q)
            z[h, c, last] = (1.0 - to_a) * s + to_a * (twice_bias * v - t)
            z[g, c, last] = (1.0 - to_b) * t + to_b * (twice_bias * u - s)
        size = 0.5 * (norm[a] + norm[b])
        if size > 0.0:
            primal = max(primal, np.sqrt(apart) / size)
            dual = max(dual, np.sqrt(moving) / size)
    return primal, dual


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def _distances(
    x: Floats, a: int, b: int, z: Floats, h: int, g: int, c: int, n: int, inverse: float
) -> tuple[float, float]:
    """‖x_a − x_b‖² and ‖x_a + x_b − 2s‖² of one part's weights, added up in any order.

    Only the residuals that are logged depend on it, no message and no penalty.
    """
    apart = moving = 0.0
    for j in range(n):
        apart += (x[a, c, j] - x[b, c, j]) ** 2
        moving += (x[a, c, j] + x[b, c, j] - (z[h, c, j] + z[g, c, j]) * inverse) ** 2
    return apart, moving


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
    """Note what `exchange` does at one end that was told x_b and z[b→a], shape (1, 2, p + 1)."""
    a = halves.owner[h]
    parts = 2 if halves.is_wide[h] else 1
    x, z = agents.estimate, halves.state
    _measure(halves.residual, h, x, a, xs, 0, z, zs, 0, parts, halves.penalty)


@njit(cache=True, nogil=True, inline="always")
def _measure(
    residual: Floats,
    h: int,
    xa: Floats,
    a: int,
    xb: Floats,
    b: int,
    za: Floats,
    zb: Floats,
    g: int,
    parts: int,
    penalty: Floats,
) -> None:
    """Write what link end h shows; the bits are the same whichever end it is."""
    last = xa.shape[2] - 1
    rho, inverse, inverse_bias = penalty[h, 0], 1.0 / penalty[h, 0], 1.0 / penalty[h, 1]
    apart = moving = flow_a = flow_b = size_a = size_b = apart_bias = moving_bias = 0.0
    for c in range(parts):
        for j in range(last):
            u, v, s, t = xa[a, c, j], xb[b, c, j], za[h, c, j], zb[g, c, j]
            apart += (u - v) ** 2
            moving += (u + v - (s + t) * inverse) ** 2
            flow_a += (s - rho * u) ** 2
            flow_b += (t - rho * v) ** 2
            size_a += u * u
            size_b += v * v
        u, v, s, t = xa[a, c, last], xb[b, c, last], za[h, c, last], zb[g, c, last]
        apart_bias += (u - v) ** 2
        moving_bias += (u + v - (s + t) * inverse_bias) ** 2
    residual[h, 0, 0], residual[h, 0, 1] = apart, apart_bias
    residual[h, 1, 0], residual[h, 1, 1] = moving, moving_bias
    residual[h, 2, 0], residual[h, 2, 1] = flow_a + flow_b, size_a + size_b
