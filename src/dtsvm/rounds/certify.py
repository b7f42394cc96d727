"""The certificate of the agents in one process: average, tally, certify group by group."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dtsvm.problem import Certificate
from dtsvm.qp import class_sums, distance, tally
from dtsvm.rounds.bound import Tally, certify, lacks_room
from dtsvm.rounds.state import State
from dtsvm.rounds.step import AgentArrays, RowArrays

__all__ = ["average", "certificates"]

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]


def average(state: State) -> tuple[Floats, Floats]:
    """Return the network's answer: the mean common and specific part, by agent slot."""
    estimate = state.agents["estimate"]
    counted = state.used[~state.agents["is_relay"][state.used]]
    return (
        _mean_by(state.common_part, estimate[:, 0], counted),
        _mean_by(state.specific_part, estimate[:, 1], counted),
    )


class _Group(NamedTuple):
    """Agents that agree among themselves, relays left out, and their teams: a task's agents."""

    agents: Slots
    team: Slots  # by agent here
    share: Floats  # A_t / A, by team
    n_rows: int


def certificates(state: State) -> list[tuple[Certificate, int]]:
    """Certify every group that agrees among itself; return its number of rows too."""
    state.prepare()
    settings, arrays = state.settings, (state.agent_arrays(), state.row_arrays())
    if "groups" not in state.derived:
        state.derived["groups"] = _groups(state)
    reg = float(settings.common_reg), float(settings.specific_reg)
    groups: list[_Group] = state.derived["groups"]
    return [
        (Certificate(*_certified(g.agents, g.team, g.share, *arrays, reg, settings.C)), g.n_rows)
        for g in groups
    ]


def _groups(state: State) -> list[_Group]:
    is_relay, n_rows = state.agents["is_relay"], state.agent_arrays().row_count
    groups = []
    for agents in state.parts():
        mine = agents[~is_relay[agents]]
        if len(mine):
            _, team = np.unique(state.specific_part[mine], return_inverse=True)
            share = np.bincount(team) / len(mine)
            groups.append(_Group(mine, team, share, int(n_rows[mine].sum())))
    return groups


@njit(cache=True, nogil=True)
def _certified(
    some: Slots,
    team: Slots,
    share: Floats,
    agents: AgentArrays,
    rows: RowArrays,
    reg: tuple[float, float],
    box: float,
) -> tuple[float, float]:
    """Average the agents' parts, specific ones team by team, tally the rows by team, certify."""
    x, row_start, row_count = agents.estimate, agents.row_start, agents.row_count
    gain, travel = agents.gain, agents.travel
    X, y, dual, until, ids, at = rows.X, rows.y, rows.dual, rows.until, rows.ids, rows.at
    n, p1 = len(share), x.shape[2]
    common, specific, members = np.zeros(p1), np.zeros((n, p1)), np.zeros(n)
    for k in range(len(some)):
        common += x[some[k], 0]
        specific[team[k]] += x[some[k], 1]
        members[team[k]] += 1.0
    common /= len(some)
    for t in range(n):
        specific[t] /= members[t]
    by_task = np.zeros((4, n, p1))
    sums = Tally(np.zeros(n), by_task[0], by_task[1], np.zeros(n), by_task[2], by_task[3])
    for k in range(len(some)):
        a, t = some[k], team[k]
        begin, end = row_start[a], row_start[a] + row_count[a]
        w, pull = common + specific[t], agents.pull[a]
        d_weights, d_bias = gain[a, 0, 0] + gain[a, 1, 0], gain[a, 0, 1] + gain[a, 1, 1]
        horizon = np.inf
        if d_weights > 0.0 and d_bias > 0.0:
            horizon = travel[a] + distance(agents.decision[a], w, d_weights, d_bias)
        loss, plus, minus, slant = tally(
            X, at[begin:end], y, dual, until, ids[begin:end], box, w, horizon, pull, sums.room[t]
        )
        sums.loss[t] += loss
        sums.pull[t] += pull
        sums.slant[t] += slant
        sums.positive[t, -1] += plus
        sums.negative[t, -1] += minus
    for k in range(len(some)):
        a, t = some[k], team[k]
        if lacks_room(sums, t):
            begin, end = row_start[a], row_start[a] + row_count[a]
            class_sums(
                X, at[begin:end], y, dual, ids[begin:end], sums.positive[t], sums.negative[t]
            )
    found = certify(sums, common, specific, share, reg, box)
    return found.objective, found.bound


def _sum_by(index: NDArray[np.integer[Any]], values: Floats, n: int) -> Floats:
    out = np.zeros((n, *values.shape[1:]))
    np.add.at(out, index, values)
    return out


def _mean_by(part: NDArray[np.int64], values: Floats, counted: NDArray[np.int64]) -> Floats:
    n = int(part.max(initial=0)) + 1
    total = _sum_by(part[counted], values[counted], n)
    count = np.bincount(part[counted], minlength=n)
    return (total / np.maximum(count, 1)[:, None])[part]
