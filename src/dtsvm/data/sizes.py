"""How large a column's numbers are at each node: 97 here and 0.97 there is one thing in two units.

Sizes are powers of two, so that little is told: of a tenth and of the half of a node's numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.memory import in_pieces
from dtsvm.errors import DataError

__all__ = [
    "Sizes",
    "are_exponents",
    "count_exponents",
    "join_sizes",
    "largest_exponent",
    "refuse_other_sizes",
    "sizes_of",
]

ENOUGH = 10  # numbers other than 0 before they say anything
APART = 6  # powers of two between two nodes' numbers: a hundred times
LEAST, MOST = -1073, 1024  # exponents of float64, subnormal ones among them
FIELD = 1022  # what float64 adds to the exponent of a number that is not subnormal

Counts = NDArray[np.int64]


class Sizes(NamedTuple):
    """The least powers of two above a tenth, above half, and above all of a column's numbers."""

    tenth: int
    half: int
    all: int


def are_exponents(*some: int) -> bool:
    """Whether numbers can be as large as each of these powers of two.

    Examples
    --------
    >>> are_exponents(7, -1073), are_exponents(7, 1025)
    (True, False)
    """
    return all(LEAST <= one <= MOST for one in some)


def count_exponents(numbers: NDArray[np.float64]) -> Counts:
    """Count numbers by the least power of two above them; 0, NaN and infinities are left out.

    Counts of several nodes can be added.

    Examples
    --------
    >>> import numpy as np
    >>> counts = count_exponents(np.array([0.0, 5.0, -6.0, 0.75, np.nan]))
    >>> {int(i) + LEAST: int(counts[i]) for i in np.flatnonzero(counts)}
    {0: 1, 3: 2}
    """
    counts = np.zeros(MOST - LEAST + 1, np.int64)
    normal = counts[1 - FIELD - LEAST :]
    for piece in in_pieces(numbers):
        block = np.ascontiguousarray(piece, np.float64)
        fields = np.bincount((block.view(np.int64) >> 52) & 2047, minlength=2048)
        normal += fields[1:2047]
        if fields[0]:
            tiny = block[(block != 0) & (np.abs(block) < np.finfo(float).tiny)]
            counts += np.bincount(np.frexp(tiny)[1] - LEAST, minlength=len(counts))
    return counts


def largest_exponent(numbers: NDArray[np.float64]) -> int:
    """Return the least power of two above all numbers without their sign, leaving out NaN.

    Examples
    --------
    >>> import numpy as np
    >>> largest_exponent(np.array([np.nan, -5.0, 1.0])), largest_exponent(np.zeros(0))
    (3, 0)
    """
    largest = 0.0
    for piece in in_pieces(numbers):
        sizes = np.abs(piece)
        most = float(sizes.max())
        if most != most:
            most = float(np.max(sizes, where=~np.isnan(sizes), initial=0.0))
        largest = max(largest, most)
    return int(np.frexp(largest)[1])


def sizes_of(counts: Counts) -> Sizes | None:
    """Return how large counted numbers are, without their sign; None if there are too few.

    Examples
    --------
    >>> import numpy as np
    >>> sizes_of(count_exponents(np.array([np.nan, *range(150, 200)])))
    Sizes(tenth=8, half=8, all=8)
    """
    ends = np.cumsum(counts)
    n = int(ends[-1])
    if n < ENOUGH:
        return None
    places = np.searchsorted(ends, [n // 10, n // 2, n - 1], side="right")
    return Sizes(*(int(place) + LEAST for place in places))


def join_sizes(one: Sizes | None, other: Sizes | None) -> Sizes | None:
    """Return about the sizes of numbers of two files together.

    Examples
    --------
    >>> join_sizes(Sizes(1, 2, 3), Sizes(2, 4, 9)), join_sizes(None, Sizes(1, 2, 3))
    (Sizes(tenth=1, half=3, all=9), Sizes(tenth=1, half=2, all=3))
    """
    if one is None or other is None:
        return one or other
    halves = (one.half + other.half) // 2
    return Sizes(min(one.tenth, other.tenth), halves, max(one.all, other.all))


def refuse_other_sizes(column: str, nodes: Mapping[str, Sizes], units: Mapping[str, str]) -> None:
    """Refuse a column of which two nodes' numbers do not overlap and are a hundred times apart.

    Examples
    --------
    >>> refuse_other_sizes("height", {"a": Sizes(1, 1, 2), "b": Sizes(8, 8, 8)}, {"b": "cm"})
    Traceback (most recent call last):
    ...
    dtsvm.errors.DataError: Node b has 'height' (in cm) about 128 times as large as a: nearly all of
    its numbers are above all of a's. Are they in one unit, percent and shares of one, cm and m?
    Convert one of them; if both are right, declare the kind of 'height' as number at one of them.
    """
    if len(nodes) < 2:
        return
    small = min(nodes, key=lambda node: nodes[node].half)
    large = max(nodes, key=lambda node: nodes[node].half)
    apart = nodes[large].half - nodes[small].half
    if apart >= APART and nodes[small].all <= nodes[large].tenth:
        unit = f" (in {units[large]})" if large in units else ""
        raise DataError(
            f"Node {large} has {column!r}{unit} about {2**apart} times as large as {small}: nearly "
            f"all of its numbers are above all of {small}'s. Are they in one unit, percent and "
            "shares of one, cm and m? Convert one of them; if both are right, declare the kind of "
            f"{column!r} as number at one of them."
        )
