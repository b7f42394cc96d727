"""The demo's digits: three tasks, two of them with hardly any rows, dealt to the nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import DigitFeatures, deal, load_mnist

__all__ = ["DemoRows", "Rows", "poisoned"]

Rows = tuple[NDArray[np.float64], NDArray[np.int64]]
# Rows a node; of the first two tasks' rows only so many in eight, and in six, show the first digit.
PER_NODE = {"3v6": 2, "5v4": 2, "8v9": 30}
RARE = {"3v6": 8, "5v4": 6}
N_TEST = 500
MOST_ROWS = 4000  # of a task: the bundled digits have a few more
SHOUTS = 8  # a poisoned node tells every lie so many times


@dataclass
class DemoRows:
    """Rows for nodes that are here, for nodes that may come, and rows to test on.

    Parameters
    ----------
    nodes : list of str
        Who is here at the beginning.
    seed : int
        Seed of all draws.
    """

    nodes: list[str]
    seed: int = 0
    tests: dict[str, Rows] = field(init=False)
    of: dict[tuple[str, str], Rows] = field(init=False)

    def __post_init__(self) -> None:
        self._digits = _features()
        self._rng = np.random.default_rng(self.seed)
        self.tests, self.of = {}, {}
        for task, each in PER_NODE.items():
            n = min(each, MOST_ROWS // len(self.nodes)) * len(self.nodes)
            few = max(1, n // RARE[task]) if task in RARE else 0
            counts: Any = (few, n - few) if few else "stratified"
            drawn = self._digits.draw(task, n, N_TEST, draw=counts, rng=self._rng)
            self.tests[task] = drawn.X_test, drawn.y_test
            place = deal(n, len(self.nodes), seed=self._rng)
            for i, node in enumerate(self.nodes):
                mine = place == i
                self.of[node, task] = drawn.X_train[mine], drawn.y_train[mine]

    def draw_for(self, node: str) -> None:
        """Give a newcomer rows of every task."""
        for task, each in PER_NODE.items():
            drawn = self._digits.draw(task, each, 2, draw="random", rng=self._rng)
            self.of[node, task] = drawn.X_train, drawn.y_train


@cache
def _features() -> DigitFeatures:
    """The digits' principal components, the same for every network of a process."""
    return DigitFeatures(load_mnist(), n_components=10)


def poisoned(rows: Rows) -> Rows:
    """Return what a node says that wants the others to err: every label turned round, many times.

    Examples
    --------
    >>> X, y = poisoned((np.zeros((2, 3)), np.array([1, -1])))
    >>> X.shape, y[:4].tolist()
    ((16, 3), [-1, 1, -1, 1])
    """
    X, y = rows
    return np.tile(X, (SHOUTS, 1)), np.tile(-y, SHOUTS)
