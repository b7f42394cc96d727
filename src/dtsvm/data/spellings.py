"""Names: one label, task or node written in two ways, No and no; two columns of one name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from dtsvm.data.kinds import NO_WORDS, YES_WORDS
from dtsvm.data.tables import Table
from dtsvm.errors import DataError

__all__ = ["refuse_other_spellings", "refuse_spellings", "refuse_twice"]


def refuse_spellings(table: Table, name: str, texts: NDArray[Any]) -> None:
    """Refuse names that differ in case only, No and no; single letters may be two names."""
    first: dict[str, str] = {}
    for text in dict.fromkeys(texts.tolist()):
        known = first.setdefault(text.lower(), text)
        if _are_spellings(known, text):
            row = int((texts == text).argmax())
            raise DataError(
                f"{table.place(row)}: column {name!r} has {text!r}, and elsewhere {known!r}. "
                "Write them alike."
            )


def _are_spellings(one: str, other: str) -> bool:
    return one != other and (len(one) > 1 or one.lower() in YES_WORDS | NO_WORDS)


def refuse_other_spellings(names: Iterable[tuple[Any, Any]], role: str) -> None:
    """Refuse names of several files, each with its file, that differ in case only.

    Examples
    --------
    >>> refuse_other_spellings([("a.csv", "no"), ("a.csv", "yes"), ("b.csv", "No")], "label")
    Traceback (most recent call last):
    ...
    dtsvm.errors.DataError: b.csv has the label 'No', and a.csv has 'no'. Write them alike.
    """
    first: dict[str, tuple[str, Any]] = {}
    for file, text in names:
        if isinstance(text, str):
            known, there = first.setdefault(text.lower(), (text, file))
            if _are_spellings(known, text):
                where = "elsewhere" if there == file else f"{there} has"
                raise DataError(
                    f"{file} has the {role} {text!r}, and {where} {known!r}. Write them alike."
                )


def refuse_twice(names: Iterable[Any]) -> None:
    """Refuse a frame that has two columns of one name."""
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise DataError(f"X has {count} columns called {name!r}. Rename them.")
