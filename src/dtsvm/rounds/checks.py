"""Checks: at ages 10, 20, 40, … a network looks at its links, balances penalties, and leaps.

The age counts rounds since something changed. A network that had been at work before is warm: it
knows its penalties and skips the check at 10.

Sums over links are made node by node in the order of ranks and then over the nodes, so that nodes
in processes of their own come to the same bits as nodes in one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dtsvm.rounds.extrapolate import (
    FIRST,
    NOTHING,
    Past,
    inner_products,
    is_whole,
    leap,
    mixture,
    plan,
    remember,
)
from dtsvm.rounds.gains import Rules, renew
from dtsvm.rounds.parts import begins
from dtsvm.rounds.penalty import balanced, loosened, next_check, sum_of_nodes
from dtsvm.rounds.state import State
from dtsvm.rounds.step import AgentArrays, HalfArrays, RowArrays

__all__ = [
    "Sets",
    "check",
    "is_balanced",
    "loosen",
    "products",
    "residual",
    "sets",
    "snapshots",
    "take_snapshot",
]

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]


class Sets(NamedTuple):
    """The agents that must agree, set after set: who they are and where their links are noted.

    Entries k and k + 1 of `of_agents`, `of_ends`, `of_noted` and their nodes' bound those of set k.
    """

    agents: Slots
    ends: Slots  # all link ends, in the order in which they are added up
    nodes: Slots  # where in a set's ends each node's begin
    noted: Slots  # where `exchange` notes what the ends show that count for the balance
    noted_nodes: Slots
    of_agents: Slots
    of_ends: Slots
    of_nodes: Slots
    of_noted: Slots
    of_noted_nodes: Slots


def sets(state: State) -> Sets:
    """Return all sets of agents here."""
    if "sets" not in state.derived:
        columns = zip(
            *((part, *state.own_ends(part), *_noted(state, part)) for part in state.parts()),
            strict=True,
        )
        parts = list(columns) or [()] * 5
        state.derived["sets"] = Sets(
            *(np.concatenate([np.zeros(0, np.int64), *each]) for each in parts),
            *(np.cumsum([0, *map(len, each)]) for each in parts),
        )
    found: Sets = state.derived["sets"]
    return found


def is_balanced(state: State) -> bool:
    """Whether a penalty is automatic."""
    return "auto" in (state.settings.task_penalty, state.settings.node_penalty)


@njit(cache=True, nogil=True)
def check(
    age: int,
    is_warm: bool,
    used: Slots,
    agents: AgentArrays,
    rows: RowArrays,
    halves: HalfArrays,
    rules: Rules,
    sets: Sets,
    past: Past,
) -> None:
    """Balance the penalties of all agents here, and let them leap."""
    kept = agents.estimate.copy()
    level = rules.level
    for s in range(len(sets.of_agents) - 1):
        some = sets.agents[sets.of_agents[s] : sets.of_agents[s + 1]]
        noted = sets.noted[sets.of_noted[s] : sets.of_noted[s + 1]]
        nodes = sets.noted_nodes[sets.of_noted_nodes[s] : sets.of_noted_nodes[s + 1]]
        if len(noted) == 0:
            continue
        found = _shown(noted, nodes, halves.residual)
        if is_whole(past, age, is_warm):
            ends = sets.ends[sets.of_ends[s] : sets.of_ends[s + 1]]
            nodes = sets.nodes[sets.of_nodes[s] : sets.of_nodes[s + 1]]
            gamma = mixture(sum_of_nodes(inner_products(ends, nodes, past, halves.penalty)))
            if len(gamma) > 0:
                leap(gamma, some, ends, past, agents.estimate, halves.state)
        new = balanced(level[some[0]], sum_of_nodes(found), rules.start[some[0], 0], age)
        for a in some:
            level[a] = new
    _loosen(used, agents, rules)
    if renew(used, agents, rows, halves, rules, kept):
        past.ages[:] = -1


def residual(state: State, agents: Slots) -> Floats | None:
    """What one set's links show, summed: see `HalfArrays.residual`; None if it has no link.

    Links inside a node count only where there are no others. Every link counts at both its ends.
    """
    key = "noted", int(agents[0])
    if key not in state.derived:
        state.derived[key] = _noted(state, agents)
    noted, nodes = state.derived[key]
    return sum_of_nodes(_shown(noted, nodes, state.halves["residual"])) if len(noted) else None


def _noted(state: State, agents: Slots) -> tuple[Slots, Slots]:
    """Where `exchange` notes what one set's link ends show, and where each node's begin."""
    halves = state.halves
    mine, _ = state.own_ends(agents)
    across = mine[halves["is_across"][mine]]
    mine = across if len(across) else mine
    node = state.agents["node"][halves["owner"][mine]]
    twin = halves["twin"][mine]
    return np.where((twin < 0) | (mine < twin), mine, twin), begins(node)


@njit(cache=True, nogil=True)
def _shown(noted: Slots, nodes: Slots, residual: Floats) -> Floats:
    """Add up what link ends show, node by node: (nodes, 6)."""
    out = np.zeros((len(nodes), 6))
    for v in range(len(nodes)):
        for k in range(nodes[v], nodes[v + 1] if v + 1 < len(nodes) else len(noted)):
            for i in range(3):
                for j in range(2):
                    out[v, 2 * i + j] += residual[noted[k], i, j]
    return out


def products(state: State, agents: Slots) -> Floats | None:
    """Inner products of one set's moves, summed; None unless every snapshot was taken."""
    if state.past is None or not state.has_snapshots:
        return None
    ends, nodes = state.own_ends(agents)
    found: Floats = sum_of_nodes(inner_products(ends, nodes, state.past, state.halves["penalty"]))
    return found


def snapshots(state: State, n: int) -> Past:
    """Return where the next `n` rounds leave snapshots for the checks that follow.

    Who has chosen a penalty gets the plain iteration.
    """
    if state.past is None:
        chosen, is_warm = (state.settings.task_penalty, state.settings.node_penalty), state.is_warm
        leap_at = next_check(max(state.age, 0 if is_warm else FIRST - 1), is_warm)
        if chosen != ("auto", "auto") or state.age + n < plan(leap_at, is_warm)[0]:
            return NOTHING
        room = state.halves.capacity, state.agents.capacity, state.n_features + 1
        state.past = Past.empty(*room)
    return state.past


def take_snapshot(state: State) -> None:
    """Take a snapshot if one is due at the end of the round that is going on."""
    arrays = state.agent_arrays(), state.half_arrays()
    remember(state.age + 1, state.is_warm, snapshots(state, 1), *arrays)


def loosen(state: State) -> None:
    """Hold free biases that have not come to rest less firmly."""
    _loosen(state.used, state.agent_arrays(), state.rules())


@njit(cache=True, nogil=True)
def _loosen(used: Slots, agents: AgentArrays, rules: Rules) -> None:
    for a in used:
        if agents.prox[a, 0] > 0.0 or agents.prox[a, 1] > 0.0:
            rules.hold[a] = loosened(rules.hold[a], agents.drift[a], rules.drift_before[a])
            rules.drift_before[a] = agents.drift[a]
