"""All rows of a fit, each with its node, task, label and weight, and the agents they belong to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.labels import task_codes
from dtsvm.errors import DataError
from dtsvm.svm.company import Alone

__all__ = ["Spread", "Training", "narrow_codes", "number_pairs"]

Ints = NDArray[Any]  # as narrow as they may be: there is one for every row
MOST_PAIRS = np.iinfo(np.int32).max
PLUS, MINUS = np.int8(1), np.int8(-1)
Floats = NDArray[np.float64]


class Spread(NamedTuple):
    """The rows of every agent: a row belongs to as many agents as its task asks questions.

    agents : the (node, question) pairs. agent : whose each entry is, a position among them.
    at : which row of X it is; None if the i-th is row i. side : ±1.
    weight : what its loss is multiplied by, if not 1.
    """

    agents: list[tuple[Hashable, Hashable]]
    agent: NDArray[np.int32]
    at: Ints | None
    side: NDArray[np.int8]
    weight: Floats | None


@dataclass(frozen=True)
class Training:
    """What a fit is given.

    Attributes
    ----------
    X : ndarray or CSR of shape (n, n_features)
        Features, where the caller has them.
    at : ndarray of int, optional
        Which rows of X take part, None for all; what follows is theirs.
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
    at: Ints | None
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
        every = number_pairs(self.node, self.task, (len(self.nodes), len(asked)))
        if self.held is not None:
            every = np.concatenate([every, self.held.astype(np.int32)])
        is_there = np.zeros(len(self.nodes) * len(asked), bool)
        is_there[every] = True
        pairs = is_there.nonzero()[0]
        pair = every[: len(self.node)]
        if len(pairs) < len(is_there):  # else all are everywhere
            pair = (is_there.cumsum(dtype=np.int32) - np.int32(1))[pair]
        del every
        at, what = np.divmod(pairs, max(len(asked), 1))
        held = [(self.nodes[v], asked[t]) for v, t in zip(at.tolist(), what.tolist(), strict=True)]
        agents = [(node, question) for node, some in held for question in some]
        if len(agents) == len(held):  # one question each
            side = _sides(self.codes == 1)
            return Spread(agents, pair, self.at, side, self.weight)
        n_asked = np.array([len(some) for _, some in held])
        first = np.cumsum(n_asked) - n_asked  # the first of a pair's agents
        parts = [self._asked(pair, first, n_asked, k) for k in range(int(n_asked.max()))]
        mine, agent, side = (np.concatenate(part) for part in zip(*parts, strict=True))
        weight = None if self.weight is None else self.weight[mine]
        return Spread(agents, agent.astype(np.int32), self.places(mine), side, weight)

    def places(self, mine: Ints) -> Ints:
        """Return which rows of X some of those that take part are."""
        return mine if self.at is None else self.at[mine]

    def _asked(self, pair: Ints, first: Ints, n_asked: Ints, k: int) -> tuple[Ints, Ints, Ints]:
        """Return the rows of which a k-th question is asked, their agents and their sides."""
        mine = np.flatnonzero(n_asked[pair] > k)
        positive = np.where(n_asked[pair[mine]] == 1, 1, k)
        return mine, first[pair[mine]] + k, _sides(self.codes[mine] == positive)


def number_pairs(node: Ints, task: Ints, shape: tuple[int, int]) -> NDArray[np.int32]:
    """Number whose each row is: its node's place times the number of tasks plus its task's."""
    n_nodes, n_tasks = shape
    if n_nodes * n_tasks > MOST_PAIRS:
        raise DataError(
            f"{n_nodes:,} nodes with {n_tasks:,} tasks are more than {MOST_PAIRS:,} pairs: train "
            "the tasks in parts."
        )
    found = node.astype(np.int32)
    found *= n_tasks
    np.add(found, task, out=found, casting="unsafe")
    return found


def narrow_codes(labels: NDArray[Any], what: tuple[list[Any], Ints], classes: Any) -> Ints:
    """Return where each row's label stands among its task's, in as few bytes as will do."""
    most = max(map(len, classes.values()), default=0)
    return task_codes(labels, what, classes).astype(np.min_scalar_type(most))


def _sides(is_positive: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Return +1 and −1."""
    return np.where(is_positive, PLUS, MINUS)
