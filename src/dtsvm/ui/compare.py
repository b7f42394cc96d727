"""`dtsvm compare`: is company worth it? Every task and node, alone, together and as chosen."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from dtsvm.data import Rows
from dtsvm.errors import NotConvergedWarning
from dtsvm.rounds import Info, Status
from dtsvm.select.choice import Choice
from dtsvm.svm import DTSVMCV
from dtsvm.svm.company import Alone
from dtsvm.svm.lanes import Progress as Done
from dtsvm.ui.known import know
from dtsvm.ui.settings import add_preparing, read_choice, read_network
from dtsvm.ui.show import print_json, print_table, share
from dtsvm.ui.training_rows import read_training

__all__ = [
    "WAYS",
    "choosing_bar",
    "compare",
    "fit_chosen",
    "node_lines",
    "not_converged",
    "say_choices",
]

WAYS = ("alone", "together", "chosen")
REMEDY = "Drop --raw if it was given: features far from one scale are slow to train."


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--label", metavar="COLUMN", help="Column of labels.")
@click.option("--task", metavar="COLUMN", help="Column that names each row's task.")
@click.option("--node", metavar="COLUMN", help="Column that names each row's node.  "
              "[default: a file is a node]")  # fmt: skip
@add_preparing
@click.option("--network", metavar="NAME|FILE", default="complete", show_default=True,
              help="Who is linked to whom: complete, ring, line, star, grid, or a file of two "
              "columns, a link a row.")  # fmt: skip
@click.option("--candidates", type=click.Choice(["small", "all"]), default="small",
              show_default=True, help="How many families to try: 8 or 11.")  # fmt: skip
@click.option("--guard", is_flag=True, help="A task that company may harm stays alone.")
@click.option("--folds", type=click.IntRange(min=2), default=3, show_default=True,
              help="How many times rows are held out.")  # fmt: skip
@click.option("--jobs", "n_jobs", type=click.IntRange(min=1), help="Threads; all cores by default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def compare(ctx: click.Context, /, files: tuple[Path, ...], as_json: bool, **_: Any) -> None:
    """Compare training alone and together on the rows of FILES; nothing is written.

    FILES are rows, or the node.toml of agents that have chosen (C = "auto"): then it is what the
    network found, with the rows of these nodes under it.

    Errors are on rows held out in turn, by every node of its own. Alone: the task by itself, C
    chosen. Together: the one way of sharing that is best for all tasks. Chosen: what `dtsvm train`
    does when it is not told --C.

    \b
    A file a node:
      dtsvm compare berlin.csv paris.csv rome.csv --label sick --task disease
    Running agents:
      dtsvm compare site/*/node.toml
    For a script:
      dtsvm compare rows.csv --label sick --task disease --node clinic --json
    """  # noqa: D301
    if all(path.suffix == ".toml" for path in files):
        from dtsvm.ui.compare_agents import compare_agents  # `train` imports this module

        compare_agents(files, as_json)
        return
    if ctx.params["label"] is None:
        raise click.UsageError("Name the column of labels: --label COLUMN.")
    rows = read_training(files, read_choice({**ctx.params, "weight": None}))
    given = {name: ctx.params[name] for name in ("network", "candidates", "folds", "n_jobs")}
    known = know(rows.train, Alone())
    if known.nodes is not None:
        given["network"] = read_network(given["network"], known)
    estimator = fit_chosen(rows.train, guard="alone" if ctx.params["guard"] else None, **given)
    if estimator.info_.status is not Status.CONVERGED:
        click.echo(not_converged(estimator.info_, estimator.tol, REMEDY), err=True)
    if as_json:
        print_json({"tasks": [_entry(estimator, rows.train, t) for t in _tasks(estimator)]})
        return
    for note in rows.notes:
        click.echo(note)
    print_table(["task", "node", "rows", *WAYS], node_lines(estimator, rows.train, Alone()),
                text_columns=2)  # fmt: skip
    click.echo()
    say_choices(estimator, rows.train)


def say_choices(estimator: DTSVMCV, rows: Rows) -> None:
    """Say a sentence a task; where no column names tasks, the one task has no name."""
    for one in estimator.choices_:
        is_named = rows.task is not None
        click.echo(one.sentence if is_named else one.sentence.replace(str(one.task), "It", 1))


def not_converged(info: Info, tol: float, remedy: str) -> str:
    """Say how far training came and what to do; where candidates are many, no residual is known."""
    residual = max(info.primal_residual, info.dual_residual)
    known = "" if np.isnan(residual) else f"residual {residual:.1e} and "
    return (
        f"Not converged: {info.status} after {info.n_rounds} rounds with {known}gap "
        f"{info.gap:.1e}, tolerance {tol:g}. {remedy}"
    )


def fit_chosen(rows: Rows, **settings: Any) -> DTSVMCV:
    """Choose, with a bar on a terminal."""
    estimator = DTSVMCV(**settings)
    with choosing_bar() as on_lane, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # the report says it
        estimator.set_params(callback=on_lane)
        estimator.fit(rows.X, rows.y, task=rows.task, node=rows.node)  # type: ignore[arg-type]
    estimator.set_params(callback=None)
    return estimator


@contextmanager
def choosing_bar() -> Iterator[Any]:
    """Give a callback that counts candidates on a terminal; None where nobody looks."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    progress = Progress(
        TextColumn("{task.fields[candidate]}"), BarColumn(bar_width=None),
        TextColumn("{task.completed:.0f} of {task.total:.0f}"), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    bar = progress.add_task("", total=1, candidate="choosing")

    def on_lane(done: Done) -> None:
        progress.update(
            bar, total=done.n_jobs, completed=done.n_done, candidate=str(done.candidate.family)
        )

    with progress:
        yield on_lane


def node_lines(estimator: DTSVMCV, rows: Rows, company: Alone) -> list[list[str]]:
    """A line for every task, and under it one for each of its nodes, here or at other ranks."""
    lines = []
    for t in _tasks(estimator):
        mine = _of_task(estimator, rows, t)
        name = "–" if rows.task is None else str(estimator.tasks_.tolist()[t])
        whole = company.add(np.array(_counts(estimator.is_wrong_[mine])))
        lines.append([name, "all", *_cells(whole.tolist())])
        own = [
            [node, _counts(estimator.is_wrong_[mine & (rows.node == node)])]
            for node in _nodes(rows, mine)
        ]
        every = sorted(chain.from_iterable(company.gather(own)))
        lines += [["", str(node), *_cells(counts)] for node, counts in every]
    return lines


def _entry(estimator: DTSVMCV, rows: Rows, t: int) -> dict[str, Any]:
    mine, task = _of_task(estimator, rows, t), estimator.tasks_.tolist()[t]
    chosen = [_chosen(one) for one in estimator.choices_ if one.task == task]
    nodes = [
        {"node": node, **_rates(estimator.is_wrong_[mine & (rows.node == node)])}
        for node in _nodes(rows, mine)
    ]
    # A task of more than two labels has a choice for each of them.
    of_task: dict[str, Any] = chosen[0] if len(chosen) == 1 else {"labels": chosen}
    return {"task": task, **_rates(estimator.is_wrong_[mine]), **of_task, "nodes": nodes}


def _chosen(one: Choice) -> dict[str, Any]:
    label = {} if one.label is None else {"label": one.label}
    return {
        **label,
        "sentence": one.sentence,
        "families": one.weights,
        "C": one.C,
        "is_turned": one.is_turned,
        "alone_interval": list(one.alone[1:]),
        "chosen_interval": list(one.chosen[1:]),
        "difference_interval": list(one.difference[1:]),
    }


def _tasks(estimator: DTSVMCV) -> range:
    return range(len(estimator.tasks_))


def _of_task(estimator: DTSVMCV, rows: Rows, t: int) -> NDArray[np.bool_]:
    if rows.task is None:
        return np.full(rows.X.shape[0], True)
    return np.asarray(rows.task == estimator.tasks_.tolist()[t])


def _nodes(rows: Rows, mine: NDArray[np.bool_]) -> list[Any]:
    return [] if rows.node is None else list(np.unique(rows.node[mine]).tolist())


def _rates(is_wrong: NDArray[np.bool_]) -> dict[str, Any]:
    rates = is_wrong.mean(axis=0).tolist()
    return {"rows": len(is_wrong), **dict(zip(WAYS, rates, strict=True))}


def _counts(is_wrong: NDArray[np.bool_]) -> list[int]:
    """Return how many rows there are, and how many of them each way gets wrong."""
    return [len(is_wrong), *is_wrong.sum(axis=0).tolist()]


def _cells(counts: list[int]) -> list[str]:
    n, *wrong = counts
    return [f"{n:,}", *(share(one / n) for one in wrong)]
