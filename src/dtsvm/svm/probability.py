"""Probabilities: a sigmoid a classifier, fitted on decision values of rows that were held out.

Each node deals its rows of every task and label to folds. For every fold all tasks train once more
without it: further agents over the same rows, in the same rounds and messages. What they say of the
fold's rows is what is fitted (`problem.sigmoid`), by sums over the nodes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from dtsvm.data.folds import cell_name, deal
from dtsvm.problem import TaskModel
from dtsvm.problem.sigmoid import fit_sigmoids, sigmoid_counts, sigmoid_sums
from dtsvm.svm.training import Training, number_pairs

__all__ = ["HeldOut", "deal_folds", "held_out_tasks", "with_sigmoids"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class HeldOut(NamedTuple):
    """A task that trains without one fold of its rows.

    Examples
    --------
    >>> from dtsvm.svm.probability import HeldOut
    >>> HeldOut("flu", 2)
    'flu' without fold 2
    """

    task: Hashable
    fold: int

    def __repr__(self) -> str:
        return f"{self.task!r} without fold {self.fold}"


def deal_folds(table: Training, n_folds: int) -> Ints:
    """Return each row's fold: at every node rows of one task and label are dealt in turn."""
    n_tasks, most = len(table.tasks), int(table.codes.max(initial=0)) + 1
    cells, cell = np.unique(
        (table.node.astype(np.int64) * n_tasks + table.task) * most + table.codes,
        return_inverse=True,
    )
    names = [
        cell_name(table.nodes[c // most // n_tasks], table.tasks[c // most % n_tasks], c % most)
        for c in cells.tolist()
    ]
    return deal(cell, names, n_folds)


def held_out_tasks(table: Training, fold: Ints) -> Training:
    """Return the rows once more for every fold, those of the fold left out; agents stay."""
    folds = range(int(table.company.largest(int(fold.max(initial=0)))) + 1)
    kept = [np.arange(len(fold)), *(np.flatnonzero(fold != f) for f in folds)]
    lane = np.repeat(np.arange(len(kept)), [len(rows) for rows in kept])
    rows = np.concatenate(kept)
    n_tasks = len(table.tasks)
    names = [HeldOut(task, f) for f in folds for task in table.tasks]
    groups = [[HeldOut(task, f) for task in group] for f in folds for group in table.groups]
    every = table.held
    if every is None:
        shape = len(table.nodes), n_tasks
        every = np.unique(number_pairs(table.node, table.task, shape)).astype(np.int64)
    n_all = n_tasks * len(kept)
    held = [every // n_tasks * n_all + k * n_tasks + every % n_tasks for k in range(len(kept))]
    return replace(
        table,
        at=table.places(rows),
        tasks=[*table.tasks, *names],
        task=table.task[rows] + n_tasks * lane,
        node=table.node[rows],
        classes={**table.classes, **{name: table.classes[name.task] for name in names}},
        codes=table.codes[rows],
        groups=[*table.groups, *groups],
        weight=None if table.weight is None else table.weight[rows],
        held=np.concatenate(held),
    )


def with_sigmoids(
    models: tuple[TaskModel, ...], held: tuple[TaskModel, ...], table: Training, fold: Ints
) -> tuple[TaskModel, ...]:
    """Give every task the sigmoids of its classifiers.

    Parameters
    ----------
    models : tuple of TaskModel
        The tasks, trained on all rows.
    held : tuple of TaskModel
        The same without each fold, in the order of `held_out_tasks`.
    table : Training
        The rows.
    fold : ndarray of int
        Each row's fold.
    """
    first = np.cumsum([0, *(one.n_classifiers for one in models)])
    values = _out_of_fold(held, table, fold, int(max(one.n_classifiers for one in models)))
    nodes = np.unique(table.node)
    parts = [_at_node(values, table, models, first[:-1], v) for v in nodes.tolist()]
    n = int(first[-1])

    def total(vectors: list[Floats], width: int) -> Floats:
        """The sum over the network."""
        return table.company.total(nodes, np.array(vectors).reshape(len(vectors), n, width))

    counts = total([sigmoid_counts(part[1], part[2], n, part[3]) for part in parts], 2)
    ab = fit_sigmoids(
        lambda ab, counts: total([sigmoid_sums(*part, ab, counts) for part in parts], 6), counts
    )
    return tuple(replace(one, sigmoid=ab[first[t] : first[t + 1]]) for t, one in enumerate(models))


def _out_of_fold(held: tuple[TaskModel, ...], table: Training, fold: Ints, width: int) -> Floats:
    """Return what classifiers say of rows that they did not see, (row, classifier of its task)."""
    values = np.zeros((len(fold), width))
    n_tasks = len(table.tasks)
    for k, one in enumerate(held):
        mine = np.flatnonzero((table.task == k % n_tasks) & (fold == k // n_tasks))
        if len(mine):
            values[mine, : one.n_classifiers] = _decide(one, table.X[table.places(mine)])
    return values


def _decide(one: TaskModel, rows: Any) -> Floats:
    """The decision values of rows, each to the same bits whichever others are here."""
    if issparse(rows):
        return one.decide(rows)
    found = [(rows * w).sum(axis=1) + b for w, b in zip(one.coef, one.intercept, strict=True)]
    return np.stack(found, axis=1)


def _at_node(
    values: Floats, table: Training, models: tuple[TaskModel, ...], first: Any, node: int
) -> tuple[Floats, NDArray[np.bool_], Ints, Floats]:
    """Return one node's values, labels, which classifier they are of, and weights."""
    found = []
    own = table.own_weight
    for t, one in enumerate(models):
        mine = np.flatnonzero((table.node == node) & (table.task == t))
        for k in range(one.n_classifiers):
            is_positive = table.codes[mine] == (1 if one.n_classifiers == 1 else k)
            which = np.full(len(mine), first[t] + k)
            weight = np.ones(len(mine)) if own is None else own[mine]
            found.append((values[mine, k], is_positive, which, weight))
    f, is_positive, which, weight = (np.concatenate(part) for part in zip(*found, strict=True))
    return f, is_positive, which, weight
