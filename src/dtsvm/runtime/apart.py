"""Sets of agents that have nothing to do with each other, each trained until it is certified.

The lanes of a choice lie side by side in one state. A set whose certificate is good and whose
agents agree falls silent: its agents and links drop out of the loop, and the others go on. What a
set does is what it would do by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import Certificate
from dtsvm.rounds.plan import Plan
from dtsvm.rounds.stopping import SHARE, residual_tol
from dtsvm.runtime.memory import Memory

__all__ = ["Ended", "train_apart"]

FIRST_LOOK, GROWTH = 5, 8  # the next look at certificates is an eighth of all rounds later


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
    whole = plan = memory.agreed_plan()
    left = np.arange(len(whole.parts))
    ended: dict[int, Ended] = {}
    traffic, done = whole.traffic_of_sets().tolist(), 0
    next_look = FIRST_LOOK if memory.state.age == 0 else 0
    while len(left):
        n = min(next_look, max_rounds - done)
        memory.run_plan(plan, n)
        done += n
        next_look = max(FIRST_LOOK, done // GROWTH)
        each = memory.certify_plan(plan)
        found = [_judge(plan, k, one, tol) for k, one in enumerate(each)]
        is_over = np.array([one[0] or done >= max_rounds for one in found])
        for k in np.flatnonzero(is_over).tolist():
            s = int(left[k])
            is_certified, objective, gap = found[k]
            sent = [done * each for each in traffic[s]]
            ended[s] = Ended(is_certified, done, objective, gap, *sent)
        if is_over.any():
            left = left[~is_over]
            plan = whole.only(left)
    memory.share_numbers()
    return [ended[s] for s in range(len(ended))]


def _judge(plan: Plan, k: int, found: Certificate, tol: float) -> tuple[bool, float, float]:
    """Return whether the k-th set is done, its objective and its gap."""
    objective, bound = found.objective, found.bound
    gap = max(0.0, (objective - bound) / max(bound, 1e-6 * plan.boxes[k], 1e-300))
    return gap <= SHARE * tol and _is_agreed(plan, k, residual_tol(tol)), objective, gap


def _is_agreed(plan: Plan, k: int, share: float) -> bool:
    """Whether no agent is further from their mean than that share of its length."""
    agents = plan.tables.agents
    mine = plan.parts[k]
    x: NDArray[np.float64] = agents["estimate"][mine[agents["is_relay"][mine] == 0]].sum(axis=1)
    mean = x.mean(axis=0)
    far = np.square(x - mean).sum(axis=1).max()
    return bool(far <= share**2 * np.square(mean).sum())
