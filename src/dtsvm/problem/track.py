"""What a node that chooses with others starts from, and a training over their links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mine", "Track"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Mine:
    """What a node knows before it begins to choose.

    Parameters
    ----------
    node : str
        Its name.
    n_features : int
        Length of a row.
    blocks : mapping of str to (ndarray, ndarray)
        Rows and labels ±1 of the tasks held here.
    tasks : tuple of str
        All tasks of the network.
    through : frozenset of str
        The tasks that this node takes part in when they train alone, held here or not.
    speaks : frozenset of str
        The tasks whose classifiers this node tells those who do not take part; of every task that
        not all take part in, one node does.
    is_shared : bool
        Whether there are such tasks.
    unit : float
        About the mean square of a feature, the same at every node.
    """

    node: str
    n_features: int
    blocks: Mapping[str, tuple[Any, Floats]]
    tasks: tuple[str, ...]
    through: frozenset[str]
    speaks: frozenset[str] = frozenset()
    is_shared: bool = False
    unit: float = 1.0


class Track(NamedTuple):
    """Several tasks, each for itself: minimise ½‖w‖² + C Σ max(0, 1 − y (xᵀw + b)).

    Parameters
    ----------
    name : str
        What it is, the same at every node; a later track of that name goes on where it ended.
    C : float
        Price of a row's loss.
    width : int
        Length of a row.
    X : ndarray or csr_array of shape (n_rows, width)
        The rows that are here.
    tasks : dict of str to (ndarray, ndarray)
        Which of them each task has, and their labels ±1; maybe none.
    marks : ndarray of shape (n_rows,)
        What rows are known by when the track goes on.
    on : str
        Which rows it trains on, in words.
    """

    name: str
    C: float
    width: int
    X: Any
    tasks: dict[str, tuple[Ints, Floats]]
    marks: Ints
    on: str = "all rows"
