"""One value of a column, as files and frames of all sorts have it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from numpy.typing import NDArray

__all__ = ["EXACT", "are_whole", "as_float", "as_numeral", "as_word", "is_none"]

EXACT = 2**53  # floats tell whole numbers apart below this


def is_none(value: Any) -> bool:
    """Tell whether this is no value.

    Examples
    --------
    >>> is_none(None), is_none(float("nan")), is_none("")
    (True, True, False)
    """
    # NaN is the one value that differs from itself; pandas' NA answers neither yes nor no.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def as_float(value: Any) -> float:
    """Give a number, or a duration in seconds.

    Examples
    --------
    >>> as_float(timedelta(minutes=2)), as_float(True)
    (120.0, 1.0)
    """
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def as_word(value: Any) -> str:
    """Word a value; Parquet and npz may have text as bytes.

    Examples
    --------
    >>> as_word("ward"), as_word(b"ward"), as_word(7)
    ('ward', 'ward', '7')
    """
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return str(value)


def as_numeral(value: float) -> str:
    """Write a number as short as it was, a whole one to its last digit.

    Examples
    --------
    >>> as_numeral(0.1), as_numeral(3.0), as_numeral(1234567890123456.0)
    ('0.1', '3', '1234567890123456')
    """
    is_exact = isinstance(value, int) or (abs(value) < EXACT and value == round(value))
    return str(int(value)) if is_exact else f"{value:.15g}"


def are_whole(cells: NDArray[Any]) -> bool:
    """Whether these are whole numbers, of which some may be missing where floats round them."""
    if cells.dtype.kind != "O":
        return cells.dtype.kind in "biu"
    return all(isinstance(value, int) or is_none(value) for value in cells.tolist())
