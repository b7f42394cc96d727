"""The tasks held at one node, and how large their features are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError, did_you_mean
from dtsvm.rounds import State
from dtsvm.runtime.agent.node.entry import NO_ROWS
from dtsvm.runtime.agent.node.lanes import Lane, is_main, task_of

__all__ = ["Holding", "Holdings"]

Floats = NDArray[np.float64]


@dataclass
class Holding:
    """A lane that is held here: its agent's slot, scales of features and rows, labels' digest."""

    slot: int
    scale: int = 0
    labels: int = 0
    weight: int = NO_ROWS


@dataclass
class Holdings:
    """The lanes of one node's tasks, by name."""

    node: str
    state: State
    norm: float | None = None  # of a row, where nobody may learn more of its scale
    tasks: dict[str, Holding] = field(default_factory=dict)

    def enter(
        self,
        task: str,
        X: Any,
        y: Floats | Sequence[Lane] | None,
        labels: Sequence[Any] | None,
        weight: Floats | None = None,
    ) -> None:
        """Let a task begin here, perhaps without rows."""
        if task in self.names:
            raise DataError(f"Node {self.node!r} holds task {task!r} already.")
        lanes = _lanes(task, y)
        slots = self.state.add_agents([0] * len(lanes), [0] * len(lanes)).tolist()
        for lane, slot in zip(lanes, slots, strict=True):
            self.tasks[lane.name] = Holding(slot, labels=_digest(labels) if labels else 0)
            if lane.C is not None:
                self.state.price(np.array([slot]), lane.C)
        self._give(lanes, X, weight)

    def add_rows(
        self, task: str, X: Any, y: Floats | Sequence[Lane], weight: Floats | None = None
    ) -> None:
        """Give all lanes of a task more rows."""
        self.lanes(task)
        self._give(_lanes(task, y), X, weight)

    def _give(self, lanes: Sequence[Lane], X: Any, weight: Floats | None) -> None:
        """Give rows to lanes: one copy of their features serves all; the first sees every row."""
        if X is not None and X.shape[0]:
            first, *others = lanes
            slot = self.tasks[first.name].slot
            self.state.add_rows(slot, X, first.side, weight)
            places = self.state.places(slot)[-X.shape[0] :]
            for lane in others:
                mine = slice(None) if lane.sees is None else lane.sees
                own = None if weight is None else weight[mine]
                at = self.tasks[lane.name].slot
                self.state.share_rows(at, places[mine], lane.side[mine], own)
        for lane in lanes:
            self._rescale(lane.name)

    def leave(self, task: str) -> None:
        """Let a task go, with all its lanes; the others here keep what their links carried."""
        for name in self.lanes(task):
            slot, ends = self.tasks.pop(name).slot, self.state.tables.ends
            twins = ends["twin"][ends.used[ends["owner"][ends.used] == slot]]
            if self.norm is None:
                self.state.keep_flow(twins[twins >= 0])
            self.state.remove_agent(slot)

    @property
    def names(self) -> list[str]:
        """The tasks, whatever lanes they have."""
        return list(dict.fromkeys(task_of(name) for name in self.tasks))

    def lanes(self, task: str, *, main: bool = False) -> list[str]:
        """Return the names of a task's lanes, or of those that answer for it; refuse others."""
        found = [name for name in self.tasks if task_of(name) == task]
        if not found:
            raise DataError(
                f"Node {self.node!r} does not hold task {task!r}. {did_you_mean(task, self.names)}"
            )
        return [name for name in found if is_main(name)] if main else found

    def holding(self, task: str) -> Holding:
        """Return a lane's place here, or refuse."""
        if task not in self.tasks:
            raise DataError(
                f"Node {self.node!r} does not hold task {task!r}. {did_you_mean(task, self.tasks)}"
            )
        return self.tasks[task]

    def describe(self) -> tuple[tuple[str, int, int, int], ...]:
        """Return what the others are told of each lane: its scale, labels' digest and weight."""
        held = sorted(self.tasks.items())
        return tuple((task, h.scale, h.labels, h.weight) for task, h in held)

    def _rescale(self, task: str) -> None:
        """Say how large features and C · rows are, to a power of two and no better."""
        holding, state = self.tasks[task], self.state
        slots = state.row_slots[holding.slot]
        square = float(state.tables.rows["norms"][slots].mean()) if len(slots) else 0.0
        if self.norm is not None:
            square = self.norm**2
        scale = np.log2(square / state.n_features) if square > 0 else 0.0
        holding.scale = int(np.clip(np.round(scale), -100, 100))
        box = float(state.tables.boxes(np.array([holding.slot])).sum())
        if self.norm is not None:
            C = float(state.tables.agents["C"][holding.slot])
            box = C * len(slots)  # weights of classes would tell of labels
        holding.weight = int(np.clip(np.ceil(np.log2(box)), NO_ROWS, 40)) if box > 0 else NO_ROWS


def _lanes(task: str, y: Floats | Sequence[Lane] | None) -> Sequence[Lane]:
    """Lanes as they are; ±1 of every row are those of a task's only lane."""
    if y is None or isinstance(y, np.ndarray):
        return [Lane(task, np.zeros(0) if y is None else y)]
    return y


def _digest(labels: Sequence[Any]) -> int:
    """Tell labels and their order, the positive one last of two; 1, 1.0 and "1" are the same."""
    text = repr([_plain(label) for label in labels]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "little")


def _plain(label: Any) -> Any:
    try:
        return float(label)
    except (TypeError, ValueError, OverflowError):
        return str(label)
