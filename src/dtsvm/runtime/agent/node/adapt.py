"""A node after the roster has changed: its links, and what must be known of the whole network."""

from __future__ import annotations

import numpy as np

from dtsvm.rounds import Elsewhere
from dtsvm.runtime.agent.node.ends import Ends, Key
from dtsvm.runtime.agent.node.holdings import Holding
from dtsvm.runtime.agent.node.roster import Part, Roster
from dtsvm.runtime.agent.node.team import Team

__all__ = ["adapt"]


def adapt(
    name: str,
    roster: Roster,
    holdings: dict[str, Holding],
    ends: Ends,
    is_personal: bool,
) -> list[Team]:
    """Relink a node's agents as the roster says; return who balances penalties with whom."""
    wanted: dict[Key, bool] = {}
    inside: set[tuple[str, str]] = set()
    for task in holdings:
        for (node, other), is_wide in roster.around((name, task), is_personal):
            if node != name:
                wanted[task, node, other] = is_wide
            elif task < other:
                inside.add((task, other))
    ends.relink(wanted, holdings, lambda node: roster.has_parted(name, node))
    ends.link_inside(inside, holdings)
    _rank(name, roster, holdings, ends)
    parts = {task: roster.part((name, task), is_personal) for task in holdings}
    _learn(parts, holdings, ends)
    groups = roster.grouped(holdings)
    return [_team(name, tasks, parts[tasks[0]], holdings, ends) for tasks in groups]


def _rank(name: str, roster: Roster, holdings: dict[str, Holding], ends: Ends) -> None:
    """Order the sums over an agent's links by the names of nodes and tasks."""
    names = {node: i for i, node in enumerate(sorted(roster.entries))}
    held = {task for node in names for task in roster.tasks_at(node)}
    tasks = {task: i for i, task in enumerate(sorted(held | set(holdings)))}
    ends.state.rank(
        names[name],
        {holding.slot: tasks[task] for task, holding in holdings.items()},
        {half: (names[node], tasks[other]) for (_, node, other), half in ends.halves.items()},
    )


def _learn(parts: dict[str, Part], holdings: dict[str, Holding], ends: Ends) -> None:
    """Derive A and what penalties begin from, of the agents here."""
    slots = {task: holding.slot for task, holding in holdings.items()}
    ends.state.know(
        Elsewhere(
            size={slots[task]: float(len(part.agents)) for task, part in parts.items()},
            flow={slots[task]: part.flow for task, part in parts.items()},
            square={slots[task]: part.square for task, part in parts.items()},
        )
    )


def _team(
    name: str, tasks: list[str], part: Part, holdings: dict[str, Holding], ends: Ends
) -> Team:
    halves = {half for key, half in ends.halves.items() if key[0] in tasks}
    place = {agent: t for t, team in enumerate(part.teams) for agent in team}
    return Team(
        min(task for _, task in part.agents),
        np.array([holdings[task].slot for task in tasks], np.int64),
        frozenset(halves),
        tuple(sorted(part.nodes)),
        part.links,
        tuple(len(team) for team in part.teams),
        tuple(place[name, task] for task in tasks),
        part.weight,
        part.square,
    )
