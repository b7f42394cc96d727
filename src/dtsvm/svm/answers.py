"""What a model says of rows: decision values, labels and probabilities, each row asked its task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from dtsvm.errors import DataError, did_you_mean
from dtsvm.problem import Model, TaskModel
from dtsvm.problem.sigmoid import sigmoid

__all__ = ["Answers", "unknown_name", "unsaid_task"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """Rows, with the task and the node that each of them asks.

    Attributes
    ----------
    model : Model
        Who is asked.
    rows : array of shape (n_rows, n_features)
        The rows.
    task : ndarray of int
        Where each row's task stands in the model.
    node : ndarray of int
        Where each row's node stands in the network; −1 asks the network.
    """

    model: Model
    rows: Any
    task: Ints
    node: Ints

    def are_signed(self) -> bool:
        """Whether every row's task has two labels, so that a sign can tell them apart."""
        return all(len(self.model.tasks[t].classes) == 2 for t in np.unique(self.task).tolist())

    def signed(self) -> Floats:
        """Return a value a row: above 0 for the positive label of its task."""
        values = np.empty(len(self.task))
        for mine, _, found in self._decided():
            values[mine] = found[:, 0] if found.shape[1] == 1 else found[:, 1] - found[:, 0]
        return values

    def scores(self, classes: NDArray[Any]) -> Floats:
        """Return a value a row and class; a class that the row's task lacks is below all others."""
        values = np.empty((len(self.task), len(classes)))
        for mine, one, found in self._decided():
            known = found if found.shape[1] > 1 else np.hstack([-found, found])
            own = np.repeat(known.min(axis=1, keepdims=True) - 1.0, len(classes), axis=1)
            own[:, _places(one, classes)] = known
            values[mine] = own
        return values

    def labels(self, classes: NDArray[Any]) -> NDArray[Any]:
        """Return a label a row."""
        chosen = np.empty(len(self.task), np.int64)
        for mine, one, found in self._decided():
            chosen[mine] = _places(one, classes)[one.choose(found)]
        return np.asarray(classes[chosen])

    def probabilities(self, classes: NDArray[Any]) -> Floats:
        """Return a probability a row and class; 0 for a class that the row's task lacks."""
        values = np.zeros((len(self.task), len(classes)))
        for mine, one, found in self._decided():
            if one.sigmoid is None:
                raise DataError(
                    f"Task {one.task!r} has no probabilities; train with probability=True."
                )
            p = sigmoid(found, one.sigmoid)
            if p.shape[1] == 1:
                p = np.hstack([1.0 - p, p])
            p += np.finfo(float).tiny  # all may be 0, far from every class
            own = np.zeros((len(p), len(classes)))
            own[:, _places(one, classes)] = p / p.sum(axis=1, keepdims=True)
            values[mine] = own
        return values

    def _decided(self) -> Iterator[tuple[Any, TaskModel, Floats]]:
        """Give which rows, their task, and the decision values of its classifiers."""
        nodes = [*self.model.network.nodes, None]  # −1, the last, is the network
        asked = sorted(set(zip(self.task.tolist(), self.node.tolist(), strict=True)))
        for t, v in asked:
            mine = slice(None) if len(asked) == 1 else (self.task == t) & (self.node == v)
            one = self.model.tasks[t]
            yield mine, one, one.decide(self.rows[mine], nodes[v])


def _places(one: TaskModel, classes: NDArray[Any]) -> Ints:
    """Where a task's labels stand among all; 1 and True are one label, as in numpy."""
    known = classes.tolist()
    return np.array([known.index(label) for label in one.classes], np.int64)


def unsaid_task(method: str, tasks: Iterable[Any]) -> DataError:
    """Word the refusal of rows whose task nobody said; a search shows it as a warning.

    A search hands `task` to `score`, where that was asked for, and to no other method.
    """
    names = ", ".join(str(task) for task in tasks)
    asked = "set_fit_request(task=True) and set_score_request(task=True)"
    if method != "score":
        remedy = (
            "Scorers by name, such as 'roc_auc', and cross_val_predict hand task on to nobody, so "
            "for them only task_column helps"
        )
    elif get_config()["enable_metadata_routing"]:
        remedy = f"In a search, ask for it with {asked}"
    else:
        remedy = (
            f"In a search, ask for it with {asked}, after "
            "sklearn.set_config(enable_metadata_routing=True)"
        )
    return DataError(
        f"The model knows several tasks ({names}), and {method} was not told which: say it with "
        f"task=…, or train on a frame with task_column=…. {remedy}."
    )


def unknown_name(name: str, value: Any, known: list[Any]) -> DataError:
    """Word the refusal of a task or a node that a model does not know."""
    plain = value.item() if isinstance(value, np.generic) else value
    sentence = f"Unknown {name} {plain!r}. {did_you_mean(plain, known)}"
    if name == "node":
        sentence += (
            " A node without rows in training has no answer of its own: leave node out, in scores "
            "of a search too (set_score_request(node=False)), for the network's."
        )
    return DataError(sentence)
