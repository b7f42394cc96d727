"""Checks: at ages 10, 20, 40, … a network looks at its links, balances penalties, and leaps.

Sums over links are made node by node in the order of ranks and then over the nodes, so that nodes
in processes of their own come to the same bits as nodes in one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dtsvm.rounds.extrapolate import NOTHING, Past, inner_products, mixture, plan, remember
from dtsvm.rounds.penalty import balanced, is_check, loosened, next_check, summed
from dtsvm.rounds.state import State

__all__ = [
    "balance",
    "is_check_at",
    "loosen",
    "products",
    "residual",
    "rounds_to_check",
    "snapshots",
    "take_snapshot",
]

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]


def _chosen(state: State) -> tuple[object, object]:
    return state.settings.task_penalty, state.settings.node_penalty


def rounds_to_check(state: State) -> int | None:
    """Return in how many rounds the penalties are to be balanced; None if never again."""
    check = next_check(state.age) if "auto" in _chosen(state) else None
    return None if check is None else check - state.age


def is_check_at(state: State, age: int) -> bool:
    """Whether penalties are balanced at this age."""
    return "auto" in _chosen(state) and is_check(age)


def balance(state: State) -> None:
    """Balance the penalties of all agents here, and let them leap."""
    level = state.agents["level"]
    for agents in state.parts():
        found = residual(state, agents)
        if found is None:
            continue
        moves = products(state, agents)
        if moves is not None:
            state.leap(agents, mixture(moves))
        start = state.start_penalty(agents[0])
        level[agents] = balanced(level[agents[0]], found, start, state.age)
    loosen(state)
    state.pull_anew()


def residual(state: State, agents: Slots) -> Floats | None:
    """What one set's links show, summed: see `HalfArrays.residual`; None if it has no link.

    Links inside a node count only where there are no others. Every link counts at both its ends.
    """
    key = "noted", int(agents[0])
    if key not in state.derived:
        state.derived[key] = _noted(state, agents)
    noted, starts = state.derived[key]
    return summed(state.halves["residual"][noted], starts) if len(noted) else None


def _noted(state: State, agents: Slots) -> tuple[Slots, Slots]:
    """Where `exchange` notes what one set's link ends show, and where each node's begin."""
    halves = state.halves
    mine, _ = state.own_ends(agents)
    across = mine[halves["is_across"][mine]]
    mine = across if len(across) else mine
    node = state.agents["node"][halves["owner"][mine]]
    starts = np.flatnonzero(np.diff(node, prepend=-1))
    twin = halves["twin"][mine]
    return np.where((twin < 0) | (mine < twin), mine, twin), starts


def products(state: State, agents: Slots) -> Floats | None:
    """Inner products of one set's moves, summed; None unless every snapshot was taken."""
    if state.past is None or not state.past.is_whole:
        return None
    ends, starts = state.own_ends(agents)
    return summed(inner_products(ends, state.past, state.halves["penalty"]), starts)


def snapshots(state: State, n: int) -> Past:
    """Return where the next `n` rounds leave snapshots for the check that follows.

    Who has chosen a penalty gets the plain iteration.
    """
    check = rounds_to_check(state) if _chosen(state) == ("auto", "auto") else None
    planned = plan(state.age + check) if check else None
    if planned is None or state.age + n < planned[0]:
        return NOTHING
    if state.past is None:
        room = state.halves.capacity, state.agents.capacity, state.n_features + 1
        state.past = Past.empty(*planned, *room)
    elif state.past.begin != planned[0]:
        state.past = state.past._replace(begin=planned[0], step=planned[1])
    return state.past


def take_snapshot(state: State) -> None:
    """Take a snapshot if one is due at the end of the round that is going on."""
    remember(state.age + 1, snapshots(state, 1), state.agent_arrays(), state.half_arrays())


def loosen(state: State) -> None:
    """Hold free biases that have not come to rest less firmly."""
    free = state.used[(state.agents["prox"][state.used] > 0).any(axis=1)]
    drift, before, hold = (state.agents[name] for name in ("drift", "drift_before", "hold"))
    hold[free] = loosened(hold[free], drift[free], before[free])
    before[free] = drift[free]
