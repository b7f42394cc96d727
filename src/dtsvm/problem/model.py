"""What training gives: each task's classifiers, and all that is needed to use them elsewhere."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError, did_you_mean
from dtsvm.problem.network import Network

__all__ = ["Columns", "Model", "TaskModel"]

Floats = NDArray[np.float64]


class Columns(NamedTuple):
    """The columns a model was trained from, where it was trained from files; None if unknown.

    `units` has one text or None for every feature.
    """

    features: tuple[str, ...] | None = None
    label: str | None = None
    task: str | None = None
    node: str | None = None
    units: tuple[str | None, ...] | None = None


@dataclass(frozen=True, eq=False)
class TaskModel:
    """One task's classifiers: one of two labels, or one against the rest for each of its labels.

    Attributes
    ----------
    task : hashable
        The task.
    classes : tuple
        The negative label and the positive one; or all labels, in the order of the classifiers.
    coef, common_coef, specific_coef : ndarray of shape (n_classifiers, n_features)
        w₀ + w_t, w₀ and w_t.
    intercept : ndarray of shape (n_classifiers,)
        The bias.
    nodes : mapping of node to ndarray of shape (n_classifiers, n_features + 1)
        What each node that holds the task found by itself, the bias last.
    group : int
        Tasks with the same number trained together.
    sigmoid : ndarray of shape (n_classifiers, 2), optional
        a and b of P = 1 / (1 + exp(a f + b)), the probability of a decision value f.
    """

    task: Hashable
    classes: tuple[Any, ...]
    coef: Floats
    intercept: Floats
    common_coef: Floats
    specific_coef: Floats
    nodes: Mapping[Hashable, Floats] = field(default_factory=dict)
    group: int = 0
    sigmoid: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("coef", "intercept", "common_coef", "specific_coef"):
            array = np.ascontiguousarray(getattr(self, name), np.float64)
            object.__setattr__(self, name, array)

    @property
    def n_classifiers(self) -> int:
        """One where a sign decides, else one for each label."""
        return len(self.coef)

    def weights(self, node: Hashable | None = None) -> tuple[Floats, Floats]:
        """Return coefficients and biases of the network's classifiers, or of one node's own."""
        if node is None:
            return self.coef, self.intercept
        if node not in self.nodes:
            raise DataError(
                f"Node {node!r} does not hold task {self.task!r}; "
                "leave node out for the network's answer."
            )
        return self.nodes[node][:, :-1], self.nodes[node][:, -1]

    def decide(self, rows: Any, node: Hashable | None = None) -> Floats:
        """Return x·w + b of every row and classifier; of the network, or of one node's own."""
        coef, intercept = self.weights(node)
        if len(coef) == 1:
            return np.asarray(rows @ coef[0] + intercept[0])[:, None]
        return np.asarray(rows @ coef.T + intercept)

    def choose(self, values: Floats) -> NDArray[np.int64]:
        """Return the position in `classes` that decision values of shape (n, n_classifiers) say."""
        if values.shape[1] == 1:
            return (values[:, 0] > 0).astype(np.int64)
        return np.asarray(values.argmax(axis=1), np.int64)


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model: what a session and a node return, and what everything else takes.

    Attributes
    ----------
    method : str
        The estimator that trains such a model: DTSVM, DSVM, CTSVM or CSVM.
    settings : mapping
        Its parameters, but for the network.
    network : Network
        The nodes and links it was trained on.
    tasks : tuple of TaskModel
        The classifiers of every task.
    info : Info
        How training ended: status, rounds, certified gap.
    n_features : int
        Length of a row.
    columns : Columns
        Where features, labels, tasks and nodes came from.
    names_are_checked : bool
        Whether rows given for prediction must have the columns' names.
    preparation : mapping, optional
        How raw columns become features, as plain JSON.
    privacy : mapping, optional
        The level of privacy it was trained at, as plain JSON.
    choices : tuple of mapping
        What was chosen, task by task, as plain JSON with a sentence; empty if nothing was.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm import Network, Session
    >>> live = Session(Network.ring(3), C=0.1)
    >>> for node in range(3):
    ...     live.enter(node, "sick", np.eye(2) + node, [-1, 1])
    >>> _ = live.run()
    >>> model = live.model()
    >>> model.method, [one.task for one in model.tasks], model.n_features
    ('DTSVM', ['sick'], 2)
    >>> model.task("sick").decide(np.eye(2)).shape
    (2, 1)
    """

    method: str
    settings: Mapping[str, Any]
    network: Network
    tasks: tuple[TaskModel, ...]
    info: Any
    n_features: int
    columns: Columns = field(default_factory=Columns)
    names_are_checked: bool = False
    preparation: Mapping[str, Any] | None = None
    privacy: Mapping[str, Any] | None = None
    choices: tuple[Mapping[str, Any], ...] = ()

    def task(self, name: Hashable) -> TaskModel:
        """Return one task's classifiers, or refuse."""
        for one in self.tasks:
            if one.task == name:
                return one
        names = [one.task for one in self.tasks]
        raise DataError(f"Unknown task {name!r}. {did_you_mean(name, names)}")

    @property
    def groups(self) -> list[list[Any]]:
        """The tasks that trained together."""
        together: dict[int, list[Any]] = {}
        for one in self.tasks:
            together.setdefault(one.group, []).append(one.task)
        return list(together.values())

    def by_node(self) -> Floats:
        """Return what each node says on its own, (node, classifier, feature), the bias last.

        Classifiers are those of one task after the other. NaN where a node does not hold a task.
        """
        place = {node: v for v, node in enumerate(self.network.nodes)}
        n_rows = sum(one.n_classifiers for one in self.tasks)
        found = np.full((len(place), n_rows, self.n_features + 1), np.nan)
        start = 0
        for one in self.tasks:
            for node, own in one.nodes.items():
                found[place[node], start : start + one.n_classifiers] = own
            start += one.n_classifiers
        return found
