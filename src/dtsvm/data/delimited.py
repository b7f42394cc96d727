"""Text in: one CSV file to columns of text, for `tables`."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

from dtsvm.data.cut import looks_cut
from dtsvm.data.numerals import is_number
from dtsvm.data.text import read_text
from dtsvm.errors import DataError

__all__ = ["read_csv_text"]

MOST_COLUMNS = 100_000
_DELIMITERS = ",;\t|"
# Excel's own first line, which names the delimiter.
_SEPARATOR = re.compile(r"\s*sep=(.)\s*", re.IGNORECASE)


def read_csv_text(path: Path) -> tuple[dict[str, tuple[str, ...]], list[int]]:
    """Read a CSV file with a header; the delimiter is a comma, a semicolon, a tab or a bar.

    Parameters
    ----------
    path : Path
        The file; ``-`` is standard input.

    Returns
    -------
    columns : dict of str to tuple of str
        The columns, in order.
    lines : list of int
        The line each row ends on, counted from 1. Blank lines are no rows.
    """
    whole = read_text(path)
    text = io.StringIO(whole, newline="")
    first = text.readline()
    said = _SEPARATOR.fullmatch(first)
    above = 1 if said else 0
    delimiter = said[1] if said else _sniff(first)
    if not said:
        text.seek(0)
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True, strict=True)
    lines: list[int] = []
    try:
        header = _checked_header(path, next(reader, []), 1 + above)
        rows = _checked_rows(path, reader, len(header), delimiter, lines, above)
    except csv.Error as error:
        begun = lines[-1] + 1 if lines else 1 + above
        raise _unreadable(path, str(error), begun, reader.line_num + above) from error
    if not whole.endswith(("\n", "\r")) and looks_cut([row[-1].strip() for row in rows]):
        raise DataError(
            f"{path}, line {lines[-1]}: the file ends inside this line, with {rows[-1][-1]!r} in "
            f"column {header[-1]!r}; no other row has the like. Copy the file again or, if it is "
            "whole, end its last line."
        )
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    return dict(zip(header, columns, strict=True)), lines


def _sniff(first_line: str) -> str:
    """Choose the delimiter that cuts the header into most names; a comma if none does."""

    def n_names(delimiter: str) -> int:
        try:
            return len(next(csv.reader([first_line], delimiter=delimiter), []))
        except csv.Error:  # a name longer than any: not this delimiter
            return 0

    return max(_DELIMITERS, key=n_names)


def _checked_header(path: Path, cells: list[str], line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise DataError(f"{path}, line {line} is blank. Put the column names on the first line.")
    if len(names) > MOST_COLUMNS:
        raise DataError(
            f"{path}, line {line} names {len(names):,} columns; at most {MOST_COLUMNS:,} can be "
            "read. Leave out what is not needed, or turn rows into columns."
        )
    if all(is_number(name) for name in names):
        raise DataError(
            f"{path}, line {line} holds only numbers, no column names. "
            "Put the names on the first line."
        )
    for position, name in enumerate(names, start=1):
        if not name:
            raise DataError(
                f"{path}, line {line}: column {position} has no name. Name it, or remove it "
                "(pandas writes no such column with index=False)."
            )
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise DataError(f"{path}, line {line}: {count} columns are called {name!r}. Rename them.")
    return names


def _checked_rows(
    path: Path, reader: Any, n_columns: int, delimiter: str, lines: list[int], above: int
) -> list[list[str]]:
    """Read all rows; `lines` is told the line each of them ends on."""
    rows = []
    for row in reader:
        if not row:
            continue
        if len(row) != n_columns:
            hint = _hint(row, n_columns, delimiter) if len(row) > n_columns else ""
            raise DataError(
                f"{path}, line {reader.line_num + above}: expected {n_columns} columns, got "
                f"{len(row)}. Give every row one value for each column name{hint}."
            )
        rows.append(row)
        lines.append(reader.line_num + above)
    return rows


def _unreadable(path: Path, reason: str, begun: int, line: int) -> DataError:
    """Word what the csv module says of a row that begins on one line and fails on another."""
    if reason.startswith(("unexpected end", "field larger")):
        return DataError(
            f"{path}, line {begun}: a quote is opened here and not closed until line {line}. Close "
            "it or, if the file ends too early, copy it again."
        )
    return DataError(f"{path}, line {line}: {reason}. Mend the line.")


def _hint(row: list[str], n_columns: int, delimiter: str) -> str:
    """Say what probably happened: 1,5 between commas is two values; a title is no names."""
    if n_columns == 1:
        return "; is the first line a title? Then remove it"
    are_digits = sum(cell.strip().lstrip("+-").isdigit() for cell in row)
    if delimiter == "," and are_digits > len(row) / 2:
        return "; a decimal comma needs quotes, or semicolons between values"
    return ""
