"""Choosing in a session that goes on: candidates stay in training and are told what changed."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError, ParameterError, did_you_mean
from dtsvm.problem import Network
from dtsvm.problem.reach import parts
from dtsvm.select import Held, Job, read_folds, split
from dtsvm.svm.batch import Batch, Problem, Unit
from dtsvm.svm.company import Alone, find_company, mean_square
from dtsvm.svm.cv import DTSVMCV
from dtsvm.svm.lanes import Lanes
from dtsvm.svm.opening import Opened
from dtsvm.svm.session import Session
from dtsvm.svm.training import Training

__all__ = ["LiveChoice"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Agent = tuple[Hashable, Hashable]  # node, and task of a candidate's session
OF_SESSION = {
    "network": "the session has one",
    "engine": "it is the session's",
    "positive": "say labels=(negative, positive) when a task enters",
    "class_weight": "choose with DTSVMCV(..., class_weight=...).fit(...)",
    "task_column": "a session's rows come by task",
    "node_column": "a session's rows come by node",
}
BESIDE = ("callback", "n_jobs")  # options that change nothing in what is trained
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
        """A session a candidate, and one each time tasks are set aside; names of lanes are kept."""
        return [
            [Unit(k, candidate, *lane) for lane in lanes] for k, (candidate, lanes) in jobs.items()
        ]

    def _open(self, batch: Batch, problem: Problem) -> Opened:
        """Go on with a candidate's session, told what changed, or begin one."""
        session = self._session(batch, problem)
        session._place_relays_or_refuse()
        members, memory = session._need_rows()
        agents = members.state.tables.agents
        slot = agents.used[agents["is_relay"][agents.used] == 0]
        names = np.array(members.tasks, np.int64)
        return Opened(memory, names, names[agents["task"][slot]], slot)

    def _session(self, batch: Batch, problem: Problem) -> Session:
        X, rows, _, y, owner, _ = problem
        marks = 2 * self.numbers[rows] + (y > 0)
        places = self._by_agent(rows, owner)
        candidate = batch.units[0].candidate
        key = candidate, sum(candidate in dict(stage) for stage in self.stages)
        if key in self.kept and self._is_known_all_over(self.kept[key].session):
            session, old = self.kept[key]
            _move_nodes(session, self.network, places)
            moves = [
                _Move(agent, old.get(agent) if _holds(session, agent) else None, marks[at])
                for agent, at in places.items()
            ]
            changes = self.others.add(np.array([move.counts for move in moves]))
            now = {}  # what goes on stands before what is fresh, wherever the choice has it
            for move, (is_gone, is_fresh) in zip(moves, (changes > 0).tolist(), strict=True):
                at = places[move.agent][move.fresh]
                _move_rows(session, move, (is_gone, is_fresh), X[rows[at]], y[at])
                now[move.agent] = np.concatenate([move.stays, marks[at]])
            for v, task in [agent for agent in old if agent not in places]:
                if v in session.nodes and task in session.tasks:
                    session.leave(node=v, task=task, allow_split=True)
            _cut_nodes(session, self.network)
        else:
            session = self._begin(problem)
            now = {agent: marks[at] for agent, at in places.items()}
        self.kept[key] = _Kept(session, now)
        return session

    def _is_known_all_over(self, session: Session) -> bool:
        """Whether every part of the network has a node of a session: new ones enter beside it."""
        around = {node: self.network.neighbours(node) for node in self.network.nodes}
        return all(set(part) & set(session.nodes) for part in parts(around, around))

    def _begin(self, problem: Problem) -> Session:
        """Open a session over rows where they lie: ½‖w‖² + C Σ hinge for every owner by itself."""
        X, rows, at, y, owner, prices = problem
        owners = self.others.distinct(owner)
        place = np.zeros(len(prices), np.int64)
        place[owners] = np.arange(len(owners))
        index = place[owner]
        tasks: list[Hashable] = owners.tolist()
        session = Session(
            self.network, C=float(prices[0]), common_reg=2.0, specific_reg=2.0, tol=self.tol,
            relays="auto", n_jobs=1, engine="memory" if self.others.is_alone else "mpi",
        )  # fmt: skip
        nodes, node = self.where
        session._enter_all(
            Training(
                X, at, tasks, index, nodes, node[rows],
                dict.fromkeys(tasks, (-1.0, 1.0)), (y > 0).astype(np.int64),
                [[task] for task in tasks], self._weight(rows),
                held=self.others.held(node[rows] * len(tasks) + index), company=self.others,
            )
        )  # fmt: skip
        session._need_rows()[0].state.pull_lightly()
        return session

    def _by_agent(self, rows: Ints, owner: Ints) -> dict[Agent, Ints]:
        """Which of some rows every agent has; those elsewhere have none here."""
        names, node = self.where
        mine = owner * len(names) + node[rows]
        order = np.argsort(mine, kind="stable")
        every = self.others.distinct(mine)
        cuts = np.searchsorted(mine[order], [every, every + 1])
        return {
            (names[k % len(names)], k // len(names)): order[a:b]
            for k, a, b in zip(every.tolist(), *cuts.tolist(), strict=True)
        }


class _Move:
    """What becomes of an agent's rows: which of the old go or stay, and which are fresh."""

    def __init__(self, agent: Agent, old: Ints | None, new: Ints) -> None:
        self.agent, before = agent, new[:0] if old is None else old
        self.gone, self.fresh = ~np.isin(before, new), ~np.isin(new, before)
        self.stays = before[~self.gone]
        self.counts = int(self.gone.sum()), int(self.fresh.sum())


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
    session: Session, move: _Move, changes: tuple[bool, bool], X: Any, y: Floats
) -> None:
    """Take away rows that are gone and give what is new, here or wherever the agent is."""
    node, task = move.agent
    is_gone, is_fresh = changes
    if not _holds(session, move.agent):
        session.enter(node, task, X, y, labels=(-1.0, 1.0))
        return
    if is_gone:
        state = session._need_rows()[0].state
        for agent in session._agents(node, task):
            state.drop_rows(agent, move.gone)
        session._changed("drop_data", f"rows of task {task!r} at node {node!r}")
    if is_fresh:
        session.add_data(node, task, X, y)


def _holds(session: Session, agent: Agent) -> bool:
    """Whether the session has the agent, with rows or, just entered with its node, without."""
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
        _check_options(options)
        self.options = options
        self.seen: dict[Agent, _Seen] = {}
        self.kept: dict[Any, _Kept] = {}
        self.mean_square = 0.0
        self.tasks: list[Hashable] = []
        self.n_rows = 0
        self.n_choices = 0

    def goes_on(self, options: dict[str, Any]) -> bool:
        """Whether nothing else is wanted than before; who hears of it and how many work may change.

        Then these are taken over.
        """
        if _plain(options) != _plain(self.options):
            return False
        self.options = options
        return True

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
        others = find_company(session._engine)
        blocks = session._blocks(others)
        tables = session._need_rows()[0].state.tables
        if others.largest(float((tables.weights(tables.rows.used) != 1.0).any())):
            raise DataError(
                "Rows of this session have a sample_weight, which choose() does not know: choose "
                "with DTSVMCV(...).fit(..., sample_weight=...)."
            )
        if not others.largest(max((len(block[1]) for block in blocks.values()), default=0)):
            raise DataError("No agent of this session has rows: add_data() some before choose().")
        X = np.concatenate([block[0] for block in blocks.values()])
        y = np.concatenate([block[1] for block in blocks.values()])
        n_folds = int(self.options.get("folds", 3))
        seen = self._recognise(blocks, n_folds, others)
        sizes = [len(block[1]) for block in blocks.values()]
        where = np.repeat([nodes.index(node) for node, _ in blocks], sizes)
        what = np.repeat([tasks.index(task) for _, task in blocks], sizes)
        self._begin_anew_if_far(mean_square(X, where, others) or 1.0, tasks)
        self.seen = seen
        folds = np.concatenate([one.folds for one in seen.values()])
        held = Held(X, y, what, folds, len(tasks), n_folds)
        jobs = chooser.n_jobs if others.is_alone else 1
        return WarmLanes(
            held, (nodes, where), session.network, self.mean_square, chooser.tol,
            chooser.max_rounds, os.cpu_count() or 1 if jobs in (None, -1) else jobs,
            chooser.callback, others=others,
            numbers=np.concatenate([one.numbers for one in seen.values()]), kept=self.kept,
        )  # fmt: skip

    def _begin_anew_if_far(self, square: float, tasks: list[Hashable]) -> None:
        """C and longer rows follow the mean squared row and the tasks: far off, start again."""
        ratio = square / self.mean_square if self.mean_square else np.inf
        if tasks != self.tasks or not 1 / FAR < ratio < FAR:
            self.kept.clear()
            self.mean_square, self.tasks = square, tasks

    def _recognise(
        self, blocks: dict[Agent, tuple[Floats, Floats]], n_folds: int, others: Alone
    ) -> dict[Agent, _Seen]:
        """Give rows that were here their numbers and folds again, new ones new numbers."""
        each = {agent: _matched(self.seen.get(agent), *block) for agent, block in blocks.items()}
        n_new = others.add(np.array([int((found < 0).sum()) for _, found in each.values()]))
        seen = {}
        for (agent, (rows, found)), n in zip(each.items(), n_new.tolist(), strict=True):
            old, is_new = self.seen.get(agent), found < 0
            numbers, folds = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
            if old is not None:
                numbers[~is_new] = old.numbers[found[~is_new]]
                folds[~is_new] = old.folds[found[~is_new]]
            if is_new.any():
                numbers[is_new] = self.n_rows + np.arange(n)
                seed = [int(self.options.get("seed", 0)), self.n_choices, self.n_rows]
                y = blocks[agent][1][is_new]
                folds[is_new] = split(y, np.zeros(n, np.int64), n_folds, seed)
            self.n_rows += n
            seen[agent] = _Seen(rows, numbers, folds)
        return seen


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """What decides on what is trained, so that it can be compared."""
    return {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in options.items()
        if name not in BESIDE
    }


def _check_options(options: dict[str, Any]) -> None:
    """Refuse what `DTSVMCV` does not know, or what a session says itself."""
    known = [name for name in signature(DTSVMCV).parameters if name not in OF_SESSION]
    for name in options:
        if name in OF_SESSION:
            raise ParameterError(f"choose() does not take {name!r}: {OF_SESSION[name]}.")
        if name not in known:
            raise ParameterError(f"Unknown option {name!r} of choose. {did_you_mean(name, known)}")
    folds = options.get("folds", 3)
    if np.ndim(folds) > 0:
        raise ParameterError(
            "choose() finds each row's fold itself: give 'folds' as an int of at least 2."
        )
    read_folds(DTSVMCV.__name__, folds)


def _matched(old: _Seen | None, X: Floats, y: Floats) -> tuple[list[bytes], Ints]:
    """Return an agent's rows as bytes, and where each was at the last choice, −1 if it is new."""
    rows = [x.tobytes() + label.tobytes() for x, label in zip(X, y, strict=True)]
    known: dict[bytes, list[int]] = defaultdict(list)
    for i in reversed(range(len(old.rows) if old else 0)):
        known[old.rows[i]].append(i)  # type: ignore[union-attr]
    return rows, np.array([known[row].pop() if known[row] else -1 for row in rows], np.int64)
