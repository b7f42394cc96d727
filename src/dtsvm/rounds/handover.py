"""What a cut link leaves behind: its multipliers, kept as offsets that sum to zero.

An agent's links carry, as multipliers z − ρx, what the others' rows want of it. Without them the
agents around a departure would run off and the whole network would have to find its balance anew.
So an end keeps its multiplier as a constant offset of its inflow. Summed over the agents that must
agree, the offsets are zero, so they cancel in the condition for the optimum,

    Σ_a ∇f_a(x) = 0  where all x_a are equal,

and change how fast it is reached, never where it is: a ghost would be a sum that is not zero. All
this takes is one message from the one who leaves to each neighbour.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dtsvm.rounds.table import Table

__all__ = ["bequeath", "keep_flow", "zero_sum"]

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]

ROUNDING = 1e-10  # a sum this small beside its terms is zero


def keep_flow(agents: Table, halves: Table, ends: Slots) -> Floats:
    """Let the owners of these link ends keep what the links carried; return it, (n, 2, p + 1)."""
    owner = halves["owner"][ends]
    flow = halves["state"][ends]
    rho, x = halves["penalty"][ends], agents["estimate"][owner]
    flow[:, :, :-1] -= rho[:, None, :1] * x[:, :, :-1]
    flow[:, :, -1:] -= rho[:, None, 1:] * x[:, :, -1:]
    flow[~halves["is_wide"][ends], 1] = 0.0
    np.add.at(agents["offset"], owner, flow)
    return flow


def bequeath(agents: Table, halves: Table, agent: int) -> None:
    """Let an agent that leaves divide among its neighbours what it held, so that sums stay."""
    used = halves.used
    theirs = halves["twin"][used[halves["owner"][used] == agent]]
    flow = keep_flow(agents, halves, theirs)
    offset = agents["offset"]
    for part, is_heir in enumerate((np.ones(len(theirs), bool), halves["is_wide"][theirs])):
        if is_heir.any():
            rest = offset[agent, part] - flow[:, part].sum(axis=0)
            np.add.at(offset[:, part], halves["owner"][theirs[is_heir]], rest / is_heir.sum())


def zero_sum(offset: Floats, part: Slots) -> Floats:
    """Return offsets (n, p + 1) that sum to zero over each part: after a split each has its own."""
    total, size = np.zeros((2, part.max(initial=-1) + 1, offset.shape[1]))
    np.add.at(total, part, offset)
    np.add.at(size, part, np.abs(offset))
    total[np.abs(total) <= ROUNDING * size] = 0.0
    count = np.maximum(np.bincount(part, minlength=len(total)), 1)
    return np.asarray(offset - (total / count[:, None])[part])
