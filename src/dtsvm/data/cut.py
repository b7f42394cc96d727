"""Files that end inside their last value, as a copy that broke off or a full disk leaves them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from dtsvm.data.numerals import is_missing_text

__all__ = ["looks_cut"]

# So many other values must agree: the last of a whole file may be the one that differs.
ENOUGH = 50
_DECIMAL = re.compile(r"[+-]?\d+[.,](\d+)")
_SHORTER = re.compile(r"[+-]?\d*([.,](\d*))?")
_DIGIT, _LETTER = re.compile(r"\d"), re.compile(r"[^\W\d_]")


def looks_cut(cells: Sequence[str]) -> bool:
    """Tell whether the last of a column's texts is only the beginning of one.

    It is if it alone has no value; if it is the beginning of another where few are different, and
    ends in no digit; if all others have the same decimals, and it has fewer; or if all others
    are written alike with digits and signs, as dates are, and it stops short.

    Examples
    --------
    >>> looks_cut(["yes", "no"] * 30 + ["ye"]), looks_cut(["yes", "no"] * 30 + ["no"])
    (True, False)
    >>> looks_cut(["0.25", "1.50"] * 30 + ["1.5"]), looks_cut(["12", "25"] * 30 + ["1"])
    (True, False)
    """
    if len(cells) <= ENOUGH:
        return False
    counts = Counter(cells[:-1])
    last = cells[-1]
    if last in counts:
        return False
    if is_missing_text(last):
        return not any(is_missing_text(text) for text in counts)
    is_word = len(counts) <= len(cells) / 10 and not last[-1].isdigit()
    if is_word and any(text.startswith(last) for text in counts):
        return True
    return _has_fewer_decimals(last, counts) or _stops_short(last, counts)


def _has_fewer_decimals(last: str, others: Counter[str]) -> bool:
    found = [_DECIMAL.fullmatch(text) for text in others]
    lengths = {0 if one is None else len(one[1]) for one in found}
    mine = _SHORTER.fullmatch(last)
    return mine is not None and len(lengths) == 1 and len(mine[2] or "") < lengths.pop()


def _stops_short(last: str, others: Counter[str]) -> bool:
    shapes = {_shape(text) for text in others}
    if len(shapes) != 1:
        return False
    shape = shapes.pop()
    is_mixed = "9" in shape and not shape.isdigit()
    return is_mixed and shape != _shape(last) and shape.startswith(_shape(last))


def _shape(text: str) -> str:
    return _LETTER.sub("a", _DIGIT.sub("9", text))
