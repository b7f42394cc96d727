"""What a task asks of the network: one question of two labels, or one for each label of several.

A question is what `rounds` calls a task. A task of two labels asks which of them it is. A task of
more asks of every label whether it is this one: one against the rest. Tasks that train together
share what they learn about the same question, that is about the same label.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Question", "ask", "question_groups", "side"]


class Question(NamedTuple):
    """Whether a row of a task has this label.

    Examples
    --------
    >>> from dtsvm.problem.questions import Question
    >>> Question("digit", 3)
    'digit' (label 3)
    """

    task: Hashable
    label: Any

    def __repr__(self) -> str:
        return f"{self.task!r} (label {self.label!r})"


def ask(task: Hashable, classes: Sequence[Any], *, by_label: bool = False) -> list[Hashable]:
    """Return a task's questions: itself, or one for each label if there are several.

    Examples
    --------
    >>> ask("sick", ("no", "yes"))
    ['sick']
    >>> ask("digit", (3, 6, 8))
    ['digit' (label 3), 'digit' (label 6), 'digit' (label 8)]
    """
    if len(classes) == 2 and not by_label:
        return [task]
    return [Question(task, label) for label in classes]


def side(codes: NDArray[np.int64], k: int, n_questions: int) -> NDArray[np.float64]:
    """Return ±1 of every row for the k-th question; `codes` says where a label stands."""
    return np.where(codes == (1 if n_questions == 1 else k), 1.0, -1.0)


def question_groups(
    groups: Sequence[Sequence[Hashable]], classes: Mapping[Any, Sequence[Any]]
) -> tuple[dict[Hashable, list[Hashable]], dict[Hashable, int]]:
    """Return every task's questions, and the group of every question.

    In a group where some task has more than two labels all tasks ask label by label.
    """
    asked: dict[Hashable, list[Hashable]] = {}
    numbers: dict[Any, int] = {}
    group_of: dict[Hashable, int] = {}
    for g, group in enumerate(groups):
        by_label = any(len(classes[task]) > 2 for task in group)
        for task in group:
            asked[task] = ask(task, classes[task], by_label=by_label)
            for question in asked[task]:
                about = question.label if isinstance(question, Question) else None
                group_of[question] = numbers.setdefault((g, about), len(numbers))
    return asked, group_of
