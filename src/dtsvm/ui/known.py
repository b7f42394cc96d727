"""What is known of all rows to train on, wherever they are: names of nodes and tasks, labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dtsvm.data import Rows
from dtsvm.data.labels import distinct
from dtsvm.errors import DataError
from dtsvm.svm.company import Alone

__all__ = ["Known", "know", "refuse_no_labels"]

MOST_LABELS = 30


class Known(NamedTuple):
    """Names that occur.

    nodes : sorted; None if rows have no nodes. tasks : likewise, [0] if rows have none.
    labels : of each task.
    """

    nodes: list[Any] | None
    tasks: list[Any]
    labels: list[list[Any]]

    @property
    def all_labels(self) -> list[Any]:
        """The labels of all tasks, once each."""
        return distinct([label for some in self.labels for label in some])


def know(rows: Rows, company: Alone) -> Known:
    """Find the names that occur at any process."""
    assert rows.y is not None
    nodes = None if rows.node is None else np.unique(rows.node).tolist()
    tasks = [0] if rows.task is None else np.unique(rows.task).tolist()
    labels = [
        np.unique(rows.y if rows.task is None else rows.y[rows.task == task]).tolist()
        for task in tasks
    ]
    said = company.gather([nodes, tasks, labels])
    every = {task: [] for one in said for task in one[1]}  # type: ignore[var-annotated]
    for _, names, some in said:
        for task, found in zip(names, some, strict=True):
            every[task] = distinct([*every[task], *found])
    return Known(
        None if nodes is None else sorted({node for one in said for node in one[0]}),
        sorted(every),
        [every[task] for task in sorted(every)],
    )


def refuse_no_labels(path: Path, label: str, known: Known) -> None:
    """Refuse measurements as labels, for age has no classes, and one label alone."""
    different = known.all_labels
    if len(different) == 1:
        raise DataError(
            f"{path}: column {label!r} has only the label {different[0]!r}. A classifier needs "
            "rows of two; name another column with --label, or add rows."
        )
    is_measured = any(isinstance(one, float) and one != round(one) for one in different)
    if len(different) > MOST_LABELS or (is_measured and len(different) > 2):
        raise DataError(
            f"{path}: column {label!r} has {len(different):,} different values, so it is no "
            "label. Name a column of classes with --label, or make classes of it first."
        )
