"""`dtsvm train`: files in, a model file out."""

from __future__ import annotations

import inspect
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dtsvm.data import Rows
from dtsvm.data.labels import label_codes
from dtsvm.data.shares import BLOCK_ROWS
from dtsvm.errors import NotConvergedWarning
from dtsvm.problem import Columns, Model, Network, TaskModel
from dtsvm.rounds import Status
from dtsvm.svm.base import ConsensusSVM
from dtsvm.svm.company import Alone, Ranks
from dtsvm.svm.cv import DTSVMCV
from dtsvm.svm.estimators import METHODS
from dtsvm.svm.keeper import Keeper
from dtsvm.svm.model_file import save_model
from dtsvm.svm.names import find_name
from dtsvm.ui.compare import WAYS, fit_chosen, node_lines, not_converged, say_choices
from dtsvm.ui.judging import judge
from dtsvm.ui.known import Known, know, refuse_no_labels
from dtsvm.ui.ranks import check_command, find_ranks, is_first, one_voice
from dtsvm.ui.rows import ModelRows
from dtsvm.ui.settings import (
    add_preparing,
    add_settings,
    given_settings,
    is_setting,
    read_choice,
    read_network,
    was_given,
)
from dtsvm.ui.shares import read_share
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
SMALL_BYTES = 1 << 27  # of files that every rank reads whole where there is something to choose
REMEDIES = {
    Status.MAX_ROUNDS: "Raise --max-rounds, lower --C, drop --raw if it was given, or raise --tol.",
    Status.TIME_LIMIT: "Raise --max-seconds.",
    Status.INTERRUPTED: "The state after the last whole round was kept.",
    None: "Raise --max-rounds, drop --raw if it was given, or raise --tol.",  # while choosing
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
@click.option("--checkpoint", type=click.Path(path_type=Path), metavar="FILE",
              help="Keep the state of training here, and go on from it if it is there: the same "
              "command, started again, at as many ranks as you like.")  # fmt: skip
@click.option("--checkpoint-seconds", type=click.FloatRange(min=0), default=60.0,
              show_default=True, help="How often to write it.")  # fmt: skip
@click.pass_context
@one_voice
def train(ctx: click.Context, /, files: tuple[Path, ...], out: Path, method: str, **_: Any) -> None:
    """Train on the rows of FILES and write a model.

    FILES are CSV (gzipped or not, - for standard input), Parquet or npz. Columns are matched by
    name; numbers are filled in and scaled, yes/no and categories encoded, from sums over the nodes;
    what is left out is said. Every task has two labels of its own, or more. Without --C, and
    without --weight, --probability or other settings of the objective or the iteration, C and which
    tasks share how much are chosen by holding rows out, node by node (`dtsvm compare` shows what
    that is worth). A run that stops before its tolerance, at Ctrl-C or SIGTERM, says so, still
    writes what it has, and exits with code 3; one that was still choosing writes nothing.

    \b
    A file a node, a fifth of the rows held out to measure the model on:
      dtsvm train berlin.csv paris.csv rome.csv --label sick --holdout 0.2
    One file, with a column for the task and one for the node:
      dtsvm train rows.csv --label sick --task disease --node site --network ring
    Own links, and tasks a and b together but not c:
      dtsvm train rows.csv --label y --task task --node site \\
          --network links.csv --transfer "a,b"
    The paper's iteration, on features as they are:
      dtsvm train rows.csv --label y --node site --C 0.01 --relaxation 0.5 \\
          --node-penalty 1 --task-penalty 1 --local exact --raw
    """  # noqa: D301
    given = given_settings(ctx, _estimator(ctx, method))
    check_place(out, files)
    if ctx.params["checkpoint"] is not None:
        check_place(ctx.params["checkpoint"], files, out)
    choice, company = read_choice(ctx.params), find_ranks()
    check_command(company, _estimator(ctx, method), files)
    rows, others = _read(ctx, files, choice, company)
    known = know(rows.train, others)
    kind = _estimator(ctx, method)
    settings = _settings(given, known)
    if not company.is_alone:
        settings["engine"] = "mpi"
    estimator = _fit(kind, settings, rows.train, _keeper(ctx, kind))
    model = _model(estimator, rows, choice)
    if is_first():
        save_model(model, out)
    _report(estimator, rows, out, others)
    if others.largest(rows.test is not None):
        report = judge(model, _held_rows(model, rows), by_node=False, company=others)
        click.echo(f"\nOn {report.n_rows:,} rows held out:")
        report.print()
    elif choice.holdout:
        click.echo(
            f"\nNo row is held out: --holdout {choice.holdout:g} of each label's rows at each node "
            "rounds to none. Hold out a larger share."
        )
    if model.info.status is not Status.CONVERGED:
        remedy = REMEDIES[model.info.status if kind is not DTSVMCV else None]
        click.echo(not_converged(model.info, estimator.tol, remedy), err=True)
        ctx.exit(NOT_CONVERGED)


def _read(
    ctx: click.Context, files: tuple[Path, ...], choice: Choice, company: Alone
) -> tuple[TrainingRows, Alone]:
    """Read all rows or, at one of several ranks, those of its own nodes; say who has the others.

    Where there is something to choose and rows are few, every rank reads them all and trains some
    of the candidates: that waits for nobody.
    """
    may_choose = _estimator(ctx, ctx.params["method"]) is DTSVMCV
    if not isinstance(company, Ranks) or (may_choose and _are_small(files)):
        return read_training(files, choice), Alone()
    text = ctx.params["network"]

    def network(nodes: list[Any]) -> Network | None:
        if text is None or text == "complete" or len(nodes) < 2:
            return None
        made = read_network(text, Known(nodes, [], []))
        return Network.named(made, nodes) if isinstance(made, str) else made

    rows = read_share(files, choice, company, network)
    refuse_no_labels(files[0], choice.label, know(rows.train, company))
    return rows, company


def _are_small(files: Sequence[Path]) -> bool:
    return sum(file.stat().st_size for file in files if file.is_file()) <= SMALL_BYTES


def _model(estimator: Any, rows: TrainingRows, choice: Choice) -> Model:
    """What was trained, with the columns it was trained from."""
    trained: Model = estimator.model_
    made, names = rows.preparation, rows.train.feature_names
    units = None
    if made is not None:
        schema = made.plan.schema
        units = tuple(schema[f.column].unit if f.scale else None for f in made.plan.features)
    return replace(
        trained,
        columns=Columns(names, choice.label, choice.task, choice.node, units),
        preparation=None if made is None else made.to_dict(),
    )


def _held_rows(model: Model, found: TrainingRows) -> ModelRows:
    rows = found.train.take(np.zeros(0, np.int64)) if found.test is None else found.test
    task = np.full(rows.X.shape[0], model.tasks[0].task) if rows.task is None else rows.task
    return ModelRows(rows.X, rows.y, task, None, {})


def _settings(given: dict[str, Any], known: Known) -> dict[str, Any]:
    """Turn text into what the estimator expects: tasks, labels and nodes with their types."""
    readers: dict[str, Callable[[Any, Known], Any]] = {
        "network": read_network,
        "transfer": _transfer,
        "positive": _positive,
        "class_weight": _class_weight,
    }
    return {
        name: readers[name](value, known) if name in readers else value
        for name, value in given.items()
    }


def _transfer(text: str, known: Known) -> bool | list[list[Any]]:
    if text in ("all", "none"):
        return text == "all"
    return [
        [find_name(name.strip(), known.tasks, "task in --transfer") for name in group.split(",")]
        for group in text.split(";")
    ]


def _positive(texts: tuple[str, ...], known: Known) -> Any:
    labels, tasks = known.all_labels, known.tasks
    by_task = {}
    for text in texts:
        task, _, label = text.partition("=")
        if label and task in [str(one) for one in tasks]:
            name = find_name(label, labels, "label in --positive")
            by_task[find_name(task, tasks, "task")] = name
        elif len(texts) == 1:
            return find_name(text, labels, "label in --positive")
        else:
            raise click.UsageError(f"--positive {text}: with several, write each as TASK=LABEL.")
    return by_task


def _class_weight(texts: tuple[str, ...], known: Known) -> Any:
    if texts == ("balanced",):
        return "balanced"
    weights: dict[str, float] = {}
    for text in texts:
        label, _, weight = text.rpartition("=")
        if "=" in label and label not in map(str, known.all_labels):
            raise click.UsageError(f"--class-weight {text}: give the option once for each label.")
        try:
            weights |= {label: float(weight)}
        except ValueError as error:
            raise click.UsageError(
                f"--class-weight {text}: write balanced, or LABEL=WEIGHT for each label."
            ) from error
    labels = known.all_labels
    return {find_name(name, labels, "label in --class-weight"): n for name, n in weights.items()}


def _estimator(ctx: click.Context, method: str) -> type[ConsensusSVM]:
    """The method that was named; the one that chooses if nothing else was said about training."""
    return METHODS[method.upper()] if _by_hand(ctx) else DTSVMCV


def _by_hand(ctx: click.Context) -> list[str]:
    """The options that were given and leave nothing to choose."""
    known = inspect.signature(DTSVMCV).parameters
    return [
        name
        for name in ctx.params
        if was_given(ctx, name)
        and (name in ("C", "method", "weight") or (is_setting(name) and name not in known))
    ]


def _keeper(ctx: click.Context, kind: type[ConsensusSVM]) -> Keeper | None:
    if ctx.params["checkpoint"] is None:
        return None
    if kind is DTSVMCV:
        raise click.UsageError("--checkpoint keeps one training, and choosing is many: say --C.")
    return Keeper(ctx.params["checkpoint"], ctx.params["checkpoint_seconds"])


def _fit(
    kind: type[ConsensusSVM], settings: dict[str, Any], rows: Rows, keeper: Keeper | None
) -> Any:
    if kind is DTSVMCV:
        return fit_chosen(rows, **settings)
    estimator: Any = kind(**settings)
    estimator._keeper = keeper
    with ended_politely(), training_bar(estimator.tol) as on_round, warnings.catch_warnings():
        # The report says it, in the words of the command line.
        warnings.simplefilter("ignore", NotConvergedWarning)
        estimator.set_params(callback=on_round)
        estimator.fit(rows.X, rows.y, task=rows.task, node=rows.node, sample_weight=rows.weight)
    return estimator.set_params(callback=None)


@contextmanager
def ended_politely() -> Iterator[None]:
    """Take a polite kill, as a scheduler's at its time limit, for Ctrl-C: what there is is kept."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _report(estimator: Any, found: TrainingRows, out: Path, company: Alone) -> None:
    for note in found.notes:
        click.echo(note)
    rows = found.train
    if isinstance(estimator, DTSVMCV):
        print_table(["task", "node", "rows", *WAYS], node_lines(estimator, rows, company),
                    text_columns=2)  # fmt: skip
        click.echo("\nShares of rows labelled wrong when held out, C and company chosen:")
        say_choices(estimator, rows)
    else:
        print_table(
            ["task", "labels", "rows", "nodes", "training error", "|w₀|", "|w_t|"],
            [_task_line(one, rows, company) for one in estimator.model_.tasks],
            text_columns=2,
        )
    click.echo()
    info = estimator.info_
    print_facts(
        {
            **_unchosen(estimator),
            "status": str(info.status),
            "rounds": f"{info.n_rounds:,} in {info.seconds:.2f} s",
            "gap": _word_gap(info.gap),
            "sent": f"{info.messages_sent:,} messages, {info.bytes_sent:,} bytes",
            "model": str(out),
        }
    )


def _unchosen(estimator: Any) -> dict[str, str]:
    """Say what C is where neither the command nor a choice says it."""
    by_hand = _by_hand(click.get_current_context())
    if "C" in by_hand or isinstance(estimator, DTSVMCV):
        return {}
    options = ", ".join("--" + name.replace("_", "-") for name in by_hand)
    return {"C": f"{short(estimator.C)}, the default: with {options} nothing is chosen"}


def _task_line(one: TaskModel, rows: Rows, company: Alone) -> list[str]:
    mine = np.full(rows.X.shape[0], True) if rows.task is None else rows.task == one.task
    n_wrong = sum(_wrong(one, rows, some) for some in _pieces(np.flatnonzero(mine)))
    n_nodes = 0 if rows.node is None else len(np.unique(rows.node[mine]))
    counts = company.add(np.array([mine.sum(), n_wrong, n_nodes], np.int64)).tolist()
    return [
        "–" if rows.task is None else str(one.task),
        " / ".join(str(label) for label in one.classes),
        f"{counts[0]:,}",
        str(max(counts[2], 1)),
        share(counts[1] / counts[0]),
        short(float(np.linalg.norm(one.common_coef))),
        short(float(np.linalg.norm(one.specific_coef))),
    ]


def _pieces(index: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return np.array_split(index, max(len(index) // BLOCK_ROWS, 1))


def _wrong(one: TaskModel, rows: Rows, mine: NDArray[np.int64]) -> int:
    """How many of these rows the task's classifier gets wrong."""
    if not len(mine):
        return 0
    said = one.choose(one.decide(rows.X[mine]))
    return int((said != label_codes(rows.y[mine], one.classes)).sum())  # type: ignore[index]


def _word_gap(gap: float) -> str:
    meaning = "no pooled training has an objective lower by a larger share"
    return f"{short(gap)} ({meaning if gap < 1 else 'too large to say anything'})"
