"""Numbers as people write them: decimal points or commas, thousands apart or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = [
    "MISSING",
    "Ambiguous",
    "is_missing_text",
    "is_number",
    "is_numeral",
    "parse_numbers",
    "split_sign",
]

# What stands for "no value" in files; compared without case and surrounding blanks.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "<na>", "#n/a", "?", "-", "."})

_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}([. ’'\u00a0\u202f]\d{3})+)(,\d+)?([eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?\d{1,3}([, ’'\u00a0\u202f]\d{3})+(\.\d+)?")
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
# $5, 97 %, 12.5 mg, 36.6 °C
_SIGNED = re.compile(
    r"([+−-]?)([$€£¥])\s?([\d.,].*)|([+−-]?[\d.,].*?)\s?([%‰$€£¥]|°?[^\W\d_][^\d\s]{0,9})",
    re.DOTALL,
)
_BESIDE = re.compile(r"\s?[%‰$€£¥]\s?")
_APART = re.compile(r"[ ’'\u00a0\u202f]")


class Ambiguous(ValueError):
    """A text that may be two numbers: 1,234."""


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


def is_numeral(text: str) -> bool:
    """Tell whether a text is a number in some way of writing, with a sign or without.

    Examples
    --------
    >>> is_numeral("1.250,5"), is_numeral("97 %"), is_numeral("4A")
    (True, True, False)
    """
    if is_number(text):
        return True
    bare = text.strip()
    if not bare or bare[0].isalpha():  # most that is none
        return False
    bare = _BESIDE.sub("", bare.replace("−", "-"))
    return is_number(bare) or any(way.fullmatch(bare) for way in (_COMMA, _GROUPED))


def is_missing_text(text: str) -> bool:
    """Tell whether a cell says that there is no value.

    Examples
    --------
    >>> is_missing_text(" NA "), is_missing_text("none")
    (True, False)
    """
    return text.strip().lower() in MISSING


def split_sign(texts: Sequence[str]) -> tuple[tuple[str, ...], str] | None:
    """Take off the unit, or the sign of percent or money, beside every number of a column.

    Returns
    -------
    (texts, sign) or None
        None if a text has none, or another one.

    Examples
    --------
    >>> split_sign(["97 %", "", "4.5%"])
    (('97', '', '4.5'), '%')
    >>> split_sign(["-$1,200.50", "$3"])
    (('-1,200.50', '3'), '$')
    >>> split_sign(["12.5 mg", "7mg"])
    (('12.5', '7'), 'mg')
    >>> split_sign(["97 %", "0.97"]) is None
    True
    """
    plain, signs = [], set()
    for text in texts:
        found = None if is_missing_text(text) else _SIGNED.fullmatch(text.strip())
        if found is None:
            if not is_missing_text(text):
                return None
            plain.append(text)
        elif found[2]:
            signs.add(found[2])
            plain.append(found[1] + found[3])
        else:
            signs.add(found[5])
            plain.append(found[4])
    return (tuple(plain), signs.pop()) if len(signs) == 1 else None


def parse_numbers(texts: Iterable[str]) -> dict[str, float] | None:
    """Read the different texts of one column as numbers, all in the same way of writing.

    Parameters
    ----------
    texts : iterable of str
        Texts without surrounding blanks, none of them missing.

    Returns
    -------
    dict of str to float, or None
        None if some text is no number in any one way of writing.

    Raises
    ------
    Ambiguous
        If every text with a comma may be thousands or a decimal, as 1,234 may.

    Examples
    --------
    >>> parse_numbers(["1,5", "2", "1.200,25"])
    {'1,5': 1.5, '2': 2.0, '1.200,25': 1200.25}
    >>> parse_numbers(["1,250.5", "12"])
    {'1,250.5': 1250.5, '12': 12.0}
    >>> parse_numbers(["low", "2"]) is None
    True
    """
    different = list(texts)
    if all(is_number(text) for text in different):
        return {text: float(text) for text in different}
    if not all(_COMMA.fullmatch(t) or _GROUPED.fullmatch(t) or _PLAIN.fullmatch(t)
               for t in different):  # fmt: skip
        return None
    with_comma = [text for text in different if "," in text]
    if with_comma and all(_EITHER.fullmatch(text) for text in with_comma):
        raise Ambiguous(with_comma[0])
    if all(_COMMA.fullmatch(text) for text in different):
        return {text: _from_comma(text) for text in different}
    if all(_GROUPED.fullmatch(text) or _PLAIN.fullmatch(text) for text in different):
        return {text: float(_APART.sub("", text).replace(",", "")) for text in different}
    return None


def _from_comma(text: str) -> float:
    return float(_APART.sub("", text).replace(".", "").replace(",", "."))
