"""The iteration's numbers beside the tables: where newcomers begin, what changes leave behind.

Compiled code writes these columns in every round; between rounds only this module does. A cut link
leaves its multipliers behind, kept as offsets that sum to zero:

An agent's links carry, as multipliers z − ρx, what the others' rows want of it. Without them the
agents around a departure would run off and the whole network would have to find its balance anew.
So an end keeps its multiplier as a constant offset of its inflow. Summed over the agents that must
agree, the offsets are zero, so they cancel in the condition for the optimum,

    Σ_a ∇f_a(x) = 0  where all x_a are equal,

and change how fast it is reached, never where it is: a ghost would be a sum that is not zero. All
this takes is one message from the one who leaves to each neighbour.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.rounds.penalty import LIGHT
from dtsvm.rounds.tables import Tables

__all__ = ["Iterates", "zero_sum"]

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]

ROUNDING = 1e-10  # a sum this small beside its terms is zero


class Iterates:
    """What rounds leave in the tables' slots, and how a change carries it on."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.rows, self.agents, self.ends = tables.rows, tables.agents, tables.ends

    def welcome(self, agent: int, teachers: Slots, is_wide: NDArray[np.bool_]) -> None:
        """Start a newcomer where the agents it is linked to stand, instead of at zero."""
        estimate, level = self.agents.open("estimate"), self.agents.open("level")
        estimate[agent, 0] = estimate[teachers, 0].mean(axis=0)
        if is_wide.any():
            estimate[agent, 1] = estimate[teachers[is_wide], 1].mean(axis=0)
        level[agent] = level[teachers[0]]

    def rescale(self, agents: Slots, ratio: float) -> None:
        """Let λ keep its share of a box that grows by `ratio`, so bound rows stay bound."""
        if ratio == 1.0:
            return
        for agent in agents.tolist():
            slots = self.tables.row_slots[agent]
            dual = self.rows.open("dual")
            dual[slots] = np.minimum(dual[slots] * ratio, self.tables.boxes(np.array([agent])))
            self.rows.open("until")[slots] = 0.0
        self.agents.open("pull")[agents] *= ratio

    def forget_rows(self, agent: int, slots: NDArray[np.int32]) -> None:
        """Take the pull of rows that are about to go."""
        gone = np.zeros(self.tables.n_features + 1)
        compiled.pull(self.tables.record(), slots, gone)
        self.agents.open("pull")[agent] -= gone

    def begin_at(self, agent: int, estimate: Floats, dual: Floats | None = None) -> None:
        """Let an agent go on from an earlier estimate and, of the same rows, multipliers."""
        self.agents.open("estimate")[agent] = estimate
        if dual is None:
            return
        slots = self.tables.row_slots[agent]
        self.rows.open("dual")[slots] = np.clip(dual, 0.0, self.tables.boxes(np.array([agent])))
        sums = np.zeros(self.tables.n_features + 1)
        compiled.pull(self.tables.record(), slots, sums)
        self.agents.open("pull")[agent] = sums

    def begin_end(self, end: int, penalty: Floats, edge_state: Floats) -> None:
        """Let a link end go on from an earlier ρ and z."""
        self.ends.open("penalty")[end] = penalty
        self.ends.open("state")[end] = edge_state

    def set_level(self, agents: Slots, level: Floats) -> None:
        """Set how hard the links of these agents pull, see `kernel.decide_level`."""
        self.agents.open("level")[agents] = level

    def lighten(self, agents: Slots) -> None:
        """Let the links of agents that begin pull as in lanes of a choice: see `penalty`."""
        self.agents.open("level")[agents, 2] = LIGHT

    def merge_levels(self, parts: list[Slots]) -> None:
        """Give sets that have just met one level: the geometric mean of theirs."""
        level = self.agents.open("level")
        used = self.agents.used
        if len(used) and not np.count_nonzero(level.take(used, axis=0) != level[used[0]]):
            return  # all are alike
        for agents in parts:
            if np.count_nonzero(level.take(agents, axis=0) != level[agents[0]]):
                level[agents] = np.exp(np.log(level[agents]).mean(axis=0))

    # Handing over

    def keep_flow(self, ends: Slots) -> Floats:
        """Let the owners of these ends keep what the links carried; return it, (n, 2, p + 1)."""
        owner = self.ends["owner"][ends]
        flow: Floats = self.ends["state"][ends]
        rho, x = self.ends["penalty"][ends], self.agents["estimate"][owner]
        flow[:, :, :-1] -= rho[:, None, :1] * x[:, :, :-1]
        flow[:, :, -1:] -= rho[:, None, 1:] * x[:, :, -1:]
        flow[self.ends["is_wide"][ends] == 0, 1] = 0.0
        np.add.at(self.agents.open("offset"), owner, flow)
        return flow

    def bequeath(self, agent: int) -> None:
        """Let an agent that leaves divide among its neighbours what it held: sums stay."""
        used = self.ends.used
        theirs = self.ends["twin"][used[self.ends["owner"][used] == agent]]
        flow = self.keep_flow(theirs)
        offset = self.agents.open("offset")
        wide = self.ends["is_wide"][theirs] > 0
        for part, is_heir in enumerate((np.ones(len(theirs), bool), wide)):
            if is_heir.any():
                rest = offset[agent, part] - flow[:, part].sum(axis=0)
                heirs = self.ends["owner"][theirs[is_heir]]
                np.add.at(offset[:, part], heirs, rest / is_heir.sum())

    def set_offset(self, agent: int, offset: Floats) -> None:
        """Give an agent another offset."""
        self.agents.open("offset")[agent] = offset

    def balance_offsets(self, used: Slots, parts: Sequence[Slots]) -> NDArray[np.uint8]:
        """Let offsets sum to zero over those who must agree now; say who has one, by slot."""
        offset = self.agents.open("offset")
        if not np.count_nonzero(offset):
            return np.zeros(len(offset), np.uint8)
        for c, part in enumerate(parts):
            offset[used, c] = zero_sum(offset[used, c], part[used])
        return np.asarray(offset.any(axis=(1, 2))).view(np.uint8)


def zero_sum(offset: Floats, part: Slots) -> Floats:
    """Return offsets (n, p + 1) that sum to zero over each part: after a split each has its own."""
    if not offset.any():
        return offset
    total, size = np.zeros((2, part.max(initial=-1) + 1, offset.shape[1]))
    np.add.at(total, part, offset)
    np.add.at(size, part, np.abs(offset))
    total[np.abs(total) <= ROUNDING * size] = 0.0
    count = np.maximum(np.bincount(part, minlength=len(total)), 1)
    return np.asarray(offset - (total / count[:, None])[part])
