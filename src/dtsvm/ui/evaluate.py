"""`dtsvm evaluate`: a model and labelled rows in, shares of wrong labels out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError
from dtsvm.svm.model_file import load_model
from dtsvm.svm.names import match_names
from dtsvm.ui.rows import ModelRows, rows_for_model
from dtsvm.ui.show import print_json, print_table, share

__all__ = ["evaluate"]


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--label", metavar="COLUMN", help="Column of labels; by default that of training.")
@click.option("--task", metavar="COLUMN", help="Column that names each row's task; by default "
              "that of training. A model of one task needs none.")  # fmt: skip
@click.option("--task-name", metavar="TASK", help="The task of all rows.")
@click.option("--node", metavar="COLUMN", help="Column that names each row's node, which then "
              "answers for it. By default the network's averaged answer counts.")  # fmt: skip
@click.option("--by-node", is_flag=True, help="Show each node's error too: on all rows, or with "
              "--node on its own.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def evaluate(
    model: Path,
    files: tuple[Path, ...],
    label: str | None,
    task: str | None,
    task_name: str | None,
    node: str | None,
    by_node: bool,
    as_json: bool,
) -> None:
    """Measure how often MODEL is wrong on FILES.

    \b
    Each task's error on a test file:
      dtsvm evaluate model.json test.csv --label sick --task disease
    What each node would say:
      dtsvm evaluate model.json test.csv --by-node
    For a script:
      dtsvm evaluate model.json test.csv --json
    """  # noqa: D301
    estimator = load_model(model)
    column = label or estimator.columns_.label
    if column is None:
        raise click.UsageError("Name the column of labels with --label.")
    rows = rows_for_model(estimator, files, label=column, task=task, task_name=task_name, node=node)
    errors = [_task_errors(estimator, rows, t, by_node) for t in range(len(estimator.tasks_))]
    errors = [entry for entry in errors if entry["rows"]]
    if as_json:
        print_json({"model": str(model), **_total(errors), "tasks": errors})
    else:
        _print(errors)


def _task_errors(estimator: Any, rows: ModelRows, t: int, by_node: bool) -> dict[str, Any]:
    """Count the wrong labels of one task: in all, and by node if asked."""
    task = estimator.tasks_.tolist()[t]
    mine = np.flatnonzero(rows.task == task)
    if not len(mine):
        return {"task": task, **_count(np.zeros(0, bool))}
    classes = estimator.task_classes_[t].tolist()
    is_positive = _labels(rows, mine, task, classes) == classes[1]
    node = None if rows.node is None else rows.node[mine]
    wrong = _wrong(estimator, rows.X[mine], is_positive, task, node)
    entry: dict[str, Any] = {"task": task, **_count(wrong)}
    if by_node:
        entry["nodes"] = _node_errors(estimator, rows.X[mine], is_positive, t, node)
    return entry


def _node_errors(
    estimator: Any, X: NDArray[Any], is_positive: NDArray[Any], t: int, node: NDArray[Any] | None
) -> list[dict[str, Any]]:
    task = estimator.tasks_.tolist()[t]
    entries = []
    for v, name in enumerate(estimator.nodes_.tolist()):
        some = np.full(len(X), True) if node is None else node == name
        if some.any() and not np.isnan(estimator.node_intercept_[v, t]):
            wrong = _wrong(estimator, X[some], is_positive[some], task, name)
            entries.append({"node": name, **_count(wrong)})
    return entries


def _wrong(
    estimator: Any, X: NDArray[Any], is_positive: NDArray[Any], task: Any, node: Any
) -> NDArray[np.bool_]:
    decided = estimator.decision_function(X, task=task, node=node) > 0
    return np.asarray(decided != is_positive)


def _labels(rows: ModelRows, mine: NDArray[Any], task: Any, classes: list[Any]) -> NDArray[Any]:
    assert rows.y is not None
    labels = match_names(rows.y[mine], classes)
    strange = [label for label in dict.fromkeys(labels.tolist()) if label not in classes]
    if strange:
        raise DataError(
            f"Task {task!r} has labels {classes[0]!r} and {classes[1]!r}, but the rows have "
            f"{strange[0]!r}."
        )
    return labels


def _count(wrong: NDArray[np.bool_]) -> dict[str, Any]:
    error = float(wrong.mean()) if len(wrong) else float("nan")
    return {"rows": len(wrong), "wrong": int(wrong.sum()), "error": error}


def _total(errors: list[dict[str, Any]]) -> dict[str, Any]:
    rows, wrong = (sum(entry[key] for entry in errors) for key in ("rows", "wrong"))
    return {"rows": rows, "wrong": wrong, "error": wrong / rows}


def _print(errors: list[dict[str, Any]]) -> None:
    lines = []
    for entry in errors:
        lines.append([str(entry["task"]), "", *_numbers(entry)])
        lines += [["", str(one["node"]), *_numbers(one)] for one in entry.get("nodes", [])]
    if len(errors) > 1:
        lines.append(["all", "", *_numbers(_total(errors))])
    columns = ["task", "node", "rows", "wrong", "error"]
    if not any("nodes" in entry for entry in errors):
        columns.remove("node")
        lines = [[line[0], *line[2:]] for line in lines]
    print_table(columns, lines, text_columns=len(columns) - 3)


def _numbers(entry: dict[str, Any]) -> list[str]:
    return [f"{entry['rows']:,}", f"{entry['wrong']:,}", share(entry["error"])]
