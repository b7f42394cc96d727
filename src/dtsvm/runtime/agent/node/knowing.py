"""What a node knows before it begins to choose: its rows, and from the roster who holds what."""

from __future__ import annotations

import numpy as np

from dtsvm.problem.track import Block, Mine
from dtsvm.runtime.agent.node.bench import Where
from dtsvm.runtime.agent.node.lanes import aspect, is_main, task_of
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.ranges import LIGHTEST
from dtsvm.runtime.agent.node.roster import Roster

__all__ = ["know", "place"]


def know(node: Node) -> Mine:
    """Say what a node knows before it begins: its rows, and from the roster who holds what."""
    roster = node.roster
    names, _ = roster.map(node.name)
    holders = _holders(roster, names)
    takes_part = {
        task: who if _is_linked(roster, who) else frozenset(names) for task, who in holders.items()
    }
    scales = [s for n in names for _, s, *_ in roster.entries[n].tasks]
    unit = float(np.exp2(np.median(scales))) if scales else 1.0
    questions: dict[str, list[str]] = {}
    for task, lanes in roster.main_lanes(names).items():
        for lane in lanes:
            questions.setdefault(aspect(lane)[1:], []).append(task)
    return Mine(
        node.name,
        node.n_features,
        {task: _block(node, task) for task in node.tasks},
        {about: tuple(sorted(tasks)) for about, tasks in sorted(questions.items())},
        {task: who if len(who) < len(names) else None for task, who in takes_part.items()},
        unit,
        _claimed(node, names, unit),
    )


def _claimed(node: Node, names: list[str], unit: float) -> tuple[float, float]:
    """Return the most rows, and the largest Σ‖x‖² in this unit, that others say to have.

    Their entries have C · rows rounded up, and the mean square rounded, to powers of two.
    """
    others = [task for n in names if n != node.name for task in node.roster.entries[n].tasks]
    said = np.array([(scale, weight) for _, scale, _, weight in others], float).reshape(-1, 2)
    rows = np.exp2(said[:, 1]) / (node.settings.C * LIGHTEST)
    squares = rows * np.exp2(said[:, 0] + 1.0) * node.n_features / unit
    return float(rows.sum()), float(squares.sum())


def _block(node: Node, task: str) -> Block:
    """Return a task's rows, and their sides by what is asked; a row of weight 0 is not there."""
    tables = node.state.tables
    slots = {aspect(lane)[1:]: node.holding(lane).slot for lane in node.lanes(task, main=True)}
    first = next(iter(slots.values()))
    X, _ = tables.rows_of(first)
    weight = tables.weights(tables.row_slots[first])
    sides = {about: tables.rows_of(slot)[1] for about, slot in slots.items()}
    if (weight == 1.0).all():
        return Block(X, sides)
    there = np.flatnonzero(weight)
    return Block(X[there], {about: y[there] for about, y in sides.items()}, weight[there])


def _holders(roster: Roster, names: list[str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name in names:
        for task in {task_of(lane) for lane in roster.tasks_at(name) if is_main(lane)}:
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


def place(node: Node) -> Where:
    """Return where a node is among all."""
    names, links = node.roster.map(node.name)
    return Where(node.name, tuple(names), tuple(links), tuple(sorted(node.present)))
