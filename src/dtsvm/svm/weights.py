"""What each row's loss is multiplied by: its own weight, times its class's in its task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem.weights import class_weights
from dtsvm.svm.training import Training

__all__ = ["weighted"]

Floats = NDArray[np.float64]


def weighted(table: Training, chosen: Any) -> Training:
    """Multiply every row's weight by its class's, as chosen."""
    if chosen is None:
        return table
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
    return replace(table, weight=found if table.weight is None else found * table.weight)
