"""Rows to train on: files read, columns agreed, features made, some rows held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import Records, Rows, agree_schemas, read_records, read_rows
from dtsvm.data.holdout import held_out
from dtsvm.data.rows import join_values, refuse_other_labels
from dtsvm.data.tables import file_stem
from dtsvm.errors import DataError
from dtsvm.prepare import Encoded, Preparation, agreeing, apply_plan, encode, run_together

__all__ = ["Choice", "TrainingRows", "read_training"]

MOST_LABELS = 30


@dataclass(frozen=True)
class Choice:
    """What the command line says about columns and rows."""

    label: str
    task: str | None = None
    node: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    kinds: Mapping[str, str] | None = None
    missing_columns: str = "refuse"
    min_count: int = 10
    holdout: float = 0.0
    seed: int = 0
    is_raw: bool = False


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to train on, and those held out.

    Attributes
    ----------
    train : Rows
        Features, labels, tasks, nodes and weights.
    test : Rows or None
        The same of the rows that were held out.
    preparation : Preparation or None
        How the features were made; None if the columns were taken as they are.
    notes : tuple of str
        A sentence for every column that was left out.
    """

    train: Rows
    test: Rows | None
    preparation: Preparation | None
    notes: tuple[str, ...]


def read_training(files: Sequence[Path], choice: Choice) -> TrainingRows:
    """Read files as the command line says."""
    if choice.is_raw:
        rows = read_rows(
            list(files), label=choice.label, task=choice.task, node=choice.node,
            weight=choice.weight, features=choice.features,
        )  # fmt: skip
        is_held = _all_held([(file_stem(files[0]), rows)], choice)
        found = TrainingRows(*_split(rows, is_held), None, rows.notes)
    else:
        found = _prepared(files, choice)
    _refuse_no_labels(files[0], choice.label, found.train)
    return found


def _prepared(files: Sequence[Path], choice: Choice) -> TrainingRows:
    roles = {name: getattr(choice, name) for name in ("label", "task", "node", "weight")}
    parts = [
        read_records(file, roles=roles, features=choice.features, kinds=choice.kinds)
        for file in files
    ]
    names = _node_names(files, parts)
    schema = agree_schemas(
        {name: part.schema for name, part in zip(names, parts, strict=True)},
        choice.missing_columns,
    )
    refuse_other_labels(names, parts)
    y = _joined(files, [part.y for part in parts], "label")
    is_held = _all_held(list(zip(names, parts, strict=True)), choice)
    encoded = [encode(part, schema, choice.missing_columns) for part in parts]
    ends = np.cumsum([part.n_rows for part in parts])[:-1]
    trained = [~held for held in np.split(is_held, ends)]
    nodes = [
        rows
        for part, code, mine in zip(parts, encoded, trained, strict=True)
        for rows in _by_node(code, part.node, mine)
    ]
    plan = run_together([agreeing(rows, choice.min_count) for rows in nodes])
    made = Preparation.from_plan(
        plan, min_count=choice.min_count, missing_columns=choice.missing_columns
    )
    X = [apply_plan(plan, encode(part, plan.schema, choice.missing_columns)) for part in parts]
    node = _joined(files, [part.node for part in parts], "node")
    if node is None and len(files) > 1:
        node = np.repeat(names, [part.n_rows for part in parts])
    rows = Rows(
        np.ascontiguousarray(np.concatenate(X)), y,
        _joined(files, [part.task for part in parts], "task"), node, plan.names,
        _joined(files, [part.weight for part in parts], "weight"),
    )  # fmt: skip
    return TrainingRows(*_split(rows, is_held), made, plan.notes)


def _joined(
    files: Sequence[Path], values: list[NDArray[Any] | None], role: str
) -> NDArray[Any] | None:
    return join_values(list(files), values, role)


def _node_names(files: Sequence[Path], parts: Sequence[Records]) -> list[str]:
    stems = [file_stem(file) for file in files]
    stem, count = Counter(stems).most_common(1)[0]
    if count == 1:
        return stems
    if parts[0].node is None:
        raise DataError(
            f"{count} files are called {stem!r}, so their names cannot tell their nodes apart. "
            "Rename them, or name a node column."
        )
    return [str(file) for file in files]


def _by_node(rows: Encoded, node: NDArray[Any] | None, mine: NDArray[np.bool_]) -> list[Encoded]:
    """The rows to train on, node by node: each adds up its own."""
    if node is None:
        return [rows.take(np.flatnonzero(mine))]
    return [rows.take(np.flatnonzero(mine & (node == name))) for name in np.unique(node)]


def _all_held(parts: Sequence[tuple[str, Records | Rows]], choice: Choice) -> NDArray[np.bool_]:
    """Which rows are held out, each node choosing among its own."""
    found = []
    for name, part in parts:
        assert part.y is not None
        is_held = np.zeros(len(part.y), bool)
        nodes = np.full(len(part.y), name) if part.node is None else part.node
        for node in np.unique(nodes) if choice.holdout else ():
            mine = np.flatnonzero(nodes == node)
            task = None if part.task is None else part.task[mine]
            is_held[mine] = held_out(str(node), choice.holdout, choice.seed, part.y[mine], task)
        found.append(is_held)
    return np.concatenate(found)


def _split(rows: Rows, is_held: NDArray[np.bool_]) -> tuple[Rows, Rows | None]:
    if not is_held.any():
        return rows, None
    return rows.take(np.flatnonzero(~is_held)), rows.take(np.flatnonzero(is_held))


def _refuse_no_labels(path: Path, label: str, rows: Rows) -> None:
    """Refuse measurements as labels, for age has no classes, and one label alone."""
    assert rows.y is not None
    different = np.unique(rows.y)
    if len(different) == 1:
        raise DataError(
            f"{path}: column {label!r} has only the label {different[0].item()!r}. A classifier "
            "needs rows of two; name another column with --label, or add rows."
        )
    is_measured = rows.y.dtype.kind == "f" and (different != np.round(different)).any()
    if len(different) > MOST_LABELS or (is_measured and len(different) > 2):
        raise DataError(
            f"{path}: column {label!r} has {len(different):,} different values, so it is no "
            "label. Name a column of classes with --label, or make classes of it first."
        )
