"""Columns to arrays: numbers, yes/no and categories with their gaps; labels in their own type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.cells import are_whole, as_float, as_numeral, as_word, is_none
from dtsvm.data.kinds import (
    FIRST_DAY,
    LAST_DAY,
    NO_WORDS,
    YES_WORDS,
    Kind,
    digits_kind,
    looks_like_id,
    runs_on,
    text_kind,
)
from dtsvm.data.memory import in_pieces
from dtsvm.data.numerals import (
    MISSING,
    Ambiguous,
    is_missing_text,
    is_number,
    is_numeral,
    parse_numbers,
    split_sign,
)
from dtsvm.data.spellings import refuse_spellings
from dtsvm.data.tables import Cells, Table
from dtsvm.errors import DataError

__all__ = [
    "ENCODE",
    "LARGEST",
    "MEND",
    "find_numbers",
    "kind_of",
    "levels_of",
    "numbers_of",
    "require_numbers",
    "require_values",
    "switches_of",
    "texts_of",
    "weights_of",
]

# A feature beyond this cannot be squared and summed.
LARGEST = 1e100
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)")
# A label may be called "-" or "?".
_NO_NAME = MISSING - {"-", ".", "?"}
MEND = "Mend it."
ENCODE = "Mend it, or declare the column a category."
_CHOOSE = "Mend the value, or list the columns to use as features."
# 007 is a name, not seven.
_CODE = re.compile(r"[+-]?0[0-9].*")


def kind_of(table: Table, name: str) -> Kind:
    """Find the kind of a column from its values, or refuse one whose values do not go together."""
    cells = _settled(table, name)
    if not isinstance(cells, tuple):
        return _whole_kind(table.columns[name]) or _number_kind(name, _checked(table, name, cells))
    counts = {text: n for text, n in Counter(cells).items() if not is_missing_text(text)}
    if not counts:
        return Kind.EMPTY
    numbers = _parsed(table, name, cells)
    different = {text.strip() for text in counts}
    if numbers is not None and not _are_codes(different):
        return digits_kind(different) or _number_kind(name, _checked(table, name, numbers))
    n_present = sum(counts.values())
    n_numerals = sum(n for text, n in counts.items() if is_numeral(text))
    if numbers is None and n_numerals > n_present / 2:
        _refuse_text(table, name, cells, ENCODE)
    return text_kind(name, different, n_present)


def numbers_of(table: Table, name: str, remedy: str = ENCODE) -> NDArray[np.float64]:
    """Give a column as floats, NaN where there is no value, or refuse what is no number."""
    cells = _settled(table, name)
    numbers = _parsed(table, name, cells) if isinstance(cells, tuple) else cells
    if numbers is None:
        _refuse_text(table, name, cells, remedy)
    return _checked(table, name, numbers)


def switches_of(table: Table, name: str, remedy: str = ENCODE) -> NDArray[np.float64]:
    """Give a yes/no column as 1 and 0, NaN where there is no value, or refuse another word."""
    cells = _settled(table, name)
    numbers = np.array(_by_text(cells, _switch)) if isinstance(cells, tuple) else cells
    is_strange = ~np.isnan(numbers) & (numbers != 0) & (numbers != 1)
    if is_strange.any():
        row = int(is_strange.argmax())
        found = cells[row].strip().lower() if isinstance(cells, tuple) else f"{numbers[row]:g}"
        raise DataError(
            f"{table.place(row)}: column {name!r} has {found!r}, which is neither yes nor no. "
            f"{remedy}"
        )
    return numbers


def levels_of(table: Table, name: str) -> NDArray[np.object_]:
    """Give a column as text without surrounding blanks, None where there is no value."""
    cells = _settled(table, name)
    found = np.empty(table.n_rows, object)
    if isinstance(cells, tuple):
        found[:] = _by_text(cells, lambda text: None if is_missing_text(text) else text.strip())
    else:
        different, place = np.unique(cells + 0.0, return_inverse=True)
        words = [None if value != value else as_numeral(value) for value in different.tolist()]
        found[:] = np.array(words, object)[place]
    return found


def texts_of(table: Table, name: str) -> list[str]:
    """Give a column as text to copy, nothing where there is no value; whole numbers exactly."""
    cells = table.columns[name]
    if not isinstance(cells, tuple) and are_whole(cells):
        return ["" if is_none(value) else str(value) for value in cells.tolist()]
    return ["" if text is None else text for text in levels_of(table, name).tolist()]


def require_numbers(table: Table, name: str) -> NDArray[np.float64]:
    """Give a column as finite floats, or refuse the first value that is not one."""
    cells = _settled(table, name)
    numbers = _complete(cells)
    if numbers is None:
        _refuse_text(table, name, cells, _CHOOSE)
    return _finite(table, name, numbers)


def find_numbers(table: Table, name: str) -> NDArray[np.float64] | None:
    """Give a column as finite floats, or None if it holds no number at all.

    A column with both numbers and words is refused: one typing error must not
    make a feature vanish.
    """
    cells = _settled(table, name)
    numbers = _complete(cells)
    if numbers is not None:
        return _finite(table, name, numbers)
    if any(is_number(text) for text in cells):
        _refuse_text(table, name, cells, _CHOOSE)
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
    found = _from_text(column) if isinstance(column, tuple) else _from_typed(column)
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        row = int((~np.isfinite(found)).argmax())
        raise DataError(
            f"{table.place(row)}: column {name!r} has {found[row]}, which is no {role}. Mend it."
        )
    if found.dtype.kind == "U":
        refuse_spellings(table, name, found)
    return found


def weights_of(table: Table, name: str) -> NDArray[np.float64]:
    """Give a column of weights: numbers that are not negative, none missing."""
    weights = numbers_of(table, name, "Name a column of weights.")
    is_bad = ~(weights >= 0)
    if is_bad.any():
        row = int(is_bad.argmax())
        shown = "no value" if np.isnan(weights[row]) else f"{weights[row]:g}"
        raise DataError(
            f"{table.place(row)}: column {name!r} has {shown}. A row's weight is a number that is "
            "not negative."
        )
    return weights


# Cells as they come to cells of two sorts: texts, or floats with NaN


def _settled(table: Table, name: str) -> tuple[str, ...] | NDArray[np.float64]:
    cells = table.columns[name]
    if isinstance(cells, tuple):
        return cells
    if cells.dtype.kind in "biuf":
        return cells.astype(np.float64, copy=False)
    if cells.dtype.kind == "M":
        return tuple("" if text == "NaT" else text for text in cells.astype(str).tolist())
    if cells.dtype.kind == "m":
        return np.asarray(cells / np.timedelta64(1, "s"), np.float64)
    values = cells.tolist()
    _refuse_lists(table, name, values)
    if cells.dtype.kind == "O" and not any(isinstance(value, str) for value in values):
        try:
            return np.array([np.nan if is_none(value) else as_float(value) for value in values])
        except (TypeError, ValueError):
            pass
    return tuple("" if is_none(value) else as_word(value) for value in values)


def _parsed(table: Table, name: str, cells: tuple[str, ...]) -> NDArray[np.float64] | None:
    """All of a column of text as floats, NaN where there is no value; None if a word occurs."""
    quick = _complete(cells)
    if quick is not None:
        return quick
    signed = split_sign(cells)
    texts = [text.strip().replace("−", "-") for text in (signed[0] if signed else cells)]
    different = dict.fromkeys(text for text in texts if not is_missing_text(text))
    try:
        found = parse_numbers(different)
    except Ambiguous as error:
        row = texts.index(str(error))
        raise DataError(
            f"{table.place(row)}: column {name!r} has '{error}', which may mean "
            f"{str(error).replace(',', '')} or {str(error).replace(',', '.')}. "
            "Write it without the comma, or with a point."
        ) from None
    if found is None:
        return None
    return np.array([found.get(text, np.nan) for text in texts])


def _complete(cells: tuple[str, ...] | NDArray[np.float64]) -> NDArray[np.float64] | None:
    """All of a column as floats, NaN and infinity included, or None if something else occurs."""
    if not isinstance(cells, tuple):
        return cells
    # Python reads 2024_01 as a number; one search of the joined text is cheap.
    if "_" in "".join(cells):
        return None
    try:
        return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
    except ValueError:
        return None


def _whole_kind(cells: Cells) -> Kind | None:
    """Days and identifiers among columns of whole numbers, as Parquet has them."""
    if isinstance(cells, tuple) or not len(cells):
        return None
    whole: Any = cells
    if cells.dtype.kind == "f":  # days with gaps; of longer numbers a float cannot tell
        if not FIRST_DAY <= float(np.fmin.reduce(cells)) <= np.fmax.reduce(cells) <= LAST_DAY:
            return None
        whole = cells[~np.isnan(cells)]
    elif not are_whole(cells):
        return None
    elif cells.dtype.kind == "O":
        whole = np.array([value for value in cells.tolist() if not is_none(value)], object)
    if not len(whole) or whole.min() < FIRST_DAY:
        return None
    return digits_kind({as_numeral(value) for value in np.unique(whole).tolist()})


def _number_kind(name: str, numbers: NDArray[np.float64]) -> Kind:
    for block in in_pieces(numbers):
        some = block[~np.isnan(block)]
        if (some != np.round(some)).any():
            return Kind.NUMBER
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return Kind.EMPTY
    if np.isin(present, (0.0, 1.0)).all():
        return Kind.ZERO_ONE
    different = np.unique(present)
    counts = len(different) == len(present)
    is_run = counts and runs_on(len(present), float(different[0]), float(different[-1]))
    is_id = is_run or looks_like_id(name, len(different), len(present))
    return Kind.ID if is_id else Kind.NUMBER


def _are_codes(different: set[str]) -> bool:
    """Whether whole numbers are names: some begin with 0, as 007 does."""
    return any(_CODE.fullmatch(text) and "." not in text and "," not in text for text in different)


def _by_text(cells: tuple[str, ...], read: Callable[[str], Any]) -> list[Any]:
    """Read every different text once."""
    known = {text: read(text) for text in set(cells)}
    return [known[text] for text in cells]


def _switch(word: str) -> float:
    text = word.strip().lower()
    if is_missing_text(text):
        return np.nan
    if text in YES_WORDS:
        return 1.0
    if text in NO_WORDS:
        return 0.0
    return float(text) if is_number(text) and float(text) in (0, 1) else -1.0


# Refusals


def _checked(table: Table, name: str, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return _refuse_first(table, name, numbers, lambda some: np.abs(some) > LARGEST)


def _finite(table: Table, name: str, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return _refuse_first(table, name, numbers, lambda some: ~(np.abs(some) <= LARGEST))


def _refuse_first(
    table: Table,
    name: str,
    numbers: NDArray[np.float64],
    is_bad: Callable[[NDArray[np.float64]], NDArray[np.bool_]],
) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        is_good = all(not is_bad(block).any() for block in in_pieces(numbers))
    if not is_good:
        row = int(is_bad(numbers).argmax())
        value = numbers[row]
        if np.isfinite(value):
            fault = f"beyond ±{LARGEST:g}. Use a larger unit or mend the value."
        else:
            fault = "which is not a finite number. Fill it in or remove the row."
        raise DataError(f"{table.place(row)}: column {name!r} has {value}, {fault}")
    return numbers


def _refuse_text(table: Table, name: str, cells: Cells, remedy: str) -> NoReturn:
    """Refuse the first word, or the first gap where there are no words."""
    given = [row for row, text in enumerate(cells) if not is_missing_text(text)]
    strange = [row for row in given if not is_numeral(cells[row])]
    strange = strange or [row for row in given if not is_number(cells[row])]
    if strange:
        row, fault = strange[0], f"{cells[strange[0]]!r}, which is not a number. {remedy}"
    else:
        row = next(row for row, text in enumerate(cells) if is_missing_text(text))
        fault = "no value. Fill it in, remove the row, or let Preparation fill it."
    raise DataError(f"{table.place(row)}: column {name!r} has {fault}")


def _refuse_lists(table: Table, name: str, values: list[Any]) -> None:
    for row, value in enumerate(values):
        if isinstance(value, list | tuple | dict | set | np.ndarray):
            raise DataError(
                f"{table.place(row)}: column {name!r} has several values in one cell. Give one "
                "value a cell, or list the columns to use as features."
            )


# Labels, tasks, nodes


def _is_missing(column: Cells) -> NDArray[np.bool_]:
    if isinstance(column, tuple):
        return np.array(_by_text(column, _has_no_name), dtype=np.bool_)
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "OUS":
        return np.array([_has_no_name(value) for value in column.tolist()], dtype=np.bool_)
    return np.zeros(column.shape, dtype=np.bool_)


def _has_no_name(value: Any) -> bool:
    if isinstance(value, str | bytes):
        return as_word(value).strip().lower() in _NO_NAME
    return is_none(value)


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
    return np.array([as_word(value).strip() for value in column.tolist()])
