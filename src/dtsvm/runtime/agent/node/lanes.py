"""What a node trains for one task: a classifier of two labels, or one for each label of several.

Each is a lane: an agent of its own with a name of its own, on the same rows. Its name is that of
the task, then the label it asks about, then what else makes it different, such as an unseen fold
or another C:

    flu            flu›mild            flu‹2            flu›mild‹2

Lanes of tasks that train together share what they learn if what follows the task is the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.folds import FOLDS
from dtsvm.data.labels import label_codes
from dtsvm.problem.questions import ask, side
from dtsvm.runtime.agent.node.names import ABOUT, WITHOUT

__all__ = [
    "Lane",
    "aspect",
    "candidate_lanes",
    "candidate_name",
    "fold_lanes",
    "is_main",
    "lane_names",
    "make_lanes",
    "task_of",
    "unseen_name",
]

Floats = NDArray[np.float64]
_REST = re.compile(f"[{ABOUT}{WITHOUT}]")
MOST_LABEL = 40


class Lane(NamedTuple):
    """One classifier that a task trains: its name, ±1 of every row, which it sees, and its C."""

    name: str
    side: Floats
    sees: NDArray[np.bool_] | None = None
    C: float | None = None  # that of the settings


def task_of(name: str) -> str:
    """Return the task that a lane belongs to.

    >>> task_of("flu›mild‹2")
    'flu'
    """
    return _REST.split(name, maxsplit=1)[0]


def aspect(name: str) -> str:
    """Return what makes a lane different from others of its task.

    >>> aspect("flu›mild‹2"), aspect("flu")
    ('›mild‹2', '')
    """
    return name[len(task_of(name)) :]


def is_main(name: str) -> bool:
    """Whether a lane trains on all rows, so that it answers for its task."""
    return WITHOUT not in name


def lane_names(task: str, classes: Sequence[Any], *, by_label: bool = False) -> list[str]:
    """Return the names of a task's main lanes: its own, or one for each of several labels.

    >>> lane_names("sick", ("no", "yes")), lane_names("digit", (3, 6, 8))
    (['sick'], ['digit›3', 'digit›6', 'digit›8'])
    """
    if len(ask(task, classes, by_label=by_label)) == 1:
        return [task]
    return [f"{task}{ABOUT}{_spelled(label)}" for label in classes]


def make_lanes(names: Sequence[str], classes: Sequence[Any], labels: Any) -> list[Lane]:
    """Return a task's lanes with the side of every row; `labels` are the rows' own."""
    codes = label_codes(labels, classes)
    return [Lane(name, side(codes, k, len(names))) for k, name in enumerate(names)]


def fold_lanes(lanes: Sequence[Lane], fold: NDArray[np.int64]) -> list[Lane]:
    """Return lanes once more for every fold, each without the rows of one."""
    return [
        Lane(unseen_name(lane.name, f), lane.side, fold != f)
        for f in range(FOLDS)
        for lane in lanes
    ]


def candidate_lanes(lanes: Sequence[Lane], candidates: Sequence[float]) -> list[Lane]:
    """Return lanes once for every candidate C; those of the first have the main lanes' names."""
    return [
        lane._replace(name=candidate_name(lane.name, k), C=C)
        for k, C in enumerate(candidates)
        for lane in lanes
    ]


def candidate_name(lane: str, candidate: int) -> str:
    """Return the name under which a candidate trains.

    >>> candidate_name("flu", 0), candidate_name("flu", 2)
    ('flu', 'flu‹2')
    """
    return unseen_name(lane, candidate) if candidate else lane


def unseen_name(lane: str, fold: int) -> str:
    """Return the name of the lane that does not see a fold.

    >>> unseen_name("flu›mild", 2)
    'flu›mild‹2'
    """
    return f"{lane}{WITHOUT}{fold}"


def _spelled(label: Any) -> str:
    """Spell a label so that it can be part of a name; 3, 3.0 and "3" are the same label."""
    try:
        text = f"{float(label):.17g}"
    except (TypeError, ValueError, OverflowError):
        text = str(label)
    if 0 < len(text) <= MOST_LABEL and text.isprintable() and not _REST.search(text):
        return text
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
