"""Candidates trained over the network: a session each, its folds side by side as groups in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import Network, TaskModel
from dtsvm.rounds import Info, Status
from dtsvm.select import Candidate, Held, Job, Lane, Lift, best_bias, compact, first_alike
from dtsvm.svm.company import Alone
from dtsvm.svm.session import Session
from dtsvm.svm.training import Training

__all__ = ["Lanes", "Progress"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NOTHING = Info(Status.CONVERGED, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0)
Trained = tuple[Info, Floats, dict[Hashable, Floats]]  # (lane, task, p + 1); by node, last lane


class Found(NamedTuple):
    """One classifier with the bias last: the network's, and each holder's own."""

    whole: Floats
    nodes: dict[Hashable, Floats]

    @classmethod
    def of(cls, model: TaskModel, bias: float) -> Found:
        """Move the biases by what the network's lacks."""
        shift = np.zeros(model.coef.shape[1] + 1)
        shift[-1] = bias - model.intercept[0]
        whole = np.append(model.coef[0], model.intercept) + shift
        return cls(whole, {node: own[0] + shift for node, own in model.nodes.items()})


class Progress(NamedTuple):
    """How far choosing is: candidates trained, of how many, and the last one's end."""

    n_done: int
    n_jobs: int
    candidate: Candidate
    info: Info


@dataclass
class Lanes:
    """Trains candidates on lanes of the same rows, over one network.

    A candidate that trains tasks together has one agent a node and lane, on lifted rows; alone, one
    a node, task and lane. Nodes without rows pass messages on.

    Parameters
    ----------
    held : Held
        The rows.
    where : (nodes, ndarray of shape (n_rows,))
        Names of nodes, and which of them has each row.
    network : Network
        Nodes and links.
    mean_square : float
        Mean squared length of a row.
    tol, max_rounds : float, int
        When a session ends.
    n_threads : int
        Sessions at a time.
    on_lane : callable, optional
        Hears of every candidate that is done.
    company : Alone
        Other processes with the same rows, which train some of the candidates.
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
    stages: list[list[tuple[Candidate, Info]]] = field(default_factory=list)
    by_node: dict[Candidate, dict[Hashable, Floats]] = field(default_factory=dict)
    _lifted: dict[Any, Any] = field(default_factory=dict)

    def __call__(self, jobs: list[Job]) -> list[Floats]:
        """Train; what each node found by itself is kept in `by_node`, of the last call's lanes."""
        stage: list[tuple[Candidate, Info]] = []
        self.stages.append(stage)
        first = first_alike(jobs)
        some = [job for k, job in enumerate(jobs) if first[k] == k]
        trained = self._train_all([*zip(sorted(set(first)), some, strict=True)], stage)
        for k, job in enumerate(jobs):
            self.by_node[job.candidate] = trained[first[k]][2]
        return [trained[first[k]][1] for k in range(len(jobs))]

    def _train_all(
        self, jobs: list[tuple[int, Job]], stage: list[tuple[Candidate, Info]]
    ) -> dict[int, Trained]:
        """Train this process's candidates, and hear of those of others."""
        mine = self.company.turn(jobs)
        found: dict[int, Trained] = {}
        pool = ThreadPoolExecutor(self.n_threads)
        try:
            each = pool.map(self._train, [job for _, job in mine])
            for (k, job), one in zip(mine, each, strict=True):
                found[k] = one
                if self.on_lane:
                    self.on_lane(Progress(len(found), len(mine), job.candidate, one[0]))
        finally:  # Ctrl-C waits for no candidate that has not begun
            pool.shutdown(cancel_futures=True)
        if not self.company.is_alone:
            found = _heard(self.company, found, self.where[0])
        stage += [(job.candidate, found[k][0]) for k, job in jobs]
        return found

    def _train(self, job: Job) -> Trained:
        train = self._alone if job.candidate.family.is_alone else self._together
        return train(job.candidate, job.lanes)

    def _together(self, candidate: Candidate, lanes: Sequence[Lane]) -> Trained:
        held = self.held
        lift = Lift(candidate.family, held.X.shape[1], held.n_tasks, self.mean_square)
        rows, lane_of = _stacked(lanes)
        side = np.stack([lane.side for lane in lanes])
        y = held.y[rows] * side[lane_of, held.task[rows]]
        found, info = self._run(candidate, self._lifted_rows(lift), y, rows, lane_of)
        v = np.zeros((len(lanes), lift.width + 1))
        for k, one in found.items():
            v[k] = one.whole
        last = found.get(len(lanes) - 1)
        own = {
            node: lift.classifiers(u) * side[-1][:, None]
            for node, u in (last.nodes.items() if last else ())
        }
        return info, lift.classifiers(v) * side[:, :, None], own

    def _alone(self, candidate: Candidate, lanes: Sequence[Lane]) -> Trained:
        held = self.held
        rows, lane_of = _stacked(lanes)
        what = lane_of * held.n_tasks + held.task[rows]
        found, info = self._run(candidate, held.X, held.y[rows], rows, what)
        out = np.zeros((len(lanes), held.n_tasks, held.X.shape[1] + 1))
        own: dict[Hashable, Floats] = {}
        for place, one in found.items():
            k, t = divmod(place, held.n_tasks)
            out[k, t] = one.whole
            for node, u in one.nodes.items() if k == len(lanes) - 1 else ():
                own.setdefault(node, np.full(out.shape[1:], np.nan))[t] = u
        return info, out, own

    def _run(
        self, candidate: Candidate, X: Any, y: Floats, rows: Ints, what: Ints
    ) -> tuple[dict[int, Found], Info]:
        """Run a session on `rows` of X whose tasks, each for itself, are numbered by `what`.

        Where all rows are of one class nothing needs training: no weights, and their side.
        """
        places, index, counts = np.unique(what, return_inverse=True, return_counts=True)
        balance = np.bincount(index, y)
        is_open = np.abs(balance) < counts
        found = {
            int(places[k]): self._one_class(X.shape[1], np.sign(balance[k]), rows[index == k])
            for k in np.flatnonzero(~is_open).tolist()
        }
        mine = is_open[index]
        if not mine.any():
            return found, NOTHING
        if not mine.all():
            y, rows = y[mine], rows[mine]
        tasks: list[Hashable] = places[is_open].tolist()
        index = (np.cumsum(is_open) - 1)[index[mine]]
        session = self._open(candidate, X, y, rows, (tasks, index))
        before = session.info
        info = session.run(self.max_rounds, tol=self.tol)
        trained = _with_best_bias(session._task_models(tasks), X, y, rows, index)
        return {**found, **dict(zip(places[is_open].tolist(), trained, strict=True))}, _since(
            before, info
        )

    def _one_class(self, width: int, side: float, rows: Ints) -> Found:
        nodes, node = self.where
        whole = np.append(np.zeros(width), side)
        return Found(whole, {nodes[v]: whole for v in np.unique(node[rows]).tolist()})

    def _open(
        self, candidate: Candidate, X: Any, y: Floats, rows: Ints, what: tuple[list[Hashable], Ints]
    ) -> Session:
        """Open a session over rows where they lie: ½‖w‖² + C Σ hinge for every task by itself."""
        session = Session(
            self.network, C=candidate.C, common_reg=2.0, specific_reg=2.0, tol=self.tol,
            relays="auto", n_jobs=1,
        )  # fmt: skip
        nodes, node = self.where
        tasks, index = what
        session._enter_all(
            Training(
                X, rows, tasks, index, nodes, node[rows],
                dict.fromkeys(tasks, (-1.0, 1.0)), (y > 0).astype(np.int64),
                [[task] for task in tasks],
            )
        )  # fmt: skip
        return session

    def _lifted_rows(self, lift: Lift) -> Any:
        key = lift.family[:2]
        if key not in self._lifted:
            self._lifted[key] = compact(lift.rows(self.held.X, self.held.task))
        return self._lifted[key]


def _heard(
    company: Alone, found: dict[int, Trained], nodes: Sequence[Hashable]
) -> dict[int, Trained]:
    """Join what all processes trained, the same bits at each."""
    number = {node: i for i, node in enumerate(nodes)}
    said = [
        [k, [str(info.status), *list(asdict(info).values())[1:]], answer.tolist(),
         [[number[node], u.tolist()] for node, u in own.items()]]
        for k, (info, answer, own) in found.items()
    ]  # fmt: skip
    every: dict[int, Trained] = {}
    for k, (status, *numbers), answer, own in (
        one for some in company.gather(said) for one in some
    ):
        info = Info(Status(status), *numbers)
        every[k] = info, np.array(answer), {nodes[i]: np.array(u) for i, u in own}
    return every


def _with_best_bias(
    models: Sequence[TaskModel], X: Any, y: Floats, rows: Ints, index: Ints
) -> list[Found]:
    """Give each classifier the bias nearest to 0 among the best for its weights."""
    scores = np.zeros(len(y))
    for k, one in enumerate(models):
        mine = index == k
        scores[mine] = X[rows[mine]] @ one.coef[0]
    bias = best_bias(scores, y, index, len(models))
    return [Found.of(one, b) for one, b in zip(models, bias.tolist(), strict=True)]


def _since(before: Info | None, info: Info) -> Info:
    """What the last run of a session took; its own counts go on from run to run."""
    if before is None:
        return info
    return replace(
        info,
        n_rounds=info.n_rounds - before.n_rounds,
        messages_sent=info.messages_sent - before.messages_sent,
        bytes_sent=info.bytes_sent - before.bytes_sent,
        seconds=info.seconds - before.seconds,
    )


def _stacked(lanes: Sequence[Lane]) -> tuple[Ints, Ints]:
    """All lanes' rows one after the other, and each one's lane."""
    rows = np.concatenate([lane.rows for lane in lanes])
    return rows, np.repeat(np.arange(len(lanes)), [len(lane.rows) for lane in lanes])
