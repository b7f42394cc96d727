"""The options of `dtsvm train` that are parameters of an estimator, with its defaults."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from dtsvm.data.schema import DECLARABLE
from dtsvm.problem import Network
from dtsvm.svm.names import read_links
from dtsvm.ui.known import Known
from dtsvm.ui.training_rows import Choice

__all__ = [
    "MISSING_HELP",
    "SHAPES",
    "add_preparing",
    "add_settings",
    "given_settings",
    "is_setting",
    "listed_names",
    "read_choice",
    "read_network",
    "was_given",
]

MISSING_HELP = (
    "Whether files without one of the model's columns are refused, or it counts as missing in all "
    "their rows."
)
SHAPES = ("complete", "ring", "line", "star", "grid")
Command = TypeVar("Command", bound=Callable[..., Any])


class Penalty(click.ParamType[float | str]):
    """A number, or auto."""

    name = "penalty"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        """Give a float or "auto"."""
        try:
            return "auto" if value == "auto" else float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor auto.", param, ctx)


# Parameter, type, how its value is written, what it is.
_SETTINGS: list[tuple[str, Any, str | None, str]] = [
    ("C", float, None, "Price of a row's hinge loss."),
    ("common_reg", float, None, "ε₁, on what tasks share; small beside ε₂ makes tasks alike."),
    ("specific_reg", float, None, "ε₂, on what is a task's own."),
    ("task_penalty", Penalty(), "FLOAT|auto", "η₁, on links inside a node: speed, not answer."),
    ("node_penalty", Penalty(), "FLOAT|auto", "η₂, on links across the network; likewise."),
    ("relaxation", float, None, "κ between 0 and 1; the paper's iteration is 0.5."),
    ("local", click.Choice(["tracking", "exact"]), None, "How well a node solves its own part."),
    ("tol", float, None, "Stop when residuals and certified gap are below this."),
    ("max_rounds", int, None, "Rounds at most."),
    ("max_seconds", float, None, "Seconds at most."),
    ("relays", click.Choice(["auto"]), None, "Let nodes between a task's holders pass it on."),
]


def add_settings(command: Command) -> Command:
    """Decorate a command with an option for each parameter."""
    for option in reversed([*_spelled_options(), *_plain_options()]):
        command = option(command)
    return command


def add_preparing(command: Command) -> Command:
    """Decorate a command with the options that say what becomes of columns and rows."""
    for option in reversed(_preparing_options()):
        command = option(command)
    return command


def listed_names(text: str) -> list[str]:
    """Read names with commas between them; one that has a comma itself stands in quotes.

    Examples
    --------
    >>> listed_names('age, "weight, dry"')
    ['age', 'weight, dry']
    """
    found = next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in found] or [""]


def read_choice(params: dict[str, Any]) -> Choice:
    """Return what the options say about columns and rows."""
    kinds = {}
    for text in params["kind"]:
        column, _, kind = text.rpartition("=")
        if not column or kind not in DECLARABLE:
            names = ", ".join(DECLARABLE)
            raise click.UsageError(f"--kind {text}: write COLUMN=KIND, with a kind of {names}.")
        kinds[column] = kind
    given = [(name, params[name]) for name in ("label", "task", "node", "weight") if params[name]]
    for i, (name, column) in enumerate(given):
        taken = next((other for other, one in given[:i] if one == column), None)
        if taken:
            raise click.UsageError(f"--{name} {column}: this column is the {taken} already.")
    if params["is_raw"] and kinds:
        raise click.UsageError("--kind has no meaning with --raw.")
    listed = params["features"]
    return Choice(
        **{name: params[name] for name in ("label", "task", "node", "weight", "missing_columns",
                                           "min_count", "holdout", "seed", "is_raw")},
        features=None if listed is None else listed_names(listed),
        kinds=kinds,
    )  # fmt: skip


def _preparing_options() -> list[Callable[[Any], Any]]:
    return [
        click.option("--features", metavar="A,B,…", help="Feature columns; all others by default."),
        click.option("--kind", multiple=True, metavar="COLUMN=KIND",
                     help="What a column holds, if it is taken for something else: "
                     f"{', '.join(DECLARABLE)}."),
        click.option("--missing-columns", type=click.Choice(["refuse", "impute"]),
                     default="refuse", show_default=True,
                     help="What to do if a file lacks a column that another has."),
        click.option("--min-count", type=click.IntRange(min=1), default=10, show_default=True,
                     help="Categories with fewer rows go together as (other)."),
        click.option("--raw", "is_raw", is_flag=True,
                     help="Take numbers as they are: nothing filled in, scaled or encoded."),
        click.option("--holdout", type=click.FloatRange(0, 1, max_open=True), default=0.0,
                     metavar="SHARE", help="Hold out this share of every node's rows and measure "
                     "the model on them."),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
                     help="Seed of the choice of rows to hold out."),
    ]  # fmt: skip


def given_settings(ctx: click.Context, estimator: type) -> dict[str, Any]:
    """Return what was given; refuse what the estimator does not know, rather than ignore it."""
    known = inspect.signature(estimator).parameters
    given = {}
    for option in ctx.command.params:
        name = str(option.name)
        if not is_setting(name) or not was_given(ctx, name):
            continue
        if name not in known:
            method = estimator.__name__.lower()
            raise click.UsageError(f"{option.opts[0]} does not apply to --method {method}.")
        given[name] = ctx.params[name]
    return given


def is_setting(name: str) -> bool:
    """Whether an option is a parameter of an estimator."""
    return name in _parameters()


def _parameters() -> Mapping[str, inspect.Parameter]:
    from dtsvm.svm import DTSVM  # slow to load, and only training needs it

    return inspect.signature(DTSVM).parameters


def was_given(ctx: click.Context, name: str) -> bool:
    """Whether an option stood on the command line."""
    return ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


def _plain_options() -> list[Callable[[Any], Any]]:
    defaults = _parameters()
    return [
        click.option(
            "--" + name.replace("_", "-"),
            name,
            type=kind,
            metavar=metavar,
            default=defaults[name].default,
            show_default=True,
            help=text,
        )
        for name, kind, metavar, text in _SETTINGS
    ]


def _spelled_options() -> list[Callable[[Any], Any]]:
    """Those whose text stands for something else, and which the command itself translates."""
    return [
        click.option(
            "--network",
            metavar="NAME|FILE",
            help=f"Who is linked to whom: {', '.join(SHAPES)}, or a CSV file of links with two "
            "columns.  [default: complete]",
        ),
        click.option(
            "--transfer",
            metavar="all|none|A,B;C,D",
            help="Which tasks train together; a task in none of the groups trains alone.  "
            "[default: all]",
        ),
        click.option(
            "--positive",
            multiple=True,
            metavar="LABEL|TASK=LABEL",
            help="Label of the positive side, for all tasks, or repeated for some; the larger "
            "label by default.",
        ),
        click.option(
            "--class-weight",
            multiple=True,
            metavar="balanced|LABEL=WEIGHT",
            help="What the loss of a label's rows is multiplied by. balanced: rare labels count as "
            "much as common ones, by counts over the whole network.",
        ),
        click.option(
            "--probability",
            is_flag=True,
            help="Learn probabilities too, from rows held out in turn; predict then writes them.",
        ),
        click.option(
            "--personal",
            is_flag=True,
            help="Link different tasks across the network too: each node its own task.",
        ),
        click.option(
            "--jobs",
            "--threads",
            "n_jobs",
            type=int,
            help="Threads; the result does not depend on it.  [default: all cores]",
        ),
    ]


def read_network(text: str, known: Known) -> Network | str:
    """Read the name of a shape, or a file of links between nodes that are known."""
    if known.nodes is None:
        raise click.UsageError(
            "--network needs nodes: name their column with --node, or give a file for each node."
        )
    is_file = text not in SHAPES and (Path(text).suffix or Path(text).exists())
    return read_links(Path(text), known.nodes) if is_file else text
