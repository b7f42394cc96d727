"""Rows with all their columns: what a node's own file holds, before anything is made of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from dtsvm.data.columns import (
    kind_of,
    levels_of,
    numbers_of,
    require_values,
    weights_of,
)
from dtsvm.data.kinds import Kind
from dtsvm.data.numerals import split_sign
from dtsvm.data.schema import ColumnSchema, Schema, split_unit
from dtsvm.data.sizes import count_exponents, largest_exponent, sizes_of
from dtsvm.data.spellings import refuse_twice
from dtsvm.data.tables import Cells, Table, read_table
from dtsvm.errors import DataError, ParameterError, did_you_mean

__all__ = ["Records", "find_column", "frame_records", "read_records", "table_records", "unit_of"]

_LEVELLED = (Kind.YES_NO, Kind.CATEGORY)
_GERMAN_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
ROLES = ("label", "task", "node", "weight")


@dataclass(frozen=True, eq=False)
class Records:
    """Rows of one file or frame, column by column, nothing dropped and nothing filled in.

    Attributes
    ----------
    table : Table
        Every column as it was read, the label among them; names without units.
    schema : Schema
        The columns that may be features, and what they hold.
    y, task, node : ndarray of shape (n_rows,) or None
        Labels, tasks and nodes, in the type they were written in.
    weight : ndarray of shape (n_rows,) or None
        A weight a row.
    """

    table: Table
    schema: Schema
    y: NDArray[Any] | None = None
    task: NDArray[Any] | None = None
    node: NDArray[Any] | None = None
    weight: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.table.n_rows

    def take(self, index: NDArray[np.int64]) -> Records:
        """Return some of the rows, with the same schema."""
        y, task, node, weight = (
            None if values is None else values[index]
            for values in (self.y, self.task, self.node, self.weight)
        )
        return Records(self.table.take(index), self.schema, y, task, node, weight)


def read_records(
    path: str | PathLike[str],
    *,
    roles: Mapping[str, str | None] | None = None,
    features: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    only: bool = False,
) -> Records:
    r"""Read all columns of a CSV, Parquet or npz file, and find what each holds.

    Parameters
    ----------
    path : path-like
        The file; ``-`` is CSV from standard input.
    roles : mapping of "label", "task", "node", "weight" to column names, optional
        Columns that are no features.
    features : sequence of str, optional
        The columns that may be features; by default all without a role.
    kinds : mapping of str to str, optional
        Columns whose kind is declared ("number", "yes/no", "category", "date", "id") rather than
        found.
    only : bool, default=False
        Whether `features` are taken as they are, as for prediction, without finding their kinds;
        the schema is then empty and a feature may be absent.

    Returns
    -------
    Records
        The rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "north.csv")
    >>> _ = path.write_text("age (years),ward,smoker,sick\n71,A,yes,1\n,B,no,0\n64,A,NA,1\n")
    >>> rows = read_records(path, roles={"label": "sick"})
    >>> [(column.name, str(column.kind), column.unit) for column in rows.schema]
    [('age', 'number', 'years'), ('ward', 'category', None), ('smoker', 'yes/no', None)]
    >>> folder.cleanup()
    """
    table = read_table(Path(path))
    return table_records(table, roles or {}, features, kinds or {}, only)


def frame_records(
    frame: Any, kinds: Mapping[str, str] | None = None, *, only: bool = False
) -> Records:
    """Take the columns of a data frame, a mapping of columns or a matrix as a file's.

    With `only` their kinds are not found, as for prediction: the schema is empty then.

    Examples
    --------
    >>> rows = frame_records({"age": [71.0, None], "ward": ["A", "B"]})
    >>> [(column.name, str(column.kind)) for column in rows.schema]
    [('age', 'number'), ('ward', 'category')]
    """
    columns: dict[str, Cells]
    if issparse(frame):
        raise DataError(
            "X is sparse, whose columns are numbers to be taken as they are. Give it to the "
            "classifier as it is, or give a data frame."
        )
    if type(frame).__name__ == "LazyFrame":
        raise DataError("X is a LazyFrame, which has no rows yet. Give X.collect().")
    if isinstance(frame, Mapping) or hasattr(frame, "columns"):
        names = _names(frame)
        refuse_twice(str(name) for name in names)
        columns = {str(name): _cells(frame[name]) for name in names}
    else:
        matrix = np.asarray(frame)
        if matrix.ndim != 2:
            raise DataError(
                f"X has {matrix.ndim} dimensions. Give a data frame, or a matrix with a row a "
                "sample."
            )
        columns = {f"x{j}": matrix[:, j] for j in range(matrix.shape[1])}
    if not columns:
        raise DataError("X has no columns. Give a data frame, or a matrix with a row a sample.")
    lengths = {len(cells) for cells in columns.values()}
    if len(lengths) != 1:
        raise DataError(f"X has columns of lengths {sorted(lengths)}. Give every column one.")
    table = Table(Path("X"), columns, tuple(columns), lengths.pop())
    found = table_records(table, {}, None, kinds or {}, only)
    found.schema.declare(kinds or {})  # refuses a kind for a column that is not there
    return found


def _names(frame: Any) -> list[Any]:
    """Return the names of a frame's columns; Arrow's has the columns themselves in `columns`."""
    if isinstance(frame, Mapping):
        return list(frame)
    return list(getattr(frame, "column_names", frame.columns))


def _cells(column: Any) -> NDArray[Any]:
    values = column.to_numpy() if hasattr(column, "to_numpy") else column
    cells = np.asarray(values)
    if cells.ndim < 2:
        return cells
    several = np.empty(len(cells), object)  # structs of polars: several values in one cell
    several[:] = list(cells)
    return several


def table_records(
    table: Table,
    roles: Mapping[str, str | None],
    features: Sequence[str] | None,
    kinds: Mapping[str, str],
    only: bool = False,
) -> Records:
    """Find what the columns of a table hold: see `read_records`."""
    if table.matrix is not None:
        raise DataError(
            f"{table.path} has CSR rows, whose columns are numbers to be taken as they are. Train "
            "with --raw, or at agents without [prepare] in every node.toml."
        )
    bare = _without_units(table)
    found = {role: _role(bare, role, roles.get(role)) for role in ROLES}
    names = _chosen(bare, features, {n: role for role, n in found.items() if n}, only)
    schema = Schema(()) if only else _schema(bare, names, kinds, found["node"] is None)
    label, task, node = (
        None if found[role] is None else require_values(bare, str(found[role]), role)
        for role in ("label", "task", "node")
    )
    weight = None if found["weight"] is None else weights_of(bare, str(found["weight"]))
    return Records(bare, schema, label, task, node, weight)


def _without_units(table: Table) -> Table:
    """Name columns without their units, where that leaves the names different."""
    units = {header: split_unit(header) for header in table.columns}
    names = [name for name, _ in units.values()]
    heads = {h: h if names.count(name) > 1 else name for h, (name, _) in units.items()}
    return replace(
        table,
        columns={heads[header]: cells for header, cells in table.columns.items()},
        candidates=tuple(heads[header] for header in table.candidates),
        units={heads[h]: unit for h, (_, unit) in units.items() if unit and heads[h] != h},
    )


def _role(table: Table, role: str, asked: str | None) -> str | None:
    name = asked if asked is not None else table.roles.get(role)
    return None if name is None else find_column(table, name, f"the {role}", tuple(table.columns))


def find_column(table: Table, asked: str, use: str, names: Sequence[str]) -> str:
    """Find a column by its name, or by its whole heading with the unit."""
    name = asked if asked in names else split_unit(asked)[0]
    if name not in names:
        raise DataError(
            f"{table.path} has no column {asked!r} for {use}. {did_you_mean(asked, names)}"
        )
    return name


def _chosen(
    table: Table, features: Sequence[str] | None, taken: Mapping[str, str], only: bool
) -> tuple[str, ...]:
    if features is None:
        return tuple(name for name in table.candidates if name not in taken)
    for name in features:
        if name in taken:
            raise ParameterError(
                f"Column {name!r} is the {taken[name]}, so it cannot be a feature."
            )
    if only:
        return tuple(features)
    names = [find_column(table, name, "a feature", table.candidates) for name in features]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ParameterError(f"features lists {twice!r} {names.count(twice)} times. List it once.")
    return tuple(names)


def _schema(
    table: Table, names: Sequence[str], kinds: Mapping[str, str], is_a_node: bool
) -> Schema:
    columns = []
    for name in names:
        kind = Kind(kinds[name]) if kinds.get(name) in set(Kind) else kind_of(table, name)
        levels = _levels(table, name) if kind in _LEVELLED else ()
        unit, exponent, sizes = table.units.get(name), 0, None
        if kind is Kind.NUMBER:
            unit = unit_of(table, name)
            numbers = numbers_of(table, name)
            # Sums can be taken of what is below 1.
            exponent = largest_exponent(numbers)
            sizes = sizes_of(count_exponents(numbers)) if is_a_node else None
        columns.append(ColumnSchema(name, kind, unit, levels, exponent, sizes))
    _refuse_two_ways(table, Schema(tuple(columns)))
    return Schema(tuple(columns)).declare({n: k for n, k in kinds.items() if n in names})


def unit_of(table: Table, name: str) -> str | None:
    """Return the unit in a column's heading, or beside every number of it: 97 %, $5."""
    cells = table.columns[name]
    found = split_sign(cells) if isinstance(cells, tuple) else None
    return table.units.get(name) or (found[1] if found else None)


def _levels(table: Table, name: str) -> tuple[str, ...]:
    return tuple(sorted({level for level in levels_of(table, name) if level is not None}))


def _refuse_two_ways(table: Table, schema: Schema) -> None:
    """Refuse 1.234 in a file that writes decimal commas: it may be 1234."""
    texts = {c.name: table.columns[c.name] for c in schema.of_kind(Kind.NUMBER)}
    columns = {name: cells for name, cells in texts.items() if isinstance(cells, tuple)}
    comma = next((name for name, cells in columns.items() if "," in "".join(cells)), None)
    if comma is None:
        return
    for name, cells in columns.items():
        given = [text.strip() for text in cells if text.strip()]
        if all(_GERMAN_THOUSANDS.fullmatch(text) for text in given):
            row = next(i for i, text in enumerate(cells) if text.strip())
            raise DataError(
                f"{table.place(row)}: column {name!r} has {cells[row]!r}, which may mean "
                f"thousands, as column {comma!r} is written with commas. Write it without the "
                "point, or as a decimal comma."
            )
