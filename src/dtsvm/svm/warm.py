"""Choosing in a session that goes on: candidates stay in training and are told what changed."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError
from dtsvm.problem import Network
from dtsvm.select import Held, Job, moments, split
from dtsvm.svm.cv import DTSVMCV
from dtsvm.svm.lanes import Lanes, Problem, Unit
from dtsvm.svm.session import Session

__all__ = ["LiveChoice"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Agent = tuple[Hashable, Hashable]  # node, and task of a candidate's session
FAR = 1.25  # by what factor the mean squared row may move before candidates begin anew


class _Kept(NamedTuple):
    """A candidate's session and the marks of the rows each of its agents has, in their order."""

    session: Session
    marks: dict[Agent, Ints]


@dataclass
class WarmLanes(Lanes):
    """Lanes whose sessions are kept from one choice to the next.

    Rows have numbers for life; a row's mark is its number and its side.
    """

    numbers: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    kept: dict[Any, _Kept] = field(default_factory=dict)

    def _batches(self, jobs: dict[int, Job]) -> list[list[Unit]]:
        """A session a candidate: it is kept, and so are the names of its lanes."""
        return [
            [Unit(k, candidate, *lane) for lane in lanes] for k, (candidate, lanes) in jobs.items()
        ]

    def _open(self, units: list[Unit], problem: Problem) -> Session:
        nodes, node = self.where
        X, rows, y, owner, _ = problem
        marks = 2 * self.numbers[rows] + (y > 0)
        places = _by_agent([nodes[v] for v in node[rows]], owner.tolist())
        candidate = units[0].candidate
        is_refit = len(units[0].rows) == len(self.held.y)
        key = (*candidate.family[:2], candidate.C, is_refit)
        if key in self.kept:
            session, old = self.kept[key]
            _move_nodes(session, self.network, places)
            for agent, at in places.items():
                _move_rows(session, agent, old.get(agent), marks[at], X[rows[at]], y[at])
            for v, task in old.keys() - places.keys():
                if v in session.nodes and task in session.tasks:
                    session.leave(node=v, task=task, allow_split=True)
            _cut_nodes(session, self.network)
        else:
            session = super()._open(units, problem)
        self.kept[key] = _Kept(session, {agent: marks[at] for agent, at in places.items()})
        return session


def _by_agent(nodes: list[Hashable], tasks: list[Hashable]) -> dict[Agent, Ints]:
    found: dict[Agent, list[int]] = defaultdict(list)
    for i, agent in enumerate(zip(nodes, tasks, strict=True)):
        found[agent].append(i)
    return {agent: np.array(at, np.int64) for agent, at in found.items()}


def _move_nodes(session: Session, network: Network, places: dict[Agent, Ints]) -> None:
    """Let new nodes in with their links, and draw links between old ones."""
    some_task = next(iter(session.tasks))
    waiting = [node for node in network.nodes if node not in session.nodes]
    while waiting:
        node = next(v for v in waiting if _neighbours(network, v) & set(session.nodes))
        waiting.remove(node)
        links = [v for v in session.nodes if v in _neighbours(network, node)]
        own = [task for v, task in places if v == node]
        session.enter(node, own[0] if own else some_task, links=links, labels=(-1.0, 1.0))
    there = {frozenset(link) for link in session.network}
    for u, v in network:
        if frozenset((u, v)) not in there:
            session.link(u, v)


def _cut_nodes(session: Session, network: Network) -> None:
    """Cut links that are gone and let nodes go that have left."""
    here = {frozenset(link) for link in network}
    for u, v in list(session.network):
        if u in network and v in network and frozenset((u, v)) not in here:
            session.unlink(u, v, allow_split=True)
    for node in [node for node in session.nodes if node not in network]:
        session.leave(node=node, allow_split=True)


def _neighbours(network: Network, node: Hashable) -> set[Hashable]:
    return {v for link in network for v in link if node in link and v != node}


def _move_rows(
    session: Session, agent: Agent, old: Ints | None, new: Ints, X: Any, y: Floats
) -> None:
    """Take away rows that are gone and give what is new; a mark says which is which."""
    node, task = agent
    is_here = old is not None and node in session.nodes and task in session.tasks
    if old is None or not is_here:
        session.enter(node, task, X, y, labels=(-1.0, 1.0)) if not _holds(session, agent) else (
            session.add_data(node, task, X, y)
        )
        return
    is_gone = ~np.isin(old, new)
    if is_gone.any():
        session.drop_data(node, task, mask=is_gone)
    fresh = ~np.isin(new, old)
    if fresh.any():
        session.add_data(node, task, X[fresh], y[fresh])


def _holds(session: Session, agent: Agent) -> bool:
    """Whether the agent has just entered with its node, without rows."""
    node, task = agent
    return node in session.nodes and task in session.tasks and node in session._holders(task)


class _Seen(NamedTuple):
    """The rows of one agent of the session at the last choice."""

    rows: list[bytes]
    numbers: Ints
    folds: Ints


class LiveChoice:
    """What a session remembers of its last choice.

    Parameters
    ----------
    options : dict
        Parameters of `DTSVMCV`.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.seen: dict[Agent, _Seen] = {}
        self.kept: dict[Any, _Kept] = {}
        self.mean_square = 0.0
        self.tasks: list[Hashable] = []
        self.n_rows = 0
        self.n_choices = 0

    def choose(self, session: Session) -> DTSVMCV:
        """Choose for the rows, nodes, tasks and links that are in the session now."""
        chooser = DTSVMCV(session.network, **self.options)
        chooser._check_options()
        lanes = self._lanes(chooser, session)
        chooser.n_features_in_ = lanes.held.X.shape[1]
        chooser._choose(lanes, self.tasks, {task: session._classes[task] for task in self.tasks})
        self.n_choices += 1
        return chooser

    def _lanes(self, chooser: DTSVMCV, session: Session) -> WarmLanes:
        nodes, tasks = list(session.nodes), list(session.tasks)
        blocks = session._blocks()
        rows = session._need_rows()[0].state.tables.rows
        if (rows["weight"][rows.used] != 1.0).any():
            raise DataError(
                "Rows of this session have a sample_weight, which choose() does not know: choose "
                "with DTSVMCV(...).fit(..., sample_weight=...)."
            )
        X = np.concatenate([block[0] for block in blocks.values()])
        y = np.concatenate([block[1] for block in blocks.values()])
        n_folds = int(self.options.get("folds", 3))
        seen = {agent: self._recognise(agent, *block, n_folds) for agent, block in blocks.items()}
        self._begin_anew_if_far(moments(X).tolist(), tasks)
        self.seen = seen
        sizes = [len(block[1]) for block in blocks.values()]
        where = np.repeat([nodes.index(node) for node, _ in blocks], sizes)
        what = np.repeat([tasks.index(task) for _, task in blocks], sizes)
        folds = np.concatenate([one.folds for one in seen.values()])
        held = Held(X, y, what, folds, len(tasks), n_folds)
        jobs = chooser.n_jobs
        return WarmLanes(
            held, (nodes, where), session.network, self.mean_square, chooser.tol,
            chooser.max_rounds, os.cpu_count() or 1 if jobs in (None, -1) else jobs,
            chooser.callback, numbers=np.concatenate([one.numbers for one in seen.values()]),
            kept=self.kept,
        )  # fmt: skip

    def _begin_anew_if_far(self, sums: list[float], tasks: list[Hashable]) -> None:
        """C and longer rows follow the mean squared row and the tasks: far off, start again."""
        square = sums[0] / max(sums[1], 1.0) or 1.0
        ratio = square / self.mean_square if self.mean_square else np.inf
        if tasks != self.tasks or not 1 / FAR < ratio < FAR:
            self.kept.clear()
            self.mean_square, self.tasks = square, tasks

    def _recognise(self, agent: Agent, X: Floats, y: Floats, n_folds: int) -> _Seen:
        """Give rows that were here their numbers and folds again, new ones new numbers."""
        rows = [x.tobytes() + label.tobytes() for x, label in zip(X, y, strict=True)]
        old = self.seen.get(agent)
        known: dict[bytes, list[int]] = defaultdict(list)
        for i in reversed(range(len(old.rows) if old else 0)):
            known[old.rows[i]].append(i)  # type: ignore[union-attr]
        found = np.array([known[row].pop() if known[row] else -1 for row in rows], np.int64)
        numbers, folds = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        is_new = found < 0
        if old is not None:
            numbers[~is_new], folds[~is_new] = (
                old.numbers[found[~is_new]],
                old.folds[found[~is_new]],
            )
        n_new = int(is_new.sum())
        numbers[is_new] = self.n_rows + np.arange(n_new)
        seed = [int(self.options.get("seed", 0)), self.n_choices, self.n_rows]
        folds[is_new] = split(y[is_new], np.zeros(n_new, np.int64), n_folds, seed)
        self.n_rows += n_new
        return _Seen(rows, numbers, folds)
