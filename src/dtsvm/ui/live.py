"""`dtsvm live`: a plan in; risks and residuals of every round out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dtsvm.errors import MissingExtraError
from dtsvm.rounds import Info, Status
from dtsvm.ui.evolution import Evolution, run_schedule
from dtsvm.ui.schedule import Schedule, Stage, read_schedule
from dtsvm.ui.show import check_place, print_table, share, short, write_text

__all__ = ["live"]


@click.command()
@click.argument("schedule", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="CSV file to write, a row a round.  [default: SCHEDULE's name, .csv, in this folder]",
)
@click.option("--plot", type=click.Path(path_type=Path), help="PNG file to draw the risks in.")
def live(schedule: Path, out: Path | None, plot: Path | None) -> None:
    """Train by a plan: tasks, nodes, links and rows come and go.

    SCHEDULE is a TOML file:

    \b
    network = { shape = "ring", nodes = 6 }  # or links = [["a", "b"], …]
    settings = { C = 0.01, specific_reg = 100 } # as in the Session
    tasks.3v6 = { data = "digits", rows_per_node = 10, test_rows = 1800 }
    tasks.flu = { data = "rows.csv", label = "sick", node = "clinic" }
    [[stages]]
    name = "alone"
    events = [{ enter = "3v6" }, { enter = "flu" }]
    rounds = 100
    [[stages]]
    events = [{ couple = ["3v6", "flu"] }]
    tol = 1e-4

    Files are looked for beside the plan. Ctrl-C keeps the rounds done. Where an event names no node
    it happens at every node that has rows of the task. Events:

    \b
      { enter = "flu" }
      { enter = { task = "flu", node = "oslo", links = ["rome"] } }
      { add_data = { task = "flu", node = "oslo", data = "more.csv" } }
      { drop_data = { task = "flu", node = "oslo", oldest = 10 } }
      { leave = "flu" }
      { leave = { task = "flu", node = "oslo", allow_split = true } }
      { couple = ["flu", "3v6"] }   { decouple = "flu" }
      { link = ["oslo", "rome"] }   { unlink = ["oslo", "rome"] }
      { set = { C = 0.1 } }

    The paper's Fig. 7:

    \b
      dtsvm live examples/fig7.toml --plot fig7.png
    """  # noqa: D301
    target = out or Path(f"{schedule.stem}.csv")
    for path in (target, plot):
        if path is not None:
            check_place(path)
    figure = _figure_class() if plot else None
    plan = read_schedule(schedule)
    with _stage_bar() as (on_stage, on_round):
        evolution = run_schedule(plan, on_stage=on_stage, on_round=on_round)
    write_text(target, evolution.to_csv())
    _report(evolution)
    click.echo(f"\nhistory  {target}")
    if plot is not None:
        _draw(figure, plan, evolution).savefig(plot)
        click.echo(f"plot     {plot}")


StageBar = tuple[Callable[[Stage], None] | None, Callable[[Info, Evolution], None] | None]


@contextmanager
def _stage_bar() -> Iterator[StageBar]:
    """Give callbacks that draw a bar for each stage on a terminal; None where nobody looks."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None, None
        return
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
    )

    def on_stage(stage: Stage) -> None:
        progress.add_task(stage.name, total=stage.rounds, note="")

    def on_round(info: Info, evolution: Evolution) -> None:
        residual = max(info.primal_residual, info.dual_residual)
        note = f"residual {residual:.1e}  {_risks(evolution, evolution.rows[-1])}"
        progress.update(progress.task_ids[-1], advance=1, note=note)

    with progress:
        yield on_stage, on_round


def _risks(evolution: Evolution, row: tuple[Any, ...]) -> str:
    risks = zip(evolution.tasks, row[-len(evolution.tasks) :], strict=True)
    return "  ".join(f"{task} {share(risk)}" for task, risk in risks) if evolution.tasks else ""


def _report(evolution: Evolution) -> None:
    """Print a line a stage: how it ended, and each task's risk then."""
    last = {row[0]: row for row in evolution.rows}
    lines = []
    for stage, info in evolution.ends:
        row = last.get(info.n_rounds, ())
        events = dict.fromkeys(event.kind for event in stage.events)
        lines.append([
            stage.name,
            ", ".join(events),
            f"{info.n_rounds:,}",
            short(max(info.primal_residual, info.dual_residual)),
            short(info.gap),
            *(share(risk) for risk in row[4:]),
        ])  # fmt: skip
    risks = [f"risk {task}" for task in evolution.tasks]
    columns = ["stage", "events", "until round", "residual", "gap", *risks]
    print_table(columns, lines, text_columns=2)
    if evolution.ends[-1][1].status is Status.INTERRUPTED:
        click.echo("Interrupted: the rounds done so far were kept.", err=True)


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "--plot needs matplotlib, which is not installed. "
            'Install it with: pip install "dtsvm[plot]"'
        ) from error
    return Figure


def _draw(figure_class: Any, plan: Schedule, evolution: Evolution) -> Any:
    """Draw each task's risk over the rounds, with a line where a stage begins."""
    figure = figure_class(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    rounds = [row[0] for row in evolution.rows]
    for i, task in enumerate(evolution.tasks):
        axes.plot(rounds, [100 * row[4 + i] for row in evolution.rows], label=task)
    begin = 0
    for stage, info in evolution.ends:
        axes.axvline(begin, color="0.8", linewidth=1, zorder=0)
        axes.annotate(stage.name, (begin, 1), xycoords=("data", "axes fraction"), va="bottom")
        begin = info.n_rounds
    axes.set(xlabel="round", ylabel="global risk (%)", ylim=(0, None), xlim=(0, begin))
    if any(not math.isnan(value) for row in evolution.rows for value in row[4:]):
        axes.legend()
    return figure
