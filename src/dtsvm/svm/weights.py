"""What each row's loss is multiplied by: its own weight, times its class's in its task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError, did_you_mean
from dtsvm.problem.settings import positive, refusal
from dtsvm.svm.training import Training

__all__ = ["class_weights", "weighted"]

Floats = NDArray[np.float64]


def class_weights(chosen: Any, classes: Mapping[Any, tuple[Any, ...]], counts: Any) -> list[Floats]:
    """Return the weight of every label of every task.

    Parameters
    ----------
    chosen : "balanced", dict or None
        "balanced": n / (K n_k) of a task with n rows, K labels and n_k rows of the k-th, counted
        over the whole network. A dict has a weight a label, or by task a dict of weights a label;
        what it does not name is 1.
    classes : mapping
        Every task's labels.
    counts : sequence of ndarray
        Every task's rows of each label.

    Examples
    --------
    >>> import numpy as np
    >>> class_weights("balanced", {"sick": ("no", "yes")}, [np.array([9, 1])])[0].round(2).tolist()
    [0.56, 5.0]
    """
    if isinstance(chosen, str) and chosen == "balanced":
        return [n.sum() / (len(n) * np.maximum(n, 1.0)) for n in counts]
    if not isinstance(chosen, Mapping):
        raise refusal("the estimator", "class_weight", "'balanced', a dict or None", chosen)
    by_task = bool(chosen) and all(isinstance(value, Mapping) for value in chosen.values())
    if by_task:
        _check_names(chosen, list(classes), "task")
    else:
        _check_names(chosen, [label for labels in classes.values() for label in labels], "label")
    return [
        _of_one(chosen.get(task, {}) if by_task else chosen, task, labels, by_task)
        for task, labels in classes.items()
    ]


def _check_names(chosen: Mapping[Any, Any], known: list[Any], what: str) -> None:
    for name in chosen:
        if name not in known:
            distinct = list(dict.fromkeys(known))
            raise DataError(
                f"class_weight names {what} {name!r}, which has no rows. "
                f"{did_you_mean(name, distinct)}"
            )


def _of_one(chosen: Mapping[Any, Any], task: Any, labels: tuple[Any, ...], named: bool) -> Floats:
    for label in chosen if named else ():
        if label not in labels:
            raise DataError(
                f"class_weight names label {label!r} of task {task!r}. "
                f"{did_you_mean(label, list(labels))}"
            )
    return np.array(
        [positive("the estimator", "class_weight", chosen.get(label, 1.0)) for label in labels]
    )


def weighted(table: Training, chosen: Any) -> Floats | None:
    """Return every row's weight, its class's included; None if all are 1."""
    if chosen is None:
        return table.weight
    counts = [
        table.company.add(
            np.bincount(table.codes[table.task == t], minlength=len(table.classes[task]))
        )
        for t, task in enumerate(table.tasks)
    ]
    by_label = class_weights(chosen, {task: table.classes[task] for task in table.tasks}, counts)
    most = max(len(one) for one in by_label)
    grid = np.array([np.pad(one, (0, most - len(one))) for one in by_label])
    found: Floats = grid[table.task, table.codes]
    return found if table.weight is None else found * table.weight
