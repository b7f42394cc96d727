"""One agreement at a check: measure → total → decide → apply, the same in every runtime.

At ages 10, 20, 40, … a network looks at its links, balances penalties, and leaps; the age counts
rounds since something changed. A network that had been at work before is warm: it knows its
penalties and skips the check at 10. What is measured is a vector a node; a runtime adds them up,
each entry in ascending order, and whoever has the total decides alike. Where all nodes are in one
process the compiled loop does the same four things without leaving.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.rounds.state import State

__all__ = [
    "Decision",
    "apply",
    "decide",
    "is_balanced",
    "measure",
    "revise",
    "take_snapshot",
    "total",
]

Floats = NDArray[np.float64]
N_SHOWN = int(compiled.constants()["N_SHOWN"])


class Decision(NamedTuple):
    """A set's next level, and the mixture of snapshots to go on from; empty if it does not leap."""

    level: tuple[float, float, float]
    leap: tuple[float, ...]


def is_balanced(state: State) -> bool:
    """Whether a penalty is automatic."""
    return "auto" in (state.settings.task_penalty, state.settings.node_penalty)


def measure(state: State, s: int) -> Floats | None:
    """What the links of set s show at this process's nodes, a row a node; None without a link.

    Links inside a node count only where there are no others. Every link counts at both its ends.
    The first columns are squares (`kernel.Ends.residual`); inner products of moves follow if every
    snapshot was taken.
    """
    plan = state.plan
    if len(plan.ends_of(plan.parts[s])[0]) == 0:
        return None
    has_products = state.snapshots.is_whole(state.age, state.is_warm)
    record = state.snapshots.record(state.is_warm)
    found: Floats = compiled.measure_set(s, plan.sets, plan.ends, record, has_products)
    return found if has_products else found[:, :N_SHOWN]


def total(each: Floats) -> Floats:
    """Add up the nodes' vectors, each entry in ascending order: the order of nodes is no matter."""
    found: Floats = compiled.sum_of_nodes(np.ascontiguousarray(each, dtype=np.float64))
    return found


def decide(level: Floats, found: Floats, start: float, age: int) -> Decision:
    """Decide a set's next level and leap from the total; `start` is the weights' ρ begun with."""
    one, other, tail = compiled.decide_level(level, found, start, age).tolist()
    leap = compiled.decide_leap(found).tolist() if len(found) > N_SHOWN else ()
    return Decision((one, other, tail), tuple(leap))


def apply(state: State, s: int, decision: Decision) -> None:
    """Let a decision take effect with the next `State.pull_anew`."""
    if decision.leap and state.snapshots.is_whole(state.age, state.is_warm):
        state.snapshots.plan_leap(s, np.array(decision.leap))
    state.iterates.set_level(state.plan.parts[s], np.array(decision.level))


def revise(state: State, age: int) -> None:
    """Change, at a check, what every agent decides by itself: see `kernel.revise`."""
    compiled.revise(age, state.plan.agents, state.plan.ends)


def take_snapshot(state: State) -> int:
    """Take a snapshot if one is due at the end of the round that is going on.

    Returns at which age to ask for the next.
    """
    if compiled.snapshot_place(state.age + 1, state.is_warm) >= 0:
        state.snapshots.make_room(state.age, 1, state.is_warm, state.settings)
        record = state.snapshots.record(state.is_warm)
        compiled.remember(state.age + 1, record, state.plan.agents, state.plan.ends)
    due: int = compiled.next_snapshot(state.age + 2, state.is_warm)
    return due
