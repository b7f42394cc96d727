"""What a node has learnt, as the one `Model` everything else takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import Columns, Model, Network, TaskModel
from dtsvm.rounds import Info, Status
from dtsvm.runtime.agent.node.chooser import Chooser
from dtsvm.runtime.agent.node.lanes import aspect
from dtsvm.runtime.agent.node.node import Node

__all__ = ["chosen_model", "node_model"]

Floats = NDArray[np.float64]


def node_model(
    node: Node,
    classes: Mapping[str, tuple[Any, ...]],
    columns: Columns | None = None,
    sigmoids: Mapping[str, Floats] | None = None,
) -> Model:
    """Return what is certified, beside the node's own.

    `classes` are each task's labels; `sigmoids` are by lane, where there are some.
    """
    tasks = sorted(node.tasks)
    settings = {
        **asdict(node.settings),
        **({} if node.veil.price is None else {"C": node.veil.price}),
        "personal": node.personal,
        "transfer": node.groups(),
        "positive": {task: classes[task][1] for task in tasks if len(classes[task]) == 2},
    }
    group = {task: g for g, together in enumerate(node.groups()) for task in together}
    found = tuple(_task(node, task, classes[task], group[task], sigmoids or {}) for task in tasks)
    if found and all(one.sigmoid is not None for one in found):
        settings["probability"] = True
    return Model(
        "DTSVM", settings, Network(*node.roster.map(node.name)),
        found,
        _info(node), node.n_features, columns or Columns(),
        privacy=node.veil.privacy.describe(),
    )  # fmt: skip


def chosen_model(
    node: Node,
    classes: Mapping[str, tuple[Any, ...]],
    columns: Columns | None,
    chooser: Chooser,
    sigmoids: Mapping[str, Floats] | None = None,
) -> Model:
    """Return what the network chose for the tasks held here: at every node the same classifiers."""
    settings: dict[str, Any] = {
        "tol": node.settings.tol,
        "positive": {t: classes[t][1] for t in sorted(node.tasks) if len(classes[t]) == 2},
    }
    tasks = [_chosen_task(node, task, classes[task], chooser, sigmoids or {})
             for task in sorted(node.tasks)]  # fmt: skip
    overdue = chooser.overdue
    status = Status.MAX_ROUNDS if overdue.n_late else Status.CONVERGED
    return Model(
        "DTSVMCV", settings, Network(*node.roster.map(node.name)), tuple(tasks),
        replace(_info(node), status=status, gap=overdue.gap), node.n_features,
        columns or Columns(), privacy=node.veil.privacy.describe(),
        choices=tuple(one.to_dict() for one in chooser.outcome.choices),
    )  # fmt: skip


def _chosen_task(
    node: Node,
    task: str,
    classes: tuple[Any, ...],
    chooser: Chooser,
    sigmoids: Mapping[str, Floats],
) -> TaskModel:
    """Put a task's classifiers, one or one for each label, under each other."""
    lanes = node.lanes(task, main=True)
    u = np.array([chooser.decision(lane) for lane in lanes])
    common = np.array([_common(chooser, aspect(lane)[1:]) for lane in lanes])
    return TaskModel(
        task, tuple(classes), u[:, :-1], u[:, -1], common, u[:, :-1] - common, {node.name: u},
        sigmoid=_sigmoid([sigmoids.get(lane) for lane in lanes]),
    )  # fmt: skip


def _common(chooser: Chooser, about: str) -> Floats:
    """Return the mean over tasks of what was chosen about a label."""
    part = next(one for one in chooser.outcome.parts if one.about == about)
    return np.asarray(part.chosen.classifiers[:, :-1].mean(axis=0))


def _task(
    node: Node,
    task: str,
    classes: tuple[Any, ...],
    group: int,
    sigmoids: Mapping[str, Floats],
) -> TaskModel:
    lanes = node.lanes(task, main=True)
    parts = np.array([node.certified(lane) for lane in lanes])  # (lane, part, feature)
    whole, own = parts.sum(axis=1), np.array([node.decision(lane) for lane in lanes])
    return TaskModel(
        task, tuple(classes), whole[:, :-1], whole[:, -1], parts[:, 0, :-1], parts[:, 1, :-1],
        {node.name: own}, group, _sigmoid([sigmoids.get(lane) for lane in lanes]),
    )  # fmt: skip


def _sigmoid(found: list[Floats | None]) -> Floats | None:
    known = [one for one in found if one is not None and np.isfinite(one).all()]
    return np.array(known) if len(known) == len(found) else None


def _info(node: Node) -> Info:
    return Info(
        status=Status.CONVERGED if node.is_settled else Status.INTERRUPTED,
        n_rounds=node.round,
        objective=math.nan if node.certifier.objective is None else node.certifier.objective,
        gap=math.nan if node.certifier.gap is None else node.certifier.gap,
        primal_residual=node.residual if math.isfinite(node.residual) else math.nan,
        dual_residual=math.nan,
        messages_sent=node.messages_sent,
        bytes_sent=node.bytes_sent,
        seconds=node.now - node.presence.born,
    )
