"""Which rows are held out when: every node splits its own rows of each task, by label.

A row's fold follows from the name of its agent, its label and how many rows of that label came
before it, and from nothing else: a node finds it without the others, and rows that come later
change nobody's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem.settings import refusal

__all__ = ["agent_name", "read_folds", "split"]

Words = NDArray[np.uint64]


def split(
    y: NDArray[np.float64],
    agent: NDArray[np.int64],
    n_folds: int,
    seed: int | Sequence[int] = 0,
    names: Sequence[str] | None = None,
) -> NDArray[np.int64]:
    """Return each row's fold: of every `n_folds` rows of one agent and label, each has another.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Labels, ±1.
    agent : ndarray of shape (n_rows,)
        Which node and task a row belongs to, as one number.
    n_folds : int
        How many folds.
    seed : int or sequence of int
        Of the order of the folds.
    names : sequence of str, optional
        The agents' names; by default their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import split
    >>> y, agent = np.array([1.0, -1.0] * 6), np.repeat([0, 1], 6)
    >>> fold = split(y, agent, 3)
    >>> [sorted(fold[(agent == a) & (y == s)].tolist()) for a in (0, 1) for s in (-1, 1)]
    [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """
    cells, cell = np.unique(2 * agent + (y > 0), return_inverse=True)
    counts = np.bincount(cell, minlength=len(cells))
    order = np.argsort(cell, kind="stable")
    turn = np.empty(len(y), np.int64)  # how many of its agent and label came before
    turn[order] = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    keys = np.array([_key(seed, names, *divmod(int(c), 2)) for c in cells], np.uint64)
    places = (turn // n_folds * n_folds)[:, None] + np.arange(n_folds)
    drawn = _mixed(keys[cell][:, None] + places.astype(np.uint64))
    mine = np.take_along_axis(drawn, (turn % n_folds)[:, None], axis=1)
    return np.asarray((drawn < mine).sum(axis=1), np.int64)


def read_folds(owner: str, n: Any) -> int:
    """Return how many times rows are held out."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 2:
        raise refusal(owner, "folds", "an int of at least 2 or a fold for each row", n)
    return int(n)


def agent_name(node: Hashable, task: Hashable) -> str:
    """Name an agent, so that memory and agents split its rows alike."""
    return f"{node}\n{task}"


def _key(seed: int | Sequence[int], names: Sequence[str] | None, agent: int, label: int) -> int:
    seeds = np.atleast_1d(seed).tolist()
    text = repr((seeds, names[agent] if names else str(agent), label))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _mixed(words: Words) -> Words:
    """Scatter neighbouring numbers over all 64 bits (the finaliser of splitmix64)."""
    words = words * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))
