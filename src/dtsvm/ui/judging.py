"""Judging a model on labelled rows: sentences first, then figures beside guessing."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError
from dtsvm.problem import Model, TaskModel
from dtsvm.rounds import Status
from dtsvm.svm.company import Alone
from dtsvm.svm.names import match_names
from dtsvm.ui.rows import ModelRows, answer
from dtsvm.ui.scores import Scores, count_scores, no_better
from dtsvm.ui.show import print_table, share

__all__ = ["Report", "judge"]

ALONE = Alone()


class Report:
    """What was found on some rows: sentences, figures by task and node, confusion tables."""

    def __init__(self, model: Model, by_node: bool) -> None:
        self.model, self.by_node = model, by_node
        self.tasks: list[tuple[TaskModel, Scores, list[tuple[Any, Scores]]]] = []
        self.disagreement = float("nan")

    @property
    def total(self) -> Scores | None:
        """All tasks together, where each has two labels."""
        found = [scores for _, scores, _ in self.tasks]
        if len({len(scores.confusion) for scores in found}) != 1:
            return None
        return sum(found[1:], found[0])

    @property
    def n_rows(self) -> int:
        """How many rows were looked at."""
        return sum(scores.n_rows for _, scores, _ in self.tasks)

    def sentences(self) -> list[str]:
        """What should be known first."""
        info, said = self.model.info, []
        if info.status is not Status.CONVERGED:
            said.append(
                f"The model did not converge ({info.status} after {info.n_rounds:,} rounds, gap "
                f"{info.gap:.1e}): train it further before you trust these figures."
            )
        if self.disagreement > 0:
            said.append(f"Nodes disagree on {share(self.disagreement)} of the rows.")
        for one, scores, _ in self.tasks:
            commonest = one.classes[int(scores.confusion.sum(axis=1).argmax())]
            owner = "The model" if len(self.model.tasks) == 1 else f"Task {one.task!r}"
            said += [sentence for sentence in [no_better(scores, owner, commonest)] if sentence]
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return everything for machines."""
        total = self.total
        n_rows = self.n_rows
        n_wrong = sum(scores.n_wrong for _, scores, _ in self.tasks)
        summary = {"rows": n_rows, "wrong": n_wrong, "error": n_wrong / n_rows}
        return {
            "sentences": self.sentences(),
            **(summary if total is None else total.to_dict()),
            "disagreement": self.disagreement,
            "tasks": [
                {
                    "task": one.task,
                    "labels": list(one.classes),
                    **scores.to_dict(),
                    **(
                        {"nodes": [{"node": name, **own.to_dict()} for name, own in nodes]}
                        if self.by_node
                        else {}
                    ),
                }
                for one, scores, nodes in self.tasks
            ],
        }

    def print(self) -> None:
        """Print sentences, then figures, then what was taken for what."""
        for sentence in self.sentences():
            click.echo(sentence)
        columns = ["task", "node", "rows", "error", "95 %", "guess", "bal.acc.", "recall", "prec.",
                   "AUC"]  # fmt: skip
        lines = []
        for one, scores, nodes in self.tasks:
            lines.append([self._name(one), "", *_figures(scores)])
            lines += [["", str(name), *_figures(own)] for name, own in nodes]
        total = self.total
        if len(self.tasks) > 1 and total is not None:
            lines.append(["all", "", *_figures(total)])
        if not self.by_node:
            columns.remove("node")
            lines = [[line[0], *line[2:]] for line in lines]
        print_table(columns, lines, text_columns=2 if self.by_node else 1)
        for one, scores, _ in self.tasks:
            click.echo()
            _print_confusion(self._name(one), one, scores)

    def _name(self, one: TaskModel) -> str:
        return "–" if len(self.model.tasks) == 1 and one.task == 0 else str(one.task)


def judge(model: Model, rows: ModelRows, by_node: bool, company: Alone = ALONE) -> Report:
    """Compare the model's answers with the labels of the rows, wherever they are."""
    report = Report(model, by_node)
    truth = _positions(model, rows)
    whole = answer(model, rows)
    shifted = np.zeros(rows.X.shape[0], bool)
    for one in model.tasks:
        mine = np.flatnonzero(rows.task == one.task)
        found = np.stack([truth[mine], whole.positions[mine], whole.values[mine]], axis=1)
        found = company.stack(found)
        if not len(found):
            continue
        right, given = found[:, :2].astype(np.int64).T
        scores = _count(one, right, given, found[:, 2])
        nodes = []
        for name in model.network.nodes if by_node else ():
            some = mine if rows.node is None else mine[rows.node[mine] == name]
            if not len(some) or name not in one.nodes:
                continue
            own = one.decide(rows.X[some], name)
            chosen = one.choose(own)
            shifted[some] |= chosen != one.choose(one.decide(rows.X[some]))
            nodes.append((name, _count(one, truth[some], chosen, own[:, 0])))
        report.tasks.append((one, scores, nodes))
    if by_node:
        report.disagreement = float(shifted.mean())
    return report


def _count(
    one: TaskModel, truth: NDArray[Any], given: NDArray[Any], values: NDArray[Any]
) -> Scores:
    return count_scores(truth, given, values, len(one.classes))


def _positions(model: Model, rows: ModelRows) -> NDArray[np.int64]:
    """Where each row's label stands among its task's; a strange label is refused."""
    assert rows.y is not None
    found = np.zeros(rows.X.shape[0], np.int64)
    for one in model.tasks:
        mine = np.flatnonzero(rows.task == one.task)
        classes = list(one.classes)
        labels = match_names(rows.y[mine], classes).tolist() if len(mine) else []
        strange = next((label for label in labels if label not in classes), None)
        if strange is not None:
            known = " and ".join(repr(label) for label in classes)
            who = "The model" if len(model.tasks) == 1 else f"Task {one.task!r}"
            raise DataError(
                f"{who} has labels {known}, but the rows have {strange!r}. Write labels as they "
                "were in training, or leave out rows of others."
            )
        found[mine] = [classes.index(label) for label in labels]
    return found


def _figures(scores: Scores) -> list[str]:
    low, high = scores.error_interval
    is_pair = len(scores.confusion) == 2
    recall = scores.recalls[1] if is_pair else float("nan")
    precision = scores.precisions[1] if is_pair else float("nan")
    return [
        f"{scores.n_rows:,}",
        _percent(scores.error),
        f"{_percent(low)}–{_percent(high)}",
        _percent(scores.guess_error),
        _percent(scores.balanced_accuracy),
        _percent(recall),
        _percent(precision),
        _percent(scores.auc),
    ]


def _percent(value: float) -> str:
    return "–" if np.isnan(value) else f"{100 * value:.1f}"


def _print_confusion(name: str, one: TaskModel, scores: Scores) -> None:
    title = "label" if name == "–" else f"{name}: label"
    print_table(
        [title, *(f"said {label}" for label in one.classes)],
        [
            [str(label), *(f"{count:,}" for count in line)]
            for label, line in zip(one.classes, scores.confusion.tolist(), strict=True)
        ],
    )
