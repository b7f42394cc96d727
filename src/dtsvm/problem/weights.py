"""What the rows of each label weigh in the loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError, did_you_mean
from dtsvm.problem.settings import positive, refusal

__all__ = ["class_weights"]

Floats = NDArray[np.float64]


def class_weights(
    chosen: Any, classes: Mapping[Any, tuple[Any, ...]], counts: Any, owner: str = "the estimator"
) -> list[Floats]:
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
    owner : str
        Whose parameter it is.

    Examples
    --------
    >>> import numpy as np
    >>> class_weights("balanced", {"sick": ("no", "yes")}, [np.array([9, 1])])[0].round(2).tolist()
    [0.56, 5.0]
    """
    if isinstance(chosen, str) and chosen == "balanced":
        return [n.sum() / (len(n) * np.maximum(n, 1.0)) for n in counts]
    if not isinstance(chosen, Mapping):
        raise refusal(owner, "class_weight", "'balanced', a dict or None", chosen)
    by_task = bool(chosen) and all(isinstance(value, Mapping) for value in chosen.values())
    if by_task:
        _check_names(chosen, list(classes), "task")
    else:
        _check_names(chosen, [label for labels in classes.values() for label in labels], "label")
    return [
        _of_one(chosen.get(task, {}) if by_task else chosen, task, labels, by_task, owner)
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


def _of_one(
    chosen: Mapping[Any, Any], task: Any, labels: tuple[Any, ...], named: bool, owner: str
) -> Floats:
    for label in chosen if named else ():
        if label not in labels:
            raise DataError(
                f"class_weight names label {label!r} of task {task!r}. "
                f"{did_you_mean(label, list(labels))}"
            )
    return np.array([positive(owner, "class_weight", chosen.get(label, 1.0)) for label in labels])
