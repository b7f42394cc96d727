"""The certificate over several ranks: every agent's sums gathered, added up in memory's order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.problem import Certificate
from dtsvm.rounds.plan import Plan
from dtsvm.runtime.mpi.collect import gather_rows

__all__ = ["certify_sets"]

Slots = NDArray[np.int64]
Floats = NDArray[np.float64]
SCALARS = ("loss", "slant", "plus", "minus")


def certify_sets(comm: Any, plan: Plan, own: Slots, order: Slots, agents: Any) -> list[Certificate]:
    """Certify every set, as `rounds.certificates` does; every rank must know every x.

    own : this rank's agents, `agents` their record. order : all agents as ranks hand them in.
    """
    counted = [part[plan.tables.agents["is_relay"][part] == 0] for part in plan.parts]
    here = [np.intersect1d(some, own) for some in counted]
    tallies = _tally(comm, plan, (own, order, agents), here, has_room=True)
    lacking = [_lacks_room(plan, s, some, tallies) for s, some in enumerate(counted)]
    classes = None
    if any(lacking):
        classes = _tally(comm, plan, (own, order, agents), here, has_room=False)
    return [_judge(plan, s, some, tallies, classes) for s, some in enumerate(counted)]


def _tally(
    comm: Any, plan: Plan, who: tuple[Slots, Slots, Any], here: list[Slots], *, has_room: bool
) -> Floats:
    """What every agent adds to its team's sums, by slot: see `kernel.tally_each`."""
    own, order, agents = who
    p1 = plan.tables.n_features + 1
    found = np.zeros((plan.tables.agents.capacity, 2 * p1 + (len(SCALARS) if has_room else 0)))
    for s, some in enumerate(here):
        if len(some):
            compiled.average(s, plan.sets, agents, plan.sums)
            out = np.zeros((len(some), found.shape[1]))
            compiled.tally_each(some, plan.rows, agents, plan.sets, plan.sums, has_room, out)
            found[some] = out
    found[order] = gather_rows(comm, found[own])
    return found


def _add_up(plan: Plan, s: int, counted: Slots, tallies: Floats) -> int:
    """Put a set's average and its teams' sums where `kernel.bound` reads them; return the teams."""
    compiled.average(s, plan.sets, plan.agents, plan.sums)
    teams, team = np.unique(plan.specific_part[counted], return_inverse=True)
    p1 = plan.tables.n_features + 1
    arrays = plan.sums.arrays
    for name in (*SCALARS, "pull", "room", "positive", "negative"):
        arrays[name][: len(teams)] = 0.0
    for i, name in enumerate(SCALARS):
        np.add.at(arrays[name], team, tallies[counted, i])
    _add_wide(plan, ("pull", "room"), team, tallies[counted, -2 * p1 :])
    return len(teams)


def _add_wide(plan: Plan, names: tuple[str, str], team: Slots, values: Floats) -> None:
    p1 = plan.tables.n_features + 1
    for name, part in zip(names, (values[:, :p1], values[:, p1:]), strict=True):
        np.add.at(plan.sums.arrays[name], team, part)


def _is_shared(plan: Plan, counted: Slots) -> bool:
    return bool(plan.reg[counted[0], 2] > 0.0)


def _lacks_room(plan: Plan, s: int, counted: Slots, tallies: Floats) -> bool:
    """Whether the sums of either class are needed for some team of a set."""
    if not len(counted):
        return False
    n_teams = _add_up(plan, s, counted, tallies)
    return any(compiled.teams_without_room(n_teams, _is_shared(plan, counted), plan.sums))


def _judge(
    plan: Plan, s: int, counted: Slots, tallies: Floats, classes: Floats | None
) -> Certificate:
    if not len(counted):
        return Certificate(0.0, 0.0)
    n_teams = _add_up(plan, s, counted, tallies)
    if classes is not None:
        team = np.unique(plan.specific_part[counted], return_inverse=True)[1]
        _add_wide(plan, ("positive", "negative"), team, classes[counted])
    return Certificate(*compiled.bound(n_teams, plan.reg[counted[0]], plan.sums))
