"""What a node knows before it begins to choose: its rows, and from the roster who holds what."""

from __future__ import annotations

import numpy as np

from dtsvm.problem.track import Mine
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.roster import Roster

__all__ = ["know"]


def know(node: Node) -> Mine:
    """Say what a node knows before it begins: its rows, and from the roster who holds what."""
    roster, tables = node.roster, node.state.tables
    names, _ = roster.map(node.name)
    holders = _holders(roster, names)
    tasks = tuple(sorted(holders))
    takes_part = {
        task: who if _is_linked(roster, who) else frozenset(names) for task, who in holders.items()
    }
    partly = {task for task, who in takes_part.items() if len(who) < len(names)}
    scales = [s for n in names for _, s, *_ in roster.entries[n].tasks]
    return Mine(
        node.name,
        node.n_features,
        {task: tables.rows_of(node.holding(task).slot) for task in node.tasks},
        tasks,
        frozenset(task for task in tasks if node.name in takes_part[task]),
        frozenset(task for task in partly if node.name == min(takes_part[task])),
        bool(partly),
        float(np.exp2(np.median(scales))) if scales else 1.0,
    )


def _holders(roster: Roster, names: list[str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name in names:
        for task in roster.tasks_at(name):
            found.setdefault(task, set()).add(name)
    return {task: frozenset(who) for task, who in found.items()}


def _is_linked(roster: Roster, names: frozenset[str]) -> bool:
    """Whether messages between these nodes reach all of them without going through others."""
    seen, edge = {min(names)}, [min(names)]
    while edge:
        more = {n for n in roster.neighbours(edge.pop()) if n in names} - seen
        seen |= more
        edge += sorted(more)
    return len(seen) == len(names)
