"""Training that goes on: more rows by `partial_fit`, the next fit from where the last one ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from dtsvm.data.labels import check_labels, positive_label, task_classes
from dtsvm.errors import DataError
from dtsvm.problem import Network
from dtsvm.svm.base import ConsensusSVM
from dtsvm.svm.session import Session
from dtsvm.svm.training import Training

__all__ = ["Continuing"]


class Continuing(ConsensusSVM):
    """What the four estimators add to `fit`: they keep a session and go on with it."""

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: Any = None,
        *,
        task: ArrayLike | None = None,
        node: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train on more rows; those of earlier calls stay, and so does what was learnt from them.

        The answer is that of all rows so far. The first call begins anew, also after a `fit`.

        Parameters
        ----------
        X, y, task, node, sample_weight
            As in `fit`. Tasks and nodes may be new; new nodes are linked to all others, so they
            must be in the network if one was given.
        classes : array-like or dict, optional
            All labels that will come, or by task; needed at the first call of a task unless its
            rows have them all.

        Returns
        -------
        self
            With the attributes that `fit` sets.
        """
        is_first = not hasattr(self, "_live")
        if is_first:
            self._live_labels: dict[Any, tuple[Any, ...]] = {}
        table, network = self._table(
            X, y, task, node, sample_weight,
            lambda found, what: self._labels(found, what, classes), is_first=is_first,
        )  # fmt: skip
        if not table.company.is_alone:
            raise DataError(
                "partial_fit trains in one process: at several ranks use Session(engine='mpi') and "
                "its add_data, or fit all rows."
            )
        if self.class_weight is not None:
            raise DataError(
                "partial_fit cannot balance classes of rows that are still to come; leave "
                "class_weight out and give each row's sample_weight."
            )
        self._live_labels.update(table.classes)
        if is_first:
            self._live = self._session(network)
            self._live._enter_all(table)
        else:
            _feed(self._live, table)
            _couple(self._live, self._groups(list(self._live.tasks)))
        self._take_trained(
            self._live, self._run(self._live), self._live.network, list(self._live.tasks)
        )
        self._warn(self.info_)
        return self

    def _labels(self, y: Any, what: tuple[list[Any], Any], classes: Any) -> dict[Any, Any]:
        """Return the labels of the tasks of some rows: known ones, given ones, or those they have.

        Parameters
        ----------
        y, what
            The rows' labels; the tasks and each row's.
        classes : array-like, dict or None
            What was given.
        """
        tasks, index = what
        found = {}
        for t, task in enumerate(tasks):
            given = classes.get(task) if isinstance(classes, Mapping) else classes
            mine = y[index == t]
            if task in self._live_labels:
                found[task] = self._live_labels[task]
            else:
                labels = mine if given is None else np.asarray(given)
                positive = positive_label(self.positive, task)
                found[task] = task_classes(labels, f"Task {task!r}", positive)
            check_labels(len(mine), mine, task, found[task])
        return found

    def _enter(self, network: Network, table: Training) -> Session:
        """Open a session, or with `warm_start` go on where the last fit ended."""
        for name in ("_live", "_live_labels"):
            self.__dict__.pop(name, None)
        session, last = self._session(network), self.__dict__.pop("_warm", None)
        if last is not None and self.warm_start:
            old, before = last
            is_new = float(not (old.network == network and _is_same(before, table)))
            if not table.company.largest(is_new):  # the same at every process
                changed = _changed(old, session)
                if changed:
                    old.set(**changed)
                session = old
            else:
                session._enter_all(table)
                _begin_at(session, old)
        else:
            session._enter_all(table)
        if self.warm_start:
            self._warm = session, table
        return session


def _feed(session: Session, table: Training) -> None:
    """Give every agent of a table its rows; agents, tasks and nodes may be new."""
    for v, node in enumerate(table.nodes):
        for t, task in enumerate(table.tasks):
            mine = np.flatnonzero((table.node == v) & (table.task == t))
            if not len(mine):
                continue
            rows = table.X[table.places(mine)]
            labels = [table.classes[task][k] for k in table.codes[mine].tolist()]
            weight = None if table.weight is None else table.weight[mine]
            if task in session.tasks and node in session._holders(task):
                session.add_data(node, task, rows, labels, sample_weight=weight)
            else:
                links = [] if node in session.nodes else list(session.nodes)
                session.enter(
                    node, task, rows, labels, links=links, labels=table.classes[task],
                    sample_weight=weight,
                )  # fmt: skip


def _couple(session: Session, groups: list[list[Any]]) -> None:
    now = [set(group) for group in session.groups]
    for group in groups:
        if len(group) > 1 and not any(set(group) <= together for together in now):
            session.couple(*group)


def _is_same(one: Training, other: Training) -> bool:
    """Whether two fits have the same rows in the same places with the same labels and weights."""
    same = [field.name for field in fields(one) if field.name not in ("X", "company")]
    return all(_equal(getattr(one, name), getattr(other, name)) for name in same) and _equal(
        one.X, other.X
    )


def _equal(one: Any, other: Any) -> bool:
    if issparse(one) and issparse(other):
        parts = ("shape", "data", "indices", "indptr")
        return all(_equal(getattr(one, part), getattr(other, part)) for part in parts)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one is other or (one.dtype == other.dtype and bool(np.array_equal(one, other)))
    return type(one) is type(other) and bool(one == other)


def _changed(old: Session, new: Session) -> dict[str, Any]:
    before = asdict(old.settings)
    return {name: value for name, value in asdict(new.settings).items() if value != before[name]}


def _begin_at(session: Session, old: Session) -> None:
    """Let agents that an earlier session had too begin at what they found there."""
    new, earlier = session._need_rows()[0], old._need_rows()[0]
    if new.state.n_features != earlier.state.n_features:
        return
    for node, agents in new.at.items():
        for question, agent in agents.items():
            before = earlier.agent(node, question)
            if before is not None:
                new.state.iterates.begin_at(agent, earlier.state.estimate(before))
