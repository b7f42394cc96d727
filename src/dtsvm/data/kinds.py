"""What a column holds: its kind, found from its values, and the kind that two nodes agree on."""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import StrEnum

__all__ = [
    "FIRST_DAY",
    "KIND_WORDS",
    "LAST_DAY",
    "MOST_LEVELS",
    "NO_WORDS",
    "YES_WORDS",
    "Kind",
    "digits_kind",
    "join_kinds",
    "looks_like_id",
    "runs_on",
    "text_kind",
]

YES_WORDS = frozenset({"yes", "y", "true", "t", "ja", "j", "oui", "1"})
NO_WORDS = frozenset({"no", "n", "false", "f", "nein", "non", "0"})
# More different texts than this are no categories.
MOST_LEVELS = 1000
# So many rows must speak before values alone make a column an identifier.
_ENOUGH = 20
# 20240131; no measurement has nothing but such numbers.
FIRST_DAY, LAST_DAY = 19000101, 20991231
_DAY = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
# Beyond 16 digits a float does not tell whole numbers apart.
_LONG = re.compile(r"\d{16,}")
_ID_NAME = re.compile(r"(^|[_\s.-])(?i:id|uid|pid|uuid|guid|mrn)$|[a-z](Id|ID)$")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})( \d{1,2}:\d{2}(:\d{2})?)?"
    r"|\d{1,2}[ .-]+[A-Za-z]{3,9}[ .,-]+(\d{4}|\d{2})|[A-Za-z]{3,9} \d{1,2}, \d{4}"
)
# Months, quarters, times of a day and durations; few different ones are good categories.
_TIME = re.compile(
    r"(19|20)\d\d([-/](0[1-9]|1[0-2])|-?Q[1-4])"
    r"|[+-]?(\d+ days?,? )?[+-]?\d+:[0-5]\d(:[0-5]\d([.,]\d+)?)?( ?[AaPp][Mm])?"
    r"|\d+ days?|P(\d+[YMWD])*(T(\d+([.,]\d+)?[HMS])+)?"
)


class Kind(StrEnum):
    """What a column holds."""

    NUMBER = "number"
    ZERO_ONE = "0/1"
    YES_NO = "yes/no"
    CATEGORY = "category"
    DATE = "date"
    ID = "id"
    EMPTY = "empty"


KIND_WORDS = {
    Kind.NUMBER: "a number",
    Kind.ZERO_ONE: "0 and 1",
    Kind.YES_NO: "yes and no",
    Kind.CATEGORY: "categories",
    Kind.DATE: "dates or times",
    Kind.ID: "identifiers",
    Kind.EMPTY: "nothing",
}

_JOINED = {
    frozenset({Kind.ZERO_ONE, Kind.NUMBER}): Kind.NUMBER,
    frozenset({Kind.ZERO_ONE, Kind.YES_NO}): Kind.YES_NO,
    frozenset({Kind.YES_NO, Kind.CATEGORY}): Kind.CATEGORY,
}


def join_kinds(one: Kind, other: Kind) -> Kind | None:
    """Return the kind that fits both, or None if there is none.

    The order in which nodes are joined does not matter.

    Examples
    --------
    >>> str(join_kinds(Kind.ZERO_ONE, Kind.NUMBER)), join_kinds(Kind.NUMBER, Kind.CATEGORY)
    ('number', None)
    """
    if one is other or other is Kind.EMPTY:
        return one
    if one is Kind.EMPTY:
        return other
    if Kind.ID in (one, other):
        return Kind.ID
    return _JOINED.get(frozenset({one, other}))


def text_kind(name: str, different: Collection[str], n_present: int) -> Kind:
    """Tell the kind of a column of words: yes/no, dates, identifiers or categories.

    Examples
    --------
    >>> times = [f"{hour:02d}:30:00" for hour in range(24)]
    >>> str(text_kind("stay", times, 24)), str(text_kind("stay", times[:2], 24))
    ('date', 'category')
    """
    lower = {text.lower() for text in different}
    if lower <= YES_WORDS | NO_WORDS:
        return Kind.YES_NO
    if all(_DATE.fullmatch(text) for text in different):
        return Kind.DATE
    is_id = looks_like_id(name, len(different), n_present)
    is_free = n_present >= _ENOUGH and len(different) > n_present / 2
    if not (is_id or is_free or len(different) > MOST_LEVELS):
        return Kind.CATEGORY
    return Kind.DATE if all(_TIME.fullmatch(text) for text in different) else Kind.ID


def digits_kind(different: Collection[str]) -> Kind | None:
    """Tell days and identifiers written as digits alone; None for numbers.

    Examples
    --------
    >>> str(digits_kind({"20240131", "20231224"})), str(digits_kind({"4929000000000006"}))
    ('date', 'id')
    """
    for pattern, kind in ((_DAY, Kind.DATE), (_LONG, Kind.ID)):
        if different and all(pattern.fullmatch(text) for text in different):
            return kind
    return None


def looks_like_id(name: str, n_different: int, n_present: int) -> bool:
    """Whether a column's name says "identifier" and its values mostly differ.

    Examples
    --------
    >>> looks_like_id("patient_id", 40, 40), looks_like_id("ward_id", 3, 40)
    (True, False)
    >>> looks_like_id("fluid", 40, 40), looks_like_id("patientId", 40, 40)
    (False, True)
    """
    return bool(_ID_NAME.search(name)) and n_different > n_present / 2


def runs_on(n_present: int, lowest: float, highest: float) -> bool:
    """Whether different whole numbers are a count of the rows, as 1, 2, 3."""
    return n_present >= _ENOUGH and highest - lowest == n_present - 1
