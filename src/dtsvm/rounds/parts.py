"""Sets of agents: who hears whom over however many links, and where in an array each begins."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["begins", "connected"]

Slots = NDArray[np.int64]


@njit(cache=True)
def connected(n: int, a: Slots, b: Slots) -> Slots:
    """Number the connected sets of 0 … n − 1 under the links (a[k], b[k]), as they appear."""
    root = np.arange(n)
    for k in range(len(a)):
        i, j = a[k], b[k]
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        while root[j] != j:
            root[j] = root[root[j]]
            j = root[j]
        root[max(i, j)] = min(i, j)
    number = np.zeros(n, np.int64)
    found = 0
    for i in range(n):  # a root is never larger than its members, so it has its number already
        if root[i] == i:
            number[i] = found
            found += 1
        else:
            number[i] = number[root[i]]
    return number


def begins(sorted_: Slots) -> Slots:
    """Where in a sorted array of numbers from 0 on another one begins."""
    found: Slots = np.flatnonzero(np.diff(sorted_, prepend=-1))
    return found
