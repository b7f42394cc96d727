"""Watching agents: a table that stays in place on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from dtsvm.ui.show import choosing_words, short

__all__ = ["Watch"]

LINE_SECONDS = 2.0
COLOURS = {"training": "yellow", "settled": "green", "killed": "bold red", "left": "dim"}
COLUMNS = ("node", "state", "round", "residual", "neighbours heard", "tasks (rows)", "settled")
Statuses = Mapping[str, Mapping[str, Any]]


class Watch:
    """What is said and shown about running agents.

    Parameters
    ----------
    names : list of str
        The nodes, in the order of their rows.
    """

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.marks = dict.fromkeys(names, "starting")  # a state that no status tells
        self._last: dict[str, Mapping[str, Any]] = {}
        self._began = time.monotonic()
        self._line_at = self._began
        self._console = Console(highlight=False)
        self._live: Live | None = None

    def __enter__(self) -> Watch:
        if self._console.is_terminal:
            self._live = Live(self._table(), console=self._console, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, sentence: str) -> None:
        """Say what happens, with the seconds since the beginning."""
        line = f"{time.monotonic() - self._began:5.1f} s  {sentence}"
        if self._live is None:
            click.echo(line)
        else:
            self._console.print(escape(line))

    def mark(self, name: str, state: str) -> None:
        """Show a node in a state that it cannot tell itself: starting, killed, left."""
        self.marks[name] = state
        self._draw()

    def show(self, statuses: Statuses) -> None:
        """Show the newest statuses; of a node that is busy, the last one stays."""
        self._last.update(statuses)
        for name in statuses:
            self.marks.pop(name, None)
        self._draw()
        if self._live is None and time.monotonic() - self._line_at >= LINE_SECONDS:
            self._line_at = time.monotonic()
            self.say(self._summary())

    def _draw(self) -> None:
        if self._live is not None:
            self._live.update(self._table(), refresh=True)

    def _state(self, name: str) -> str:
        if name in self.marks:
            return self.marks[name]
        status = self._last[name]
        if status["is_settled"]:
            return "settled"
        if "choosing" in status:
            return choosing_words(status["choosing"])
        return "training" if status["round"] else "meeting"

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for i, column in enumerate(COLUMNS):
            table.add_column(column, justify="right" if i in (2, 3, 4) else "left", no_wrap=True)
        for name in self.names:
            state = self._state(name)
            colour = COLOURS.get(state, "cyan")
            is_here = name in self._last and state not in ("starting", "killed")
            cells = self._cells(self._last[name]) if is_here else [""] * 5
            table.add_row(escape(name), f"[{colour}]{state}[/]", *map(escape, cells))
        return table

    def _cells(self, status: Mapping[str, Any]) -> list[str]:
        # A settled node computes no rounds: whom it hears are those that are present.
        heard = status["present"] if status["is_settled"] else status["heard"]
        return [
            f"{status['round']:,}",
            _residual(status["residual"]),
            f"{len(heard)} of {len(status['neighbours'])}",
            ", ".join(f"{task} ({rows})" for task, rows in status["tasks"].items()),
            "yes" if status["is_settled"] else "no",
        ]

    def _summary(self) -> str:
        """Word all nodes in one line, for a log."""
        states = [self._state(name) for name in self.names]
        counts = {state: states.count(state) for state in dict.fromkeys(states)}
        told = ", ".join(f"{n} {state}" for state, n in counts.items())
        here = [self._last[n] for n in self.names if n in self._last and n not in self.marks]
        if not here:
            return told
        rounds = [status["round"] for status in here]
        worst = max(status["residual"] for status in here)
        return f"{told}; round {min(rounds):,} to {max(rounds):,}, residual {_residual(worst)}"


def _residual(value: float) -> str:
    return short(value) if math.isfinite(value) else "–"  # before the first round
