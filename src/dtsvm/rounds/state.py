"""Every number of the agents in one process, in three: tables, the plan that follows, iterates.

A change touches only the slots it concerns; the plan is derived anew before the next round.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dtsvm.kernel import compiled
from dtsvm.problem.settings import Settings
from dtsvm.rounds.iterates import Iterates
from dtsvm.rounds.plan import Elsewhere, Plan, derive, find_parts
from dtsvm.rounds.snapshots import Snapshots
from dtsvm.rounds.tables import Tables

__all__ = ["ACCURACY", "State"]

Slots = NDArray[np.int64]
Floats = NDArray[np.float64]

WARM = 20  # rounds after which a network is warm
# How well an agent solves its own problem in one round.
ACCURACY = {
    "tracking": {"shrink": 0.1, "floor": 1e-12, "max_sweeps": 1, "max_free": 300},
    "exact": {"shrink": 0.0, "floor": 1e-13, "max_sweeps": 100_000, "max_free": 100_000},
}


class State:
    """The agents of one process.

    Parameters
    ----------
    n_features : int
        Length of a row.
    settings : Settings
        What is minimised and how.
    dtype : dtype, default=float64
        Of the rows; everything else is float64.
    """

    def __init__(self, n_features: int, settings: Settings, dtype: DTypeLike = np.float64) -> None:
        self.n_features = n_features
        self.settings = settings
        self.tables = Tables(n_features, dtype)
        self.iterates = Iterates(self.tables)
        self.age = 0  # rounds since who is here last changed
        self.before = 0  # rounds until then
        self.snapshots = Snapshots(self.tables)
        self._elsewhere = Elsewhere()
        self._is_light = False
        self._plan: Plan | None = None
        self.is_stale = True  # something changed since `prepare`

    # Changes

    def add_agents(self, node: Any, task: Any, is_relay: bool = False) -> Slots:
        """Make agents without rows or links; return their slots: see `Tables.add_agents`."""
        slots = self.tables.add_agents(node, task, self.settings, is_relay)
        self._touch()
        return slots

    def remove_agent(self, agent: int) -> None:
        """Take an agent, its rows and its links away; nothing of it stays behind."""
        self.tables.remove_agent(agent)
        self._touch()

    def leave(self, agent: int) -> None:
        """Let an agent hand over what its links carried, and take it away."""
        self.iterates.bequeath(agent)
        self.remove_agent(agent)

    def promote(self, relay: int) -> None:
        """Let a relay take part: from now on it counts."""
        self.tables.promote(relay)
        self._touch()

    def link(self, a: Slots, b: Slots, is_wide: Any, is_across: Any) -> None:
        """Link agents a[i] and b[i]."""
        self.tables.link(a, b, is_wide, is_across)
        self._touch()

    def link_elsewhere(self, agent: int, is_wide: bool) -> int:
        """Link an agent to one in another process; return the slot of the end that is here."""
        end = self.tables.link_elsewhere(agent, is_wide)
        self._touch()
        return end

    def cut(self, ends: Slots) -> None:
        """Cut links inside this process; both owners keep what they carried."""
        both = np.concatenate([ends, self.tables.ends["twin"][ends]])
        self.iterates.keep_flow(both)
        self.unlink(ends)

    def keep_flow(self, ends: Slots) -> None:
        """Let the owners of ends that are about to go keep what these carried."""
        self.iterates.keep_flow(ends)
        self._touch()

    def offset(self, agent: int) -> Floats:
        """Return what cut links left behind at an agent."""
        return np.array(self.tables.agents["offset"][agent])

    def set_offset(self, agent: int, offset: Floats) -> None:
        """Let an agent go on with another offset."""
        self.iterates.set_offset(agent, offset)
        self._touch()

    def unlink(self, ends: Slots) -> None:
        """Drop these link ends and their twins, with what they carried."""
        self.tables.unlink(ends)
        self._touch()

    def rank(self, node: int, task: dict[int, int], other: dict[int, tuple[int, int]]) -> None:
        """Give this process's node, agents and other ends their ranks: see `Tables.rank`."""
        self.tables.rank(node, task, other)
        self._touch()

    def know(self, elsewhere: Elsewhere) -> None:
        """Learn what cannot be seen from this process."""
        self._elsewhere = elsewhere
        self._touch()

    def know_square(self, square: dict[int, float]) -> None:
        """Learn the mean squared feature of agents' sets, by slot, better than before."""
        old = self._elsewhere
        self.know(replace(old, square={**old.square, **square}))

    def adopt_rows(
        self,
        X: Any,
        y: NDArray[Any],
        agent: NDArray[Any],
        weight: Floats | None = None,
        at: NDArray[Any] | None = None,
    ) -> None:
        """Take over all rows at once: see `Tables.adopt_rows`."""
        self.tables.adopt_rows(X, y, agent, weight, at)
        self._touch()

    def add_rows(self, agent: int, X: Any, y: Floats, weight: Floats | None = None) -> None:
        """Give an agent more rows."""
        self.tables.add_rows(agent, X, y, weight)
        self._touch()

    def share_rows(self, agent: int, at: Slots, y: Floats, weight: Floats | None = None) -> None:
        """Give an agent rows that lie at these places already, under labels of its own."""
        self.tables.share_rows(agent, at, y, weight)
        self._touch()

    def drop_rows(self, agent: int, is_dropped: NDArray[np.bool_]) -> None:
        """Take rows away from an agent, and their pull with them."""
        self.iterates.forget_rows(agent, self.tables.row_slots[agent][is_dropped])
        self.tables.drop_rows(agent, is_dropped)
        self._touch()

    def set(self, settings: Settings) -> None:
        """Go on with other settings; λ keeps its share of the box, so bound rows stay bound."""
        agents = self.tables.agents.used
        self.tables.set(agents, settings)
        self.iterates.rescale(agents, settings.C / self.settings.C)
        self.settings = settings
        self._touch()

    def price(self, agents: Slots, C: float | Floats) -> None:
        """Give some agents a C of their own, or each its own, before they begin."""
        self.tables.price(agents, C)
        self._touch()

    def pull_lightly(self) -> None:
        """Let links pull as in lanes of a choice: see `penalty`."""
        self._is_light = True
        self._touch()

    def _touch(self) -> None:
        self.before += self.age
        self.age = 0
        self.snapshots.forget()
        self._plan, self.is_stale = None, True

    # What follows

    @property
    def is_warm(self) -> bool:
        """Whether the network was at work when something last changed."""
        return self.before >= WARM

    @property
    def plan(self) -> Plan:
        """What follows from who is here now."""
        if self._plan is None:
            self.prepare()
        assert self._plan is not None
        return self._plan

    def prepare(self) -> None:
        """Derive what the last changes made stale."""
        if self._plan is not None:
            return
        tables = self.tables
        parts = find_parts(tables)
        is_part = bool(self._elsewhere.size)  # the rest of the offsets is in other processes
        has_offset = self.iterates.balance_offsets(tables.agents.used, () if is_part else parts)
        self._plan = derive(
            tables, self.settings, self._elsewhere, parts, has_offset, self._is_light
        )
        self.is_stale = False
        if self._is_light and not self.before:
            self.iterates.lighten(tables.agents.used)
        self.iterates.merge_levels(self._plan.parts)
        self.pull_anew()

    def pull_anew(self) -> None:
        """Let leaps, levels and holds as they now are take effect; the age stays."""
        plan = self.plan
        record = self.snapshots.record(self.is_warm)
        has_leapt = self.snapshots.leap(plan, record)
        compiled.renew(plan.rows, plan.agents, plan.ends, record, has_leapt)

    @property
    def row_slots(self) -> dict[int, NDArray[np.int32]]:
        """Slots of each agent's rows."""
        return self.tables.row_slots

    def is_here(self, agent: int) -> bool:
        """Whether an agent's rows are in this process."""
        return True

    def n_rows(self, agent: int) -> int:
        """How many rows an agent has."""
        return len(self.tables.row_slots[agent])

    def places(self, agent: int) -> Slots:
        """Return where an agent's rows lie, in the order in which they came."""
        return np.asarray(self.tables.rows["at"][self.tables.row_slots[agent]])

    def estimate(self, agents: Any) -> Floats:
        """Return the common and the specific part that agents found."""
        return np.array(self.tables.agents["estimate"][agents])
