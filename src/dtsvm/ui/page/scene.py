"""What the page shows, whoever supplies it: one frame of plain values, and records by round."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dtsvm.errors import ParameterError, did_you_mean

__all__ = ["Records", "Scene", "plain"]

KEPT_ROUNDS = 20_000
KEPT_SENTENCES = 50
Frame = dict[str, Any]


@dataclass
class Records:
    """A row a round, and what was refused; the oldest rounds make room for new ones.

    Attributes
    ----------
    columns : list of str
        Names of what is in a row; the first is the round.
    rows : list of list
        The rounds.
    dropped : int
        How many rows made room.
    """

    columns: list[str]
    rows: list[list[float | None]] = field(default_factory=list)
    dropped: int = 0

    def add(self, row: list[float]) -> None:
        """Keep a round."""
        self.rows.append([plain(value) for value in row])
        if len(self.rows) > KEPT_ROUNDS:
            less = KEPT_ROUNDS // 4
            del self.rows[:less]
            self.dropped += less

    def since(self, start: int) -> dict[str, Any]:
        """Return the rows from a number on; from the beginning if that is no longer kept."""
        first = start if self.dropped <= start <= self.dropped + len(self.rows) else self.dropped
        rows = self.rows[first - self.dropped :]
        return {
            "columns": self.columns,
            "start": first,
            "is_whole": first != start or start == self.dropped,
            "rows": rows,
            "next": first + len(rows),
        }


class Scene:
    """Something that can be looked at, and perhaps changed; each kind fills in the frame.

    Parameters
    ----------
    title : str
        What the page is headed.
    columns : list of str
        Names of what is recorded each round.
    can_change : bool
        Whether anything may be done to it from the page.
    """

    actions: tuple[str, ...] = ()

    def __init__(self, title: str, columns: list[str], can_change: bool) -> None:
        self.title, self.can_change = title, can_change
        self.records = Records(columns)
        self.refused: list[str] = []
        self.version = 0
        self.lock = threading.RLock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._frame: tuple[int, Frame] = (-1, {})

    def start(self) -> None:
        """Begin to move, in a thread of its own."""
        self._thread = threading.Thread(target=self._live, name="scene", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop moving and wait until it stands."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def frame(self, since: int = 0) -> Frame:
        """Return what is to be seen now, and the records from a number on."""
        with self.lock:
            if self._frame[0] != self.version:
                self._frame = (self.version, self._described())
            return {**self._frame[1], "history": self.records.since(since)}

    def do(self, action: str, what: Mapping[str, Any]) -> str:
        """Carry out what a viewer asked for, and say what was done."""
        if action not in self.actions:
            raise ParameterError(f"Unknown action {action!r}. {did_you_mean(action, self.actions)}")
        with self.lock:
            said = str(getattr(self, f"do_{action}")(**what))
            self.version += 1
        return said

    def refuse(self, sentence: str) -> None:
        """Remember what was refused, for all viewers."""
        with self.lock:
            self.refused = [*self.refused, sentence][-KEPT_SENTENCES:]
            self.version += 1

    def _described(self) -> Frame:
        return {
            "title": self.title,
            "can_change": self.can_change,
            "actions": list(self.actions) if self.can_change else [],
            "refused": self.refused,
            **self.describe(),
        }

    def describe(self) -> Frame:
        """Return state, tasks, nodes, links, events and settings as plain values."""
        raise NotImplementedError

    def move(self) -> float:
        """Do the next thing there is to do; return the seconds to wait after it."""
        raise NotImplementedError

    def _live(self) -> None:
        while not self._ended.is_set():
            with self.lock:
                seconds = self.move()
            self._ended.wait(seconds)


def plain(value: float) -> float | None:
    """Return a number that JSON has: none for what is not known or not finite."""
    return float(value) if math.isfinite(value) else None
