"""`dtsvm train`: files in, a model file out."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dtsvm.data import Rows
from dtsvm.errors import DataError, NotConvergedWarning
from dtsvm.problem import Columns, Model, Network, TaskModel
from dtsvm.rounds import Info, Status
from dtsvm.svm.base import ConsensusSVM
from dtsvm.svm.cv import DTSVMCV
from dtsvm.svm.estimators import METHODS
from dtsvm.svm.model_file import save_model
from dtsvm.svm.names import find_name, read_links
from dtsvm.ui.compare import WAYS, fit_chosen, node_lines
from dtsvm.ui.judging import judge
from dtsvm.ui.ranks import engine_for, is_first, one_voice
from dtsvm.ui.rows import ModelRows
from dtsvm.ui.settings import (
    SHAPES,
    add_preparing,
    add_settings,
    given_settings,
    is_setting,
    read_choice,
    was_given,
)
from dtsvm.ui.show import check_place, print_facts, print_table, share, short, training_bar
from dtsvm.ui.training_rows import Choice, TrainingRows, read_training

__all__ = ["train"]

NODE_HELP = (
    "Column that names each row's node. Without it each of several files is a node, named after "
    "the file."
)
METHOD_HELP = (
    "dtsvm: tasks together over the network; dsvm: each task alone; ctsvm, csvm: the same on "
    "pooled rows."
)
NOT_CONVERGED = 3  # exit code
REMEDIES = {
    Status.MAX_ROUNDS: "Raise --max-rounds, lower --C, drop --raw if it was given, or raise --tol.",
    Status.TIME_LIMIT: "Raise --max-seconds.",
    Status.INTERRUPTED: "The state after the last whole round was kept.",
}


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--label", required=True, metavar="COLUMN", help="Column of labels.")
@click.option("--task", metavar="COLUMN", help="Column that names each row's task.")
@click.option("--node", metavar="COLUMN", help=NODE_HELP)
@click.option("--weight", metavar="COLUMN", help="Column of the rows' weights.")
@add_preparing
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("model.json"),
    show_default=True,
    help="Model file to write.",
)
@click.option(
    "--method",
    type=click.Choice([name.lower() for name in METHODS]),
    default="dtsvm",
    show_default=True,
    help=METHOD_HELP,
)
@add_settings
@click.pass_context
@one_voice
def train(ctx: click.Context, /, files: tuple[Path, ...], out: Path, method: str, **_: Any) -> None:
    """Train on the rows of FILES and write a model.

    FILES are CSV (gzipped or not, - for standard input), Parquet or npz. Columns are matched by
    name; numbers are filled in and scaled, yes/no and categories encoded, from sums over the nodes;
    what is left out is said. Every task has two labels of its own. Without --C, and without other
    settings of the objective or the iteration, C and which tasks share how much are chosen by
    holding rows out, node by node (`dtsvm compare` shows what that is worth). A run that stops
    before its tolerance, or at Ctrl-C, says so, still writes what it has, and exits with code 3.

    \b
    A file a node, a fifth of the rows held out to measure the model on:
      dtsvm train berlin.csv paris.csv rome.csv --label sick --holdout 0.2
    One file, with a column for the task and one for the node:
      dtsvm train rows.csv --label sick --task disease --node clinic --network ring
    Own links, and tasks a and b together but not c:
      dtsvm train rows.csv --label y --task task --node site --network links.csv --transfer "a,b"
    The paper's iteration, on features as they are:
      dtsvm train rows.csv --label y --node site --C 0.01 --relaxation 0.5 --node-penalty 1 \\
          --task-penalty 1 --local exact --raw
    """  # noqa: D301
    given = given_settings(ctx, _estimator(ctx, method))
    check_place(out, files)
    choice = read_choice(ctx.params)
    rows = read_training(files, choice)
    kind = _estimator(ctx, method, rows.train)
    settings = _settings(given, rows.train)
    estimator = _fit(kind, settings | engine_for(kind, files), rows.train)
    model = _model(estimator, rows, choice)
    if is_first():
        save_model(model, out)
    _report(estimator, rows, out)
    if rows.test is not None:
        click.echo(f"\nOn {len(rows.test.X):,} rows held out:")
        judge(model, _held_rows(model, rows.test), by_node=False).print()
    if model.info.status is not Status.CONVERGED:
        click.echo(_not_converged(model.info, estimator.tol), err=True)
        ctx.exit(NOT_CONVERGED)


def _model(estimator: Any, rows: TrainingRows, choice: Choice) -> Model:
    """What was trained, with the columns it was trained from."""
    trained: Model = estimator.model_
    made, names = rows.preparation, rows.train.feature_names
    units = None
    if made is not None:
        schema = made.plan_.schema
        units = tuple(schema[f.column].unit if f.scale else None for f in made.plan_.features)
    return replace(
        trained,
        columns=Columns(names, choice.label, choice.task, choice.node, units),
        preparation=None if made is None else made.to_dict(),
    )


def _held_rows(model: Model, rows: Rows) -> ModelRows:
    task = np.full(rows.X.shape[0], model.tasks[0].task) if rows.task is None else rows.task
    return ModelRows(rows.X, rows.y, task, None, {})


def _settings(given: dict[str, Any], rows: Rows) -> dict[str, Any]:
    """Turn text into what the estimator expects: tasks, labels and nodes with their types."""
    readers: dict[str, Callable[[Any, Rows], Any]] = {
        "network": _network,
        "transfer": _transfer,
        "positive": _positive,
        "class_weight": _class_weight,
    }
    return {
        name: readers[name](value, rows) if name in readers else value
        for name, value in given.items()
    }


def _network(text: str, rows: Rows) -> Network | str:
    if rows.node is None:
        raise click.UsageError(
            "--network needs nodes: name their column with --node, or give a file for each node."
        )
    is_file = text not in SHAPES and (Path(text).suffix or Path(text).exists())
    return read_links(Path(text), np.unique(rows.node).tolist()) if is_file else text


def _transfer(text: str, rows: Rows) -> bool | list[list[Any]]:
    if text in ("all", "none"):
        return text == "all"
    tasks = _tasks(rows)
    return [
        [find_name(name.strip(), tasks, "task in --transfer") for name in group.split(",")]
        for group in text.split(";")
    ]


def _positive(texts: tuple[str, ...], rows: Rows) -> Any:
    labels = np.unique(rows.y).tolist()  # type: ignore[arg-type]
    tasks = _tasks(rows)
    by_task = {}
    for text in texts:
        task, _, label = text.partition("=")
        if label and task in [str(known) for known in tasks]:
            name = find_name(label, labels, "label in --positive")
            by_task[find_name(task, tasks, "task")] = name
        elif len(texts) == 1:
            return find_name(text, labels, "label in --positive")
        else:
            raise click.UsageError(f"--positive {text}: with several, write each as TASK=LABEL.")
    return by_task


def _class_weight(texts: tuple[str, ...], rows: Rows) -> Any:
    if texts == ("balanced",):
        return "balanced"
    labels = np.unique(rows.y).tolist()  # type: ignore[arg-type]
    weights = {}
    for text in texts:
        label, _, weight = text.rpartition("=")
        try:
            weights[find_name(label, labels, "label in --class-weight")] = float(weight)
        except ValueError as error:
            if isinstance(error, DataError):
                raise
            raise click.UsageError(
                f"--class-weight {text}: write balanced, or LABEL=WEIGHT for each label."
            ) from error
    return weights


def _tasks(rows: Rows) -> list[Any]:
    return [0] if rows.task is None else list(np.unique(rows.task).tolist())


def _estimator(ctx: click.Context, method: str, rows: Rows | None = None) -> type[ConsensusSVM]:
    """The method that was named; the one that chooses if nothing else was said about training.

    It chooses between two labels: rows with a task of more are trained with the defaults.
    """
    known = inspect.signature(DTSVMCV).parameters
    is_by_hand = ctx.params["weight"] is not None or any(
        was_given(ctx, name)
        and (name in ("C", "method") or (is_setting(name) and name not in known))
        for name in ctx.params
    )
    has_many = rows is not None and any(len(np.unique(mine)) > 2 for mine in _labels_by_task(rows))
    return METHODS[method.upper()] if is_by_hand or has_many else DTSVMCV


def _labels_by_task(rows: Rows) -> list[NDArray[Any]]:
    assert rows.y is not None
    if rows.task is None:
        return [rows.y]
    return [rows.y[rows.task == task] for task in np.unique(rows.task)]


def _fit(kind: type[ConsensusSVM], settings: dict[str, Any], rows: Rows) -> Any:
    if kind is DTSVMCV:
        return fit_chosen(rows, **settings)
    estimator: Any = kind(**settings)
    with training_bar(estimator.tol) as on_round, warnings.catch_warnings():
        # The report says it, in the words of the command line.
        warnings.simplefilter("ignore", NotConvergedWarning)
        estimator.set_params(callback=on_round)
        estimator.fit(rows.X, rows.y, task=rows.task, node=rows.node, sample_weight=rows.weight)
    return estimator.set_params(callback=None)


def _report(estimator: Any, found: TrainingRows, out: Path) -> None:
    for note in found.notes:
        click.echo(note)
    rows = found.train
    if isinstance(estimator, DTSVMCV):
        print_table(["task", "node", "rows", *WAYS], node_lines(estimator, rows), text_columns=2)
        click.echo("\nShares of rows labelled wrong when held out, C and company chosen:")
        for one in estimator.choices_:
            click.echo(one.sentence)
    else:
        print_table(
            ["task", "labels", "rows", "nodes", "training error", "|w₀|", "|w_t|"],
            [_task_line(one, rows) for one in estimator.model_.tasks],
            text_columns=2,
        )
    click.echo()
    info = estimator.info_
    print_facts(
        {
            "status": str(info.status),
            "rounds": f"{info.n_rounds:,} in {info.seconds:.2f} s",
            "gap": _word_gap(info.gap),
            "sent": f"{info.messages_sent:,} messages, {info.bytes_sent:,} bytes",
            "model": str(out),
        }
    )


def _task_line(one: TaskModel, rows: Rows) -> list[str]:
    mine = np.full(rows.X.shape[0], True) if rows.task is None else rows.task == one.task
    said = one.choose(one.decide(rows.X[mine]))
    labels = rows.y[mine].tolist()  # type: ignore[index]
    wrong = np.array([one.classes[k] != label for k, label in zip(said, labels, strict=True)])
    n_nodes = 1 if rows.node is None else len(np.unique(rows.node[mine]))
    return [
        "–" if rows.task is None else str(one.task),
        " / ".join(str(label) for label in one.classes),
        f"{len(wrong):,}",
        str(n_nodes),
        share(float(wrong.mean())),
        short(float(np.linalg.norm(one.common_coef))),
        short(float(np.linalg.norm(one.specific_coef))),
    ]


def _word_gap(gap: float) -> str:
    meaning = "no pooled training has an objective lower by a larger share"
    return f"{short(gap)} ({meaning if gap < 1 else 'too large to say anything'})"


def _not_converged(info: Info, tol: float) -> str:
    residual = max(info.primal_residual, info.dual_residual)
    return (
        f"Not converged: {info.status} after {info.n_rounds} rounds with residual {residual:.1e} "
        f"and gap {info.gap:.1e}, tolerance {tol:g}. {REMEDIES[info.status]}"
    )
