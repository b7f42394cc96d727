"""Who is here and what they hold, by slot; only this module writes the columns that say so.

Columns in which the iteration keeps its numbers stand beside them, because they share the slots;
`iterates` and compiled code write those.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dtsvm.kernel import compiled
from dtsvm.problem.settings import Settings
from dtsvm.rounds.columns import Columns
from dtsvm.rounds.matrix import Matrix

__all__ = ["BIASES", "Tables"]

Slots = NDArray[np.int64]
RowSlots = NDArray[np.int32]
Floats = NDArray[np.float64]
BIASES = ("task", "common", "mixed")  # by what `Tables.agents["bias"]` says


class Tables:
    """The agents of one process, their rows and the ends of their links.

    Parameters
    ----------
    n_features : int
        Length of a row.
    dtype : dtype, default=float64
        Of the rows' features; everything else is float64.
    """

    def __init__(self, n_features: int, dtype: DTypeLike = np.float64) -> None:
        p1 = n_features + 1
        self.n_features = n_features
        self.matrix = Matrix(n_features, dtype)
        self.rows = Columns(
            np.int32, at=((), np.int32), y=((), np.int8),
            dual=((), float), norms=((), float), until=((), float),
        )  # fmt: skip  # and `weight`, once a row has another than 1
        self.agents = Columns(
            node=((), np.int64), task=((), np.int64), is_relay=((), np.uint8),
            C=((), float), reg=((2,), float), bias=((), np.int8),
            gain=((2, 2), float), prox=((2,), float), estimate=((2, p1), float),
            offset=((2, p1), float), pull=((p1,), float), decision=((p1,), float),
            travel=((), float), norm=((), float), drift=((), float), sweeps=((), np.int64),
            level=((3,), float), hold=((), float), drift_before=((), float),
            care=((), np.int64), is_hasty=((), np.uint8), apart=((), float),
        )  # fmt: skip
        self.ends = Columns(
            owner=((), np.int64), twin=((), np.int64), is_wide=((), np.uint8),
            is_across=((), np.uint8), other_node=((), np.int64), other_task=((), np.int64),
            penalty=((2,), float), state=((2, p1), float), residual=((3, 2), float),
        )  # fmt: skip
        self.row_slots: dict[int, RowSlots] = {}

    # Agents and links

    def add_agents(self, node: Any, task: Any, settings: Settings, is_relay: bool = False) -> Slots:
        """Make agents without rows or links; return their slots.

        `node` and `task` are ranks: they order the sums over an agent's links.
        """
        slots = self.agents.take(len(node))
        places = _places(slots)
        begun = {"node": node, "task": task, "is_relay": is_relay, "level": 1.0, "hold": 1.0}
        for column, value in {**begun, "care": 1}.items():
            self.agents.open(column)[places] = value
        self._write_settings(places, settings)
        self.row_slots |= dict.fromkeys(slots.tolist(), np.zeros(0, np.int32))
        return slots

    def _write_settings(self, places: Any, settings: Settings) -> None:
        self.agents.open("C")[places] = settings.C
        self.agents.open("reg")[places] = settings.common_reg, settings.specific_reg
        self.agents.open("bias")[places] = BIASES.index(settings.bias)

    def set(self, slots: Slots, settings: Settings) -> None:
        """Let agents go on with other settings."""
        self._write_settings(slots, settings)

    def price(self, slots: Slots, C: float | Floats) -> None:
        """Give agents another C."""
        self.agents.open("C")[slots] = C

    def promote(self, relay: int) -> None:
        """Let a relay take part: from now on it counts."""
        self.agents.open("is_relay")[relay] = False

    def remove_agent(self, agent: int) -> None:
        """Take an agent, its rows and its links away; nothing of it stays behind."""
        self._release_rows(self.row_slots.pop(agent))
        owned = self.ends.used
        self.unlink(owned[self.ends["owner"][owned] == agent])
        self.agents.release(np.array([agent]))

    def link(self, a: Slots, b: Slots, is_wide: Any, is_across: Any) -> None:
        """Link agents a[i] and b[i]; the edge state starts at ρ x once the penalty is known."""
        n = len(a)
        slots = self.ends.take(2 * n)
        places = _places(slots)
        twins = np.concatenate([slots[n:], slots[:n]])
        other = np.concatenate([b, a])
        wide, across = (
            np.concatenate([one, one]) if isinstance(one, np.ndarray) else one
            for one in (is_wide, is_across)
        )
        self._write_end(places, np.concatenate([a, b]), twins, wide, across)
        self.ends.open("other_node")[places] = self.agents["node"][other]
        self.ends.open("other_task")[places] = self.agents["task"][other]

    def link_elsewhere(self, agent: int, is_wide: bool) -> int:
        """Link an agent to one in another process; return the slot of the end that is here."""
        (end,) = self.ends.take(1).tolist()
        self._write_end(end, agent, -1, is_wide, True)
        return int(end)

    def _write_end(self, end: Any, owner: Any, twin: Any, is_wide: Any, is_across: Any) -> None:
        values = (("owner", owner), ("twin", twin), ("is_wide", is_wide), ("is_across", is_across))
        for column, value in values:
            self.ends.open(column)[end] = value

    def unlink(self, ends: Slots) -> None:
        """Drop these link ends and their twins."""
        both = np.unique(np.concatenate([ends, self.ends["twin"][ends]]))
        self.ends.release(both[both >= 0])

    def rank(self, node: int, task: dict[int, int], other: dict[int, tuple[int, int]]) -> None:
        """Give this process's node and its agents their ranks, and the other ends of its links.

        `task` is by agent slot, `other` (node, task) by the slot of a link end elsewhere. Ranks
        order the sums over an agent's links, and nothing else.
        """
        agents, ends = self.agents, self.ends
        for agent, rank in task.items():
            agents.open("node")[agent], agents.open("task")[agent] = node, rank
        used = ends.used
        inside = used[ends["twin"][used] >= 0]
        owners = ends["owner"][ends["twin"][inside]]
        ends.open("other_node")[inside] = agents["node"][owners]
        ends.open("other_task")[inside] = agents["task"][owners]
        for end, (node_rank, task_rank) in other.items():
            ends.open("other_node")[end], ends.open("other_task")[end] = node_rank, task_rank

    # Rows

    def adopt_rows(
        self,
        X: Any,
        y: NDArray[Any],
        agent: NDArray[Any],
        weight: Floats | None = None,
        at: NDArray[Any] | None = None,
    ) -> None:
        """Take over all rows at once, see `Matrix.adopt`; `agent[i]` is the agent of row i.

        The rows of one agent may lie anywhere; their other numbers are put side by side. With `at`
        the i-th entry is row at[i] of X: a row may be of several agents, or of none.
        """
        order, starts = compiled.arrange(agent.astype(np.int32, copy=False), self.agents.capacity)
        places = self.matrix.adopt(X, order if at is None else at[order])
        weight = None if weight is None else weight.take(order)
        slots = self._write_rows(places, y.take(order), weight)
        edges = starts.tolist()
        for owner in self.row_slots:
            self.row_slots[owner] = slots[edges[owner] : edges[owner + 1]]

    def add_rows(self, agent: int, X: Any, y: NDArray[Any], weight: Floats | None = None) -> None:
        """Give an agent more rows."""
        self.share_rows(agent, self.matrix.add(X), y, weight)

    def share_rows(
        self, agent: int, at: NDArray[Any], y: NDArray[Any], weight: Floats | None = None
    ) -> None:
        """Give an agent rows that lie at these places already, under labels of its own."""
        slots = self._write_rows(at, y, weight)
        self.row_slots[agent] = np.concatenate([self.row_slots[agent], slots])

    def _write_rows(self, at: NDArray[Any], y: NDArray[Any], weight: Floats | None) -> RowSlots:
        slots = self.rows.take(len(y))
        places = _places(slots)
        self.rows.open("at")[places] = at
        self.rows.open("y")[places] = y
        if weight is not None and "weight" not in self.rows and (weight != 1.0).any():
            self.rows.add("weight", 1.0)
        if "weight" in self.rows:
            self.rows.open("weight")[places] = 1.0 if weight is None else weight
        compiled.squared_norms(self.record(), slots)
        return slots

    def weights(self, slots: RowSlots) -> Floats:
        """What these rows' losses are multiplied by."""
        if "weight" in self.rows:
            return np.array(self.rows["weight"][slots])
        return np.ones(len(slots))

    def boxes(self, agents: Slots) -> Floats:
        """The most that λ of these agents' rows may be, one agent's after the other's."""
        counts = [len(self.row_slots[agent]) for agent in agents.tolist()]
        box: Floats = np.repeat(self.agents["C"][agents], counts)
        if "weight" in self.rows:
            box *= self.rows["weight"][self.slots_of(agents)]
        return box

    def slots_of(self, agents: Slots) -> RowSlots:
        """Return the slots of these agents' rows, one agent's after the other's."""
        lists = [self.row_slots[agent] for agent in agents.tolist()]
        return np.concatenate(lists) if lists else np.zeros(0, np.int32)

    def lay_rows(self, agents: Slots) -> tuple[RowSlots, list[int]]:
        """Return the same, and how many each has; from now on what it has of it are its slots."""
        order, end = self.slots_of(agents), 0
        counts = [len(self.row_slots[agent]) for agent in agents.tolist()]
        for agent, n in zip(agents.tolist(), counts, strict=True):
            begin, end = end, end + n
            self.row_slots[agent] = order[begin:end]
        return order, counts

    def drop_rows(self, agent: int, is_dropped: NDArray[np.bool_]) -> None:
        """Take rows away from an agent."""
        slots = self.row_slots[agent]
        self.row_slots[agent] = slots[~is_dropped]
        self._release_rows(slots[is_dropped])

    def _release_rows(self, slots: RowSlots) -> None:
        self.rows.release(slots)
        places = self.rows["at"][slots]
        still = self.rows["at"][self.rows.used]
        self.matrix.release(places[~np.isin(places, still)])

    def rows_of(self, agent: int) -> tuple[Any, Floats]:
        """Return a copy of an agent's rows and labels."""
        slots = self.row_slots[agent]
        return self.matrix.rows(self.rows["at"][slots]), self.rows["y"][slots].astype(float)

    def record(self, ids: RowSlots | None = None) -> Any:
        """View the rows as compiled code takes them, those in `ids` one agent's after another's."""
        rows = self.rows
        numbers = {name: rows.open(name) for name in ("at", "y", "dual", "norms", "until")}
        if "weight" in rows:
            numbers["weight"] = rows.open("weight")
        numbers["ids"] = np.zeros(0, np.int32) if ids is None else ids
        numbers["listed"] = np.zeros(len(numbers["ids"]), np.int32)
        return compiled.Rows(self.matrix.X, numbers)


def _places(slots: NDArray[Any]) -> Any:
    """Where to write these slots, which ascend: one slice if they leave none out."""
    if not len(slots):
        return slots
    first, last = int(slots[0]), int(slots[-1])
    return slice(first, last + 1) if last - first == len(slots) - 1 else slots
