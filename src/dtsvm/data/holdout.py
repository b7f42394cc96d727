"""Rows held out to measure a model on: each node chooses among its own and needs nobody for it."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

__all__ = ["held_out"]


def held_out(
    name: str, share: float, seed: int, y: NDArray[Any], task: NDArray[Any] | None
) -> NDArray[np.bool_]:
    """Choose the rows of one node to hold out: the same share of every task's every label.

    One row of each stays to train on, however large the share.

    Parameters
    ----------
    name : str
        The node; its name and the seed settle the choice.
    share : float
        How much to hold out, from 0 to 1.
    seed : int
        Another seed, another choice.
    y, task : ndarray of shape (n_rows,)
        Labels, and tasks if there are several.

    Returns
    -------
    ndarray of bool
        Which rows are held out.

    Examples
    --------
    >>> import numpy as np
    >>> int(held_out("north", 0.25, 0, np.array([0] * 8 + [1] * 4), None).sum())
    3
    >>> int(held_out("north", 0.99, 0, np.array([0, 0, 1]), None).sum())
    1
    """
    is_held = np.zeros(len(y), bool)
    rng = np.random.default_rng([seed, crc32(name.encode())])
    tasks = np.zeros(len(y), int) if task is None else np.unique(task, return_inverse=True)[1]
    labels = np.unique(y, return_inverse=True)[1]
    strata = tasks * (labels.max(initial=0) + 1) + labels
    for stratum in np.unique(strata):
        mine = rng.permutation(np.flatnonzero(strata == stratum))
        is_held[mine[: min(round(share * len(mine)), len(mine) - 1)]] = True
    return is_held
