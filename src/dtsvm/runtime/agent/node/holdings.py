"""The tasks held at one node, and how large their features are."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError, did_you_mean
from dtsvm.rounds import State
from dtsvm.runtime.agent.node.entry import NO_ROWS

__all__ = ["Holding", "Holdings"]

Floats = NDArray[np.float64]


@dataclass
class Holding:
    """A task that is held here: its agent's slot, scales of features and rows, labels' digest."""

    slot: int
    scale: int = 0
    labels: int = 0
    weight: int = NO_ROWS


@dataclass
class Holdings:
    """The tasks of one node, by name."""

    node: str
    state: State
    norm: float | None = None  # of a row, where nobody may learn more of its scale
    tasks: dict[str, Holding] = field(default_factory=dict)

    def enter(
        self,
        task: str,
        X: Floats | None,
        y: Floats | None,
        labels: tuple[Any, Any] | None,
    ) -> None:
        """Let a task begin here, perhaps without rows."""
        if task in self.tasks:
            raise DataError(f"Node {self.node!r} holds task {task!r} already.")
        (slot,) = self.state.add_agents([0], [0]).tolist()
        self.tasks[task] = Holding(slot, labels=_digest(labels) if labels else 0)
        if X is not None and y is not None and len(y):
            self.state.add_rows(slot, X, y)
        self._rescale(task)

    def add_rows(self, task: str, X: Floats, y: Floats) -> None:
        """Give a task more rows."""
        self.state.add_rows(self.holding(task).slot, X, y)
        self._rescale(task)

    def leave(self, task: str) -> None:
        """Let a task go."""
        self.state.remove_agent(self.holding(task).slot)
        del self.tasks[task]

    def holding(self, task: str) -> Holding:
        """Return a task's place here, or refuse."""
        if task not in self.tasks:
            raise DataError(
                f"Node {self.node!r} does not hold task {task!r}. {did_you_mean(task, self.tasks)}"
            )
        return self.tasks[task]

    def describe(self) -> tuple[tuple[str, int, int, int], ...]:
        """Return what the others are told of each task: its scale, labels' digest and weight."""
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
        box = float(state.tables.rows["box"][slots].sum()) if len(slots) else 0.0
        holding.weight = int(np.clip(np.ceil(np.log2(box)), NO_ROWS, 40)) if box > 0 else NO_ROWS


def _digest(labels: tuple[Any, Any]) -> int:
    """Tell which label is negative and which positive; 1, 1.0 and "1" are the same label."""
    text = repr([_plain(label) for label in labels]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "little")


def _plain(label: Any) -> Any:
    try:
        return float(label)
    except (TypeError, ValueError):
        return str(label)
