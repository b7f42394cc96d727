"""`dtsvm predict`: a model and rows in, labels out."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import click

from dtsvm.svm.model_file import load_model
from dtsvm.ui.rows import rows_for_model
from dtsvm.ui.show import check_place, write_text

__all__ = ["predict"]


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--task", metavar="COLUMN", help="Column that names each row's task; by default the "
              "one used in training. A model of one task needs none.")  # fmt: skip
@click.option("--task-name", metavar="TASK", help="The task of all rows.")
@click.option("--node", metavar="COLUMN", help="Column that names the node to ask for each row. "
              "By default the network's averaged answer is given.")  # fmt: skip
@click.option("--node-name", metavar="NODE", help="The node to ask for all rows.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="CSV file to write, instead of stdout."
)
def predict(
    model: Path,
    files: tuple[Path, ...],
    task: str | None,
    task_name: str | None,
    node: str | None,
    node_name: str | None,
    out: Path | None,
) -> None:
    """Label the rows of FILES with the classifiers of MODEL.

    Writes CSV: the label, and the decision value (above 0: the task's positive label) of every
    row, in order. Feature columns are found by name.

    \b
    With a column that names the task:
      dtsvm predict model.json new.csv --task disease
    All rows of one task, as node 'berlin' would answer:
      dtsvm predict model.json new.csv --task-name flu --node-name berlin --out answers.csv
    """  # noqa: D301
    if out is not None:
        check_place(out)
    estimator = load_model(model)
    rows = rows_for_model(
        estimator, files, task=task, task_name=task_name, node=node, node_name=node_name
    )
    where = {"task": rows.task, "node": rows.node}
    labels = estimator.predict(rows.X, **where).tolist()
    values = estimator.decision_function(rows.X, **where).tolist()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["label", "decision"])
    writer.writerows(zip(labels, values, strict=True))
    if out is None:
        click.echo(text.getvalue(), nl=False)
    else:
        write_text(out, text.getvalue())
        click.echo(f"{len(labels):,} predictions: {out}", err=True)
