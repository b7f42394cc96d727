"""What a node that chooses with others starts from, and a training over their links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "Mine", "Track", "Whole"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Block(NamedTuple):
    """Rows of one task at a node: dense or CSR, ±1 by what is asked of them, and weights."""

    X: Any
    sides: Mapping[str, Floats]
    weight: Floats | None = None

    @property
    def codes(self) -> Ints:
        """Where each row's label stands among the task's."""
        sides = list(self.sides.values())
        if len(sides) == 1:
            return np.asarray(sides[0] > 0, np.int64)
        return np.asarray(np.argmax(sides, axis=0), np.int64)


@dataclass(frozen=True)
class Mine:
    """What a node knows before it begins to choose.

    Parameters
    ----------
    node : str
        Its name.
    n_features : int
        Length of a row.
    blocks : mapping of str to Block
        Rows of the tasks held here.
    questions : mapping of str to tuple of str
        What is asked: "" of tasks with two labels, else a label; and of which tasks.
    members : mapping of str to frozenset of str, or None
        By task, the nodes that take part when it trains alone; None if all do.
    unit : float
        About the mean square of a feature, the same at every node.
    claimed : tuple of float
        The most rows, and the largest Σ‖x‖² in that unit, that the other nodes say to have.
    """

    node: str
    n_features: int
    blocks: Mapping[str, Block]
    questions: Mapping[str, tuple[str, ...]]
    members: Mapping[str, frozenset[str] | None]
    unit: float = 1.0
    claimed: tuple[float, float] = (np.inf, np.inf)

    @property
    def through(self) -> frozenset[str]:
        """The tasks that this node takes part in when they train alone, held here or not."""
        who = self.members.items()
        return frozenset(task for task, names in who if names is None or self.node in names)


class Whole(NamedTuple):
    """What one training has at all nodes together.

    rows, square, box : rows, Σ‖x‖² and C Σ c of them. members : who takes part; None if all do.
    """

    rows: float
    square: float
    box: float
    members: frozenset[str] | None = None


class Track(NamedTuple):
    """Several trainings, each for itself: minimise ½‖w‖² + C Σ cᵢ max(0, 1 − y (xᵀw + b)).

    Parameters
    ----------
    name : str
        What it is, the same at every node; a later track of that name goes on where it ended.
    kind : str
        Tracks of one kind have the same rows.
    C : float
        Price of a row's loss.
    X : ndarray or csr_array of shape (n_rows, width)
        The rows that are here.
    tasks : dict of str to (ndarray, ndarray)
        Which of them each training has that this node takes part in, and their labels ±1.
    lanes : dict of str to Whole
        All trainings, this node's and others', in the same order at every node.
    marks : ndarray of shape (n_rows,)
        What rows are known by when the track goes on.
    weight : ndarray of shape (n_rows,), optional
        c, 1 by default.
    on : str
        Which rows it trains on, in words.
    after : str
        A track at a smaller C: where there is none of this one's name, it begins where that ended.
    """

    name: str
    kind: str
    C: float
    X: Any
    tasks: dict[str, tuple[Ints, Floats]]
    lanes: dict[str, Whole]
    marks: Ints
    weight: Floats | None = None
    on: str = "all rows"
    after: str = ""

    @property
    def width(self) -> int:
        """Length of a row."""
        return int(self.X.shape[1])
