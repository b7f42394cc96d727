"""How large a column's numbers are at each node: 97 here and 0.97 there is one thing in two units.

Sizes are powers of two, so that little is told: of a tenth and of the half of a node's numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError

__all__ = ["Sizes", "join_sizes", "refuse_other_sizes", "sizes_of"]

ENOUGH = 10  # numbers other than 0 before they say anything
APART = 6  # powers of two between two nodes' numbers: a hundred times


class Sizes(NamedTuple):
    """The least powers of two above a tenth, above half, and above all of a column's numbers."""

    tenth: int
    half: int
    all: int


def sizes_of(numbers: NDArray[np.float64]) -> Sizes | None:
    """Return how large numbers are, without their sign; None if there are too few.

    Examples
    --------
    >>> import numpy as np
    >>> sizes_of(np.array([np.nan, *range(150, 200)]))
    Sizes(tenth=8, half=8, all=8)
    """
    some = np.abs(numbers[np.isfinite(numbers) & (numbers != 0)])
    if len(some) < ENOUGH:
        return None
    wanted = [len(some) // 10, len(some) // 2, len(some) - 1]
    places = np.partition(some, wanted)[wanted]
    return Sizes(*(int(one) for one in np.frexp(places)[1]))


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
