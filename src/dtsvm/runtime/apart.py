"""Sets of agents that have nothing to do with each other, each trained until it is certified.

The lanes of a choice lie side by side in one state. In memory they train one after the other, so
that what a set works on stays in the cache; ranks train them side by side, and a set that is done
falls silent. What a set does is what it would do by itself. Its answer is the average of its
agents, the one that is certified, so they need not agree before it ends, and all of `tol` is its.
"""

from __future__ import annotations

from typing import NamedTuple

from dtsvm.runtime.memory import Memory

__all__ = ["Ended", "train_apart"]


class Ended(NamedTuple):
    """How one set ended."""

    is_certified: bool
    n_rounds: int
    objective: float
    gap: float
    messages_sent: int
    bytes_sent: int


def train_apart(memory: Memory, *, tol: float, max_rounds: int) -> list[Ended]:
    """Run rounds until every set is certified to `tol`, or for `max_rounds`.

    What was trained before and has not changed since is looked at before it goes on.

    Returns
    -------
    list of Ended
        One a set, in the order of the plan's `parts`.
    """
    plan = memory.agreed_plan()
    ended = memory.train_sets(plan, tol, max_rounds).tolist()
    traffic = plan.traffic_of_sets().tolist()
    return [
        Ended(bool(is_good), int(n), objective, gap, *(int(n) * each for each in sent))
        for (n, objective, gap, is_good), sent in zip(ended, traffic, strict=True)
    ]
