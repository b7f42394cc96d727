"""Columns to arrays: features become floats, labels keep the type they were given with."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.delimited import is_number
from dtsvm.data.tables import Column, Table
from dtsvm.errors import DataError

__all__ = ["find_numbers", "require_numbers", "require_values"]

_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)")
# 007 is a name, not seven.
_CODE = re.compile(r"[+-]?0[0-9].*")
_MISSING = ("", "nan")


def require_numbers(table: Table, name: str) -> NDArray[np.float64]:
    """Give a column as finite floats, or refuse the first value that is not one."""
    numbers = _to_floats(table.columns[name])
    if numbers is None:
        _refuse_text(table, name)
    return _finite(table, name, numbers)


def find_numbers(table: Table, name: str) -> NDArray[np.float64] | None:
    """Give a column as finite floats, or None if it holds no number at all.

    A column with both numbers and words is refused: one typing error must not
    make a feature vanish.
    """
    column = table.columns[name]
    numbers = _to_floats(column)
    if numbers is not None:
        return _finite(table, name, numbers)
    if isinstance(column, tuple) and any(is_number(text) for text in column):
        _refuse_text(table, name)
    return None


def require_values(table: Table, name: str, role: str) -> NDArray[Any]:
    """Give a column of labels, tasks or nodes: whole numbers, floats or strings, none missing."""
    column = table.columns[name]
    if not isinstance(column, tuple) and column.shape != (table.n_rows,):
        raise DataError(
            f"{table.path}: X has {table.n_rows} rows, but {name} has shape {column.shape}."
        )
    missing = _is_missing(column)
    if missing.any():
        place = table.place(int(missing.argmax()))
        raise DataError(
            f"{place}: column {name!r} has no value. Every row needs a {role}; "
            "fill it in or remove the row."
        )
    return _from_text(column) if isinstance(column, tuple) else _from_typed(column)


def _to_floats(column: Column) -> NDArray[np.float64] | None:
    """All of a column as floats, NaN and infinity included, or None if something else occurs."""
    if isinstance(column, tuple):
        # Python reads 2024_01 as a number; one search of the joined text is cheap.
        if "_" in "".join(column):
            return None
        try:
            return np.fromiter(map(float, column), dtype=np.float64, count=len(column))
        except ValueError:
            return None
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind != "O" or any(isinstance(value, str) for value in column):
        return None
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _finite(table: Table, name: str, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    is_bad = ~np.isfinite(numbers)
    if is_bad.any():
        row = int(is_bad.argmax())
        raise DataError(
            f"{table.place(row)}: column {name!r} has {numbers[row]}, which is not a finite "
            "number. Fill it in or remove the row."
        )
    return numbers


def _refuse_text(table: Table, name: str) -> NoReturn:
    column = table.columns[name]
    row = 0
    if isinstance(column, tuple):
        row = next(i for i, text in enumerate(column) if not is_number(text))
    raise DataError(
        f"{table.place(row)}: column {name!r} has {column[row]!r}, which is not a number. "
        "Mend the value, or list the columns to use as features."
    )


def _is_missing(column: Column) -> NDArray[np.bool_]:
    if isinstance(column, tuple):
        return np.array([text.strip().lower() in _MISSING for text in column], dtype=np.bool_)
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind == "O":
        # NaN is the one value that differs from itself.
        return np.array([value is None or value != value for value in column], dtype=np.bool_)
    return np.zeros(column.shape, dtype=np.bool_)


def _from_text(column: tuple[str, ...]) -> NDArray[Any]:
    different = {text.strip() for text in column}
    if all(_WHOLE.fullmatch(text) for text in different):
        try:
            return np.fromiter(map(int, column), dtype=np.int64, count=len(column))
        except OverflowError:
            return np.array(column)
    if all(is_number(text) and not _CODE.fullmatch(text) for text in different):
        return np.fromiter(map(float, column), dtype=np.float64, count=len(column))
    return np.array([text.strip() for text in column])


def _from_typed(column: NDArray[Any]) -> NDArray[Any]:
    if column.dtype.kind == "f":
        return column.astype(np.float64)
    if column.dtype.kind in "biu":
        fits = np.can_cast(column.dtype, np.int64)
        return column.astype(np.int64) if fits else column
    return np.array([str(value) for value in column.tolist()])
