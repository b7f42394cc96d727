"""Choosing as one node of a network does it: its own rows, and what it asks of all others.

What it asks for is a vector to be added up over the network, or tracks to be trained over it. All
nodes are sent the same answers, so all end with the same choice: that of `DTSVMCV` on all rows.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dtsvm.problem.track import Mine, Track
from dtsvm.select.bias import finding_bias
from dtsvm.select.candidates import SMALL, Family, candidates, reference_of
from dtsvm.select.choice import Choice, describe
from dtsvm.select.choosing import Chosen, choosing
from dtsvm.select.folds import agent_name, split
from dtsvm.select.held import Held, Job, first_alike, moments
from dtsvm.select.lift import Lift, compact

__all__ = ["Outcome", "choosing_at_node"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Steps = Generator[Any, Any, Any]
MOST_NUMBERS = 200_000  # told to a neighbour in a round, of the tracks that train at a time


class Outcome(NamedTuple):
    """What was chosen, and each task's classifier with the bias last."""

    tasks: tuple[str, ...]
    choices: list[Choice]
    chosen: Chosen


def choosing_at_node(
    mine: Mine,
    *,
    families: Sequence[Family] = SMALL,
    folds: int = 3,
    seed: int = 0,
    guard: str | None = None,
    C: Sequence[float] | None = None,
) -> Generator[Any, Any, Outcome]:
    """Choose with all other nodes.

    Yields
    ------
    ndarray, or list of Track
        What this node adds to a sum; or what is to be trained, for which it is sent a list of
        {task: (weights, bias)}.
    """
    held = _hold(mine, folds, seed)
    square, n = (yield moments(held.X) / [mine.unit, 1.0]).tolist()
    mean_square = mine.unit * square / max(n, 1.0)
    some = candidates(families, n_tasks=held.n_tasks, mean_square=mean_square, C=C)
    trainer = _Trainer(mine, held, mean_square)
    steps = choosing(held, some, reference=reference_of(some, mean_square), guard=guard)
    asked = next(steps)
    while True:
        answer = (yield from trainer.train(asked)) if isinstance(asked, list) else (
            (yield np.ravel(asked)).reshape(np.shape(asked))
        )  # fmt: skip
        try:
            asked = steps.send(answer)
        except StopIteration as end:
            return Outcome(mine.tasks, describe(end.value, mine.tasks), end.value)


def _hold(mine: Mine, folds: int, seed: int) -> Held:
    """Put the node's rows under each other and say which fold holds out each."""
    empty = np.zeros((0, mine.n_features))
    parts = [mine.blocks[task] for task in mine.tasks if task in mine.blocks]
    task = np.repeat(
        [t for t, name in enumerate(mine.tasks) if name in mine.blocks], [len(y) for _, y in parts]
    ).astype(np.int64)
    y = np.concatenate([np.zeros(0), *(y for _, y in parts)])
    is_sparse = any(sparse.issparse(X) for X, _ in parts)
    blocks = [empty, *(X for X, _ in parts)]
    X = sparse.csr_array(sparse.vstack(blocks)) if is_sparse else np.concatenate(blocks)
    names = [agent_name(mine.node, name) for name in mine.tasks]
    return Held(X, y, task, split(y, task, folds, seed, names), len(mine.tasks), folds)


@dataclass
class _Trainer:
    """Turns jobs into tracks, and what tracks found into classifiers."""

    mine: Mine
    held: Held
    mean_square: float
    _lifted: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        task, n_tasks = self.held.task, self.held.n_tasks
        counts = np.bincount(task, minlength=n_tasks)  # rows lie task by task
        self._marks = (np.arange(len(task)) - (np.cumsum(counts) - counts)[task]) * n_tasks + task

    def train(self, jobs: list[Job]) -> Steps:
        """Train jobs; those that are alike once."""
        first = first_alike(jobs)
        some = {k: jobs[k] for k in sorted(set(first))}
        by_label = yield from self._count(jobs[0])
        plans = {k: self._plan(job, by_label) for k, job in some.items()}
        trained: list[Any] = []
        for batch in _batches(list(plans.values())):
            trained += yield [plan.track for plan in batch]
        found = dict(zip(plans, trained, strict=True))
        if self.mine.is_shared:
            yield from self._tell(list(plans.values()), trained)
        yield from self._shift(list(plans.values()), trained)
        answers = {k: self._answer(plans[k], found[k]) for k in found}
        return [answers[first[k]] for k in range(len(jobs))]

    def _count(self, job: Job) -> Steps:
        """Count rows of all nodes by lane, task and label; all jobs of a call have these lanes."""
        held = self.held
        cells = [2 * held.task[lane.rows] + (held.y[lane.rows] > 0) for lane in job.lanes]
        counts = [np.bincount(cell, minlength=2 * held.n_tasks).astype(float) for cell in cells]
        total = yield np.concatenate(counts)
        return total.reshape(len(job.lanes), held.n_tasks, 2)

    def _plan(self, job: Job, by_label: Floats) -> _Plan:
        """Say which rows train what; a place whose rows are all of one class needs no training."""
        held, family = self.held, job.candidate.family
        lift = None if family.is_alone else Lift(
            family, held.X.shape[1], held.n_tasks, self.mean_square
        )  # fmt: skip
        X = held.X if lift is None else self._rows(lift)
        tasks: dict[str, tuple[Ints, Floats]] = {}
        opened: list[str] = []
        closed: dict[str, float] = {}
        for k, (rows, side) in enumerate(job.lanes):
            for place, at, counts in self._places(k, rows, side, by_label[k], lift is None):
                if counts.min() == 0:
                    closed[place] = float(np.sign(counts[1] - counts[0]))
                    continue
                opened.append(place)
                if at is not None:
                    turned = held.y[at] * (1.0 if lift is None else side[held.task[at]])
                    tasks[place] = at[turned != 0], turned[turned != 0]
        C, on = job.candidate.C, "all rows" if len(job.lanes) == 1 else "folds"
        track = Track(self._name(job, on), C, X.shape[1], X, tasks, self._marks, on)
        return _Plan(job, lift, track, tuple(opened), closed)

    def _name(self, job: Job, on: str) -> str:
        """Name a job's track, so that it can go on after a change, when C may be a little other."""
        level = job.candidate.C * (self.mean_square or 1.0)
        return f"{job.candidate.family}, C {level:.3g} over the mean square, {on}"

    def _places(
        self, k: int, rows: Ints, side: Floats, by_label: Floats, is_alone: bool
    ) -> list[tuple[str, Ints | None, Floats]]:
        """Name what a lane trains, its rows here and its counts by label in the network."""
        if not is_alone:
            turned = np.where(side[:, None] > 0, by_label, by_label[:, ::-1])
            return [(f"{k}", rows, turned[side != 0].sum(axis=0))]
        found: list[tuple[str, Ints | None, Floats]] = []
        for t, name in enumerate(self.mine.tasks):
            at = rows[self.held.task[rows] == t] if name in self.mine.through else None
            found.append((f"{k} {t}", at, by_label[t]))
        return found

    def _rows(self, lift: Lift) -> Any:
        key = lift.family[:2]
        if key not in self._lifted:
            self._lifted[key] = compact(lift.rows(self.held.X, self.held.task))
        return self._lifted[key]

    def _tell(self, plans: list[_Plan], found: list[dict[str, Floats]]) -> Steps:
        """Tell those who do not take part in a task what it found when it trained alone."""
        alone = [i for i, plan in enumerate(plans) if plan.lift is None]
        places = [(i, place) for i in alone for place in plans[i].opened]
        if not places:
            return
        width = self.held.X.shape[1] + 1
        said = np.zeros((len(places), width))
        for row, (i, place) in zip(said, places, strict=True):
            if self.mine.tasks[int(place.split()[1])] in self.mine.speaks:
                row[:] = found[i][place]
        told = (yield said.ravel()).reshape(said.shape)
        for row, (i, place) in zip(told, places, strict=True):
            found[i][place] = row

    def _shift(self, plans: list[_Plan], found: list[dict[str, Floats]]) -> Steps:
        """Give every classifier the bias nearest to 0 among the best for its weights."""
        places = [(i, place) for i, plan in enumerate(plans) for place in plan.opened]
        scores, y, group = [np.zeros(0)], [np.zeros(0)], [np.zeros(0, np.int64)]
        for g, (i, place) in enumerate(places):
            at, labels = plans[i].track.tasks.get(place, (np.zeros(0, np.int64), np.zeros(0)))
            scores.append(plans[i].track.X[at] @ found[i][place][:-1])
            y.append(labels)
            group.append(np.full(len(at), g))
        if not places:
            return
        parts = np.concatenate(scores), np.concatenate(y), np.concatenate(group)
        bias = yield from finding_bias(*parts, len(places))
        for (i, place), b in zip(places, bias.tolist(), strict=True):
            found[i][place] = np.append(found[i][place][:-1], b)

    def _answer(self, plan: _Plan, found: dict[str, Floats]) -> Floats:
        """Return classifiers, (lane, task, feature with the bias last)."""
        held, lanes, width = self.held, plan.job.lanes, plan.track.width
        whole = {place: np.append(np.zeros(width), b) for place, b in plan.closed.items()} | found
        if plan.lift is None:
            flat = [whole[f"{k} {t}"] for k in range(len(lanes)) for t in range(held.n_tasks)]
            return np.array(flat).reshape(len(lanes), held.n_tasks, width + 1)
        side = np.stack([np.where(lane.side < 0, -1.0, 1.0) for lane in lanes])
        v = np.stack([whole[f"{k}"] for k in range(len(lanes))])
        return np.asarray(plan.lift.classifiers(v) * side[:, :, None])


class _Plan(NamedTuple):
    """A job as a track: what it trains anywhere, and the side of what needs no training."""

    job: Job
    lift: Lift | None
    track: Track
    opened: tuple[str, ...]
    closed: dict[str, float]


def _batches(plans: list[_Plan]) -> list[list[_Plan]]:
    """Deal tracks into batches that are told in messages of a fair length, alike at every node."""
    batches: list[list[_Plan]] = []
    size = MOST_NUMBERS
    for plan in plans:
        numbers = 2 * (plan.track.width + 1) * len(plan.opened)
        if size + numbers > MOST_NUMBERS:
            batches.append([])
            size = 0
        batches[-1].append(plan)
        size += numbers
    return batches
