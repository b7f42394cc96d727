"""All rows of a fit, each with its node, task, label and weight, and the agents they belong to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.svm.company import Alone

__all__ = ["Spread", "Training"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Spread(NamedTuple):
    """The rows of every agent: a row belongs to as many agents as its task asks questions.

    agents : the (node, question) pairs. agent : whose each entry is, a position among them.
    at : which row of X it is. side : ±1. weight : what its loss is multiplied by, if not 1.
    """

    agents: list[tuple[Hashable, Hashable]]
    agent: Ints
    at: Ints
    side: Floats
    weight: Floats | None


@dataclass(frozen=True)
class Training:
    """What a fit is given.

    Attributes
    ----------
    X : ndarray or CSR of shape (n, n_features)
        Features, where the caller has them.
    at : ndarray of int
        Which rows of X take part; what follows is theirs.
    tasks, task : list and ndarray of int
        The tasks, and each row's.
    nodes, node : list and ndarray of int
        The nodes that have rows, and each row's.
    classes : mapping
        Every task's labels.
    codes : ndarray of int
        Where each row's label stands among its task's.
    groups : list of lists
        The tasks that train together.
    weight : ndarray, optional
        What each row's loss is multiplied by, its class's weight included.
    own_weight : ndarray, optional
        The same without its class's.
    held : ndarray of int, optional
        Who is there even without rows: a node's place times the number of tasks plus a task's.
    company : Alone
        Who else has rows; theirs are not here.
    """

    X: Any
    at: Ints
    tasks: list[Any]
    task: Ints
    nodes: list[Any]
    node: Ints
    classes: Mapping[Any, tuple[Any, ...]]
    codes: Ints
    groups: Sequence[Sequence[Any]]
    weight: Floats | None = None
    own_weight: Floats | None = None
    held: Ints | None = None
    company: Alone = field(default_factory=Alone, compare=False)

    def spread(self, questions: Mapping[Any, list[Hashable]]) -> Spread:
        """Give every row to an agent for each question of its task."""
        asked = [questions[task] for task in self.tasks]
        of_rows = self.node * len(asked) + self.task
        every = of_rows if self.held is None else np.concatenate([of_rows, self.held])
        pairs, pair = compiled.distinct(every, len(self.nodes) * len(asked))
        pair = pair[: len(of_rows)]
        held = [(self.nodes[k // len(asked)], asked[k % len(asked)]) for k in pairs.tolist()]
        agents = [(node, question) for node, some in held for question in some]
        if len(agents) == len(held):  # one question each
            side = np.where(self.codes == 1, 1.0, -1.0)
            return Spread(agents, pair, self.at, side, self.weight)
        n_asked = np.array([len(some) for _, some in held])
        first = np.cumsum(n_asked) - n_asked  # the first of a pair's agents
        parts = [self._asked(pair, first, n_asked, k) for k in range(int(n_asked.max()))]
        mine, agent, side = (np.concatenate(part) for part in zip(*parts, strict=True))
        weight = None if self.weight is None else self.weight[mine]
        return Spread(agents, agent, self.at[mine], side, weight)

    def _asked(self, pair: Ints, first: Ints, n_asked: Ints, k: int) -> tuple[Ints, Ints, Floats]:
        """Return the rows of which a k-th question is asked, their agents and their sides."""
        mine = np.flatnonzero(n_asked[pair] > k)
        positive = np.where(n_asked[pair[mine]] == 1, 1, k)
        side = np.where(self.codes[mine] == positive, 1.0, -1.0)
        return mine, first[pair[mine]] + k, side
