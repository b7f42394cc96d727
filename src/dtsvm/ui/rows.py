"""Rows for a model that is trained already: its features, its tasks, its nodes, its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

from dtsvm.data import Kind, Records, Rows, read_records, read_rows
from dtsvm.data.columns import texts_of
from dtsvm.data.records import find_column
from dtsvm.data.rows import join_values
from dtsvm.errors import DataError
from dtsvm.prepare import Prepared
from dtsvm.problem import Model, TaskModel
from dtsvm.problem.sigmoid import sigmoid
from dtsvm.svm.model_reader import POOLED
from dtsvm.svm.names import find_name, match_names

__all__ = ["Answers", "Asked", "ModelRows", "answer", "rows_for_model"]


@dataclass(frozen=True)
class Asked:
    """What the command line says: `task` and `node` are columns, the names hold for all rows."""

    label: str | None = None
    task: str | None = None
    task_name: str | None = None
    node: str | None = None
    node_name: str | None = None
    keep: tuple[str, ...] = ()
    missing_columns: str | None = None


class ModelRows(NamedTuple):
    """Rows as a model takes them; without `node` the network's averaged answer is wanted."""

    X: Any
    y: NDArray[Any] | None
    task: NDArray[Any]
    node: NDArray[Any] | None
    kept: dict[str, list[str]]


class Answers(NamedTuple):
    """A model's answers: positions among the task's labels, decision values, probabilities.

    A probability is that of the label given; NaN where the task was trained without.
    """

    positions: NDArray[np.int64]
    values: NDArray[np.float64]
    probabilities: NDArray[np.float64]


def rows_for_model(model: Model, files: Sequence[Path], asked: Asked) -> ModelRows:
    """Read rows and make the model's features of them."""
    for name, column, fixed in (
        ("task", asked.task, asked.task_name), ("node", asked.node, asked.node_name),
    ):  # fmt: skip
        if column is not None and fixed is not None:
            raise click.UsageError(f"Give --{name} or --{name}-name, not both.")
    # Rows were pooled: as in the estimators, a node changes nothing.
    has_nodes = model.method not in POOLED
    node = asked.node if has_nodes else None
    node_name = asked.node_name if has_nodes else None
    column = None if asked.task_name is not None else asked.task or _task_column(model)
    roles = {"label": asked.label, "task": column, "node": node}
    rows, kept = _read(model, files, roles, asked)
    tasks, nodes = [one.task for one in model.tasks], list(model.network.nodes)
    n = rows.X.shape[0]
    return ModelRows(
        rows.X,
        rows.y,
        _choose(rows.task if column else None, asked.task_name, tasks, "task", n, tasks[0]),
        _choose(rows.node if node else None, node_name, nodes, "node", n, None),
        kept,
    )


def answer(model: Model, rows: ModelRows, node: Any = None) -> Answers:
    """Ask the model about every row: each row's own node, one node, or the network."""
    positions, values = np.zeros(rows.X.shape[0], np.int64), np.zeros(rows.X.shape[0])
    probabilities = np.full(rows.X.shape[0], np.nan)
    nodes = np.full(rows.X.shape[0], node, object) if rows.node is None else rows.node
    for one in model.tasks:
        for name in dict.fromkeys(nodes[rows.task == one.task].tolist()):
            mine = np.flatnonzero((rows.task == one.task) & _equals(nodes, name))
            decided = one.decide(rows.X[mine], name)
            chosen = one.choose(decided)
            positions[mine] = chosen
            values[mine] = decided[:, 0] if decided.shape[1] == 1 else decided.max(axis=1)
            if one.sigmoid is not None:
                probabilities[mine] = _probabilities(one, decided)[np.arange(len(mine)), chosen]
    return Answers(positions, values, probabilities)


def _probabilities(one: TaskModel, decided: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a probability a row and label, adding up to 1."""
    assert one.sigmoid is not None
    found = sigmoid(decided, one.sigmoid)
    if found.shape[1] == 1:
        return np.hstack([1.0 - found, found])
    found = found + np.finfo(float).tiny  # all may be 0, far from every label
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _equals(nodes: NDArray[Any], name: Any) -> NDArray[np.bool_]:
    return np.array([node == name for node in nodes.tolist()], np.bool_)


def _read(
    model: Model, files: Sequence[Path], roles: dict[str, str | None], asked: Asked
) -> tuple[Rows, dict[str, list[str]]]:
    if model.preparation is None:
        return _read_raw(model, files, roles), _kept_raw(files, asked.keep)
    made = Prepared.from_dict(model.preparation)
    if asked.missing_columns is not None:
        made.missing_columns = asked.missing_columns
    parts = [read_records(file, roles=roles, features=(), only=True) for file in files]
    made_of = [made.transform(part) for part in parts]
    X = vstack(made_of, format="csr") if made.sparse else np.concatenate(made_of)
    y, task, node = (
        join_values(list(files), [getattr(part, name) for part in parts], role)
        for name, role in (("y", "label"), ("task", "task"), ("node", "node"))
    )
    ids = [c.name for c in made.plan.schema.of_kind(Kind.ID)]
    there = [name for name in ids if all(name in part.table.columns for part in parts)]
    names = tuple(dict.fromkeys([*there, *asked.keep]))
    return Rows(X, y, task, node, made.plan.names), _kept(parts, names)


def _read_raw(model: Model, files: Sequence[Path], roles: dict[str, str | None]) -> Rows:
    rows = read_rows(
        list(files), label=roles["label"], task=roles["task"], node=roles["node"],
        features=model.columns.features,
    )  # fmt: skip
    if rows.X.shape[1] != model.n_features:
        names = ", ".join(rows.feature_names[:12])
        raise DataError(
            f"The rows have {rows.X.shape[1]} columns of numbers ({names}), but the model has "
            f"{model.n_features} features. Leave only those in the file."
        )
    return rows


def _kept_raw(files: Sequence[Path], keep: tuple[str, ...]) -> dict[str, list[str]]:
    if not keep:
        return {}
    if any(str(file) == "-" for file in files):
        raise click.UsageError("--keep needs a file to read again; standard input is gone.")
    return _kept([read_records(file, features=(), only=True) for file in files], keep)


def _kept(parts: Sequence[Records], names: Sequence[str]) -> dict[str, list[str]]:
    """Columns that go along into the answers, as they were written."""
    kept: dict[str, list[str]] = {}
    for name in names:
        for part in parts:
            found = find_column(part.table, name, "--keep", tuple(part.table.columns))
            kept.setdefault(name, []).extend(texts_of(part.table, found))
    return kept


def _task_column(model: Model) -> str | None:
    """A model of one task needs no column; one of several remembers its own."""
    if len(model.tasks) == 1:
        return None
    if model.columns.task is None:
        names = ", ".join(str(one.task) for one in model.tasks)
        raise click.UsageError(
            f"The model knows several tasks ({names}): name their column with --task, or one of "
            "them with --task-name."
        )
    return str(model.columns.task)


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
