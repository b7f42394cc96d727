"""What was chosen as classifiers: candidates mixed, at the network and at every holder."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import TaskModel
from dtsvm.rounds import Info, Status
from dtsvm.select import Candidate, Chosen
from dtsvm.svm.lanes import Lanes

__all__ = ["Answer", "by_candidate", "joined", "models_of", "wrong_labels"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Classes = dict[Hashable, tuple[Any, ...]]


class Answer(NamedTuple):
    """What was chosen for some tasks, or for one label of those that have it, and from what."""

    lanes: Lanes
    tasks: list[Any]
    chosen: Chosen
    label: Any = None


def models_of(
    answers: Sequence[Answer], tasks: Sequence[Any], classes: Classes
) -> tuple[TaskModel, ...]:
    """Return every task's classifiers: one, or one for each of its labels."""
    found: dict[Hashable, list[TaskModel]] = {task: [] for task in tasks}
    for lanes, some, chosen, _ in answers:
        for one in _task_models(chosen, lanes, some, classes):
            found[one.task].append(one)
    return tuple(_stacked(found[task]) for task in tasks)


def _stacked(parts: list[TaskModel]) -> TaskModel:
    """Put the classifiers of a task's labels under each other, in the order of its labels."""
    nodes = {node: np.concatenate([one.nodes[node] for one in parts]) for node in parts[0].nodes}
    return TaskModel(
        parts[0].task, parts[0].classes, np.concatenate([one.coef for one in parts]),
        np.concatenate([one.intercept for one in parts]),
        np.concatenate([one.common_coef for one in parts]),
        np.concatenate([one.specific_coef for one in parts]), nodes,
    )  # fmt: skip


def by_candidate(answers: Sequence[Answer]) -> tuple[list[Candidate], Floats]:
    """Return what was tried for any label, and the shares in the order of choices."""
    tried = list(dict.fromkeys(c for one in answers for c in one.chosen.candidates))
    shares = []
    for one in answers:
        share = np.zeros((len(one.tasks), len(tried)))
        share[:, [tried.index(c) for c in one.chosen.candidates]] = one.chosen.found.weights
        shares.append(share)
    return tried, np.concatenate(shares)


def wrong_labels(
    answers: Sequence[tuple[Answer, Ints]],
    what: tuple[list[Any], Ints],
    codes: Ints,
    classes: Classes,
) -> NDArray[np.bool_]:
    """Return which held-out rows get another label than theirs, by the largest of their values.

    `answers` has with each answer the rows that it is about.
    """
    tasks, task = what
    values = np.full((len(codes), 3, max(map(len, classes.values()))), -np.inf)
    for answer, rows in answers:
        place = [classes[name].index(answer.label) if answer.label in classes[name] else 0
                 for name in tasks]  # fmt: skip
        values[rows, :, np.array(place)[task[rows]]] = answer.chosen.found.values
    return np.asarray(values.argmax(axis=2) != codes[:, None])


def _task_models(
    chosen: Chosen, lanes: Lanes, tasks: list[Any], classes: Classes
) -> tuple[TaskModel, ...]:
    """Mix the candidates' classifiers; every holder has the mixture of what was certified."""
    nodes, node = lanes.where
    common = chosen.classifiers[:, :-1].mean(axis=0)
    pairs = lanes.others.distinct(lanes.held.task * len(nodes) + node)
    found = []
    for t, task in enumerate(tasks):
        u = chosen.classifiers[t]
        holders = pairs[pairs // len(nodes) == t] % len(nodes)
        own = {nodes[v]: u[None] for v in holders.tolist()}
        parts = u[None, :-1], u[-1:], common[None], (u[:-1] - common)[None]
        found.append(TaskModel(task, classes[task], *parts, own))
    return tuple(found)


def joined(*lanes: Lanes) -> Info:
    """One end for all: rounds as if candidates ran side by side, everything sent, the worst gap."""
    stages = [[info for _, info in stage] for one in lanes for stage in one.stages]
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
