"""What follows from the tables: who must agree, in which order sums are made, and ρ to begin with.

A plan is derived anew after every change and never written; compiled code takes its records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.problem.settings import Settings
from dtsvm.rounds.penalty import light_bias, link_flow, start_penalty
from dtsvm.rounds.tables import BIASES, Tables

__all__ = ["ITERATES", "MANY_ROWS", "Elsewhere", "Plan", "derive", "find_parts", "row_sums"]

Slots = NDArray[np.int64]
Floats = NDArray[np.float64]
MANY_ROWS = 1 << 16  # from here on sums over rows are made agent by agent
MIXED, COMMON = BIASES.index("mixed"), BIASES.index("common")


@dataclass(frozen=True)
class Elsewhere:
    """What cannot be seen from this process, by agent slot; empty if all agents are here.

    size : A. flow : `penalty.link_flow` of the network. square : mean squared feature.
    rows : ‖x‖² and box of an agent's rows, (row, 2), where only they are elsewhere and few.
    row_sums : where they are many, by slot: rows of every agent, and its `row_sums`.
    """

    size: dict[int, float] = field(default_factory=dict)
    flow: dict[int, float] = field(default_factory=dict)
    square: dict[int, float] = field(default_factory=dict)
    rows: dict[int, Floats] = field(default_factory=dict)
    row_sums: Floats | None = None


@dataclass(frozen=True)
class Plan:
    """The agents here in the order of their slots, and the sets of them that must agree.

    used : slots of all agents. firsts : one end of every link inside this process.
    parts : the agents that must agree on the common part, set by set.
    common_part, specific_part : number of an agent's set and of its team, by slot.
    size : A, how many of an agent's set count in the objective (relays do not), by slot.
    traffic : messages and bytes over network links in a round.
    rows, agents, ends, sets, sums, work : as compiled code takes them.
    boxes : Σ box of a set's rows, set by set.
    """

    tables: Tables
    used: Slots
    firsts: Slots
    parts: list[Slots]
    common_part: Slots
    specific_part: Slots
    size: Floats
    traffic: tuple[int, int]
    rows: Any
    agents: Any
    ends: Any
    n_rows: Slots  # by agent slot
    row_order: NDArray[np.int32]  # slots of all rows, one agent's after the other's
    end_order: Slots  # slots of all ends, likewise
    start: Floats  # (·, 2), ρ begun with, by agent slot
    reg: Floats  # (·, 3), by agent slot
    boxes: list[float]
    columns: tuple[dict[str, Any], Callable[[Slots], Any]]  # of agents; ends over such links
    set_number: Slots  # which of the sets an agent is in, by slot

    def share(self, own: Slots, firsts: Slots) -> tuple[Any, Any]:
        """Agents and ends as compiled code takes them, for these agents and links alone."""
        columns, ends_over = self.columns
        return compiled.Agents({**columns, "used": own}), ends_over(firsts)

    @cached_property
    def sets(self) -> Any:
        """The sets as compiled code takes them."""
        return compiled.Sets(_set_columns(self), self.agents, self.ends)

    @cached_property
    def sums(self) -> Any:
        """Room for what a set's rows contribute to a certificate."""
        return compiled.Sums(self.sets.most_teams, self.tables.n_features + 1)

    @cached_property
    def work(self) -> Any:
        """What one agent works on in a round."""
        return self.make_work()

    def make_work(self) -> Any:
        """Return room for one more thread's work."""
        return compiled.Work(self.tables.n_features + 1, int(self.n_rows.max(initial=0)))

    def only(self, some: Slots) -> Plan:
        """Return the plan of these sets alone, in this order; the others fall silent."""
        parts = [self.parts[s] for s in some.tolist()]
        number = np.full(len(self.parts) + 1, -1, np.int64)
        number[some] = np.arange(len(some))
        set_number = number[self.set_number]
        used = self.used[set_number[self.used] >= 0]
        firsts = self.firsts[set_number[self.tables.ends["owner"][self.firsts]] >= 0]
        agents, ends = self.share(used, firsts)
        return replace(
            self, used=used, firsts=firsts, parts=parts, agents=agents, ends=ends,
            boxes=[self.boxes[s] for s in some.tolist()], set_number=set_number,
            traffic=_traffic(self.tables.n_features, ends),
        )  # fmt: skip

    def traffic_of_sets(self) -> Slots:
        """Messages and bytes over network links in a round, set by set, (n_sets, 2)."""
        ends = self.tables.ends
        across = self.firsts[ends["is_across"][self.firsts] > 0]
        mine = self.set_number[ends["owner"][across]]
        links = np.bincount(mine, minlength=len(self.parts))
        wide = np.bincount(mine, ends["is_wide"][across], len(self.parts)).astype(np.int64)
        return np.stack([2 * links, 16 * (self.tables.n_features + 1) * (links + wide)], axis=1)

    def set_of(self, agent: int) -> int:
        """Which of the sets an agent is in."""
        return int(self.set_number[agent])

    def ends_of(self, agents: Slots) -> tuple[Slots, Slots]:
        """All link ends of one set in the order in which they are added up, and their nodes."""
        s = self.set_of(int(agents[0]))
        laid = self.sets.arrays
        first, last = laid["node_end"][laid["set_node"][s : s + 2]]
        ends = laid["ends"][first:last]
        return ends, self.tables.agents["node"][self.tables.ends["owner"][ends]]


def derive(
    tables: Tables,
    settings: Settings,
    elsewhere: Elsewhere,
    parts: tuple[Slots, Slots],
    has_offset: NDArray[np.uint8],
    is_light: bool = False,
) -> Plan:
    """Derive the plan for the tables as they are, from `find_parts`; `has_offset` is by slot.

    `is_light` : whether links pull lightly, as in lanes of a choice: see `penalty`.
    """
    capacity, used = tables.agents.capacity, tables.agents.used
    row_order, counts = tables.lay_rows(used)
    ids, twin, owner = tables.ends.used, tables.ends["twin"], tables.ends["owner"]
    # By owner, then by the other end's node and task: sums have one order.
    end_order = compiled.order_by(ids, owner, tables.ends["other_node"], tables.ends["other_task"])
    n_rows, first_row, n_ends, first_end = compiled.segments(capacity, used, counts, ids, owner)
    firsts = ids[ids < twin[ids]]
    size = _sizes(tables, parts[0], elsewhere)
    sets, set_number = _split(used, parts[0])
    masses = _set_sums(tables, (sets, set_number), (row_order, counts), elsewhere)
    square = _squares(tables, set_number, masses, elsewhere)
    ends_over = partial(_end_record, tables, settings, end_order)
    ends = ends_over(firsts)
    start = _start_penalties(tables, settings, (sets, set_number, ends), (size, square), elsewhere)
    if is_light:
        _lighten(start, tables, (sets, set_number, masses[:, 2], size, square))
    reg = _regularisers(tables, square)
    columns = {
        **{name: tables.agents.open(name) for name in ITERATES},
        "is_relay": tables.agents.open("is_relay"), "C": tables.agents["C"], "used": used,
        "first_row": first_row, "n_rows": n_rows, "first_end": first_end, "n_ends": n_ends,
        "has_offset": has_offset, "start": start, "size": size, "reg": reg,
        "n_listed": np.zeros(capacity, np.int64), "wake": np.full(capacity, -1.0),
    }  # fmt: skip
    return Plan(
        tables, used, firsts, sets, *parts, size, _traffic(tables.n_features, ends),
        tables.record(row_order),
        compiled.Agents(columns), ends, n_rows, row_order, end_order, start, reg,
        masses[:, 2].tolist(), (columns, ends_over), set_number,
    )  # fmt: skip


ITERATES = (
    "gain", "prox", "estimate", "offset", "pull", "decision", "travel", "norm", "drift", "sweeps",
    "level", "hold", "drift_before", "care", "is_hasty", "apart",
)  # fmt: skip


def _end_record(tables: Tables, settings: Settings, order: Slots, firsts: Slots) -> Any:
    names = ("owner", "twin", "is_wide", "is_across", "penalty", "state", "residual")
    inside, across = (
        float("nan") if chosen == "auto" else float(chosen)
        for chosen in (settings.task_penalty, settings.node_penalty)
    )
    columns = {name: tables.ends.open(name) for name in names}
    return compiled.Ends({**columns, "ids": order, "firsts": firsts}, inside, across)


def _traffic(n_features: int, ends: Any) -> tuple[int, int]:
    n_links, n_wide = compiled.links_across(ends)
    return 2 * n_links, 2 * 8 * (n_features + 1) * (n_links + n_wide)


def find_parts(tables: Tables) -> tuple[Slots, Slots]:
    """Number who must agree, by slot: on the common part all who are linked, else teams."""
    columns = {name: tables.ends[name] for name in ("owner", "twin", "is_wide")}
    common, specific = compiled.agreeing(tables.agents.capacity, tables.ends.used, columns)
    return common, specific


def _sizes(tables: Tables, part: Slots, elsewhere: Elsewhere) -> Floats:
    is_counted = tables.agents["is_relay"] == 0  # a slot that is not used is a part of its own
    size: Floats = np.maximum(np.bincount(part, weights=is_counted), 1.0)[part]
    for agent, known in elsewhere.size.items():
        size[agent] = known
    return size


def _split(used: Slots, part: Slots) -> tuple[list[Slots], Slots]:
    """Return the agents of each part, parts in the order of their numbers; and by slot, which."""
    number = np.zeros(len(part), np.int64)
    mine = part[used]
    if len(mine) and not np.count_nonzero(mine != mine[0]):
        return [used], number
    order = np.argsort(mine, kind="stable")
    cuts = np.flatnonzero(np.diff(mine[order])) + 1
    agents = used[order]
    number[agents[cuts]] = 1
    number[agents] = np.cumsum(number[agents])
    edges = [0, *cuts.tolist(), len(agents)]
    pairs = pairwise(edges) if len(mine) else ()
    return [agents[a:b] for a, b in pairs], number


def row_sums(tables: Tables, agents: Slots) -> Floats:
    """Count each agent's rows and add up their ‖x‖² and boxes: (agent, 3)."""
    found = np.zeros((len(agents), 3))
    norms = tables.rows["norms"]
    for i, a in enumerate(agents.tolist()):
        mine = tables.row_slots[a]
        found[i] = len(mine), norms[mine].sum(), tables.boxes(agents[i : i + 1]).sum()
    return found


def _set_sums(
    tables: Tables,
    who: tuple[list[Slots], Slots],
    laid: tuple[NDArray[np.int32], list[int]],
    elsewhere: Elsewhere,
) -> Floats:
    """Count every set's rows and add up their ‖x‖² and boxes, (set, 3): of many, agent by agent."""
    sets, number = who
    found = elsewhere.row_sums
    if found is None and len(laid[0]) <= MANY_ROWS:
        if elsewhere.rows:
            each = [_known_sums(tables, agents, elsewhere.rows) for agents in sets]
            return np.array(each).reshape(-1, 3)
        return _few_sums(tables, (len(sets), number), *laid)
    if found is None:
        found = np.zeros((tables.agents.capacity, 3))
        found[tables.agents.used] = row_sums(tables, tables.agents.used)
    return np.array([found[agents].sum(axis=0) for agents in sets]).reshape(-1, 3)


def _few_sums(
    tables: Tables, who: tuple[int, Slots], row_order: NDArray[np.int32], counts: list[int]
) -> Floats:
    """The same of few rows that are all here: row after row, in the order of a set's agents."""
    n_sets, number = who
    used = tables.agents.used
    norms, boxes = tables.rows["norms"].take(row_order), tables.boxes(used)
    edges, add = [0, len(row_order)], np.add.reduce  # as `sum`, less on the way
    if n_sets != 1:
        mine = np.repeat(number[used], counts)
        if (mine[1:] < mine[:-1]).any():
            order = np.argsort(mine, kind="stable")
            norms, boxes = norms[order], boxes[order]
        edges = [0, *np.cumsum(np.bincount(mine, minlength=n_sets)).tolist()]
    return np.array(
        [(b - a, add(norms[a:b]), add(boxes[a:b])) for a, b in pairwise(edges)]
    ).reshape(-1, 3)


def _known_sums(
    tables: Tables, agents: Slots, known: dict[int, Floats]
) -> tuple[int, float, float]:
    """The same of one set, some of whose rows are known from elsewhere."""
    norms = tables.rows["norms"]
    mine = np.concatenate(
        [known[a][:, 0] if a in known else norms[tables.row_slots[a]] for a in agents.tolist()]
    )
    box = np.concatenate(
        [known[a][:, 1] if a in known else tables.boxes(np.array([a])) for a in agents.tolist()]
    )
    return len(mine), float(mine.sum()), float(box.sum())


def _squares(tables: Tables, number: Slots, masses: Floats, elsewhere: Elsewhere) -> Floats:
    """Mean squared feature of an agent's set, by slot."""
    mean = np.array([
        max(norm / n / tables.n_features, 1e-12) if n else 1.0 for n, norm, _ in masses.tolist()
    ])  # fmt: skip
    square: Floats = mean[number] if len(mean) else np.ones(tables.agents.capacity)
    for agent, known in elsewhere.square.items():
        square[agent] = known
    return square


def _start_penalties(
    tables: Tables,
    settings: Settings,
    who: tuple[list[Slots], Slots, Any],
    what: tuple[Floats, Floats],
    elsewhere: Elsewhere,
) -> Floats:
    """ρ to begin with, for the weights and the bias, by agent slot: of a set, that of its first."""
    (sets, number, ends), (size, square) = who, what
    if "auto" not in (settings.task_penalty, settings.node_penalty) or not sets:
        return np.ones((tables.agents.capacity, 2))
    C, reg, used = tables.agents["C"], tables.agents["reg"], tables.agents.used
    if elsewhere.flow:
        first, flow = used, [elsewhere.flow[a] for a in used.tolist()]
    else:
        node = tables.agents["node"]
        graphs = (compiled.set_graph(s, number, node, ends) for s in range(len(sets)))
        first, flow = _firsts(sets), [link_flow(*g) for g in graphs]
    each = start_penalty(np.array(flow), C[first], reg[first], size[first], square[first])
    if not elsewhere.flow:
        return np.asarray(each.take(number, axis=0))
    start = np.ones((tables.agents.capacity, 2))
    start[used] = each
    return start


def _firsts(sets: list[Slots]) -> Slots:
    """The first agent of every set."""
    return np.array([agents[0] for agents in sets], np.int64)


def _lighten(
    start: Floats, tables: Tables, found: tuple[list[Slots], Slots, Floats, Floats, Floats]
) -> None:
    """Let biases begin with the share of their penalty that `light_bias` says."""
    sets, number, boxes, size, square = found
    first, used = _firsts(sets), tables.agents.used
    reg = tables.agents["reg"][first]
    light = light_bias(boxes / size[first], (reg[:, 0], reg[:, 1]), square[first])
    start[used, 1] *= light[number[used]]


def _regularisers(tables: Tables, square: Floats) -> Floats:
    """ε of both parts' weights and of the specific bias, by agent slot.

    A mixed specific bias is regularised as a constant feature of the features' mean square is.
    """
    reg = np.zeros((tables.agents.capacity, 3))
    reg[:, :2] = tables.agents["reg"]
    bias = tables.agents["bias"]
    if np.count_nonzero(bias):
        reg[:, 2] = np.where(
            bias == MIXED, reg[:, 1] / square, np.where(bias == COMMON, np.inf, 0.0)
        )
    return reg


def _set_columns(plan: Plan) -> dict[str, NDArray[Any]]:
    """What `kernel.Sets` lays the sets out from."""
    agents, used = plan.tables.agents, plan.used
    node = agents["node"]
    starts = [0, *accumulate(len(some) for some in plan.parts)]
    return {
        "set_agent": np.array(starts, np.int64),
        "agents": np.concatenate([np.zeros(0, np.int64), *plan.parts]),
        "order": compiled.order_by(used, plan.set_number, node, agents["task"]),
        "number": plan.set_number, "node": node, "part": plan.specific_part,
        "total_box": np.array(plan.boxes, float),
    }  # fmt: skip
