"""The answer of the agents in one process, and its certificate set by set."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.problem import Certificate
from dtsvm.rounds.state import State

__all__ = ["Tally", "average", "certificates", "certify"]

Floats = NDArray[np.float64]


def average(state: State) -> tuple[Floats, Floats]:
    """Return the network's answer: the mean common and specific part, by agent slot."""
    plan, agents = state.plan, state.tables.agents
    estimate = agents["estimate"]
    counted = plan.used[agents["is_relay"][plan.used] == 0]
    return (
        _mean_by(plan.common_part, estimate[:, 0], counted),
        _mean_by(plan.specific_part, estimate[:, 1], counted),
    )


class Tally(NamedTuple):
    """What the rows contribute, summed over the agents of each task; the bias entry is last.

    loss : (T,) Σ box · hinge. plus, minus : (T,) Σ λ over rows with y = +1 and y = −1.
    slant : (T,) Σ y min(λ, box − λ). pull : (T, p+1) Σ y λ x̃.
    room : (T, p+1) Σ min(λ, box − λ) x̃, how far λ may go both ways.
    positive, negative : (T, p+1) Σ λ x over either class, used only where a task lacks room.
    """

    loss: Floats
    plus: Floats
    minus: Floats
    slant: Floats
    pull: Floats
    room: Floats
    positive: Floats
    negative: Floats


def certify(
    tally: Tally, common: Floats, specific: Floats, share: Floats, reg: tuple[float, float, float]
) -> Certificate:
    """Certify the classifiers of one group from sums that agents can add up between them.

    `share` is A_t/A; `reg` is ε₁, ε₂ and that of the specific bias: see `kernel.judge`.
    """
    sums = compiled.Sums(*specific.shape)
    values = {**tally._asdict(), "common": common, "specific": specific, "share": share}
    for name, value in values.items():
        sums.arrays[name][:] = value
    return Certificate(*compiled.bound(len(share), np.array(reg), sums))


def certificates(state: State) -> list[Certificate]:
    """Certify every set of agents that agrees among itself."""
    plan = state.plan
    return [
        Certificate(*compiled.certify_set(s, plan.rows, plan.agents, plan.sets, plan.sums))
        for s in range(len(plan.parts))
    ]


def _mean_by(part: NDArray[np.int64], values: Floats, counted: NDArray[np.int64]) -> Floats:
    n = int(part.max(initial=0)) + 1
    total = np.zeros((n, *values.shape[1:]))
    np.add.at(total, part[counted], values[counted])
    count: NDArray[Any] = np.bincount(part[counted], minlength=n)
    return np.asarray((total / np.maximum(count, 1)[:, None])[part])
