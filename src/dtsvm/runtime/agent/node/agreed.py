"""What all nodes agree on before the first round: features, labels, and rows of each label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.labels import task_classes
from dtsvm.data.rows import refuse_other_labels
from dtsvm.errors import DtsvmError
from dtsvm.prepare import Plan
from dtsvm.runtime.agent.node.names import is_task
from dtsvm.runtime.agent.node.refuse import MOST_COUNT

__all__ = ["MOST_LABELS", "Agreed", "Labelled", "agree_labels", "read_counts"]

MOST_LABELS, MOST_TEXT = 100, 200
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Labelled:
    """One node's labels of a task.

    Attributes
    ----------
    given : tuple or None
        What its owner wrote down, the positive one last of two.
    counts : dict
        Its rows of every label found.
    """

    given: tuple[Any, ...] | None = None
    counts: dict[Any, int] = field(default_factory=dict)

    def check(self, task: str) -> None:
        """Refuse labels that are too many or too long to be labels."""
        labels = [*(self.given or ()), *self.counts]
        long = next((one for one in labels if len(str(one)) > MOST_TEXT), None)
        if len(labels) > 2 * MOST_LABELS or long is not None:
            raise DtsvmError(
                f"Task {task!r} has {len(self.counts)} labels, such as "
                f"{str(labels[-1])[:40]!r}; at agents it may have {MOST_LABELS}, each of "
                f"{MOST_TEXT} letters. Is its label column the right one?"
            )

    def said(self) -> list[Any]:
        """Return what the others are told: no counts."""
        return [self.given, list(self.counts)]

    @classmethod
    def heard(cls, said: Any) -> Labelled:
        """Read what another node said."""
        given, found = said
        one = cls(None if given is None else tuple(given), dict.fromkeys(found, 0))
        for label in (*(one.given or ()), *one.counts):
            is_number = isinstance(label, int | float) and abs(label) < 2**63
            if not (isinstance(label, str) or is_number):
                raise ValueError("no label")
        one.check("")
        return one


@dataclass(frozen=True)
class Agreed:
    """What was agreed.

    Attributes
    ----------
    plan : Plan or None
        How columns become features; None if numbers are taken as they are.
    classes : dict of str to tuple
        Every task's labels, the positive one last of two.
    by_label : frozenset of str
        Tasks of two labels that ask label by label, because one they train with has more.
    counts : dict of str to tuple
        The network's rows of every label, if classes are to be balanced.
    generation : int
        How often it was agreed anew.
    """

    plan: Plan | None = None
    classes: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    by_label: frozenset[str] = frozenset()
    counts: dict[str, tuple[float, ...]] = field(default_factory=dict)
    generation: int = 0

    def strange(self, labels: Mapping[str, Labelled]) -> tuple[str, Any] | None:
        """Return a task and a label that a node has rows of and that was not agreed on, if any."""
        for task, mine in labels.items():
            known = self.classes.get(task, ())
            for label in mine.counts if known else ():
                if label not in known:
                    return task, label
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "plan": None if self.plan is None else self.plan.to_dict(),
            "classes": {task: list(labels) for task, labels in self.classes.items()},
            "by_label": sorted(self.by_label),
            "counts": {task: list(counts) for task, counts in self.counts.items()},
            "generation": self.generation,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Agreed:
        """Read what `to_dict` wrote; a ValueError for what nobody can have agreed on."""
        classes = {str(task): tuple(labels) for task, labels in content["classes"].items()}
        counts = {str(t): tuple(float(n) for n in some) for t, some in content["counts"].items()}
        generation = int(content["generation"])
        for task, labels in classes.items():
            Labelled.heard([labels, []])
            if not is_task(task) or len(set(labels)) != len(labels) or len(labels) < 2:
                raise ValueError(f"the labels of task {task[:40]!r}")
        for task, some in counts.items():
            if len(some) != len(classes[task]) or not all(0 <= n < 2**53 for n in some):
                raise ValueError(f"the counts of task {task[:40]!r}")
        if not 0 <= generation < MOST_COUNT:
            raise ValueError("its generation")
        plan = None if content["plan"] is None else Plan.from_dict(content["plan"])
        return cls(plan, classes, frozenset(map(str, content["by_label"])), counts, generation)


def agree_labels(
    nodes: Mapping[str, Mapping[str, Labelled]],
    groups: Iterable[Iterable[str]],
    most: int = MOST_LABELS,
) -> tuple[dict[str, tuple[Any, ...]], frozenset[str]]:
    """Return every task's labels, and the tasks of two that ask label by label.

    Parameters
    ----------
    nodes : mapping
        What every node says, by node and task.
    groups : iterable
        Tasks that somebody wants to train together.
    most : int
        How many labels a task may have.

    Examples
    --------
    >>> here, there = Labelled(counts={"a": 2, "b": 1}), Labelled(counts={"b": 1, "c": 4})
    >>> agree_labels({"north": {"flu": here}, "south": {"flu": there}}, [])[0]
    {'flu': ('a', 'b', 'c')}
    """
    tasks = sorted({task for said in nodes.values() for task in said})
    found = {t: {n: said[t] for n, said in nodes.items() if t in said} for t in tasks}
    classes = {task: _of_task(task, said) for task, said in found.items()}
    for task, labels in classes.items():
        _refuse_more(task, labels, found[task], most)
    by_label: set[str] = set()
    for group in _joined(groups):
        if any(len(classes.get(task, ())) > 2 for task in group):
            by_label |= {task for task in group if len(classes.get(task, ())) == 2}
    return classes, frozenset(by_label)


class _Part:
    """As much of some rows as `refuse_other_labels` looks at."""

    task = None

    def __init__(self, labels: Sequence[Any]) -> None:
        self.y = np.array(list(labels))


def _of_task(task: str, said: Mapping[str, Labelled]) -> tuple[Any, ...]:
    given = {name: one.given for name, one in said.items() if one.given is not None}
    known = {name: one for name, one in said.items() if one.counts}
    if not given:
        refuse_other_labels(list(known), [_Part(list(one.counts)) for one in known.values()])
        every = list(dict.fromkeys(label for one in known.values() for label in one.counts))
        if len(every) < 2:
            raise DtsvmError(
                f"Task {task!r} has rows of labels {every!r} in the whole network; name its labels "
                "as labels = [negative, positive] in every node.toml."
            )
        return task_classes(every, f"Task {task!r}")
    (first, labels), *others = given.items()
    for name, other in others:
        if other != labels:
            raise DtsvmError(
                f"Node {name} has labels {list(other)!r} for task {task!r}; {first} has "
                f"{list(labels)!r}. Write the same into every node.toml."
            )
    for name, one in known.items():
        strange = next((label for label in one.counts if label not in labels), None)
        if strange is not None:
            raise DtsvmError(
                f"Node {name} has rows of label {strange!r} of task {task!r}; {first} says that "
                f"its labels are {list(labels)!r}."
            )
    return labels


def _refuse_more(
    task: str, labels: tuple[Any, ...], said: Mapping[str, Labelled], most: int
) -> None:
    if len(labels) > most:
        by = [f"{name} has {list(one.counts or one.given or ())!r}" for name, one in said.items()]
        raise DtsvmError(
            f"Task {task!r} has {len(labels)} labels in the whole network, and may have {most} "
            f'with C = "auto" ({"; ".join(by)[:400]}). Mend the rows, or write a number for C.'
        )


def _joined(groups: Iterable[Iterable[str]]) -> list[set[str]]:
    """Return groups that share a task as one."""
    found: list[set[str]] = []
    for group in groups:
        mine = set(group)
        apart = [one for one in found if not one & mine]
        found = [*apart, mine.union(*(one for one in found if one & mine))]
    return found


def read_counts(
    classes: Mapping[str, tuple[Any, ...]], own: Mapping[str, Labelled], total: Floats
) -> dict[str, tuple[float, ...]]:
    """Return the network's rows of every label; refuse what no honest nodes have together."""
    found, start = {}, 0
    for task, labels in sorted(classes.items()):
        counts = total[start : start + len(labels)].round()
        start += len(labels)
        mine = own.get(task, Labelled()).counts
        least = np.array([mine.get(label, 0) for label in labels])
        if (counts < least).any() or (counts >= 2.0**40).any():
            raise DtsvmError(
                f"The network counts fewer rows of task {task!r} than this node has: some node "
                "does not count honestly. Weigh classes by numbers written down instead."
            )
        found[task] = tuple(counts.tolist())
    return found
