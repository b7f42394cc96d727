"""Rows for a model that is trained already: its features, its tasks, its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from dtsvm.data import read_rows
from dtsvm.errors import DataError
from dtsvm.svm.names import find_name, match_names

__all__ = ["ModelRows", "rows_for_model"]


class ModelRows(NamedTuple):
    """Rows as a model takes them; without `node` the network's averaged answer is wanted."""

    X: NDArray[np.float64]
    y: NDArray[Any] | None
    task: NDArray[Any]
    node: NDArray[Any] | None


def rows_for_model(
    model: Any,
    files: Sequence[Path],
    *,
    label: str | None = None,
    task: str | None = None,
    task_name: str | None = None,
    node: str | None = None,
    node_name: str | None = None,
) -> ModelRows:
    """Read rows; `task` and `node` are columns, `task_name` and `node_name` hold for all rows."""
    for name, column, fixed in (("task", task, task_name), ("node", node, node_name)):
        if column is not None and fixed is not None:
            raise click.UsageError(f"Give --{name} or --{name}-name, not both.")
    if "network" not in model.get_params(deep=False):
        node = node_name = None  # rows were pooled: as in the estimators, a node changes nothing
    column = None if task_name is not None else task or _task_column(model)
    rows = read_rows(
        list(files), label=label, task=column, node=node, features=model.columns_.features
    )
    if rows.X.shape[1] != model.n_features_in_:
        names = ", ".join(rows.feature_names[:12])
        raise DataError(
            f"The rows have {rows.X.shape[1]} columns of numbers ({names}), but the model has "
            f"{model.n_features_in_} features. Leave only those in the file."
        )
    n = len(rows.X)
    tasks, nodes = model.tasks_.tolist(), model.nodes_.tolist()
    return ModelRows(
        rows.X,
        rows.y,
        _choose(rows.task if column else None, task_name, tasks, "task", n, tasks[0]),
        _choose(rows.node if node else None, node_name, nodes, "node", n, None),
    )


def _task_column(model: Any) -> str | None:
    """A model of one task needs no column; one of several remembers its own."""
    if len(model.tasks_) == 1:
        return None
    if model.columns_.task is None:
        names = ", ".join(str(task) for task in model.tasks_)
        raise click.UsageError(
            f"The model knows several tasks ({names}): name their column with --task, or one of "
            "them with --task-name."
        )
    return str(model.columns_.task)


def _choose(
    values: NDArray[Any] | None,
    fixed: str | None,
    known: list[Any],
    what: str,
    n_rows: int,
    default: Any,
) -> Any:
    if values is not None:
        for value in np.unique(values).tolist():
            find_name(value, known, what)
        return match_names(values, known)
    name = default if fixed is None else find_name(fixed, known, what)
    return None if name is None else _repeat(name, n_rows)


def _repeat(name: Any, n_rows: int) -> NDArray[Any]:
    names = np.empty(n_rows, object)
    names[:] = name
    return names
