"""Every number of the agents in one process: rows, estimates and edge states, kept under churn.

A change touches only the slots it concerns and marks what must be derived anew; `prepare` then
derives it before the next round: index arrays (one integer a row and a link end) and gains.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dtsvm.problem.settings import Settings
from dtsvm.qp import pull, squared_norms
from dtsvm.rounds.extrapolate import Past, is_whole, leap
from dtsvm.rounds.gains import Rules, renew
from dtsvm.rounds.handover import zero_sum
from dtsvm.rounds.parts import begins, connected
from dtsvm.rounds.penalty import last_check, link_flow, start_penalty
from dtsvm.rounds.step import Accuracy, AgentArrays, HalfArrays, RowArrays
from dtsvm.rounds.table import Table

__all__ = ["State"]

Slots = NDArray[np.int64]

WARM = 20  # rounds after which a network is warm
ACCURACY = {
    "tracking": Accuracy(0.1, 1e-12, 1, 300),
    "exact": Accuracy(0.0, 1e-13, 100_000, 100_000),
}


class State:
    """The agents of one process, by slot.

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
        p1 = n_features + 1
        self.n_features = n_features
        self.settings = settings
        self.rows = Table(
            X=((n_features,), dtype), y=((), float), dual=((), float), norms=((), float),
            until=((), float),
        )  # fmt: skip
        self.agents = Table(
            node=((), np.int64), task=((), np.int64), is_relay=((), bool),
            gain=((2, 2), float), prox=((2,), float), estimate=((2, p1), float),
            offset=((2, p1), float), pull=((p1,), float),
            decision=((p1,), float), travel=((), float), norm=((), float), drift=((), float),
            sweeps=((), np.int64), level=((3,), float), hold=((), float), drift_before=((), float),
        )  # fmt: skip
        self.halves = Table(
            owner=((), np.int64), twin=((), np.int64), is_wide=((), bool), is_across=((), bool),
            other_node=((), np.int64), other_task=((), np.int64),
            penalty=((2,), float), state=((2, p1), float), residual=((3, 2), float),
        )  # fmt: skip
        self.row_slots: dict[int, Slots] = {}
        self._lies: Slots | None = None  # where in X an adopted row lies, by slot
        self.age = 0  # rounds since who is here last changed
        self.before = 0  # rounds until then
        self.traffic = 0, 0  # messages and bytes over network links in a round
        self.past: Past | None = None
        self._leaps: list[tuple[Slots, NDArray[np.float64]]] = []  # decided and not done
        self.derived: dict[Any, Any] = {}  # from who is here: forgotten at the next change
        self._elsewhere: tuple[dict[int, float], dict[int, tuple[float, float]]] = ({}, {})
        self._is_stale = True

    def set(self, settings: Settings) -> None:
        """Go on with other settings; λ keeps its share of the box, so bound rows stay bound."""
        ratio = settings.C / self.settings.C
        if ratio != 1.0:
            self.rows["dual"][:] = np.minimum(self.rows["dual"] * ratio, settings.C)
            self.rows["until"][:] = 0.0
            self.agents["pull"][:] *= ratio
        self.settings = settings
        self._touch()

    def welcome(self, agent: int, teachers: Slots, is_wide: NDArray[np.bool_]) -> None:
        """Start a newcomer where the agents it is linked to stand, instead of at zero."""
        estimate, level = self.agents["estimate"], self.agents["level"]
        estimate[agent, 0] = estimate[teachers, 0].mean(axis=0)
        if is_wide.any():
            estimate[agent, 1] = estimate[teachers[is_wide], 1].mean(axis=0)
        level[agent] = level[teachers[0]]

    def add_agents(self, node: Any, task: Any, is_relay: bool = False) -> Slots:
        """Make agents without rows or links; return their slots.

        `node` and `task` are ranks: they order the sums over an agent's links.
        """
        slots = self.agents.take(len(node))
        self.agents["node"][slots] = node
        self.agents["task"][slots] = task
        self.agents["is_relay"][slots] = is_relay
        self.agents["level"][slots] = 1.0
        self.agents["hold"][slots] = 1.0
        for slot in slots.tolist():
            self.row_slots[slot] = np.zeros(0, np.int64)
        self._touch()
        return slots

    def remove_agent(self, agent: int) -> None:
        """Take an agent, its rows and its links away; nothing of it stays behind."""
        self.rows.release(self.row_slots.pop(agent))
        owned = self.halves.used
        self.unlink(owned[self.halves["owner"][owned] == agent])
        self.agents.release(np.array([agent]))
        self._touch()

    def link(self, a: Slots, b: Slots, is_wide: Any, is_across: Any) -> None:
        """Link agents a[i] and b[i]; the edge state starts at ρ x once the penalty is known."""
        n = len(a)
        slots = self.halves.take(2 * n)
        there, back = slots[:n], slots[n:]
        for half, owner, twin, other in ((there, a, back, b), (back, b, there, a)):
            self.halves["owner"][half] = owner
            self.halves["twin"][half] = twin
            self.halves["is_wide"][half] = is_wide
            self.halves["is_across"][half] = is_across
            self.halves["other_node"][half] = self.agents["node"][other]
            self.halves["other_task"][half] = self.agents["task"][other]
        self._touch()

    def link_elsewhere(self, agent: int, is_wide: bool) -> int:
        """Link an agent to one in another process; return the slot of the end that is here."""
        (half,) = self.halves.take(1).tolist()
        self.halves["owner"][half] = agent
        self.halves["twin"][half] = -1
        self.halves["is_wide"][half] = is_wide
        self.halves["is_across"][half] = True
        self._touch()
        return int(half)

    def rank(self, node: int, task: dict[int, int], other: dict[int, tuple[int, int]]) -> None:
        """Give this process's node and its agents their ranks, and the other ends of its links.

        `task` is by agent slot, `other` (node, task) by the slot of a link end elsewhere. Ranks
        order the sums over an agent's links, and nothing else.
        """
        agents, halves = self.agents, self.halves
        for agent, rank in task.items():
            agents["node"][agent], agents["task"][agent] = node, rank
        used = halves.used
        inside = used[halves["twin"][used] >= 0]
        ends = halves["owner"][halves["twin"][inside]]
        halves["other_node"][inside] = agents["node"][ends]
        halves["other_task"][inside] = agents["task"][ends]
        for half, (node_rank, task_rank) in other.items():
            halves["other_node"][half], halves["other_task"][half] = node_rank, task_rank
        self._touch()

    def know(self, size: dict[int, float], start: dict[int, tuple[float, float]]) -> None:
        """Learn what cannot be seen from this process: A, and ρ to begin with, by agent slot."""
        self._elsewhere = (size, start)
        self._touch()

    def unlink(self, halves: Slots) -> None:
        """Drop these link ends and their twins."""
        both = np.unique(np.concatenate([halves, self.halves["twin"][halves]]))
        self.halves.release(both[both >= 0])
        self._touch()

    def adopt_rows(self, X: NDArray[Any], y: NDArray[np.float64], agent: Slots) -> None:
        """Take over all rows at once, where they lie; `agent[i]` is the agent of row i.

        The rows of one agent may lie anywhere; their other numbers are put side by side.
        """
        slots = self.rows.adopt("X", X)
        self._lies = np.argsort(agent, kind="stable").astype(np.int64, copy=False)
        self.rows["y"][:] = y[self._lies]
        squared_norms(X, self._lies, slots, self.rows["norms"])
        owners, starts = np.unique(agent[self._lies], return_index=True)
        for owner, mine in zip(owners.tolist(), np.split(slots, starts[1:]), strict=True):
            self.row_slots[owner] = mine
        self._touch()

    def own_rows(self) -> None:
        """Copy adopted rows into the order of their slots, so that others can take their place."""
        if self._lies is not None:
            self.rows["X"] = self.rows["X"][self._lies]
            self._lies = None
            if not self._is_stale:
                self._row_at = self._row_ids

    def lies(self, slots: Slots) -> Slots:
        """Where in X the rows in these slots lie."""
        return slots if self._lies is None else self._lies[slots]

    def add_rows(self, agent: int, X: NDArray[Any], y: NDArray[np.float64]) -> None:
        """Give an agent more rows."""
        self.own_rows()
        slots = self.rows.take(len(y))
        self.rows["X"][slots] = X
        self.rows["y"][slots] = y
        squared_norms(self.rows["X"], slots, slots, self.rows["norms"])
        self.row_slots[agent] = np.concatenate([self.row_slots[agent], slots])
        self._touch()

    def drop_rows(self, agent: int, is_dropped: NDArray[np.bool_]) -> None:
        """Take rows away from an agent, and their pull with them."""
        slots = self.row_slots[agent]
        rows = self.rows
        gone = np.zeros(self.n_features + 1)
        dropped = slots[is_dropped]
        pull(rows["X"], self.lies(dropped), rows["y"], rows["dual"], dropped, gone)
        self.agents["pull"][agent] -= gone
        rows.release(dropped)
        self.row_slots[agent] = slots[~is_dropped]
        self._touch()

    def _touch(self) -> None:
        self._is_stale = True
        self.before += self.age
        self.age = 0
        self.past = None
        self._leaps.clear()

    @property
    def is_warm(self) -> bool:
        """Whether the network was at work when something last changed."""
        return self.before >= WARM

    @property
    def has_snapshots(self) -> bool:
        """Whether every snapshot before the last check was taken when it was due."""
        check = last_check(self.age, self.is_warm)
        return self.past is not None and bool(is_whole(self.past, check, self.is_warm))

    @property
    def is_stale(self) -> bool:
        """Whether something changed since `prepare`."""
        return self._is_stale

    def prepare(self) -> None:
        """Derive what the last changes made stale."""
        if not self._is_stale:
            return
        self.derived.clear()
        self._used = self.agents.used
        self._index_rows()
        self._index_halves()
        self._find_parts()
        self._start = self._start_penalties()
        self.pull_anew()
        self._is_stale = False

    def _index_rows(self) -> None:
        parts = [self.row_slots[a] for a in self._used.tolist()]
        self._row_ids = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        self._row_at = self.lies(self._row_ids)
        self._listed = np.zeros(len(self._row_ids), np.int32)
        self._n_listed = np.zeros(self.agents.capacity, np.int64)
        self._wake = np.full(self.agents.capacity, -1.0)
        self._row_start, self._row_count = self._segments(
            self._used, np.array([len(part) for part in parts], np.int64)
        )

    def _index_halves(self) -> None:
        """Sort link ends by owner, then by the other end's node and task: sums have one order."""
        ids = self.halves.used
        owner = self.halves["owner"][ids]
        order = np.lexsort((self.halves["other_task"][ids], self.halves["other_node"][ids], owner))
        self._half_ids = ids[order]
        counts = np.bincount(owner, minlength=self.agents.capacity)[self._used]
        self._half_start, self._half_count = self._segments(self._used, counts)
        self._firsts = ids[ids < self.halves["twin"][ids]]
        across = self._firsts[self.halves["is_across"][self._firsts]]
        parts = len(across) + int(self.halves["is_wide"][across].sum())
        self.traffic = 2 * len(across), 2 * 8 * (self.n_features + 1) * parts

    def _segments(self, slots: Slots, counts: Slots) -> tuple[Slots, Slots]:
        start = np.zeros(self.agents.capacity, np.int64)
        count = np.zeros_like(start)
        count[slots] = counts
        start[slots] = np.cumsum(counts) - counts
        return start, count

    def _find_parts(self) -> None:
        """Find who must agree: on the common part all who are linked, on the specific part teams.

        `common_part` and `specific_part` number the connected sets of agents, by slot; `size` is A,
        how many of an agent's common set count in the objective (relays do not).
        """
        n = self.agents.capacity
        here = self._half_ids[self.halves["twin"][self._half_ids] >= 0]
        owner = self.halves["owner"][here]
        other = self.halves["owner"][self.halves["twin"][here]]
        wide = self.halves["is_wide"][here]
        self.common_part = connected(n, owner, other)
        self.specific_part = connected(n, owner[wide], other[wide])
        is_counted = np.zeros(n, bool)
        is_counted[self._used] = ~self.agents["is_relay"][self._used]
        sizes = np.bincount(self.common_part, weights=is_counted)
        self.size = np.maximum(sizes, 1.0)[self.common_part]
        for agent, size in self._elsewhere[0].items():
            self.size[agent] = size
        offset = self.agents["offset"]
        for c, part in enumerate((self.common_part, self.specific_part)):
            offset[self._used, c] = zero_sum(offset[self._used, c], part[self._used])
        self._has_offset = np.asarray(offset.any(axis=(1, 2)))
        level = self.agents["level"]
        for agents in self.parts():
            if (level[agents] != level[agents[0]]).any():  # sets that have just met
                level[agents] = np.exp(np.log(level[agents]).mean(axis=0))

    def pull_anew(self) -> None:
        """Let leaps, levels and holds as they now are take effect; the age stays."""
        arrays = self.agent_arrays(), self.row_arrays(), self.half_arrays()
        x = self.agents["estimate"]
        kept = x.copy()
        for agents, gamma in self._leaps:
            assert self.past is not None
            leap(gamma, agents, self.own_ends(agents)[0], self.past, x, self.halves["state"])
        self._leaps.clear()
        if renew(self._used, *arrays, self.rules(), kept) and self.past is not None:
            self.past.ages[:] = -1

    def leap(self, agents: Slots, gamma: NDArray[np.float64]) -> None:
        """Let one set's z become a mixture of its snapshots, if there are any, at `pull_anew`."""
        if self.has_snapshots:
            self._leaps.append((agents, gamma))

    def own_ends(self, agents: Slots) -> tuple[Slots, Slots]:
        """All link ends of one set in the order in which they are added up; where nodes begin."""
        key = "own ends", int(agents[0])
        if key not in self.derived:
            halves = self.halves
            ends = self._half_ids[self.is_in(agents)[halves["owner"][self._half_ids]]]
            owner = halves["owner"][ends]
            node, task = self.agents["node"][owner], self.agents["task"][owner]
            order = np.lexsort((task, node))  # by the other end's node and task they are sorted
            self.derived[key] = ends[order], begins(node[order])
        found: tuple[Slots, Slots] = self.derived[key]
        return found

    def _start_penalties(self) -> NDArray[np.float64]:
        """ρ to begin with, for the weights and the bias, by agent slot."""
        start = np.ones((self.agents.capacity, 2))
        settings = self.settings
        if "auto" not in (settings.task_penalty, settings.node_penalty):
            return start
        if self._elsewhere[1]:
            for agent, rho in self._elsewhere[1].items():
                start[agent] = rho
            return start
        for agents in self.parts():
            slots = np.concatenate([self.row_slots[a] for a in agents.tolist()])
            square = self.rows["norms"][slots].mean() / self.n_features if len(slots) else 1.0
            start[agents] = start_penalty(
                link_flow(*self._graph(agents)),
                settings.C,
                (settings.common_reg, settings.specific_reg),
                self.size[agents[0]],
                max(float(square), 1e-12),
            )
        return start

    def start_penalty(self, agent: int) -> float:
        """Return the weights' ρ an agent's links begin with."""
        return float(self._start[agent, 0])

    def parts(self) -> list[Slots]:
        """The agents that must agree on the common part, set by set."""
        if "parts" not in self.derived:
            part = self.common_part[self._used]
            order = np.argsort(part, kind="stable")
            cuts = np.flatnonzero(np.diff(part[order])) + 1
            # Of nothing, numpy makes one empty set.
            self.derived["parts"] = np.split(self._used[order], cuts) if len(part) else []
        parts: list[Slots] = self.derived["parts"]
        return parts

    def _graph(self, agents: Slots) -> tuple[int, NDArray[np.int64]]:
        """The graph messages of one set travel on: its nodes, or its agents if on one node."""
        halves = self.halves
        mine = self._firsts[self.is_in(agents)[halves["owner"][self._firsts]]]
        across = mine[halves["is_across"][mine]]
        column = self.agents["node"] if len(across) else np.arange(self.agents.capacity)
        mine = across if len(across) else mine
        ends = np.stack([halves["owner"][mine], halves["owner"][halves["twin"][mine]]], 1)
        found, flat = np.unique(column[ends], return_inverse=True)
        links = np.unique(np.sort(flat.reshape(-1, 2), axis=1), axis=0)
        return len(found), links

    def is_in(self, agents: Slots) -> NDArray[np.bool_]:
        """Whether an agent is one of these, by slot."""
        is_in = np.zeros(self.agents.capacity, bool)
        is_in[agents] = True
        return is_in

    @property
    def used(self) -> Slots:
        """Slots of all agents, ascending."""
        return self._used

    @property
    def firsts(self) -> Slots:
        """One end of every link."""
        return self._firsts

    @property
    def accuracy(self) -> Accuracy:
        """How well agents solve their own problem in a round."""
        return ACCURACY[self.settings.local]

    def row_arrays(self) -> RowArrays:
        """View the rows as the compiled step takes them."""
        r = self.rows
        return RowArrays(
            r["X"], r["y"], r["dual"], r["norms"], r["until"], self._row_ids, self._row_at,
            self._listed,
        )  # fmt: skip

    def agent_arrays(self) -> AgentArrays:
        """View the agents as the compiled step takes them."""
        a = self.agents
        return AgentArrays(
            self._row_start, self._row_count, self._half_start, self._half_count,
            a["gain"], a["prox"], a["estimate"], a["offset"], self._has_offset, a["pull"],
            a["decision"], a["travel"], self._n_listed, self._wake, a["norm"], a["drift"],
            a["sweeps"],
        )  # fmt: skip

    def rules(self) -> Rules:
        """View what penalties and gains follow from."""
        settings, a = self.settings, self.agents
        inside, across = (
            np.nan if chosen == "auto" else float(chosen)
            for chosen in (settings.task_penalty, settings.node_penalty)
        )
        return Rules(
            a["level"], self._start, self.size, a["hold"], a["drift_before"], a["is_relay"],
            self.halves["is_across"], (inside, across),
            (float(settings.common_reg), float(settings.specific_reg)),
        )  # fmt: skip

    def half_arrays(self) -> HalfArrays:
        """View the link ends as the compiled step takes them."""
        h = self.halves
        return HalfArrays(
            self._half_ids, h["owner"], h["twin"], h["is_wide"], h["penalty"], h["state"],
            h["residual"],
        )  # fmt: skip
