"""Rows for a plan: each task's training rows by node and its test rows, from files or digits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import DigitFeatures, load_mnist, read_rows
from dtsvm.data.labels import check_labels, task_classes
from dtsvm.errors import DataError, ParameterError, did_you_mean
from dtsvm.problem.settings import count
from dtsvm.svm.names import match_names

__all__ = ["TaskRows", "read_task_rows"]

Pair = tuple[NDArray[Any], NDArray[Any]]
# The keys of a task; it must have the first two.
FILE_KEYS = ("data", "label", "node", "task", "features", "positive", "test")
DIGIT_KEYS = ("data", "rows_per_node", "test_rows")


class TaskRows:
    """One task's rows.

    Attributes
    ----------
    labels : (negative, positive)
        The task's labels.
    test : (X, y) or None
        Rows to measure the risk on.
    """

    labels: tuple[Any, Any]
    test: Pair | None

    def holders(self) -> list[Any]:
        """Return the nodes that have rows."""
        raise NotImplementedError

    def first(self, node: Any) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        """Return the rows a node enters with; None where it has none."""
        raise NotImplementedError

    def more(
        self, nodes: list[Any], data: str | None, rows: int | None
    ) -> Iterator[tuple[Any, NDArray[Any], NDArray[Any]]]:
        """Give rows that come later, with the node they come to."""
        raise NotImplementedError


def read_task_rows(
    plan: Path, tables: dict[str, Any], digits: dict[str, Any], nodes: list[Any], seed: int
) -> dict[str, TaskRows]:
    """Read the rows of every task of a plan.

    Parameters
    ----------
    plan : Path
        The plan's file, for messages; the files it names are beside it.
    tables : dict
        The plan's [tasks].
    digits : dict
        The plan's [digits]: components, scale, draw.
    nodes : list
        The plan's nodes, those that come later too.
    seed : int
        Seed of the digits' draw.
    """
    for task, table in tables.items():
        if not isinstance(table, dict) or "data" not in table:
            raise ParameterError(f"{plan}: task {task!r} needs data = 'digits' or a file.")
        known = DIGIT_KEYS if table["data"] == "digits" else FILE_KEYS
        _check_keys(plan, table, known, f"[tasks.{task}]")
        if known[1] not in table:
            raise ParameterError(f"{plan}: task {task!r} needs {known[1]} = ….")
    _check_keys(plan, digits, ("components", "scale", "draw"), "[digits]")
    rng = np.random.default_rng(seed)
    features = None
    found: dict[str, TaskRows] = {}
    for task, table in tables.items():
        if table["data"] == "digits":
            features = features or _features(digits)
            found[task] = _DigitRows(task, table, digits, features, nodes, rng)
        else:
            found[task] = _FileRows(plan, task, table, nodes)
    return found


def _check_keys(plan: Path, table: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise ParameterError(
                f"{plan}: unknown key {key!r} in {where}. {did_you_mean(key, known)}"
            )


def _features(digits: dict[str, Any]) -> DigitFeatures:
    return DigitFeatures(load_mnist(), digits.get("components", 10), digits.get("scale", 1.0))


class _FileRows(TaskRows):
    """Rows from CSV, Parquet or npz files beside the plan."""

    def __init__(self, plan: Path, task: str, table: dict[str, Any], nodes: list[Any]) -> None:
        self.plan, self.task, self.table, self.nodes = plan, task, table, nodes
        self.features = table.get("features")
        self.train = self._by_node(table["data"])
        y = np.concatenate([y for _, y in self.train.values()])
        self.labels = task_classes(y, f"Task {task!r}", table.get("positive"))
        self.test = None
        if "test" in table:
            X, y, _ = self._read(table["test"], None)
            check_labels(len(X), y, task, self.labels)
            self.test = (X, y)

    def holders(self) -> list[Any]:
        return list(self.train)

    def first(self, node: Any) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        return self.train.get(node, (None, None))

    def more(
        self, nodes: list[Any], data: str | None, rows: int | None
    ) -> Iterator[tuple[Any, NDArray[Any], NDArray[Any]]]:
        if data is None or rows is not None:
            raise ParameterError(f"More rows of task {self.task!r} come from a file: data = '…'.")
        for node, (X, y) in self._by_node(data).items():
            if node in nodes:
                yield node, X, y

    def _by_node(self, names: str | list[str]) -> dict[Any, Pair]:
        X, y, node = self._read(names, self.table.get("node"))
        if node is None and len(self.nodes) > 1:
            raise ParameterError(
                f"{self.plan}: task {self.task!r} needs node = 'column', or a file for each node."
            )
        if node is None:
            return {self.nodes[0]: (X, y)}
        node = match_names(node, self.nodes)
        return {name: (X[node == name], y[node == name]) for name in dict.fromkeys(node.tolist())}

    def _read(
        self, names: str | list[str], node: str | None
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
        """Read this task's rows; its features are those of its first file."""
        files = [self.plan.parent / name for name in ([names] if isinstance(names, str) else names)]
        label, task = self.table["label"], self.table.get("task")
        rows = read_rows(files, label=label, task=task, node=node, features=self.features)
        assert rows.y is not None
        self.features = list(rows.feature_names)
        if task is None or rows.task is None:
            return rows.X, rows.y, rows.node
        mine = match_names(rows.task, [self.task]) == self.task
        if not mine.any():
            raise DataError(f"{', '.join(map(str, files))} has no rows of task {self.task!r}.")
        return rows.X[mine], rows.y[mine], None if rows.node is None else rows.node[mine]


class _DigitRows(TaskRows):
    """Rows of a pair of the bundled digits, dealt in the order in which they are asked for."""

    def __init__(
        self,
        task: str,
        table: dict[str, Any],
        digits: dict[str, Any],
        features: DigitFeatures,
        nodes: list[Any],
        rng: np.random.Generator,
    ) -> None:
        self.task, self.nodes = task, nodes
        self.n_first = count(f"task {task!r}", "rows_per_node", table["rows_per_node"])
        self.labels = (-1, 1)
        how = digits.get("draw", "stratified")
        drawn = features.draw(task, None, table.get("test_rows"), draw=how, rng=rng)
        order = _alternating(drawn.y_train) if how == "stratified" else slice(None)
        self.X, self.y = drawn.X_train[order], drawn.y_train[order]
        self.test = (drawn.X_test, drawn.y_test)
        self.n_dealt = 0

    def holders(self) -> list[Any]:
        return list(self.nodes)

    def first(self, node: Any) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        return self._deal(self.n_first)

    def more(
        self, nodes: list[Any], data: str | None, rows: int | None
    ) -> Iterator[tuple[Any, NDArray[Any], NDArray[Any]]]:
        if rows is None or data is not None:
            raise ParameterError(f"More rows of task {self.task!r} are digits: say rows = ….")
        n = count("add_data", "rows", rows)
        for node in nodes:
            yield node, *self._deal(n)

    def _deal(self, n: int) -> Pair:
        start, self.n_dealt = self.n_dealt, self.n_dealt + n
        if self.n_dealt > len(self.y):
            raise DataError(
                f"Task {self.task!r} has {len(self.y)} bundled images, but {self.n_dealt} were "
                "asked for. Ask for fewer."
            )
        return self.X[start : self.n_dealt], self.y[start : self.n_dealt]


def _alternating(y: NDArray[Any]) -> NDArray[np.int64]:
    """Order rows +, −, +, −, …, so that every node's deal is balanced."""
    plus, minus = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    n = min(len(plus), len(minus))
    return np.column_stack([plus[:n], minus[:n]]).ravel()
