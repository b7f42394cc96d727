"""`dtsvm evaluate`: a model and labelled rows in, how good it is out, beside guessing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dtsvm.svm.model_file import read_model
from dtsvm.ui.judging import Report, judge
from dtsvm.ui.rows import Asked, rows_for_model
from dtsvm.ui.settings import MISSING_HELP
from dtsvm.ui.show import print_json

__all__ = ["evaluate"]


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--label", metavar="COLUMN", help="Column of labels; by default that of training.")
@click.option("--task", metavar="COLUMN", help="Column that names each row's task; by default "
              "that of training. A model of one task needs none.")  # fmt: skip
@click.option("--task-name", metavar="TASK", help="The task of all rows.")
@click.option("--node", metavar="COLUMN", help="Column that names each row's node, which then "
              "answers for it. By default the network's averaged answer counts.")  # fmt: skip
@click.option("--missing-columns", type=click.Choice(["refuse", "impute"]), help=MISSING_HELP)
@click.option("--by-node", is_flag=True, help="Show each node's figures too: on all rows, or with "
              "--node on its own.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def evaluate(
    model: Path,
    files: tuple[Path, ...],
    label: str | None,
    by_node: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Measure how good MODEL is on FILES, beside always guessing the commonest label.

    MODEL may be the node.toml of a running agent: then every node of its network counts its answers
    on the rows that it holds out (holdout = 0.2 in node.toml), and only sums of counts travel.

    Error with its 95 % interval, the error of guessing, balanced accuracy, the positive label's
    recall and precision, and the area under the ROC curve, all in %, and what was taken for what.
    What you should know before you trust these figures is said first.

    \b
    Each task's error on a test file:
      dtsvm evaluate model.json test.csv --label sick --task disease
    What each node would say:
      dtsvm evaluate model.json test.csv --by-node
    For a script:
      dtsvm evaluate model.json test.csv --json
    A network of agents on its own held-out rows:
      dtsvm evaluate site/hospital-a/node.toml
    """  # noqa: D301
    if model.suffix == ".toml":
        report = _ask_network(model)
    elif not files:
        raise click.UsageError("Missing argument 'FILES...'.")
    else:
        report = _on_files(model, files, label, by_node, asked)
    if as_json:
        print_json({"model": str(model), **report.to_dict()})
    else:
        report.print()


def _ask_network(path: Path) -> Report:
    from dtsvm.ui.network_scores import ask_network  # needs the extra for agents

    return ask_network(path)


def _on_files(
    model: Path, files: tuple[Path, ...], label: str | None, by_node: bool, asked: dict[str, Any]
) -> Report:
    trained = read_model(model)
    column = label or trained.columns.label
    if column is None:
        raise click.UsageError("Name the column of labels with --label.")
    rows = rows_for_model(trained, files, Asked(label=column, **asked))
    return judge(trained, rows, by_node)
