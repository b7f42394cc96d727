"""From the caller's labels to ±1 and back; every task has its own, two or more."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dtsvm.errors import DataError, did_you_mean

__all__ = [
    "all_labels",
    "are_labels",
    "begin_classes",
    "check_labels",
    "check_positive",
    "distinct",
    "encode_levels",
    "find_classes",
    "find_labels",
    "label_codes",
    "name_array",
    "name_classes",
    "positive_label",
    "signs",
    "task_classes",
    "task_codes",
]

MOST_SHOWN = 12
MISSING = "{name} of row {row} is missing; every row needs one."


def encode_levels(values: ArrayLike, n_rows: int, name: str) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the distinct values, sorted if they can be, and each row's index among them."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{name} must be one value a row, got an array of shape {array.shape}.")
    if len(array) != n_rows:
        raise DataError(f"X has {n_rows} rows, but {name} has {len(array)}.")
    if array.dtype.kind in "iu" and len(array):
        found = _consecutive(array)
        if found is not None:
            return found
    missing = np.flatnonzero(array != array) if array.dtype != object else _none_at(array)
    if len(missing):
        raise DataError(MISSING.format(name=name, row=missing[0]))
    try:
        levels, index = np.unique(array, return_inverse=True)
        return levels.tolist(), index.astype(np.int64)
    except TypeError:  # labels that do not compare: order of appearance
        seen: dict[Any, int] = {}
        index = np.array([seen.setdefault(value, len(seen)) for value in array], np.int64)
        return list(seen), index


def _consecutive(array: NDArray[Any]) -> tuple[list[Any], NDArray[np.int64]] | None:
    """The levels of whole numbers of which none is left out, as of positions; else None."""
    first, last = int(array.min()), int(array.max())
    if last - first >= len(array):
        return None
    if array.dtype == np.uint64:  # may be beyond int64
        index = (array - array.min()).astype(np.int64)
    else:
        index = array.astype(np.int64, copy=False) - first
    if np.count_nonzero(np.bincount(index)) <= last - first:
        return None
    return list(range(first, last + 1)), index


def _none_at(array: NDArray[Any]) -> NDArray[np.int64]:
    return np.flatnonzero([_is_missing(value) for value in array])


def find_classes(
    y: NDArray[Any], what: tuple[list[Any], NDArray[np.int64]], positive: Any, *, is_named: bool
) -> dict[Hashable, tuple[Any, ...]]:
    """Return the labels of every task: the negative and the positive one, or all of them sorted.

    A task with rows of one label only has the labels of the other tasks that have this label too.

    Parameters
    ----------
    y : ndarray
        Labels.
    what : (tasks, index)
        The tasks, and each row's.
    positive : label, dict or None
        The positive label: of all tasks, or by task; the larger one by default.
    is_named : bool
        Whether the caller named tasks; else there is one, called y.
    """
    tasks = what[0]
    check_positive(positive, tasks)
    return name_classes(tasks, find_labels(y, what), positive, is_named=is_named)


def find_labels(y: NDArray[Any], what: tuple[list[Any], NDArray[np.int64]]) -> list[list[Any]]:
    """Return the different labels of every task's rows."""
    tasks, index = what
    is_mixed = y.dtype == object and len(tasks) > 1  # each task may have labels of its own kind
    if len(y) and not is_mixed and not are_labels(y):
        _refuse_some_text(y, np.arange(len(y)))
        _check_targets(y)
    if len(tasks) > 1 and (pair := _pair(y)):
        return _labels_of_pair(y == pair[-1], what, pair)
    found = []
    for t in range(len(tasks)):
        mine = y if len(tasks) == 1 else y[index == t]
        if is_mixed and len(mine):
            _refuse_some_text(mine, np.flatnonzero(index == t))
            mine = np.array(mine.tolist())
            _check_targets(mine)
        found.append(distinct(mine))
    return found


def _check_targets(y: NDArray[Any]) -> None:
    """Refuse values that are no labels, in scikit-learn's words."""
    from sklearn.utils.multiclass import check_classification_targets  # slow to load, seldom needed

    check_classification_targets(y)


def _refuse_some_text(labels: NDArray[Any], rows: NDArray[np.int64]) -> None:
    """Refuse labels of one task of which some are text and some are not."""
    texts = [isinstance(value, str) for value in labels] if labels.dtype == object else []
    if any(texts) and not all(texts):
        one, other = texts.index(True), texts.index(False)
        value = labels[other].item() if isinstance(labels[other], np.generic) else labels[other]
        raise DataError(
            f"The label of row {rows[one]} is the text {labels[one]!r}, and that of row "
            f"{rows[other]} is {value!r}, no text. Write a task's labels alike."
        )


def _labels_of_pair(
    is_second: NDArray[np.bool_], what: tuple[list[Any], NDArray[np.int64]], pair: list[Any]
) -> list[list[Any]]:
    """Every task's labels where all rows have one of at most two, from counts."""
    tasks, index = what
    if len(pair) == 1:
        return [pair if n else [] for n in np.bincount(index, minlength=len(tasks)).tolist()]
    n = np.bincount(index, minlength=len(tasks)).tolist()
    second = np.bincount(index[is_second], minlength=len(tasks)).tolist()
    return [pair[int(b == a) : 1 + int(b > 0)] for a, b in zip(n, second, strict=True)]


def name_classes(
    tasks: list[Any], found: list[list[Any]], positive: Any, *, is_named: bool
) -> dict[Hashable, tuple[Any, ...]]:
    """Return what `find_classes` does, from every task's different labels."""
    by_task = dict(zip(tasks, found, strict=True))
    classes = {}
    for task, labels in by_task.items():
        owner = f"Task {task!r}" if is_named else "y"
        known = _borrowed(labels[0], by_task) if len(labels) == 1 else labels
        classes[task] = task_classes(known, owner, positive_label(positive, task))
    return classes


def are_labels(y: NDArray[Any]) -> bool:
    """Whether values are labels whatever they say: text, booleans or whole numbers."""
    if y.dtype.kind in "iubU":
        return True
    return bool(y.dtype.kind == "f" and np.isfinite(y).all() and (y == np.rint(y)).all())


def known_labels(y: Any) -> Any:
    """Return labels as they are, pandas' own booleans and numbers as NumPy's; refuse missing ones.

    >>> known_labels(["yes", None])
    Traceback (most recent call last):
    dtsvm.errors.DataError: The label of row 1 is missing; fill in or drop such rows first.
    """
    if type(y) is np.ndarray and y.dtype.kind in "iubU":
        return y
    try:
        labels = np.asarray(y)
    except ValueError:  # rows of different lengths: refused elsewhere
        return y
    if labels.ndim != 1 or labels.dtype.kind not in "fO":
        return labels if labels.ndim == 1 else y
    missing = np.isnan(labels) if labels.dtype.kind == "f" else [_is_missing(v) for v in labels]
    if np.any(missing):
        first = int(np.argmax(missing))
        more = f" ({np.sum(missing)} in all)" if np.sum(missing) > 1 else ""
        raise DataError(
            f"The label of row {first} is missing{more}; fill in or drop such rows first."
        )
    for kind in (bool, int) if labels.dtype.kind == "O" else ():
        if all(type(value) is kind for value in labels):
            return labels.astype(kind)
    return y


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA is neither equal nor unequal
        return True
    except ValueError:  # an array: refused elsewhere
        return False


def _borrowed(only: Any, found: dict[Hashable, list[Any]]) -> list[Any]:
    """The labels of the tasks that have this one too, if they agree; else this one."""
    others = [labels for labels in found.values() if len(labels) > 1 and only in labels]
    return others[0] if others and all(set(one) == set(others[0]) for one in others) else [only]


def task_classes(labels: Any, owner: str, positive: Any = None) -> tuple[Any, ...]:
    """Return one task's labels: the negative and the positive one, or if more, all of them sorted.

    The positive one is the larger, as in scikit-learn, unless named.
    """
    different = distinct(labels)
    if len(different) == 1:
        raise DataError(
            f"{owner} has rows of one class only, {different[0]!r}; "
            "a classifier needs rows of two classes somewhere in the network, or another task "
            "with this label and a second one."
        )
    if positive is None or (len(different) == 2 and positive == different[1]):
        return tuple(different)
    if len(different) > 2:
        raise DataError(
            f"{owner} has {len(different)} labels, each of them positive in a question of its own; "
            f"its positive one cannot be {positive!r}."
        )
    if positive == different[0]:
        return different[1], different[0]
    raise DataError(
        f"{owner} has labels {_listed(different)}, but its positive one is {positive!r}."
    )


def _listed(labels: Sequence[Any]) -> str:
    """Name labels: 0 and 1; 0, 1 and 2; the first few of many."""
    shown = [repr(label) for label in labels]
    if len(shown) > MOST_SHOWN:
        return f"{', '.join(shown[:MOST_SHOWN])} and {len(shown) - MOST_SHOWN} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def distinct(labels: Any) -> list[Any]:
    """The different labels: sorted if they compare, else in order of appearance."""
    if isinstance(labels, np.ndarray) and (pair := _pair(labels)):
        return pair
    plain = list(dict.fromkeys(labels if isinstance(labels, list) else np.asarray(labels).tolist()))
    try:
        return sorted(plain)
    except TypeError:
        return plain


def _pair(labels: NDArray[Any]) -> list[Any]:
    """The different labels, sorted, if they are numbers and one or two, as of most tasks."""
    if labels.dtype.kind not in "iuf" or not len(labels):
        return []
    first, last = labels.min(), labels.max()
    if np.count_nonzero((labels == first) | (labels == last)) < len(labels):
        return []
    return [first.item()] if first == last else [first.item(), last.item()]


def all_labels(classes: Iterable[Sequence[Any]]) -> NDArray[Any]:
    """Return every label of every task, once."""
    found = distinct([label for pair in classes for label in pair])
    is_alike = len({type(label) for label in found}) == 1
    return np.array(found) if is_alike else np.array(found, object)


def name_array(names: list[Any]) -> NDArray[Any]:
    """Return names as an array, without turning a mixture or tuples into something else."""
    if len({type(name) for name in names}) == 1 and not isinstance(names[0], tuple):
        return np.array(names)
    out = np.empty(len(names), object)
    out[:] = names
    return out


def begin_classes(
    task: Hashable, y: ArrayLike | None, labels: Sequence[Any] | None
) -> tuple[Any, ...]:
    """Return the labels of a task that begins live, perhaps with rows of one class or none."""
    if labels is not None:
        if len(labels) < 2 or len(set(labels)) != len(labels):
            raise DataError(f"Task {task!r} needs two different labels, got {list(labels)!r}.")
        return tuple(labels)
    found = [] if y is None else distinct(np.asarray(y))
    if set(found) <= {-1, 1}:
        return (-1, 1)
    if len(found) >= 2:
        return tuple(found)
    raise DataError(
        f"Task {task!r} begins with labels {found!r}; name both of its labels with "
        "labels=(negative, positive)."
    )


def check_labels(n_rows: int, y: ArrayLike | None, task: Hashable, classes: Sequence[Any]) -> None:
    """Refuse labels that are too few, too many, or not the task's."""
    labels = np.zeros(0) if y is None else np.asarray(y)
    if len(labels) != n_rows:
        raise DataError(f"X has {n_rows} rows, but y has {len(labels)}.")
    strange = [label for label in distinct(labels) if label not in classes]
    if strange:
        raise DataError(f"Task {task!r} has labels {_listed(classes)}, got {strange[0]!r}.")


def positive_label(positive: Any, task: Hashable) -> Any:
    """Look up a task's positive label: one for all tasks, or one a task."""
    return positive.get(task) if isinstance(positive, Mapping) else positive


def check_positive(positive: Any, tasks: Sequence[Hashable]) -> None:
    """Refuse a positive label for a task that is not there."""
    for task in positive if isinstance(positive, Mapping) else ():
        if task not in tasks:
            raise DataError(
                f"positive names task {task!r}, which has no rows. {did_you_mean(task, tasks)}"
            )


def label_codes(labels: Any, classes: Sequence[Any]) -> NDArray[np.int64]:
    """Return where each label stands among its task's labels.

    Examples
    --------
    >>> label_codes(["yes", "no", "yes"], ("no", "yes")).tolist()
    [1, 0, 1]
    """
    array = np.asarray(labels)
    codes = np.zeros(len(array), np.int64)
    for k, label in enumerate(classes[1:], 1):
        codes[np.asarray(array == label, bool)] = k
    return codes


def task_codes(
    y: NDArray[Any],
    what: tuple[list[Any], NDArray[np.int64]],
    classes: Mapping[Any, Sequence[Any]],
) -> NDArray[np.int64]:
    """Return where each row's label stands among its task's."""
    tasks, index = what
    first = classes[tasks[0]] if tasks else ()
    if all(classes[task] == first for task in tasks[1:]):
        return label_codes(y, first)
    codes = np.empty(len(y), np.int64)
    for t, task in enumerate(tasks):
        codes[index == t] = label_codes(y[index == t], classes[task])
    return codes


def signs(labels: Any, classes: Sequence[Any]) -> NDArray[np.float64]:
    """Return +1 where the label is the positive one, −1 elsewhere."""
    return np.where(np.asarray(labels) == classes[1], 1.0, -1.0)
