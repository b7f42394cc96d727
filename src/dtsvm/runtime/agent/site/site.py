"""A node with its files: rows in, models out, and what it was told kept in between."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.files import write_atomically
from dtsvm.data.labels import label_codes
from dtsvm.errors import DataError, NetworkError
from dtsvm.problem import Columns
from dtsvm.runtime.agent.node.agreed import Agreed
from dtsvm.runtime.agent.node.calibrating import Unseen
from dtsvm.runtime.agent.node.chooser import Chooser, Plan
from dtsvm.runtime.agent.node.identity import Identity, Nameless
from dtsvm.runtime.agent.node.lanes import candidate_name
from dtsvm.runtime.agent.node.model import chosen_model, node_model
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.scoring import count_answers
from dtsvm.runtime.agent.site.checkpoint import dump, restore, told_before
from dtsvm.runtime.agent.site.columns import BUDGET
from dtsvm.runtime.agent.site.config import Config
from dtsvm.runtime.agent.site.rows import Block, SiteRows
from dtsvm.runtime.agent.site.standing import dump_lanes, read_lanes
from dtsvm.runtime.privacy.sums import NoisySums
from dtsvm.runtime.privacy.veil import Noisy, make_veil

__all__ = ["Site"]

log = logging.getLogger(__name__)
Floats = NDArray[np.float64]
LATER = "later"  # folder of the files that were added while training


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
    agreed : Agreed, optional
        What all nodes have agreed on; without it numbers are taken as they are.
    plan : callable, optional
        The steps of choosing, where the configuration wants that: `select.choosing_at_node`.
    """

    def __init__(
        self,
        config: Config,
        save: Callable[..., None],
        identity: Identity | None = None,
        agreed: Agreed | None = None,
        plan: Plan | None = None,
    ) -> None:
        self.config, self._save = config, save
        self.rows = SiteRows(config, agreed)
        self._sigmoids: dict[str, Floats] = {}  # by main lane
        self._path = config.folder / "checkpoint.npz"
        content = self._path.read_bytes() if self._path.exists() else None
        generation = agreed.generation if agreed else 0
        self.told = replace(told_before(config.folder), generation=generation)
        lengths = {b.X.shape[1] for b in self.rows.first.values() if b.X.shape[1]}
        if len(lengths) != 1:
            raise DataError(f"{config.path}: its tasks' rows have lengths {sorted(lengths)}.")
        self.node = self._make_node(lengths.pop(), identity or Nameless())
        if content:
            restore(self.node, content, str(self._path), generation)
        self.chooser = (
            Chooser(self.node, plan, config.settings) if plan and config.chooses else None
        )
        self._lanes = config.folder / "lanes.npz"
        if self.chooser is not None and self._lanes.exists():
            content = self._lanes.read_bytes()
            self.chooser.kept = read_lanes(content, config.network, generation)

    @property
    def neighbours(self) -> dict[str, str]:
        """Neighbours and their addresses: the configuration's, and those told."""
        return self.told.neighbours(self.config.neighbours)

    def _make_node(self, n_features: int, identity: Identity) -> Node:
        config = self.config
        node = Node(
            config.name, list(self.neighbours), n_features, config.settings, config.network,
            time.time_ns() // 1000, time.monotonic(), config.personal, config.timing, identity,
            self.rows.described(),
            make_veil(config.privacy, config.folder / BUDGET, holdout=config.holdout),
            config.chooses,
        )  # fmt: skip
        node.veil.heaviest = self.rows.heaviest
        for task, block in self.rows.first.items():
            if task not in self.told.left:
                self._enter(node, task, block)
        for group in config.couple:
            if len(group) > 1:
                node.couple(list(group))
        return node

    def _enter(self, node: Node, task: str, block: Block) -> None:
        """Let a task begin with its first rows and those that were added later."""
        rows = self.rows
        lanes = rows.lanes(task, block)
        node.enter(task, block.X, lanes, rows.classes[task], rows.weight(task, block))
        for owner, file, _ in self.told.later:
            if owner == task:
                more = rows.read(task, self.config.folder / file)
                lanes = rows.lanes(task, more)
                node.add_rows(task, more.X, lanes, rows.weight(task, more))

    def count(self, task: str, n_lanes: int) -> Floats:
        """Count what the node's classifier says of the rows held out here, with noise if asked."""
        veil = self.node.veil
        if not isinstance(veil, Noisy) or task not in self.node.tasks:
            return self._count(task, n_lanes)
        return NoisySums(veil.budget).evaluated(task, lambda: self._count(task, n_lanes), n_lanes)

    def _count(self, task: str, n_lanes: int) -> Floats:
        n_labels = max(n_lanes, 2)
        block = self.rows.held.get(task)
        if block is None or not len(block.y) or task not in self.node.tasks:
            return count_answers(np.zeros((0, n_lanes)), np.zeros(0, np.int64), n_labels)
        u = np.array([self._decision(lane) for lane in self.node.lanes(task, main=True)])
        codes = label_codes(block.y, self.rows.classes[task])
        return count_answers(block.X @ u[:, :-1].T + u[:, -1], codes, n_labels)

    def unseen(self) -> dict[str, Unseen] | None:
        """Return what lanes say of rows they did not see; None while the node has not settled."""
        node = self.node
        if not node.is_settled:
            return None
        if self.chooser is not None:
            return self.chooser.unseen()
        found: dict[str, Unseen] = {}
        for task in node.tasks:
            found |= self.rows.unseen(task, lambda lane: node.certified(lane).sum(axis=0))
        return found

    def counted(self) -> dict[str, Floats] | None:
        """Return how decision values are spread, with noise; None before the node has settled."""
        node, veil = self.node, self.node.veil
        if not node.is_settled or not isinstance(veil, Noisy):
            return None
        found: dict[str, Floats] = {}
        for task in node.tasks:
            lanes = node.lanes(task, main=True)

            def make(task: str = task) -> Floats:
                mine = self.rows.seen(task, lambda lane: node.certified(lane).sum(axis=0))
                return np.array(list(mine.values()))

            told = NoisySums(veil.budget).spread(task, make)
            if len(told) == len(lanes):  # else it was lost, or is of other lanes
                found |= dict(zip(lanes, told, strict=True))
        return found

    def compared(self) -> Floats | None:
        """Return the errors of each candidate, with noise; None before all nodes have tried all."""
        node, veil = self.node, self.node.veil
        if not isinstance(veil, Noisy) or not veil.budget.is_comparing:
            return None
        sums = NoisySums(veil.budget)
        if "errors" in veil.budget.told:
            return sums.compared(lambda: np.zeros(0))
        found = []
        for k in range(len(veil.privacy.candidates)):
            lanes = [lane for task in node.tasks for lane in node.lanes(task, main=True)]
            parts = {lane: node.agreed(candidate_name(lane, k)) for lane in lanes}
            known = {lane: part.sum(axis=0) for lane, part in parts.items() if part is not None}
            if veil.budget.may_tell or len(known) < len(lanes):
                return None
            found.append(known)
        return sums.compared(
            lambda: np.array(
                [sum(self.rows.errors(t, known.__getitem__) for t in node.tasks) for known in found]
            ),
            self.rows.heaviest,
        )

    def take_choice(self, candidate: int) -> None:
        """Train on with the candidate that the network has chosen."""
        self.node.take_choice(candidate)
        log.info("C = %g is chosen, and trains on.", self.node.veil.price)

    def take_sigmoids(self, found: dict[str, Floats] | None) -> None:
        """Go on with sigmoids that the network has found, or without any."""
        self._sigmoids = found or {}
        if found is not None and (self.chooser is not None or self.node.round):
            self.write_model(self.node)

    def _decision(self, lane: str) -> Floats:
        """Return a classifier: the chosen one, where the network chooses."""
        chosen = self.chooser.decision(lane) if self.chooser else None
        return self.node.decision(lane) if chosen is None else chosen

    def tell_rows(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Add the rows of a file to a task; a copy is on disk before that is said."""
        tasks = list(self.node.tasks)
        task = asked.get("task") or (tasks[0] if len(tasks) == 1 else None)
        if task is None:
            raise DataError(f"Say which task with --task: {', '.join(tasks)}.")
        self.node.lanes(task)
        is_anew = bool(asked.get("is_anew"))
        block = self.rows.read(task, asked["file"], is_anew=is_anew)
        file = self._copy(Path(asked["file"]))
        self.keep({"later": (task, file, len(block.y))})
        if is_anew:
            return {"said": f"Task {task!r} gets {len(block.y)} more rows."}
        self.node.tell_owner()
        lanes = self.rows.lanes(task, block)
        self.node.add_rows(task, block.X, lanes, self.rows.weight(task, block))
        return {"said": f"Task {task!r} has {len(block.y)} more rows."}

    def _copy(self, path: Path) -> str:
        """Copy a file into the node's folder, for it to be read again when the node starts."""
        folder = self.config.folder / LATER
        n = 1 + len(self.told.later)
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            copy = folder / f"{n:06d}{''.join(path.suffixes[-2:])}"
            write_atomically(copy, path.read_bytes(), is_private=True)
        except OSError as error:
            raise NetworkError(
                f"{path} cannot be copied to {folder}: {error.strerror}. Nothing was changed; make "
                "room and try again."
            ) from error
        return f"{LATER}/{copy.name}"

    def keep(self, change: dict[str, Any]) -> None:
        """Put the node on disk, with a change that is about to be made."""
        told = self.told.but(change)
        content = dump(self.node, told, change)
        try:
            write_atomically(self._path, content, is_private=True)
        except OSError as error:
            raise NetworkError(
                f"{self._path} cannot be written: {error.strerror}. Nothing was changed; make room "
                "and try again."
            ) from error
        self.told = told
        self._keep_lanes()

    def _keep_lanes(self) -> None:
        """Put on disk where the lanes of a choice stand; without room for that it goes on."""
        if self.chooser is None or not self.chooser.n_begun:
            return
        self.chooser.keep_all()
        content = dump_lanes(self.chooser.kept, self.config.network, self.told.generation)
        with contextlib.suppress(OSError):
            write_atomically(self._lanes, content, is_private=True)

    def write_model(self, node: Node) -> None:
        """Write the node's classifiers as 'dtsvm train' would."""
        if not node.holdings:
            return
        label = next(iter(self.config.tasks.values())).label
        made, units = self.rows.preparation, None
        if made is not None:
            schema = made.plan.schema
            units = tuple(schema[f.column].unit if f.scale else None for f in made.plan.features)
        columns = Columns(self.rows.feature_names, label, None, None, units)
        if self.chooser is None:
            model = node_model(node, self.rows.classes, columns, self._sigmoids)
        elif self.chooser.outcome is not None:
            model = chosen_model(node, self.rows.classes, columns, self.chooser, self._sigmoids)
        else:
            return  # there is nothing yet
        self._save(
            replace(model, preparation=None if made is None else made.to_dict()), self.config.model
        )
