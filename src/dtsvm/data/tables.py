"""Files in: one CSV, Parquet or npz file to named columns, which `rows` then arranges."""

from __future__ import annotations

import csv
import importlib
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError, MissingExtraError, did_you_mean

__all__ = ["Column", "Table", "read_table"]

# Text straight from a CSV file, or values that already have a type.
Column = Sequence[str] | NDArray[np.generic]

_DELIMITERS = ",;\t"


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of one file.

    Attributes
    ----------
    path : Path
        The file.
    columns : dict of str to Column
        All columns, in the order of the file.
    candidates : tuple of str
        The columns that may be features.
    n_rows : int
        How many rows there are.
    lines : sequence of int or None
        The line of each row in the file, where it has lines.
    defaults : dict of str to str
        The columns whose role ("task", "node") the format itself settles.
    """

    path: Path
    columns: dict[str, Column]
    candidates: tuple[str, ...]
    n_rows: int
    lines: Sequence[int] | None
    defaults: dict[str, str]

    def place(self, row: int) -> str:
        """Name the place of a row, counted from 0, for an error message."""
        return f"{self.path}, " + (f"line {self.lines[row]}" if self.lines else f"row {row + 1}")


def read_table(path: Path) -> Table:
    """Read a file into columns, by its suffix.

    Parameters
    ----------
    path : Path
        A ``.csv``, ``.tsv``, ``.parquet`` or ``.npz`` file.

    Returns
    -------
    Table
        Its columns, not yet checked to be numbers.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        tail = did_you_mean(path.suffix, _READERS) if path.suffix else did_you_mean("", _READERS)
        raise DataError(f"{path} has the unsupported suffix {path.suffix!r}. {tail}")
    if not path.exists():
        raise DataError(f"There is no file {path}. Check the path.")
    if not path.is_file():
        raise DataError(f"{path} is not a file. Give the files inside it.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty. Give a file with rows.")
    try:
        table = reader(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    if table.n_rows == 0:
        raise DataError(f"{path} has columns but no rows. Give a file with rows.")
    return table


def _read_csv(path: Path) -> Table:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, rows, lines = _split_lines(path, file.readline(), file)
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text. Save it as UTF-8.") from error
    except csv.Error as error:
        raise DataError(f"{path} is not valid CSV: {error}. Save it as CSV again.") from error
    columns: dict[str, Column] = dict(zip(header, zip(*rows, strict=True), strict=bool(rows)))
    return Table(path, columns, tuple(header), len(rows), lines, {})
