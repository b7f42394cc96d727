"""Sets of agents that have nothing to do with each other, each trained until it is certified.

The lanes of a choice lie side by side in one state. A set whose certificate is good and whose
agents agree falls silent: its agents and links drop out of the loop, and the others go on. What a
set does is what it would do by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.rounds import State
from dtsvm.rounds.agreement import is_balanced
from dtsvm.rounds.plan import Plan
from dtsvm.rounds.state import ACCURACY
from dtsvm.rounds.stopping import SHARE, residual_tol

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


def train_apart(state: State, *, tol: float, max_rounds: int) -> list[Ended]:
    """Run rounds until every set is certified to `tol`, or for `max_rounds`.

    Returns
    -------
    list of Ended
        One a set, in the order of `state.plan.parts`.
    """
    whole = plan = state.plan
    left = np.arange(len(whole.parts))
    ended: dict[int, Ended] = {}
    traffic, done = whole.traffic_of_sets().tolist(), 0
    while len(left):
        n = min(max(FIRST_LOOK, done // GROWTH), max_rounds - done)
        _run(state, plan, n)
        done += n
        found = [_judge(plan, k, tol) for k in range(len(left))]
        is_over = np.array([one[0] or done >= max_rounds for one in found])
        for k in np.flatnonzero(is_over).tolist():
            s = int(left[k])
            is_certified, objective, gap = found[k]
            sent = [done * each for each in traffic[s]]
            ended[s] = Ended(is_certified, done, objective, gap, *sent)
        if is_over.any():
            left = left[~is_over]
            plan = whole.only(left)
    return [ended[s] for s in range(len(ended))]


def _run(state: State, plan: Plan, n: int) -> None:
    """Run `n` rounds of the sets in a plan; nobody looks at a certificate meanwhile."""
    pace = {
        **ACCURACY[state.settings.local], "kappa": state.settings.relaxation,
        "has_checks": is_balanced(state), "age": state.age, "begun": 0, "residual_tol": -1.0,
        "gap_tol": 0.0, "next_look": 0.0, "heavy": np.inf, "long": np.inf,
    }  # fmt: skip
    state.snapshots.make_room(state.age, n, state.is_warm, state.settings)
    past = state.snapshots.record(state.is_warm)
    job = compiled.Job(np.full((n, 6), np.nan), np.zeros((n, 0, 2), np.uint8), pace)
    compiled.run(plan.rows, plan.agents, plan.ends, plan.sets, past, plan.work, plan.sums, job)
    state.age += n


def _judge(plan: Plan, k: int, tol: float) -> tuple[bool, float, float]:
    """Return whether the k-th set is done, its objective and its gap."""
    objective, bound = compiled.certify_set(k, plan.rows, plan.agents, plan.sets, plan.sums)
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
