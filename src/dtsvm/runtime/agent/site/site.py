"""A node with its files: rows in, models out, and what it was told kept in between."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import Rows, read_records, read_rows
from dtsvm.data.files import write_atomically
from dtsvm.data.labels import begin_classes, check_labels, signs
from dtsvm.errors import DataError, NetworkError
from dtsvm.prepare import Preparation
from dtsvm.problem import Columns
from dtsvm.runtime.agent.node.identity import Identity, Nameless
from dtsvm.runtime.agent.node.model import node_model
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.scoring import BINS, count_answers
from dtsvm.runtime.agent.site.checkpoint import Told, dump, read_told, restore
from dtsvm.runtime.agent.site.columns import is_held
from dtsvm.runtime.agent.site.config import Config, TaskConfig
from dtsvm.runtime.privacy.veil import make_veil

__all__ = ["Site"]

Classes = tuple[Any, Any]
Floats = NDArray[np.float64]
Block = tuple[Floats, Floats]
BUDGET = "budget.json"  # what was spent of a node's privacy


class Site:
    """A node and the files in its folder.

    Parameters
    ----------
    config : Config
        The node's TOML file, read.
    save : callable
        Writes a model to a file: `svm.save_model`.
    identity : Identity, optional
        What the node signs with.
    preparation : Preparation, optional
        How columns become features; without it numbers are taken as they are.
    """

    def __init__(
        self,
        config: Config,
        save: Callable[..., None],
        identity: Identity | None = None,
        preparation: Preparation | None = None,
    ) -> None:
        self.config, self._save, self.preparation = config, save, preparation
        self.classes: dict[str, Classes] = {}
        self.held: dict[str, Block] = {}  # rows that nobody trains on
        self.feature_names: tuple[str, ...] | None = None
        self._path = config.folder / "checkpoint.npz"
        content = self._path.read_bytes() if self._path.exists() else None
        self.told = read_told(content, str(self._path)) if content else Told()
        blocks = {task: self._read_first(task, given) for task, given in config.tasks.items()}
        lengths = {X.shape[1] for X, _ in blocks.values() if X.shape[1]}
        if len(lengths) != 1:
            raise DataError(f"{config.path}: its tasks' rows have lengths {sorted(lengths)}.")
        self.n_first = {task: len(y) for task, (_, y) in blocks.items()}
        held = {task: block for task, block in blocks.items() if task not in self.told.left}
        self.node = self._make_node(lengths.pop(), held, identity or Nameless())
        if content:
            restore(self.node, content, str(self._path))

    @property
    def neighbours(self) -> dict[str, str]:
        """Neighbours and their addresses: the configuration's, and those told."""
        given = {**self.config.neighbours, **self.told.linked}
        return {name: a for name, a in given.items() if name not in self.told.unlinked}

    def _make_node(self, n_features: int, blocks: dict[str, Block], identity: Identity) -> Node:
        config = self.config
        node = Node(
            config.name, list(self.neighbours), n_features, config.settings, config.network,
            time.time_ns() // 1000, time.monotonic(), config.personal, config.timing, identity,
            self._columns(), make_veil(config.privacy, config.folder / BUDGET),
        )  # fmt: skip
        for task, (X, y) in blocks.items():
            node.enter(task, X, y, self.classes[task])
        for group in config.couple:
            if len(group) > 1:
                node.couple(list(group))
        return node

    def _columns(self) -> str:
        """What all nodes' rows must be made of, for a sentence where they are not."""
        if self.preparation is not None:
            text = json.dumps(self.preparation.plan_.to_dict(), sort_keys=True)
            return f"prepared {hashlib.sha256(text.encode()).hexdigest()[:12]}"
        text = ", ".join(self.feature_names or ())
        long = f"{text[:500]}… {hashlib.sha256(text.encode()).hexdigest()[:12]}"
        return text if len(text) <= 500 else long

    def _read(self, path: Any, label: str | None, features: tuple[str, ...] | None) -> Rows:
        if self.preparation is None:
            return read_rows(path, label=label, features=features)
        records = read_records(path, roles={"label": label}, features=(), only=True)
        X = self.preparation.transform(records)
        return Rows(X, records.y, None, None, self.preparation.plan_.names)

    def _read_first(self, task: str, given: TaskConfig) -> Block:
        if given.data is None:
            self.classes[task] = begin_classes(task, None, given.labels)
            made = self.preparation
            n_features = len(given.features or ()) if made is None else len(made.plan_.names)
            return np.zeros((0, n_features)), np.zeros(0)
        rows = self._read(given.data, given.label, given.features)
        self.classes[task] = begin_classes(task, rows.y, given.labels)
        self.feature_names = rows.feature_names
        assert rows.y is not None
        y, held = self._signs(task, rows.y), is_held(self.config, task, rows.y)
        self.held[task] = (rows.X[held], y[held])
        return np.ascontiguousarray(rows.X[~held]), y[~held]

    def count(self, task: str) -> Floats:
        """Count what the node's classifier says of the rows held out here."""
        X, y = self.held.get(task, (np.zeros((0, self.node.n_features)), np.zeros(0)))
        if task not in self.node.holdings:
            return np.zeros(2 * BINS)
        u = self.node.decision(task)
        return count_answers(X @ u[:-1] + u[-1], y)

    def _signs(self, task: str, labels: Any) -> Floats:
        check_labels(len(labels), labels, task, self.classes[task])
        return signs(labels, self.classes[task])

    def tell_rows(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Add the rows of a file to a task; they are on disk before that is said."""
        tasks = list(self.node.holdings)
        task = asked.get("task") or (tasks[0] if len(tasks) == 1 else None)
        if task is None:
            raise DataError(f"Say which task with --task: {', '.join(tasks)}.")
        self.node.holding(task)
        label = self.config.tasks[task].label
        rows = self._read(asked["file"], label, self.feature_names)
        y = self._signs(task, rows.y)
        self.keep({"rows": (task, rows.X, y)})
        self.node.tell_owner()
        self.node.add_rows(task, rows.X, y)
        return {"said": f"Task {task!r} has {len(rows.X)} more rows."}

    def keep(self, change: dict[str, Any]) -> None:
        """Put the node on disk, with a change that is about to be made."""
        told = _with(self.told, change)
        content = dump(self.node, self.n_first, told, change)
        try:
            write_atomically(self._path, content, is_private=True)
        except OSError as error:
            raise NetworkError(
                f"{self._path} cannot be written: {error.strerror}. Nothing was changed; make room "
                "and try again."
            ) from error
        self.told = told

    def write_model(self, node: Node) -> None:
        """Write the node's classifiers as 'dtsvm train' would."""
        if not node.holdings:
            return
        label = next(iter(self.config.tasks.values())).label
        made, units = self.preparation, None
        if made is not None:
            schema = made.plan_.schema
            units = tuple(schema[f.column].unit if f.scale else None for f in made.plan_.features)
        model = node_model(
            node, self.classes, Columns(self.feature_names, label, None, None, units)
        )
        self._save(
            replace(model, preparation=None if made is None else made.to_dict()), self.config.model
        )


def _with(told: Told, change: dict[str, Any]) -> Told:
    """Return what a node was told, with one thing more."""
    if "linked" in change:
        name, address = change["linked"]
        rest = tuple(other for other in told.unlinked if other != name)
        return replace(told, linked={**told.linked, name: address}, unlinked=rest)
    if "unlinked" in change:
        name = change["unlinked"]
        linked = {other: a for other, a in told.linked.items() if other != name}
        return replace(told, linked=linked, unlinked=(*told.unlinked, name))
    if "left" in change:
        return replace(told, left=(*told.left, change["left"]))
    return told
