"""`dtsvm predict`: a model and rows in, labels out."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import click
import numpy as np

from dtsvm.data.text import STDIN
from dtsvm.problem import Model
from dtsvm.svm.model_file import read_model
from dtsvm.ui.rows import Asked, ModelRows, answer, rows_for_model
from dtsvm.ui.settings import MISSING_HELP, listed_names
from dtsvm.ui.show import check_place, write_text

__all__ = ["predict"]

ANSWERS = ("label", "decision", "probability")


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--task", metavar="COLUMN", help="Column that names each row's task; by default the "
              "one used in training. A model of one task needs none.")  # fmt: skip
@click.option("--task-name", metavar="TASK", help="The task of all rows.")
@click.option("--node", metavar="COLUMN", help="Column that names the node to ask for each row. "
              "By default the network's averaged answer is given.")  # fmt: skip
@click.option("--node-name", metavar="NODE", help="The node to ask for all rows.")
@click.option("--keep", metavar="A,B,…", help="Columns to copy beside the answers; identifiers "
              "that were found in training are copied anyway.")  # fmt: skip
@click.option("--missing-columns", type=click.Choice(["refuse", "impute"]), help=MISSING_HELP)
@click.option(
    "--out", type=click.Path(path_type=Path), help="CSV file to write, instead of stdout (-)."
)
def predict(
    model: Path, files: tuple[Path, ...], keep: str | None, out: Path | None, **asked: Any
) -> None:
    """Label the rows of FILES with the classifiers of MODEL.

    Writes CSV: the label, and the decision value (above 0: the task's positive label) of every
    row, in order, beside the row's identifiers, and the label's probability if the model was
    trained with --probability. Columns are found by name. FILES may be - for standard input.

    \b
    With a column that names the task:
      dtsvm predict model.json new.csv --task disease
    All rows of one task, as node 'berlin' would answer:
      dtsvm predict model.json new.csv --task-name flu --node-name berlin \\
          --out answers.csv
    """  # noqa: D301
    out = None if out == STDIN else out
    if out is not None:
        check_place(out, [model, *files])
    trained = read_model(model)
    names = tuple(listed_names(keep)) if keep else ()
    taken = next((name for name in names if name in ANSWERS), None)
    if taken is not None:
        raise click.UsageError(
            f"--keep {taken}: answers have a column of this name. Rename it in the files."
        )
    rows = rows_for_model(trained, files, Asked(keep=names, **asked))
    text = _to_csv(trained, rows)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_text(out, text)
        click.echo(f"{rows.X.shape[0]:,} predictions: {out}", err=True)


def _to_csv(model: Model, rows: ModelRows) -> str:
    found = answer(model, rows)
    classes = {one.task: one.classes for one in model.tasks}
    labels = [
        classes[task][position]
        for task, position in zip(rows.task.tolist(), found.positions.tolist(), strict=True)
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns: dict[str, list[Any]] = {
        **rows.kept,
        "label": labels,
        "decision": found.values.tolist(),
    }
    if not np.isnan(found.probabilities).any():
        columns["probability"] = found.probabilities.tolist()
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
