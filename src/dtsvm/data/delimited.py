"""Text in: one CSV file to columns of text, for `tables`."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

from dtsvm.errors import DataError

__all__ = ["is_number", "read_csv_text"]

_DELIMITERS = ",;\t"


def read_csv_text(path: Path) -> tuple[dict[str, tuple[str, ...]], list[int]]:
    """Read a CSV file with a header; the delimiter is a comma, a semicolon or a tab.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    columns : dict of str to tuple of str
        The columns, in order.
    lines : list of int
        The line each row ends on, counted from 1. Blank lines are no rows.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            delimiter = _sniff(file.readline())
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True, strict=True)
            header = _checked_header(path, next(reader, []))
            rows, lines = _checked_rows(path, reader, len(header))
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text. Save it as UTF-8.") from error
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}. Mend the line.") from error
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    return dict(zip(header, columns, strict=True)), lines


def is_number(text: str) -> bool:
    """Tell whether a text is a number; Python's digit separator does not count.

    Examples
    --------
    >>> is_number("-1.5e3"), is_number("2024_01"), is_number("")
    (True, False, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _sniff(first_line: str) -> str:
    """Choose the delimiter that cuts the header into most names; a comma if none does."""

    def n_names(delimiter: str) -> int:
        return len(next(csv.reader([first_line], delimiter=delimiter), []))

    return max(_DELIMITERS, key=n_names)


def _checked_header(path: Path, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise DataError(f"{path}, line 1 is blank. Put the column names on the first line.")
    if all(is_number(name) for name in names):
        raise DataError(
            f"{path}, line 1 holds only numbers, no column names. Put the names on the first line."
        )
    for position, name in enumerate(names, start=1):
        if not name:
            raise DataError(
                f"{path}, line 1: column {position} has no name. Name it, or remove it "
                "(pandas writes no such column with index=False)."
            )
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise DataError(f"{path}, line 1: {count} columns are called {name!r}. Rename them.")
    return names


def _checked_rows(path: Path, reader: Any, n_columns: int) -> tuple[list[list[str]], list[int]]:
    rows, lines = [], []
    for row in reader:
        if not row:
            continue
        if len(row) != n_columns:
            raise DataError(
                f"{path}, line {reader.line_num}: expected {n_columns} columns, got {len(row)}. "
                "Give every row one value for each column name."
            )
        rows.append(row)
        lines.append(reader.line_num)
    return rows, lines
