"""The certificate of the agents in one process: average, tally, certify group by group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dtsvm.problem.certificate import Certificate, Tally, certify
from dtsvm.qp import tally
from dtsvm.rounds.state import State
from dtsvm.rounds.step import AgentArrays, RowArrays

__all__ = ["average", "certificates"]

Floats = NDArray[np.float64]


def average(state: State) -> tuple[Floats, Floats]:
    """Return the network's answer: the mean common and specific part, by agent slot."""
    estimate = state.agents["estimate"]
    counted = state.used[~state.agents["is_relay"][state.used]]
    return (
        _mean_by(state.common_part, estimate[:, 0], counted),
        _mean_by(state.specific_part, estimate[:, 1], counted),
    )


def certificates(state: State) -> list[tuple[Certificate, int]]:
    """Certify every group that agrees among itself; return its number of rows too."""
    state.prepare()
    common, specific = average(state)
    used = state.used
    n, p1 = state.agents.capacity, state.n_features + 1
    loss, positive, negative = np.zeros(n), np.zeros((n, p1)), np.zeros((n, p1))
    _tally_all(
        used, state.agent_arrays(), state.row_arrays(), common + specific, loss, positive, negative
    )
    settings = state.settings
    found = []
    counted = used[~state.agents["is_relay"][used]]
    for part in np.unique(state.common_part[counted]):
        mine = counted[state.common_part[counted] == part]
        _, first, team = np.unique(
            state.specific_part[mine], return_index=True, return_inverse=True
        )
        sums = Tally(
            *(_sum_by(team, values[mine], len(first)) for values in (loss, positive, negative))
        )
        share = np.bincount(team) / len(mine)
        value = certify(
            sums,
            common[mine[0]],
            specific[mine[first]],
            share,
            (settings.common_reg, settings.specific_reg),
            settings.C,
        )
        found.append((value, sum(len(state.row_slots[a]) for a in mine.tolist())))
    return found


@njit(cache=True, nogil=True)
def _tally_all(
    used: NDArray[np.int64],
    agents: AgentArrays,
    rows: RowArrays,
    w: Floats,
    loss: Floats,
    positive: Floats,
    negative: Floats,
) -> None:
    for a in used:
        begin, end = agents.row_start[a], agents.row_start[a] + agents.row_count[a]
        ids, at = rows.ids[begin:end], rows.at[begin:end]
        loss[a] = tally(rows.X, at, rows.y, rows.dual, ids, w[a], positive[a], negative[a])


def _sum_by(index: NDArray[np.integer[Any]], values: Floats, n: int) -> Floats:
    out = np.zeros((n, *values.shape[1:]))
    np.add.at(out, index, values)
    return out


def _mean_by(part: NDArray[np.int64], values: Floats, counted: NDArray[np.int64]) -> Floats:
    n = int(part.max(initial=0)) + 1
    total = _sum_by(part[counted], values[counted], n)
    count = np.bincount(part[counted], minlength=n)
    return (total / np.maximum(count, 1)[:, None])[part]
