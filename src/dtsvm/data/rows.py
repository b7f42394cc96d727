"""Rows in: files to the arrays that training takes, features, labels, tasks and nodes aligned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

from dtsvm.data.columns import (
    find_numbers,
    require_numbers,
    require_values,
    weights_of,
)
from dtsvm.data.spellings import refuse_other_spellings
from dtsvm.data.tables import Table, file_stem, read_table
from dtsvm.errors import DataError, ParameterError, did_you_mean

__all__ = [
    "Rows",
    "arrange",
    "different_columns",
    "join_values",
    "read_rows",
    "refuse_other_labels",
]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows read from files.

    Attributes
    ----------
    X : ndarray of float64 or CSR, shape (n_rows, n_features)
        The features, all finite.
    y : ndarray of shape (n_rows,) or None
        The labels as given, whole numbers, floats or strings.
    task, node : ndarray of shape (n_rows,) or None
        The task and the node of each row, likewise.
    feature_names : tuple of str
        The names of the columns of X.
    weight : ndarray of float64, shape (n_rows,), or None
        A weight a row.
    notes : tuple of str
        A sentence for every column that is no feature because it holds no numbers.
    """

    X: Any
    y: NDArray[Any] | None
    task: NDArray[Any] | None
    node: NDArray[Any] | None
    feature_names: tuple[str, ...]
    weight: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()

    def take(self, index: NDArray[np.int64]) -> Rows:
        """Return some of the rows."""
        y, task, node, weight = (
            None if values is None else values[index]
            for values in (self.y, self.task, self.node, self.weight)
        )
        return Rows(self.X[index], y, task, node, self.feature_names, weight, self.notes)


def read_rows(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    label: str | None,
    task: str | None = None,
    node: str | None = None,
    features: Sequence[str] | None = None,
    weight: str | None = None,
) -> Rows:
    r"""Read rows from CSV, Parquet or npz files.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        One file, or several whose rows are put one after another.
    label : str or None
        The column of labels; None if there are none, as for prediction.
    task, node : str, optional
        The columns that name the task and the node of each row. Where several files are given and
        no `node`, each file is a node and its name without suffix names it.
    features : sequence of str, optional
        The feature columns, in order. By default every other column that holds numbers; a column
        with no number in it is left out, and `notes` says so. `read_records` keeps every column.
    weight : str, optional
        The column of the rows' weights.

    Returns
    -------
    Rows
        Aligned arrays.

    Notes
    -----
    A CSV file has its column names on the first line and commas, semicolons, tabs or bars between
    values. Parquet needs pyarrow or polars. An npz file holds the features as a matrix ``X``, their
    names, if they have any, as ``feature_names`` (else x0, x1, …), and one array for each other
    column; arrays called ``task`` and ``node`` are taken for what they say. CSR rows are held as
    ``data``, ``indices``, ``indptr`` and ``shape`` instead of ``X``, and stay CSR.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "rows.csv")
    >>> _ = path.write_text("height,width,kind\n1.5,2,cup\n0.5,3,plate\n")
    >>> rows = read_rows(path, label="kind")
    >>> rows.X
    array([[1.5, 2. ],
           [0.5, 3. ]])
    >>> rows.y, rows.feature_names
    (array(['cup', 'plate'], dtype='<U5'), ('height', 'width'))
    >>> folder.cleanup()
    """
    several = [paths] if isinstance(paths, str | PathLike) else paths
    files = [Path(path) for path in several]
    if not files:
        raise DataError("No files were given. Name at least one.")
    roles = {"label": label, "task": task, "node": node, "weight": weight}
    parts = [arrange(read_table(file), roles, features) for file in files]
    return _join(files, parts)


def arrange(table: Table, asked: dict[str, str | None], features: Sequence[str] | None) -> Rows:
    """Give the columns of one file their roles."""
    roles = {role: table.roles.get(role) if name is None else name for role, name in asked.items()}
    values = {role: _values(table, roles[role], role) for role in ("label", "task", "node")}
    taken = {name: role for role, name in roles.items() if name is not None}
    weight = None
    if roles["weight"] is not None:
        _require_column(table, roles["weight"], "the weight", table.columns)
        weight = weights_of(table, roles["weight"])
    chosen: dict[str, Any]
    if table.matrix is not None:
        X, chosen = _sparse_columns(table, features)
    else:
        chosen = (
            _numeric_columns(table, taken)
            if features is None
            else _listed_columns(table, features, taken)
        )
        X = np.column_stack(list(chosen.values()))
    return Rows(
        X,
        values["label"],
        values["task"],
        values["node"],
        tuple(chosen),
        weight,
        _left_out(table, taken, chosen) if features is None and table.matrix is None else (),
    )


def _sparse_columns(table: Table, features: Sequence[str] | None) -> tuple[Any, dict[str, None]]:
    """Return CSR rows and the names of their columns, all or those listed."""
    if features is None or tuple(features) == table.candidates:
        return table.matrix, dict.fromkeys(table.candidates)
    place = {name: j for j, name in enumerate(table.candidates)}
    for name in features:
        if name not in place:
            raise DataError(f"{table.path} has no feature {name!r} among its CSR columns.")
    return table.matrix[:, [place[name] for name in features]], dict.fromkeys(features)


def _left_out(table: Table, taken: Iterable[str], chosen: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        f"{table.path}: column {name!r} holds no numbers and is left out."
        for name in table.candidates
        if name not in {*taken, *chosen}
    )


def _values(table: Table, name: str | None, role: str) -> NDArray[Any] | None:
    if name is None:
        return None
    _require_column(table, name, f"the {role}", table.columns)
    return require_values(table, name, role)


def _require_column(table: Table, name: str, use: str, columns: Iterable[str]) -> None:
    if name not in columns:
        raise DataError(
            f"{table.path} has no column {name!r} for {use}. {did_you_mean(name, columns)}"
        )


def _numeric_columns(table: Table, taken: dict[str, str]) -> dict[str, NDArray[np.float64]]:
    chosen = {}
    for name in table.candidates:
        numbers = None if name in taken else find_numbers(table, name)
        if numbers is not None:
            chosen[name] = numbers
    if not chosen:
        raise DataError(f"{table.path} has no column of numbers to use as a feature. Add one.")
    return chosen


def _listed_columns(
    table: Table, features: Sequence[str], taken: dict[str, str]
) -> dict[str, NDArray[np.float64]]:
    if isinstance(features, str) or not len(features):
        raise ParameterError(f"features must be a list of column names. Got {features!r} instead.")
    name, count = Counter(features).most_common(1)[0]
    if count > 1:
        raise ParameterError(f"features lists {name!r} {count} times. List it once.")
    for name in features:
        if name in taken:
            raise ParameterError(
                f"Column {name!r} is the {taken[name]}, so it cannot be a feature."
            )
        _require_column(table, name, "a feature", table.candidates)
    return {name: require_numbers(table, name) for name in features}


def _join(files: list[Path], parts: list[Rows]) -> Rows:
    """Put the rows of all files one after another, columns in the order of the first."""
    names = parts[0].feature_names
    for file, part in zip(files, parts, strict=True):
        if set(part.feature_names) != set(names):
            raise DataError(different_columns(files[0], names, file, part.feature_names))
    refuse_other_labels([file_stem(file) for file in files], parts)
    X = [_in_order(part, names) for part in parts]
    node = join_values(files, [part.node for part in parts], "node")
    if node is None and len(files) > 1:
        node = _nodes_by_file(files, parts)
    return Rows(
        _stacked(files, X),
        join_values(files, [part.y for part in parts], "label"),
        join_values(files, [part.task for part in parts], "task"),
        node,
        names,
        join_values(files, [part.weight for part in parts], "weight"),
        tuple(note for part in parts for note in part.notes),
    )


def _in_order(part: Rows, names: tuple[str, ...]) -> Any:
    if part.feature_names == names:
        return part.X
    place = {name: j for j, name in enumerate(part.feature_names)}
    return part.X[:, [place[name] for name in names]]


def _stacked(files: list[Path], parts: list[Any]) -> Any:
    """Put rows one after another: all of them dense, or all of them CSR."""
    sparse = [not isinstance(X, np.ndarray) for X in parts]
    if len(set(sparse)) > 1:
        one, other = files[sparse.index(True)], files[sparse.index(False)]
        raise DataError(f"{one} has CSR rows and {other} has dense ones. Write them alike.")
    if sparse[0]:
        return parts[0] if len(parts) == 1 else vstack(parts, format="csr")
    return np.ascontiguousarray(np.concatenate(parts))


def different_columns(one: Path, ones: Sequence[str], other: Path, others: Sequence[str]) -> str:
    """Say which feature columns only one of two files has."""
    sides = []
    for path, here, there in ((one, ones, others), (other, others, ones)):
        extra = [name for name in here if name not in there]
        if extra:
            sides.append(f"only {path} has {', '.join(extra)}")
    return (
        f"{one} and {other} have different feature columns: {'; '.join(sides)}. "
        "List the columns they share as features."
    )


def refuse_other_labels(names: Sequence[str], parts: Sequence[Any]) -> None:
    """Refuse nodes that write a task's labels differently: 0 and 1 here, yes and no there.

    A node may lack a label; it is refused where it has none of another's and there would be more
    than two, or where one has numbers and the other text.
    """
    seen: dict[Any, tuple[str, list[Any]]] = {}
    for name, part in zip(names, parts, strict=True):
        if part.y is None:
            return
        tasks = [None] if part.task is None else np.unique(part.task).tolist()
        for task in tasks:
            mine = part.y if part.task is None else part.y[part.task == task]
            labels = np.unique(mine).tolist()
            first, known = seen.setdefault(task, (name, labels))
            is_other = len({*labels, *known}) > 2 or isinstance(labels[0], str) != isinstance(
                known[0], str
            )
            if not {*labels} & {*known} and is_other:
                here, there = (", ".join(map(repr, found[:3])) for found in (labels, known))
                raise DataError(
                    f"Node {name} has labels {here}; {first} has {there}. Write them alike."
                )


def join_values(
    files: list[Path], values: list[NDArray[Any] | None], role: str
) -> NDArray[Any] | None:
    """Put the values of all files one after another; all of them have some, or none has."""
    given = [value for value in values if value is not None]
    if not given:
        return None
    if len(given) < len(values):
        silent = files[next(i for i, value in enumerate(values) if value is None)]
        raise DataError(f"{silent} has no {role} for its rows, but other files have. Add it.")
    texts = ((f, v) for f, v in zip(files, given, strict=True) if v.dtype.kind == "U")
    refuse_other_spellings(((f, name) for f, v in texts for name in np.unique(v).tolist()), role)
    return np.concatenate(given)


def _nodes_by_file(files: list[Path], parts: list[Rows]) -> NDArray[Any]:
    stem, count = Counter(file_stem(file) for file in files).most_common(1)[0]
    if count > 1:
        raise DataError(
            f"{count} files are called {stem!r}, so their names cannot tell their nodes apart. "
            "Rename them, or name a node column."
        )
    return np.repeat([file_stem(file) for file in files], [part.X.shape[0] for part in parts])
