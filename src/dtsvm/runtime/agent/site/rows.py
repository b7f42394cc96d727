"""A site's rows as its node trains on them: features, lanes, weights; and those held out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import Rows, read_records, read_rows
from dtsvm.data.folds import FOLDS, cell_name, deal
from dtsvm.data.labels import begin_classes, check_labels, label_codes
from dtsvm.errors import DataError, did_you_mean
from dtsvm.prepare import Prepared
from dtsvm.problem.questions import side
from dtsvm.problem.sigmoid import histogram
from dtsvm.problem.weights import class_weights
from dtsvm.runtime.agent.node.agreed import Agreed
from dtsvm.runtime.agent.node.calibrating import Unseen
from dtsvm.runtime.agent.node.lanes import (
    Lane,
    candidate_lanes,
    fold_lanes,
    lane_names,
    make_lanes,
    unseen_name,
)
from dtsvm.runtime.agent.site.columns import is_held, prepared
from dtsvm.runtime.agent.site.config import Config, TaskConfig
from dtsvm.runtime.privacy.noise import check_weights

__all__ = ["Block", "SiteRows"]

Floats = NDArray[np.float64]
Classes = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one task: features, dense or CSR, labels and weights, if not all are 1."""

    X: Any
    y: NDArray[Any]
    weight: Floats | None = None

    def take(self, mine: NDArray[np.bool_]) -> Block:
        """Return some of the rows."""
        return Block(self.X[mine], self.y[mine], None if self.weight is None else self.weight[mine])


class SiteRows:
    """Reads a site's files as the network has agreed to.

    Parameters
    ----------
    config : Config
        The node's TOML file, read.
    agreed : Agreed, optional
        What all nodes have agreed on; without it, labels are those of the node's own rows.
    """

    def __init__(self, config: Config, agreed: Agreed | None) -> None:
        self.config, self.agreed = config, agreed
        self.preparation: Prepared | None = prepared(config, agreed)
        self.feature_names: tuple[str, ...] | None = None
        self.classes: dict[str, Classes] = {}
        self.held: dict[str, Block] = {}  # rows that nobody trains on
        self.first = {task: self._read_first(task, given) for task, given in config.tasks.items()}
        self._weights = self._class_weights()
        self.trained: dict[str, list[Block]] = {}  # what lanes were made of, if folds are dealt

    # Reading

    def read(self, task: str, path: Path | str, *, is_anew: bool = False) -> Block:
        """Read the rows of a task from a file, columns found by name.

        Labels must be those of the task, unless all are to agree on them anew.
        """
        given = self.config.tasks[task]
        features = given.features if self.feature_names is None else self.feature_names
        rows = self._read(path, given, features)
        assert rows.y is not None
        if self._is_private:  # what a class weighs comes on top
            check_weights(rows.weight, self.config.privacy.weight)
        if task in self.classes and not (is_anew and given.labels is None):
            self._check_labels(task, rows.y)
        if self.feature_names is None:
            self.feature_names = rows.feature_names
        return Block(rows.X, rows.y, rows.weight)

    def _check_labels(self, task: str, y: NDArray[Any]) -> None:
        """Refuse labels that are not the task's, and say how they can become so."""
        try:
            check_labels(len(y), y, task, self.classes[task])
        except DataError as error:
            if self.config.tasks[task].labels is not None or self.agreed is None:
                how = "write its labels, this one too, into every node.toml and start the agents"
            else:
                how = "say 'dtsvm tell NODE rows add FILE --anew': all agree on labels anew"
            raise DataError(f"{error} If that is a label of the task, {how}.") from error

    def _read(self, path: Path | str, given: TaskConfig, features: Sequence[str] | None) -> Rows:
        if self.preparation is None:
            return read_rows(path, label=given.label, features=features, weight=given.weight)
        roles = {"label": given.label, "weight": given.weight}
        records = read_records(path, roles=roles, features=(), only=True)
        X = self.preparation.transform(records)
        names = self.preparation.plan.names
        return Rows(X, records.y, None, None, names, records.weight)

    def _read_first(self, task: str, given: TaskConfig) -> Block:
        known = self.agreed.classes.get(task) if self.agreed else None
        if given.data is None:
            self.classes[task] = known or begin_classes(task, None, given.labels)
            made = self.preparation
            if made is None and self.feature_names is None:
                self.feature_names = given.features
            n_features = len(given.features or ()) if made is None else len(made.plan.names)
            return Block(np.zeros((0, n_features)), np.zeros(0))
        block = self.read(task, given.data)
        self.classes[task] = known or begin_classes(task, block.y, given.labels)
        check_labels(len(block.y), block.y, task, self.classes[task])
        held = is_held(self.config, task, block.y)
        self.held[task] = block.take(held)
        return block.take(~held) if held.any() else block

    # What is trained on

    def lanes(self, task: str, block: Block) -> list[Lane]:
        """Return the lanes of a task, with the side of every row; later rows come after others."""
        candidates = self.config.privacy.candidates
        lanes = make_lanes(self._names(task), self.classes[task], block.y)
        if not (self.config.probability or candidates):
            return lanes
        self.trained.setdefault(task, []).append(block)
        if self._is_private:
            # lanes without folds would be messages to pay for
            return candidate_lanes(lanes, candidates) if candidates else lanes
        if self.config.chooses:
            return lanes  # the choice has folds of its own
        fold = self.folds(task)
        return [*lanes, *fold_lanes(lanes, fold[len(fold) - len(block.y) :])]

    def folds(self, task: str) -> NDArray[np.int64]:
        """Return the fold of every row of a task that is trained on, in the order they came."""
        classes = self.classes[task]
        y = [label_codes(block.y, classes) for block in self.trained.get(task, ())]
        names = [cell_name(self.config.name, task, k) for k in range(len(classes))]
        return deal(np.concatenate([np.zeros(0, np.int64), *y]), names)

    def seen(self, task: str, decide: Callable[[str], Floats]) -> dict[str, Floats]:
        """Return how decision values of rows that are trained on are spread, by main lane."""
        blocks = self.trained[task]
        codes = label_codes(np.concatenate([b.y for b in blocks]), self.classes[task])
        found = {}
        names = self._names(task)
        for k, lane in enumerate(names):
            u = decide(lane)
            values = np.concatenate([b.X @ u[:-1] + u[-1] for b in blocks])
            found[lane] = histogram(values, side(codes, k, len(names)) > 0, _weights(blocks))
        return found

    def errors(self, task: str, decide: Callable[[str], Floats]) -> float:
        """Return what rows that are trained on weigh together where the answer is wrong."""
        found = 0.0
        for block in self.trained[task]:
            codes = label_codes(block.y, self.classes[task])
            u = np.array([decide(lane) for lane in self._names(task)])
            values = block.X @ u[:, :-1].T + u[:, -1]
            said = values.argmax(axis=1) if len(u) > 1 else (values[:, 0] > 0).astype(np.int64)
            weight = self.weight(task, block)
            is_wrong = said != codes
            found += float(is_wrong.sum() if weight is None else weight[is_wrong].sum())
        return found

    def unseen(self, task: str, decide: Callable[[str], Floats]) -> dict[str, Unseen]:
        """Return what lanes say of rows they did not see, by main lane.

        `decide` returns a lane's weights, the bias last.
        """
        blocks, fold = self.trained[task], self.folds(task)
        codes = label_codes(np.concatenate([b.y for b in blocks]), self.classes[task])
        weight = _weights(blocks)
        edges = np.cumsum([0, *(len(b.y) for b in blocks)])
        found = {}
        names = self._names(task)
        for k, lane in enumerate(names):
            values = np.zeros(len(fold))
            for f in range(FOLDS):
                u = decide(unseen_name(lane, f))
                for block, start, end in zip(blocks, edges, edges[1:], strict=False):
                    mine = np.flatnonzero(fold[start:end] == f)
                    values[start + mine] = block.X[mine] @ u[:-1] + u[-1]
            found[lane] = Unseen(values, side(codes, k, len(names)) > 0, weight)
        return found

    def weight(self, task: str, block: Block) -> Floats | None:
        """Return what rows weigh, their class's weight included; None if all are 1."""
        if self._weights is None:
            return block.weight
        found = self._weights[task][label_codes(block.y, self.classes[task])]
        return found if block.weight is None else found * block.weight

    def _names(self, task: str) -> list[str]:
        classes = self.classes[task]
        if self.agreed is not None:
            is_split = task in self.agreed.by_label
        else:
            near = [t for group in self.config.couple if task in group for t in group]
            is_split = any(len(self.classes.get(other, ())) > 2 for other in near)
        return lane_names(task, classes, by_label=is_split)

    def _class_weights(self) -> dict[str, Floats] | None:
        chosen, agreed = self.config.class_weight, self.agreed
        if chosen is None or agreed is None:
            return None
        every = agreed.classes
        owner = str(self.config.path)
        spelled = _spelled(chosen, every) if isinstance(chosen, Mapping) else chosen
        counts = [np.array(agreed.counts.get(task, np.ones(len(every[task])))) for task in every]
        found = class_weights(spelled, every, counts, owner)
        return dict(zip(every, found, strict=True))

    @property
    def heaviest(self) -> float:
        """The most that a row may weigh, which everybody knows; 1 if nothing is weighed."""
        most = self.config.privacy.weight if self._is_private else 1.0
        if self._weights is None:
            return most
        return most * max(float(some.max()) for some in self._weights.values())

    @property
    def _is_private(self) -> bool:
        return self.config.privacy.level == "dp"

    def described(self) -> str:
        """What all nodes' rows must be made of, for a sentence where they are not."""
        text = ", ".join(self.feature_names or ())
        if self.preparation is not None:
            plan = json.dumps(self.preparation.plan.to_dict(), sort_keys=True)
            text = f"prepared {_short(plan)}"
        elif len(text) > 500:
            text = f"{text[:500]}… {_short(text)}"
        if self._weights is not None:
            weights = {task: w.tolist() for task, w in sorted(self._weights.items())}
            text += f"; class weights {_short(json.dumps(weights))}"
        if self.config.probability:
            text += "; with probabilities"
        return text


def _weights(blocks: Sequence[Block]) -> Floats:
    return np.concatenate([np.ones(len(b.y)) if b.weight is None else b.weight for b in blocks])


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _spelled(chosen: Mapping[str, Any], classes: Mapping[str, Classes]) -> dict[Any, Any]:
    """Name labels as the rows do: the keys of a TOML table are always text."""
    if all(isinstance(value, Mapping) for value in chosen.values()):
        for task in chosen:
            if task not in classes:
                raise DataError(
                    f"class_weight names task {task!r}. {did_you_mean(task, list(classes))}"
                )
        return {task: _spelled_labels(some, classes[task]) for task, some in chosen.items()}
    return _spelled_labels(chosen, [label for labels in classes.values() for label in labels])


def _spelled_labels(chosen: Mapping[str, Any], labels: Sequence[Any]) -> dict[Any, Any]:
    known = {str(label): label for label in labels}
    known |= {f"{label:g}": label for label in labels if isinstance(label, float)}
    return {known.get(name, name): weight for name, weight in chosen.items()}
