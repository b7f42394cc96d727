"""Rows to train on: files read, columns agreed, features made, some rows held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import Kind, Records, Rows, agree_schemas, read_records, read_rows
from dtsvm.data.holdout import held_out
from dtsvm.data.rows import join_values, refuse_other_labels
from dtsvm.data.sizes import count_exponents, refuse_other_sizes, sizes_of
from dtsvm.data.tables import file_stem
from dtsvm.errors import DataError, did_you_mean
from dtsvm.prepare import Encoded, Prepared, agreeing, apply_plan, encode, recode, run_together
from dtsvm.prepare.encode import MEASURED
from dtsvm.svm.company import Alone
from dtsvm.ui.known import know, refuse_no_labels

__all__ = [
    "Choice",
    "TrainingRows",
    "node_names",
    "read_training",
    "refuse_unknown_kinds",
    "rows_held",
    "split_held",
]


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
    preparation : Prepared or None
        How the features were made; None if the columns were taken as they are.
    notes : tuple of str
        A sentence for every column that was left out.
    """

    train: Rows
    test: Rows | None
    preparation: Prepared | None
    notes: tuple[str, ...]


def read_training(files: Sequence[Path], choice: Choice) -> TrainingRows:
    """Read files as the command line says."""
    if choice.is_raw:
        rows = read_rows(
            list(files), label=choice.label, task=choice.task, node=choice.node,
            weight=choice.weight, features=choice.features,
        )  # fmt: skip
        is_held = rows_held(rows, choice, [file_stem(files[0])])
        found = TrainingRows(*split_held(rows, is_held), None, rows.notes)
    else:
        found = _prepared(files, choice)
    refuse_no_labels(files[0], choice.label, know(found.train, Alone()))
    return found


def _prepared(files: Sequence[Path], choice: Choice) -> TrainingRows:
    roles = {name: getattr(choice, name) for name in ("label", "task", "node", "weight")}
    parts = [
        read_records(file, roles=roles, features=choice.features, kinds=choice.kinds)
        for file in files
    ]
    refuse_unknown_kinds(choice, [column.name for part in parts for column in part.schema])
    names = node_names(files, parts[0].node is not None)
    schema = agree_schemas(
        {name: part.schema for name, part in zip(names, parts, strict=True)},
        choice.missing_columns,
    )
    refuse_other_labels(names, parts)
    y = _joined(files, [part.y for part in parts], "label")
    is_held = np.concatenate(
        [rows_held(part, choice, [name]) for name, part in zip(names, parts, strict=True)]
    )
    encoded = [encode(part, schema, choice.missing_columns) for part in parts]
    _refuse_other_sizes(parts, encoded, choice)
    ends = np.cumsum([part.n_rows for part in parts])[:-1]
    trained = [~held for held in np.split(is_held, ends)]
    nodes = [
        rows
        for part, code, mine in zip(parts, encoded, trained, strict=True)
        for rows in _by_node(code, part.node, mine)
    ]
    plan = run_together([agreeing(rows, choice.min_count) for rows in nodes])
    made = Prepared(plan, choice.min_count, choice.missing_columns)
    X = [apply_plan(plan, recode(rows, plan.schema)) for rows in encoded]
    node = _joined(files, [part.node for part in parts], "node")
    if node is None and len(files) > 1:
        node = np.repeat(names, [part.n_rows for part in parts])
    rows = Rows(
        np.ascontiguousarray(np.concatenate(X)), y,
        _joined(files, [part.task for part in parts], "task"), node, plan.names,
        _joined(files, [part.weight for part in parts], "weight"),
    )  # fmt: skip
    return TrainingRows(*split_held(rows, is_held), made, plan.notes)


def _refuse_other_sizes(
    parts: Sequence[Records], encoded: Sequence[Encoded], choice: Choice
) -> None:
    """Refuse columns in other units at other nodes of files that name the node of each row."""
    if any(part.node is None for part in parts):
        return
    node = np.concatenate([np.asarray(part.node, object) for part in parts])
    numbers = np.concatenate([code.numbers for code in encoded], axis=1)
    measured = encoded[0].schema.of_kind(*MEASURED)
    for column, values in zip(measured, numbers, strict=True):
        if column.kind is Kind.NUMBER and column.name not in (choice.kinds or {}):
            names = list(dict.fromkeys(node.tolist()))
            counts = {str(name): count_exponents(values[node == name]) for name in names}
            found = {name: sizes_of(some) for name, some in counts.items()}
            refuse_other_sizes(column.name, {n: one for n, one in found.items() if one}, {})


def refuse_unknown_kinds(choice: Choice, names: Iterable[str]) -> None:
    """Refuse a kind that is declared for no column."""
    known = list(dict.fromkeys(names))
    for name, kind in (choice.kinds or {}).items():
        if name not in known:
            raise DataError(
                f"There is no feature {name!r} to declare as {kind!r}. {did_you_mean(name, known)}"
            )


def _joined(
    files: Sequence[Path], values: list[NDArray[Any] | None], role: str
) -> NDArray[Any] | None:
    return join_values(list(files), values, role)


def node_names(files: Sequence[Path], has_nodes: bool) -> list[str]:
    """Name every file, as its node or to speak of it."""
    stems = [file_stem(file) for file in files]
    stem, count = Counter(stems).most_common(1)[0]
    if count == 1:
        return stems
    if not has_nodes:
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


def rows_held(
    rows: Any, choice: Choice, names: Sequence[str], counts: Sequence[int] = ()
) -> NDArray[np.bool_]:
    """Which rows are held out, each node choosing among its own.

    `rows` have y, task and node. Without nodes, `names` are those of the parts that the rows come
    from, of `counts` rows each.
    """
    is_held = np.zeros(len(rows.y), bool)
    nodes = rows.node
    if nodes is None:
        nodes = np.repeat(np.array(names, str), counts if len(counts) else [len(rows.y)])
    for node in np.unique(nodes) if choice.holdout else ():
        mine = np.flatnonzero(nodes == node)
        task = None if rows.task is None else rows.task[mine]
        is_held[mine] = held_out(str(node), choice.holdout, choice.seed, rows.y[mine], task)
    return is_held


def split_held(rows: Rows, is_held: NDArray[np.bool_]) -> tuple[Rows, Rows | None]:
    """Return the rows to train on, and those held out."""
    if not is_held.any():
        return rows, None
    return rows.take(np.flatnonzero(~is_held)), rows.take(np.flatnonzero(is_held))
