"""What was chosen as classifiers: candidates mixed, at the network and at every holder."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import TaskModel
from dtsvm.rounds import Info, Status
from dtsvm.select import Chosen, Held
from dtsvm.svm.lanes import Lanes

__all__ = ["joined", "task_models"]

Floats = NDArray[np.float64]


def task_models(
    chosen: Chosen,
    held: Held,
    lanes: Lanes,
    tasks: list[Any],
    classes: dict[Hashable, tuple[Any, ...]],
    is_refitted: bool,
) -> tuple[TaskModel, ...]:
    """Mix the candidates' classifiers, the network's and every holder's own."""
    nodes, node = lanes.where
    common = chosen.classifiers[:, :-1].mean(axis=0)
    found = []
    for t, task in enumerate(tasks):
        u = chosen.classifiers[t]
        own = {}
        for v in np.unique(node[held.task == t]).tolist():
            mixed = _mixed_at(chosen, lanes, nodes[v], t) if is_refitted else u
            own[nodes[v]] = mixed[None]
        parts = u[None, :-1], u[-1:], common[None], (u[:-1] - common)[None]
        found.append(TaskModel(task, classes[task], *parts, own))
    return tuple(found)


def _mixed_at(chosen: Chosen, lanes: Lanes, node: Hashable, t: int) -> Floats:
    """One node's own mixture for a task; the network's if no row of it trained with others."""
    share = chosen.found.weights[t] * chosen.found.slopes
    own = [lanes.by_node[chosen.candidates[m]].get(node) for m in np.flatnonzero(share).tolist()]
    if any(found is None for found in own):
        return np.asarray(chosen.classifiers[t])
    parts = zip(share[share != 0], own, strict=True)
    return np.asarray(sum(part * found[t] for part, found in parts if found is not None))


def joined(lanes: Lanes) -> Info:
    """One end for all: rounds as if candidates ran side by side, everything sent, the worst gap."""
    stages = [[info for _, info in stage] for stage in lanes.stages]
    every = [info for stage in stages for info in stage]
    late = [info for info in every if info.status is not Status.CONVERGED]
    worst = max(every, key=lambda info: info.gap)
    return replace(
        worst,
        status=late[0].status if late else Status.CONVERGED,
        n_rounds=sum(max(info.n_rounds for info in stage) for stage in stages),
        messages_sent=sum(info.messages_sent for info in every),
        bytes_sent=sum(info.bytes_sent for info in every),
        seconds=sum(info.seconds for info in every),
    )
