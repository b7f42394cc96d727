"""Penalties and gains written into the arrays of the agents here, compiled.

A link end's ρ changes so that it keeps its multiplier, z ← z + (ρ_new − ρ_old) x. An agent's gain
is 1/U with U = ε/A + Σ_b ρ for the weights and Σ_b ρ for the bias.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dtsvm.rounds.step import AgentArrays, HalfArrays, RowArrays

__all__ = ["Rules", "renew"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Rules(NamedTuple):
    """What penalties and gains follow from, by agent slot or by link end."""

    level: Floats  # (·, 3): see `penalty.balanced`
    start: Floats  # (·, 2): ρ to begin with, of the weights and of the bias
    size: Floats  # A
    hold: Floats  # how firmly a bias is held that no link holds
    drift_before: Floats  # how far it moved in the round before the last check
    is_relay: Flags
    is_across: Flags  # by link end
    chosen: tuple[float, float]  # η inside and across nodes; automatic if not a number
    reg: tuple[float, float]


@njit(cache=True, nogil=True)
def renew(
    used: Ints, agents: AgentArrays, rows: RowArrays, halves: HalfArrays, rules: Rules, kept: Floats
) -> bool:
    """Set all penalties and gains; then x is what was `kept`. Return whether a penalty changed.

    Where z has leapt, x has leapt along for a new penalty; otherwise it stays what agents found.
    """
    has_changed: bool = _set_penalties(agents, halves, rules)
    agents.estimate[:] = kept
    _set_gains(used, agents, rows, halves, rules)
    return has_changed


@njit(cache=True, nogil=True)
def _set_penalties(agents: AgentArrays, halves: HalfArrays, rules: Rules) -> bool:
    """Set ρ on every link end: level · start, or 2η/A where η inside or across nodes is chosen."""
    level, start, size = rules.level, rules.start, rules.size
    is_across, chosen = rules.is_across, rules.chosen
    x, z, penalty = agents.estimate, halves.state, halves.penalty
    ids, owner, is_wide = halves.ids, halves.owner, halves.is_wide
    p = x.shape[2] - 1
    has_changed = False
    for k in range(ids.shape[0]):
        h = ids[k]
        a = owner[h]
        eta = chosen[1] if is_across[h] else chosen[0]
        if np.isnan(eta):
            weights = level[a, 0] * start[a, 0]
            bias = level[a, 1] * level[a, 0] * start[a, 1]
        else:
            weights = bias = 2.0 * eta / size[a]
        grown, grown_bias = weights - penalty[h, 0], bias - penalty[h, 1]
        for c in range(2 if is_wide[h] else 1):
            for j in range(p):
                z[h, c, j] += grown * x[a, c, j]
            z[h, c, p] += grown_bias * x[a, c, p]
        has_changed |= grown != 0.0 or grown_bias != 0.0
        penalty[h, 0], penalty[h, 1] = weights, bias
    return has_changed


@njit(cache=True, nogil=True)
def _set_gains(
    used: Ints, agents: AgentArrays, rows: RowArrays, halves: HalfArrays, rules: Rules
) -> None:
    """Set 1/U of every agent; one whose gains changed must look at all its rows again.

    A bias that no link holds is weighed like a feature of a third of an average row's length.
    Lighter would need fewer rounds, but makes an agent's own problem harder; ten is between.
    """
    is_relay, hold, size, reg = rules.is_relay, rules.hold, rules.size, rules.reg
    gain, prox, travel, wake = agents.gain, agents.prox, agents.travel, agents.wake
    row_start, row_count = agents.row_start, agents.row_count
    half_start, half_count = agents.half_start, agents.half_count
    penalty, is_wide, half_ids = halves.penalty, halves.is_wide, halves.ids
    norms, until, row_ids = rows.norms, rows.until, rows.ids
    total = np.empty((2, 2))
    for a in used:
        total[:] = 0.0
        for k in range(half_start[a], half_start[a] + half_count[a]):
            h = half_ids[k]
            for c in range(2 if is_wide[h] else 1):
                total[c, 0] += penalty[h, 0]
                total[c, 1] += penalty[h, 1]
        begin, end = row_start[a], row_start[a] + row_count[a]
        length = 0.0
        if total[0, 1] == 0.0 or total[1, 1] == 0.0:
            for k in range(begin, end):
                length += norms[row_ids[k]]
            length = max(length / (end - begin), 1e-12) if end > begin else 1.0
        has_changed = False
        for c in range(2):
            if not is_relay[a]:
                total[c, 0] += reg[c] / size[a]
            prox[a, c] = 0.0
            if total[c, 1] == 0.0:
                prox[a, c] = hold[a] * (10.0 * total[c, 0] / length if total[c, 0] > 0.0 else 1.0)
                total[c, 1] = prox[a, c]
            for k in range(2):
                new = 1.0 / total[c, k] if total[c, k] > 0.0 else 0.0
                has_changed |= new != gain[a, c, k]
                gain[a, c, k] = new
        if has_changed:
            travel[a], wake[a] = 0.0, -1.0
            for k in range(begin, end):
                until[row_ids[k]] = 0.0
