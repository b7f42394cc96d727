"""Candidates trained over the network: lanes side by side, each until it is certified.

A lane is one candidate on one set of rows. Lanes whose rows are as long as each other's are a batch
and share its set-up (`opening`), whatever their family, the rows of one under those of another:
with company a lane has one agent a node, on lifted rows; alone, one a node and task. A batch takes
so many that its rows and numbers stay within a few megabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import Network
from dtsvm.rounds import Info, Status, average
from dtsvm.runtime.apart import Ended, train_apart
from dtsvm.select import Candidate, Held, Job, Lift, best_bias, compact, first_alike, unit_of
from dtsvm.svm.batch import Batch, Problem, Unit, laid
from dtsvm.svm.company import Alone
from dtsvm.svm.ends import join_lanes, sum_ends
from dtsvm.svm.opening import Opened, Opener

__all__ = ["Lanes", "Progress"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST = 60_000  # numbers in the estimates of one batch


class Trained(NamedTuple):
    """What became of a unit: how it ended, and every task's classifier, bias last."""

    info: Info
    whole: Floats


class Progress(NamedTuple):
    """How far choosing is: candidates trained, of how many, and the last one's end."""

    n_done: int
    n_jobs: int
    candidate: Candidate
    info: Info


@dataclass
class Lanes:
    """Trains candidates on lanes of the same rows, over one network.

    Nodes without rows pass messages on.

    Parameters
    ----------
    held : Held
        The rows.
    where : (nodes, ndarray of shape (n_rows,))
        Names of nodes, and which of them has each row.
    network : Network
        Nodes and links.
    mean_square : float
        Mean squared length of a row; from it follows the unit in which rows are trained.
    tol, max_rounds : float, int
        When a lane ends.
    n_threads : int
        Batches at a time.
    on_lane : callable, optional
        Hears of every candidate that is done.
    company : Alone
        Other processes with the same rows, which train some of the candidates.
    others : Alone
        Other processes with rows of other nodes, which train with this one.
    """

    held: Held
    where: tuple[list[Hashable], Ints]
    network: Network
    mean_square: float
    tol: float
    max_rounds: int
    n_threads: int = 1
    on_lane: Callable[[Progress], None] | None = None
    company: Alone = field(default_factory=Alone)
    others: Alone = field(default_factory=Alone)
    stages: list[list[tuple[Candidate, Info]]] = field(default_factory=list)
    _lifted: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._opener = Opener(self.network, self.where[0], self.tol, self.others)
        self._unit = unit_of(self.mean_square, self.held.X.shape[1])
        scaled = self.held.X if self._unit == 1.0 else self.held.X * (1.0 / self._unit)
        self._rows = replace(self.held, X=scaled)

    def __call__(self, jobs: list[Job]) -> list[Floats]:
        """Train."""
        first = first_alike(jobs)
        some = {k: jobs[k] for k in sorted(set(first))}
        batches = self._batches(some)
        found: dict[int, list[Trained]] = {k: [] for k in some}
        n_done = 0
        for k, one in self._train_dealt(batches):
            found[k].append(one)
            if len(found[k]) == len(jobs[k].lanes):
                n_done += 1
                if self.on_lane:
                    end = jobs[k].candidate, join_lanes([one.info for one in found[k]])
                    self.on_lane(Progress(n_done, len(some), *end))
        self.stages.append(
            [(job.candidate, join_lanes([one.info for one in found[k]])) for k, job in some.items()]
        )
        return [np.stack([one.whole for one in found[first[k]]]) for k in range(len(jobs))]

    def _batches(self, jobs: dict[int, Job]) -> list[list[Unit]]:
        """Put lanes of equally long rows together, `MOST` numbers at most; one for each process.

        Threads take what there is: to set up two batches instead of one takes longer than a second
        thread spares.
        """
        alike: dict[Any, list[Unit]] = {}
        for k, (candidate, lanes) in jobs.items():
            some = alike.setdefault(self._shape(candidate), [])
            some += [Unit(k, candidate, *lane) for lane in lanes]
        batches = []
        for units in alike.values():
            width = {kind: lift.width for kind, lift in self._lifts(units).items()}
            sizes = [width[unit.candidate.family[:2]] * len(self.network) for unit in units]
            n_parts = max(-(-sum(sizes) // MOST), min(self.company.size, len(units)))
            number = np.cumsum(sizes) * n_parts // (sum(sizes) + 1)
            batches += [[units[i] for i in some] for some in _runs(number)]
        return batches

    def _train_dealt(self, batches: list[list[Unit]]) -> Iterable[tuple[int, Trained]]:
        """Train batches, in order; other processes train some of them, the same batches as here."""
        if self.company.is_alone:
            return self._train_all(batches)
        mine = self.company.turn(list(enumerate(batches)))
        trained = iter(self._train_all([units for _, units in mine]))
        found = [(b, i, *next(trained)) for b, units in mine for i in range(len(units))]
        return _heard(self.company, found)

    def _train_all(self, batches: list[list[Unit]]) -> Iterable[tuple[int, Trained]]:
        """Train batches, so many at a time, in order."""
        if self.n_threads == 1 or len(batches) == 1:
            each: Iterable[list[Trained]] = map(self._train, batches)
            yield from _named(batches, each)
            return
        for lift in (lift for units in batches for lift in self._lifts(units).values()):
            self._lifted_rows(lift)  # threads share it
        pool = ThreadPoolExecutor(self.n_threads)
        try:
            yield from _named(batches, pool.map(self._train, batches))
        finally:  # Ctrl-C waits for no batch that has not begun
            pool.shutdown(cancel_futures=True)

    def _train(self, units: list[Unit]) -> list[Trained]:
        """Train a batch: every unit, or every task of it, for itself."""
        started = perf_counter()
        lifts = self._lifts(units)
        batch = Batch(units, lifts, self._rows, self._unit**2)
        parts = {id(X): X for X in map(self._lifted_rows, lifts.values())}
        found, ended = self._answers(batch, batch.problem(laid(list(parts.values()))))
        whole = batch.classifiers(found)
        whole[..., :-1] /= self._unit
        spent = (perf_counter() - started) / len(units)
        out = []
        for u, (k, n) in enumerate(zip(batch.first.tolist(), batch.n_owners.tolist(), strict=True)):
            ends = [end for end in ended[k : k + n] if end is not None]
            out.append(Trained(sum_ends(ends, spent), whole[u]))
        return out

    def _answers(self, batch: Batch, problem: Problem) -> tuple[Floats, list[Ended | None]]:
        """Train who has rows of both classes; return classifiers (owner, p + 1) and how they ended.

        The others have no weights and a side.
        """
        X, _, _, y, owner, prices = problem
        n = len(prices)
        counts = np.stack([np.bincount(owner, minlength=n), np.bincount(owner, y, n)])
        n_rows, balance = self.others.add(counts.astype(np.float64))
        is_open = np.abs(balance) < n_rows
        whole = np.zeros((n, X.shape[1] + 1))
        whole[:, -1] = np.where(is_open, 0.0, np.sign(balance))
        ended: list[Ended | None] = [None] * n
        if is_open.any():
            mine = is_open[owner]
            problem = problem if mine.all() else problem.of(mine)
            opened, ends = self._run(batch, problem)
            trained, first = np.unique(opened.owner, return_index=True)
            whole[trained] = average(opened.memory.state)[opened.slot[first]].sum(axis=1)
            best = self._best_biases(problem, batch.scores(problem, whole))
            whole[:, -1] = np.where(is_open, best, whole[:, -1])
            for k, end in ends.items():
                ended[k] = end
        return whole, ended

    def _run(self, batch: Batch, problem: Problem) -> tuple[Opened, dict[int, Ended]]:
        """Open a batch and train it; return it and how its owners ended."""
        opened = self._open(batch, problem)
        ended = train_apart(opened.memory, tol=self.tol, max_rounds=self.max_rounds)
        state = opened.memory.state
        first = np.array([part[0] for part in state.plan.parts], np.int64)
        owners = opened.names[state.tables.agents["task"][first]].tolist()
        return opened, dict(zip(owners, ended, strict=True))

    def _open(self, batch: Batch, problem: Problem) -> Opened:
        """Let a batch's agents begin."""
        return self._opener(problem, self.where[1][problem.rows], self._weight(problem.rows))

    def _weight(self, rows: Ints) -> Floats | None:
        return None if self.held.weight is None else self.held.weight[rows]

    def _lifts(self, units: Sequence[Unit]) -> dict[Any, Lift]:
        """The longer rows of every kind."""
        kinds = {unit.candidate.family[:2]: unit.candidate for unit in units}
        return {kind: self._lift(candidate) for kind, candidate in kinds.items()}

    def _lift(self, candidate: Candidate) -> Lift:
        n_features, square = self.held.X.shape[1], self.mean_square / self._unit**2
        return Lift(candidate.family, n_features, self.held.n_tasks, square)

    def _shape(self, candidate: Candidate) -> Any:
        """What rows have in common that can be under each other."""
        rows = self._lifted_rows(self._lift(candidate))
        return rows is self._rows.X, rows.shape[1], isinstance(rows, np.ndarray)

    def _lifted_rows(self, lift: Lift) -> Any:
        """The rows a candidate trains on: as they are, or longer."""
        key, X = lift.family[:2], self._rows.X
        if lift.family.is_alone or not lift.is_longer:
            return X
        if key not in self._lifted:
            size = self.others.add(np.array([lift.n_filled(X), X.shape[0] * lift.width]))
            share = float(size[0] / max(size[1], 1))
            self._lifted[key] = compact(lift, X, self.held.task, share)
        return self._lifted[key]

    def _best_biases(self, problem: Problem, scores: Floats) -> Floats:
        """The bias nearest to 0 among the best for each owner's weights."""
        weight = self._weight(problem.rows)
        parts = [scores, problem.y, problem.owner, *([] if weight is None else [weight])]
        scores, y, whose, *more = self.others.stack(np.stack(parts, axis=1)).T
        return best_bias(scores, y, whose.astype(np.int64), len(problem.C), *more)


def _runs(number: Ints) -> list[range]:
    """Return where each of the numbers, which ascend, stands."""
    cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(number)]
    return [range(a, b) for a, b in pairwise(cuts)]


def _named(
    batches: list[list[Unit]], each: Iterable[list[Trained]]
) -> Iterable[tuple[int, Trained]]:
    for units, found in zip(batches, each, strict=True):
        yield from ((unit.job, one) for unit, one in zip(units, found, strict=True))


def _heard(company: Alone, found: list[tuple[int, int, int, Trained]]) -> list[tuple[int, Trained]]:
    """Join what all processes trained, in the order of batches, the same bits at each."""
    said = [
        [b, i, k, [str(info.status), *list(asdict(info).values())[1:]], whole.tolist()]
        for b, i, k, (info, whole) in found
    ]
    every = sorted((one for some in company.gather(said) for one in some), key=lambda e: e[:2])
    return [
        (k, Trained(Info(Status(end[0]), *end[1:]), np.array(whole)))
        for _, _, k, end, whole in every
    ]
