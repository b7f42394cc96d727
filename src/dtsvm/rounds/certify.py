"""The answer of the agents in one process, and its certificate set by set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.problem import Certificate
from dtsvm.rounds.state import State

__all__ = ["Tally", "average", "certificates", "certify"]

Floats = NDArray[np.float64]


def average(state: State) -> Floats:
    """Return the network's answer: the mean common and specific part, (agent slot, 2, p + 1)."""
    plan = state.plan
    found: Floats = compiled.mean_of_parts(plan.common_part, plan.specific_part, plan.agents)
    return found


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
    found = compiled.certify_sets(plan.rows, plan.agents, plan.sets, plan.sums)
    return [Certificate(*each) for each in found.tolist()]
