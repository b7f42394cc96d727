"""Choosing as one node of a network does it: its own rows, and what it asks of all others.

What it asks for is a vector to be added up over the network, or tracks to be trained over it. All
nodes are sent the same answers, so all end with the same choice: that of `DTSVMCV` on all rows.
Where tasks have more than two labels, every label is a choice of its own; all go on side by side.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dtsvm.problem.track import Block, Mine, Track, Whole
from dtsvm.select.bias import finding_bias
from dtsvm.select.candidates import SMALL, Family, candidates, reference_of
from dtsvm.select.choice import Choice, describe, rate
from dtsvm.select.choosing import Chosen, choosing
from dtsvm.select.folds import agent_name, split
from dtsvm.select.held import Held, Job, first_alike, moments, unit_of
from dtsvm.select.lift import Lift, compact
from dtsvm.select.others import Others, believing, joined, parted

__all__ = ["Outcome", "Part", "choosing_at_node"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Steps = Generator[Any, Any, Any]
MOST_NUMBERS = 200_000  # told to a neighbour in a round, of the tracks that train at a time
WAYS = ("alone", "together", "chosen")


class Part(NamedTuple):
    """What was chosen for tasks of two labels, or for one label of those that have it.

    Parameters
    ----------
    about : str
        The label; "" where tasks have two.
    tasks : tuple of str
        The tasks, all of the network.
    choices : list of Choice
        What was chosen, task by task.
    chosen : Chosen
        The same in numbers, with every task's classifier.
    held : Held
        The rows of this node.
    together : ndarray of shape (n_tasks,)
        Held-out rows that the one candidate with company best for all tasks labels wrong.
    """

    about: str
    tasks: tuple[str, ...]
    choices: list[Choice]
    chosen: Chosen
    held: Held
    together: Floats

    def unseen(self, task: str) -> tuple[Floats, Floats, Floats]:
        """Return the chosen decision values of a task's rows here when held out, ±1 and weights."""
        mine = self.held.task == self.tasks.index(task)
        weight = np.ones(len(mine)) if self.held.weight is None else self.held.weight
        return self.chosen.found.values[mine, 2], self.held.y[mine], weight[mine]

    def compared(self) -> list[dict[str, Any]]:
        """Return the error with company, and rows of this node labelled wrong, task by task."""
        out = []
        for t, one in enumerate(self.choices):
            wrong = self.chosen.found.is_wrong[self.held.task == t]
            here: dict[str, Any] = dict(zip(WAYS, wrong.sum(axis=0).tolist(), strict=True))
            together = [None if np.isnan(x) else x for x in rate(self.together[t], one.n_rows)]
            here["rows"] = len(wrong)
            out.append({"together": together, "here": here})
        return out


class Outcome(NamedTuple):
    """What was chosen: a part for every label that tasks of more than two have, else one."""

    parts: tuple[Part, ...]

    @property
    def choices(self) -> list[Choice]:
        """What was chosen, task by task and label by label."""
        return [one for part in self.parts for one in part.choices]

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks."""
        return tuple(sorted({task for part in self.parts for task in part.tasks}))

    @property
    def chosen(self) -> Chosen:
        """What was chosen where tasks have two labels, in numbers."""
        return self.parts[0].chosen


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
        {place: (weights, bias)}.
    """
    first = _sums(mine)
    total = joined((yield parted(first)))
    square, n, weight = total[:3].tolist()
    mean_square = mine.unit * square / max(n, 1.0)
    unit = unit_of(mean_square, mine.n_features)
    mean_square, prices = mean_square / unit**2, None if C is None else [c * unit**2 for c in C]
    steps = []
    for k, (about, tasks) in enumerate(mine.questions.items(), 3):
        others = Others(mine.claimed, mine.unit / unit**2, len(tasks), is_weighted=weight != n)
        others.meet(first[:2], total[:2], total[k] - first[k])
        held = _hold(mine, about, tasks, folds, seed)
        held = replace(held, X=held.X if unit == 1.0 else held.X * (1.0 / unit))
        held = held if others.is_weighted else replace(held, weight=None)
        some = candidates(families, n_tasks=len(tasks), mean_square=mean_square, C=prices)
        trainer = _Trainer(mine, about, tasks, held, mean_square, others)
        steps.append(_choosing(trainer, some, guard, unit))
    return Outcome(tuple((yield from _side_by_side(steps))))


def _sums(mine: Mine) -> Floats:
    """Return what a node's rows add to Σ‖x‖², in the network's unit, rows and weights.

    Then to the rows of every question.
    """
    out = np.zeros(3)
    for block in mine.blocks.values():
        square, n = moments(block.X)
        out += square / mine.unit, n, n if block.weight is None else block.weight.sum()
    each = [sum(mine.blocks[task].X.shape[0] for task in tasks if task in mine.blocks)
            for tasks in mine.questions.values()]  # fmt: skip
    return np.array([*out, *each], float)


def _choosing(trainer: _Trainer, some: list[Any], guard: str | None, unit: float) -> Steps:
    """Choose for one question: jobs are trained as tracks, on rows in some unit."""
    held, reference = trainer.held, reference_of(some, trainer.mean_square)
    steps = choosing(held, some, reference=reference, guard=guard)
    asked = next(steps)
    while True:
        if isinstance(asked, list):
            answer = yield from trainer.train(asked)
        else:
            answer = (yield np.ravel(asked)).reshape(np.shape(asked))
            trainer.others.check(asked, answer)
        try:
            asked = steps.send(answer)
        except StopIteration as end:
            chosen: Chosen = end.value.in_ones(unit)
            break
    mine = np.bincount(held.task, chosen.found.is_wrong[:, 1], held.n_tasks).astype(float)
    together = yield mine
    trainer.others.counts(mine, together)
    about, tasks = trainer.about, trainer.tasks
    choices = [replace(one, label=about or None) for one in describe(chosen, tasks)]
    return Part(about, tasks, choices, chosen, held, together)


def _side_by_side(steps: list[Steps]) -> Steps:
    """Go through several at once: vectors are added up in one sum, tracks trained together."""
    found: dict[int, Any] = {}
    asked = {k: next(one) for k, one in enumerate(steps)}
    while asked:
        sums = {k: what for k, what in asked.items() if not isinstance(what, list)}
        if sums:
            total = yield np.concatenate(list(sums.values()))
            ends = np.cumsum([len(term) for term in sums.values()])[:-1]
            answers: dict[int, Any] = dict(zip(sums, np.split(total, ends), strict=True))
        else:
            trained: list[Any] = []
            for batch in _batches([track for tracks in asked.values() for track in tracks]):
                trained += yield batch
            answers = {k: [trained.pop(0) for _ in tracks] for k, tracks in asked.items()}
        for k, answer in answers.items():
            try:
                asked[k] = steps[k].send(answer)
            except StopIteration as end:
                found[k] = end.value
                del asked[k]
    return [found[k] for k in range(len(steps))]


def _hold(mine: Mine, about: str, tasks: tuple[str, ...], folds: int, seed: int) -> Held:
    """Put the node's rows under each other and say which fold holds out each."""
    some = [(t, mine.blocks[name]) for t, name in enumerate(tasks) if name in mine.blocks]
    task = np.repeat([t for t, _ in some], [block.X.shape[0] for _, block in some])
    y = np.concatenate([np.zeros(0), *(block.sides[about] for _, block in some)])
    fold = [_fold(block, agent_name(mine.node, tasks[t]), folds, seed) for t, block in some]
    blocks = [np.zeros((0, mine.n_features)), *(block.X for _, block in some)]
    is_sparse = any(sparse.issparse(X) for X in blocks)
    X = sparse.csr_array(sparse.vstack(blocks)) if is_sparse else np.concatenate(blocks)
    ones = [np.ones(block.X.shape[0]) if block.weight is None else block.weight
            for _, block in some]  # fmt: skip
    weight = np.concatenate([np.zeros(0), *ones])
    none = np.zeros(0, np.int64)
    return Held(
        X, y, task.astype(np.int64), np.concatenate([none, *fold]), len(tasks), folds, weight
    )


def _fold(block: Block, name: str, folds: int, seed: int) -> Ints:
    """Deal a task's rows to folds as `DTSVMCV` does: labels beyond the first two for themselves."""
    codes = block.codes
    y, agent = np.where(codes == 1, 1.0, -1.0), np.zeros(len(codes), np.int64)
    fold = split(y, agent, folds, seed, [name])
    for k in range(2, int(codes.max(initial=0)) + 1):
        more = codes == k
        fold[more] = split(y[more], agent[more], folds, (seed, k), [name])
    return fold


@dataclass
class _Trainer:
    """Turns jobs into tracks, and what tracks found into classifiers."""

    mine: Mine
    about: str
    tasks: tuple[str, ...]
    held: Held
    mean_square: float
    others: Others
    _lifted: dict[Any, Any] = field(default_factory=dict)
    _largest: dict[Family, str] = field(default_factory=dict)  # names of tracks at the largest C

    def __post_init__(self) -> None:
        task, n_tasks = self.held.task, self.held.n_tasks
        counts = np.bincount(task, minlength=n_tasks)  # rows lie task by task
        self._marks = (np.arange(len(task)) - (np.cumsum(counts) - counts)[task]) * n_tasks + task
        X = self.held.X
        squares = X.multiply(X) if hasattr(X, "multiply") else np.square(X)
        self._squares = np.asarray(squares.sum(axis=1)).ravel()

    def train(self, jobs: list[Job]) -> Steps:
        """Train jobs; those that are alike once."""
        first = first_alike(jobs)
        some = {k: jobs[k] for k in sorted(set(first))}
        sums = yield from self._count(jobs[0])
        plans = {k: self._plan(job, sums) for k, job in some.items()}
        trained = yield [plan.track for plan in plans.values()]
        found = dict(zip(plans, trained, strict=True))
        yield from self._shift(list(plans.values()), trained)
        answers = {k: self._answer(plans[k], found[k]) for k in found}
        for answer in answers.values():
            self.others.know(answer)
        self._largest |= {job.candidate.family: plans[first[k]].track.name
                          for k, job in enumerate(jobs)}  # fmt: skip
        return [answers[first[k]] for k in range(len(jobs))]

    def _count(self, job: Job) -> Steps:
        """Count rows of all nodes by lane, task and label, and add up ‖x‖² and weights.

        All jobs of a call have these lanes.
        """
        held = self.held
        weight = np.ones(len(held.y)) if held.weight is None else held.weight
        sums = []
        for lane in job.lanes:
            at = lane.rows
            columns = (held.y[at] < 0, held.y[at] > 0, self._squares[at] / self._unit, weight[at])
            sums += [np.bincount(held.task[at], column, held.n_tasks) for column in columns]
        mine = np.concatenate(sums).astype(float)
        total = yield mine
        shape = (len(job.lanes), 4, held.n_tasks)
        self.others.rows(mine.reshape(shape), total.reshape(shape))
        found = total.reshape(len(job.lanes), 4, held.n_tasks).transpose(0, 2, 1).copy()
        found[:, :, 2] *= self._unit
        return found

    @property
    def _unit(self) -> float:
        return self.mean_square or 1.0

    def _plan(self, job: Job, sums: Floats) -> _Plan:
        """Say which rows train what; a place whose rows are all of one class needs no training."""
        held, family = self.held, job.candidate.family
        lift = None if family.is_alone else Lift(
            family, held.X.shape[1], held.n_tasks, self.mean_square
        )  # fmt: skip
        X = held.X if lift is None else self._rows(lift)
        tasks: dict[str, tuple[Ints, Floats]] = {}
        lanes: dict[str, Whole] = {}
        closed: dict[str, float] = {}
        for k, (rows, side) in enumerate(job.lanes):
            for place, at, counts, members in self._places(k, rows, side, sums[k], lift):
                if counts[:2].min() == 0:
                    closed[place] = float(np.sign(counts[1] - counts[0]))
                    continue
                n, square, weight = counts[:2].sum(), counts[2], counts[3]
                C = job.candidate.C
                lanes[place] = Whole(float(n), float(square), float(C * weight), members)
                if at is not None:
                    turned = held.y[at] * (1.0 if lift is None else side[held.task[at]])
                    tasks[place] = at[turned != 0], turned[turned != 0]
        C, on = job.candidate.C, "all rows" if len(job.lanes) == 1 else "folds"
        kind = f"{self.about} {family.bias} {family.share}"
        name, after = self._name(job, on), self._largest.get(family, "")
        track = Track(name, kind, C, X, tasks, lanes, self._marks, held.weight, on, after)
        return _Plan(job, lift, track, closed)

    def _name(self, job: Job, on: str) -> str:
        """Name a job's track, so that it can go on after a change, when C may be a little other."""
        level = job.candidate.C * (self.mean_square or 1.0)
        about = f"{self.about}: " if self.about else ""
        return f"{about}{job.candidate.family}, C {level:.3g} over the mean square, {on}"

    def _places(
        self, k: int, rows: Ints, side: Floats, sums: Floats, lift: Lift | None
    ) -> list[tuple[str, Ints | None, Floats, frozenset[str] | None]]:
        """Name what a lane trains, its rows here, its sums in the network and who takes part."""
        if lift is not None:
            turned = sums.copy()
            turned[side < 0, :2] = sums[side < 0, 1::-1]
            common, own, constant = lift.gains
            turned[:, 2] = (common**2 + own**2) * sums[:, 2] + constant**2 * sums[:, :2].sum(axis=1)
            return [(f"{k}", rows, turned[side != 0].sum(axis=0), None)]
        found: list[tuple[str, Ints | None, Floats, frozenset[str] | None]] = []
        for t, name in enumerate(self.tasks):
            at = rows[self.held.task[rows] == t] if name in self.mine.through else None
            found.append((f"{k} {t}", at, sums[t], self.mine.members[name]))
        return found

    def _rows(self, lift: Lift) -> Any:
        key = lift.family[:2]
        if key not in self._lifted:
            self._lifted[key] = compact(lift, self.held.X, self.held.task)
        return self._lifted[key]

    def _shift(self, plans: list[_Plan], found: list[dict[str, Floats]]) -> Steps:
        """Give every classifier the bias nearest to 0 among the best for its weights."""
        places = [(i, place) for i, plan in enumerate(plans) for place in plan.track.lanes]
        scores, y, group = [np.zeros(0)], [np.zeros(0)], [np.zeros(0, np.int64)]
        rows = [np.zeros(0, np.int64)]
        for g, (i, place) in enumerate(places):
            at, labels = plans[i].track.tasks.get(place, (np.zeros(0, np.int64), np.zeros(0)))
            scores.append(plans[i].track.X[at] @ found[i][place][:-1])
            y.append(labels)
            rows.append(at)
            group.append(np.full(len(at), g))
        if not places:
            return
        weight = None if self.held.weight is None else self.held.weight[np.concatenate(rows)]
        parts = np.concatenate(scores), np.concatenate(y), np.concatenate(group)
        steps = finding_bias(*parts, len(places), weight)
        bias = yield from believing(steps, self.others.counts)
        lengths = [np.linalg.norm(found[i][place][:-1]) for i, place in places]
        self.others.bias(bias, np.array(lengths))
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
    closed: dict[str, float]


def _batches(tracks: list[Track]) -> list[list[Track]]:
    """Deal tracks into batches that are told in messages of a fair length, alike at every node."""
    batches: list[list[Track]] = []
    size = 0
    for track in tracks:
        numbers = (track.width + 1) * len(track.lanes)  # none where all rows are of one label
        if not batches or size + numbers > MOST_NUMBERS:
            batches.append([])
            size = 0
        batches[-1].append(track)
        size += numbers
    return batches
