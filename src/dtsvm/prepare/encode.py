"""Columns to numbers and codes, as an agreed schema says: what is measured and made features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import ColumnSchema, Kind, Records, Schema
from dtsvm.data.columns import ENCODE, MEND, levels_of, numbers_of, switches_of
from dtsvm.data.schema import absent_remedy
from dtsvm.errors import DataError

__all__ = ["MEASURED", "Encoded", "encode", "encode_parts", "join", "recode", "require_columns"]

# The kinds that become one number a row.
MEASURED = (Kind.NUMBER, Kind.ZERO_ONE, Kind.YES_NO)


@dataclass(frozen=True, eq=False)
class Encoded:
    """A node's rows under the schema that all agreed on.

    Attributes
    ----------
    schema : Schema
        What was agreed.
    numbers : ndarray of shape (n_numbers, n_rows)
        A line for each column of numbers or yes/no, NaN where there is no value.
    codes : ndarray of int64, shape (n_categories, n_rows)
        A line for each column of categories: which of its levels a row has, `len(levels)` where
        there is no value, −1 for a level that is not agreed.
    """

    schema: Schema
    numbers: NDArray[np.float64]
    codes: NDArray[np.int64]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.numbers.shape[1])

    def cut(self, first: int, end: int) -> Encoded:
        """Return rows that follow each other, without a copy."""
        return Encoded(self.schema, self.numbers[:, first:end], self.codes[:, first:end])

    def take(self, index: NDArray[np.int64]) -> Encoded:
        """Return some of the rows."""
        # `take` keeps lines contiguous: sums over them have the same bits wherever they are made.
        return Encoded(
            self.schema, self.numbers.take(index, axis=1), self.codes.take(index, axis=1)
        )


def encode(records: Records, schema: Schema, missing_columns: str = "refuse") -> Encoded:
    """Read a node's columns as the agreed schema says, in its order.

    Parameters
    ----------
    records : Records
        The rows.
    schema : Schema
        What was agreed.
    missing_columns : {"refuse", "impute"}
        What to do with a column that these rows lack.

    Returns
    -------
    Encoded
        The rows in numbers.

    Examples
    --------
    >>> from dtsvm.data import frame_records
    >>> rows = frame_records({"age": [71.0, None], "ward": ["B", "A"], "smoker": ["yes", "no"]})
    >>> found = encode(rows, rows.schema)
    >>> found.numbers.tolist(), found.codes.tolist()
    ([[71.0, nan], [1.0, 0.0]], [[1, 0]])
    """
    return encode_parts(records, schema, missing_columns, [slice(None)])[0]


def encode_parts(
    records: Records,
    schema: Schema,
    missing_columns: str,
    parts: Sequence[slice | NDArray[np.int64]],
    lets_go: bool = False,
) -> list[Encoded]:
    """Encode several parts of the rows at once, a column after the other.

    Parameters
    ----------
    records, schema, missing_columns
        As in `encode`.
    parts : sequence of slice or ndarray
        The rows of each part.
    lets_go : bool, default=False
        Whether each column is taken out of `records`, so that nothing is there twice.

    Returns
    -------
    list of Encoded
        The parts.
    """
    if missing_columns == "refuse":
        require_columns(records, schema.of_kind(*MEASURED, Kind.CATEGORY))
    measured, coded = schema.of_kind(*MEASURED), schema.of_kind(Kind.CATEGORY)
    lengths = [len(range(records.n_rows)[p]) if isinstance(p, slice) else len(p) for p in parts]
    found = [
        Encoded(schema, np.empty((len(measured), n)), np.empty((len(coded), n), np.int64))
        for n in lengths
    ]
    for what, read, columns in (("numbers", _numbers, measured), ("codes", _codes, coded)):
        for i, column in enumerate(columns):
            values = read(records, column)
            if lets_go:
                records.table.columns.pop(column.name, None)
            for rows, part in zip(found, parts, strict=True):
                getattr(rows, what)[i] = values[part]
    return found


def recode(rows: Encoded, schema: Schema) -> Encoded:
    """Return rows under a schema that has fewer levels: others become −1.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from dtsvm.data import frame_records
    >>> rows = frame_records({"ward": ["B", "A", None]})
    >>> fewer = Schema((replace(rows.schema["ward"], levels=("B",)),))
    >>> recode(encode(rows, rows.schema), fewer).codes.tolist()
    [[0, -1, 1]]
    """
    codes = np.empty_like(rows.codes)
    for i, column in enumerate(rows.schema.of_kind(Kind.CATEGORY)):
        place = {level: k for k, level in enumerate(schema[column.name].levels)}
        # The last two: no value, and what was −1.
        known = [*(place.get(level, -1) for level in column.levels), len(place), -1]
        codes[i] = np.array(known)[rows.codes[i]]
    return Encoded(schema, rows.numbers, codes)


def join(schema: Schema, parts: Sequence[Encoded]) -> Encoded:
    """Return rows of several files as one; there may be none."""
    n_numbers, n_codes = len(schema.of_kind(*MEASURED)), len(schema.of_kind(Kind.CATEGORY))
    return Encoded(
        schema,
        np.concatenate([np.empty((n_numbers, 0)), *(p.numbers for p in parts)], axis=1),
        np.concatenate([np.empty((n_codes, 0), np.int64), *(p.codes for p in parts)], axis=1),
    )


def require_columns(records: Records, columns: Iterable[ColumnSchema]) -> None:
    """Refuse rows that lack one of these columns."""
    here = records.table.columns
    for column in columns:
        if column.name not in here:
            raise DataError(
                f"{records.table.path} has no column {column.name!r}, which features are made of. "
                f"{absent_remedy(column.name, here)}"
            )


def _numbers(records: Records, column: ColumnSchema) -> NDArray[np.float64]:
    if column.name not in records.table.columns:
        return np.full(records.n_rows, np.nan)
    read = numbers_of if column.kind is Kind.NUMBER else switches_of
    # Kinds that are settled already, as for prediction, cannot be declared.
    return read(records.table, column.name, ENCODE if records.schema.columns else MEND)


def _codes(records: Records, column: ColumnSchema) -> NDArray[np.int64]:
    place: dict[str | None, int] = {level: i for i, level in enumerate(column.levels)}
    place[None] = len(column.levels)
    if column.name not in records.table.columns:
        return np.full(records.n_rows, place[None], np.int64)
    levels = levels_of(records.table, column.name).tolist()
    return np.array([place.get(level, -1) for level in levels], np.int64)
