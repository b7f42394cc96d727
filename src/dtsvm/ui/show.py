"""What the commands print: tables, numbers, a bar on a terminal, files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from dtsvm.data.files import write_atomically
from dtsvm.data.text import STDIN
from dtsvm.errors import DtsvmError
from dtsvm.rounds import Info

__all__ = [
    "check_place",
    "choosing_words",
    "print_facts",
    "print_json",
    "print_table",
    "share",
    "short",
    "training_bar",
    "write_text",
]


# Behind a pipe, as wide as the narrowest screen.
WIDTH = 80


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1
) -> None:
    """Print rows under column names; the first `text_columns` stand left, numbers right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for position, name in enumerate(columns):
        is_text = position < text_columns
        table.add_column(name, justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(text) for text in row))
    _print(table)


def print_facts(facts: dict[str, str]) -> None:
    """Print names and values under each other."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, _cell(value))
    _print(table)


def _cell(text: str) -> str:
    """Make a text of one line for a table: a category may have a newline, or move the cursor."""
    return escape("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))


def print_json(content: Any) -> None:
    """Print for machines: valid JSON, null for what is not known."""
    click.echo(json.dumps(_without_nan(content), indent=2, ensure_ascii=False, allow_nan=False))


def short(value: float) -> str:
    """Word a number for a table.

    Examples
    --------
    >>> short(0.000123456), short(12.3456), short(float("nan"))
    ('1.2e-04', '12.35', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{value:.1e}" if value and abs(value) < 1e-3 else f"{value:.4g}"


def share(value: float) -> str:
    """Word a share as a percentage.

    Examples
    --------
    >>> share(0.125)
    '12.5 %'
    """
    return "–" if math.isnan(value) else f"{100 * value:.1f} %"


def check_place(path: Path, inputs: Sequence[Path] = (), other: Path | None = None) -> None:
    """Refuse a place that cannot be written, or is one of the inputs, before the work."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise DtsvmError(f"There is no folder {folder} for {path.name}. Make it first.")
    if path.is_dir():
        raise DtsvmError(f"{path} is a folder. Name a file in it.")
    if path == STDIN:
        raise DtsvmError("- is no name of a file. Name the file to write.")
    if any(path.resolve() == one.resolve() for one in inputs):
        raise DtsvmError(f"{path} is one of the files to read. Write to another file.")
    if other is not None and path.resolve() == other.resolve():
        raise DtsvmError(f"{path} would be written twice. Name two files.")
    is_device = path.exists() and not path.is_file()
    place = path if is_device else path.resolve().parent
    if not os.access(place, os.W_OK):
        raise DtsvmError(f"{path} cannot be written: no rights in {place}. Choose another place.")


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        reason = error.strerror or error
        raise DtsvmError(f"{path} cannot be written: {reason}. Choose another place.") from error


def choosing_words(choosing: dict[str, Any]) -> str:
    """Word how far a network is with choosing.

    Examples
    --------
    >>> choosing_words({"tracks": 31, "certified": 12, "rounds": 40, "times_begun": 1})
    'choosing (12 of 31)'
    """
    if not choosing["times_begun"]:
        return "meeting"
    if not choosing["tracks"]:
        return "choosing"
    return f"choosing ({choosing['certified']} of {choosing['tracks']})"


@contextmanager
def training_bar(tol: float) -> Iterator[Callable[[Info], None] | None]:
    """Give a callback that draws rounds on a terminal; None where nobody looks."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    progress = Progress(
        SpinnerColumn(),
        TextColumn("round {task.fields[round]}"),
        BarColumn(bar_width=None),
        TextColumn("residual {task.fields[residual]}  gap {task.fields[gap]}  tol " + short(tol)),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    bar = progress.add_task("", total=1.0, round=0, residual="–", gap="–")
    with progress:
        yield _Follower(progress, bar, tol)


class _Follower:
    """Moves the bar by how far the residual has come from its first value to the tolerance."""

    def __init__(self, progress: Progress, bar: Any, tol: float) -> None:
        self.progress, self.bar, self.tol = progress, bar, tol
        self.start = math.nan
        self.gap = math.nan

    def __call__(self, info: Info) -> None:
        residual = max(info.primal_residual, info.dual_residual, 1e-300)
        if math.isnan(self.start):
            self.start = residual
        if not math.isnan(info.gap):
            self.gap = info.gap
        way = math.log(self.start / self.tol)
        come = math.log(self.start / residual) / way if way > 0 else 1.0
        self.progress.update(
            self.bar, completed=min(max(come, 0.0), 1.0), round=info.n_rounds,
            residual=f"{residual:.1e}", gap="–" if math.isnan(self.gap) else f"{self.gap:.1e}",
        )  # fmt: skip


def _print(table: Table) -> None:
    # The console is made when used: every test has its own stdout.
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _without_nan(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
