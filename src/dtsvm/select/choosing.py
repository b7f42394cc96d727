"""The whole way: lanes trained, rows held out, margins summed, weights found, classifiers mixed.

`choosing` is what each node does with its own rows, and what follows at every node alike: it asks
for jobs to be trained and vectors to be added up over the network, and is sent the answers. Who
runs it supplies them: memory trains and adds at once, agents over their links.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dtsvm.select.candidates import Candidate
from dtsvm.select.evidence import losses, slopes
from dtsvm.select.margins import read_table, scale_sums, table
from dtsvm.select.posterior import given_prior, weights
from dtsvm.select.sides import sides

__all__ = [
    "Chosen",
    "Held",
    "Job",
    "Lane",
    "Weighed",
    "Weighing",
    "choose",
    "choosing",
    "first_alike",
    "moments",
    "out_of_fold",
    "weigh",
    "weighing",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Total = Callable[[Floats], Floats]
Answer = TypeVar("Answer")

LEAST = 1e-3  # a candidate with less of every task is not trained on all rows


@dataclass(frozen=True)
class Held:
    """The rows of the nodes that are here: `y` is ±1, `task` and `fold` count from 0.

    `weight` is what each row's loss is multiplied by, in training and when it is held out; 1 if it
    is None.
    """

    X: Any  # dense or CSR
    y: Floats
    task: Ints
    fold: Ints
    n_tasks: int
    n_folds: int
    weight: Floats | None = None


class Lane(NamedTuple):
    """One set of rows to train on, and each task's side (±1)."""

    rows: Ints
    side: Floats


class Job(NamedTuple):
    """A candidate and the lanes it is to be trained on."""

    candidate: Candidate
    lanes: list[Lane]


# Trains jobs side by side; gives (lane, task, feature with the bias last) for each.
Train = Callable[[list[Job]], list[Floats]]


# What is asked for is a list of jobs or a node's own vector, what is sent are the answers.
Choosing = Generator[Any, Any, "Chosen"]
Weighing = Generator[Floats, Floats, "Weighed"]


@dataclass(frozen=True)
class Chosen:
    """What was found.

    Parameters
    ----------
    candidates : list of Candidate
        What was tried.
    found : Weighed
        Weights, slopes and held-out errors.
    side : ndarray of shape (n_tasks,)
        −1 for tasks that are turned round where sides are turned.
    classifiers : ndarray of shape (n_tasks, n_features + 1)
        The answer, with the bias last.
    """

    candidates: list[Candidate]
    found: Weighed
    side: Floats
    classifiers: Floats


def moments(X: Any) -> Floats:
    """Return Σ‖x‖² and the number of rows: to be added up over nodes."""
    squares = X.multiply(X) if hasattr(X, "multiply") else np.square(X)
    return np.array([float(squares.sum()), float(X.shape[0])])


def choose(
    held: Held,
    candidates: Sequence[Candidate],
    train: Train,
    *,
    reference: int,
    total: Total = np.asarray,
    guard: str | None = None,
    refit: bool = True,
) -> Chosen:
    """Choose by validation inside the network: `choosing`, its questions answered at once.

    Parameters
    ----------
    held : Held
        Rows, with the fold that holds each of them out.
    candidates : sequence of Candidate
        What to try.
    train : callable
        Trains candidates side by side over the network, each on several lanes.
    reference : int
        Which candidate, training alone, says how tasks stand to each other.
    total : callable
        Adds an array up over the network; by default everything is here.
    guard : {None, "alone"}
        With "alone", a task that makes at least one held-out error fewer alone trains alone.
    refit : bool
        Whether to train on all rows; else the folds' classifiers are averaged.
    """
    steps = choosing(held, candidates, reference=reference, guard=guard, refit=refit)
    return _run(steps, lambda asked: train(asked) if isinstance(asked, list) else total(asked))


def choosing(
    held: Held,
    candidates: Sequence[Candidate],
    *,
    reference: int,
    guard: str | None = None,
    refit: bool = True,
) -> Choosing:
    """Choose by validation inside the network; the parameters are those of `choose`.

    Yields
    ------
    list of Job, or ndarray
        What to train over the network, as `Train` says, or what this node adds to a sum.

    Returns
    -------
    Chosen
        The same at every node that is sent the same answers.
    """
    lanes = [np.flatnonzero(held.fold != k) for k in range(held.n_folds)]
    trained, side = yield from _train_all(held, candidates, lanes, reference)
    is_alone = np.array([candidate.family.is_alone for candidate in candidates])
    found = yield from weighing(held, out_of_fold(held, trained), is_alone, guard)
    share, slope = found.weights, found.slopes
    kept = np.flatnonzero(share.any(axis=0) | (np.arange(len(candidates)) == reference)).tolist()
    final = trained[kept]
    if refit:
        everything, again = [np.arange(len(held.y))], [candidates[m] for m in kept]
        final, side = yield from _train_all(held, again, everything, kept.index(reference))
    answer = np.einsum("tm,mtj->tj", (share * slope)[:, kept], final.mean(axis=1))
    return Chosen(list(candidates), found, side[0], answer)


class Weighed(NamedTuple):
    """What out-of-fold decisions say.

    weights : (task, candidate), the share of each candidate in a task's classifier.
    prior : (candidate,), what all tasks together say of the candidates.
    slopes : (candidate,), what candidates are multiplied with to be comparable.
    wrong : (task, 5), held-out rows: all, wrong alone, wrong as chosen, wrong alone only, wrong as
    chosen only.
    is_wrong : (row, 3), which rows that are here are labelled wrong alone, by the one candidate
    with company that is best for all, and as chosen.
    """

    weights: Floats
    prior: Floats
    slopes: Floats
    wrong: Floats
    is_wrong: NDArray[np.bool_]


def weigh(
    held: Held,
    decisions: Floats,
    is_alone: NDArray[np.bool_],
    total: Total = np.asarray,
    guard: str | None = None,
) -> Weighed:
    """Find the weights from out-of-fold decisions of the rows that are here, and from totals."""
    return _run(weighing(held, decisions, is_alone, guard), total)


def weighing(
    held: Held, decisions: Floats, is_alone: NDArray[np.bool_], guard: str | None = None
) -> Weighing:
    """Find the weights: `weigh`, giving what this node adds to sums and sent the totals."""
    *sums, weight, n = (yield scale_sums(decisions, held.weight)).tolist()
    scale = np.array(sums) / (weight or 1.0)
    each = None if held.weight is None else held.weight * (n / (weight or 1.0))  # 1 on average
    mine = table(decisions, held.y, held.task, held.n_tasks, scale, each)
    margins = read_table((yield mine), scale)
    slope = slopes(margins)
    loss = losses(margins, slope)
    share, prior = weights(loss, is_alone)
    alone = np.zeros_like(share)
    alone[:, is_alone] = given_prior(loss[:, is_alone], prior[is_alone])
    share, alone = _without_traces(share), _without_traces(alone)
    best = int(np.where(is_alone & ~is_alone.all(), np.inf, loss.sum(axis=0)).argmin())
    is_wrong = _wrong_rows(held, decisions * slope, alone, best, share)
    wrong = yield _count_wrong(held, is_wrong)
    if guard == "alone":
        loses = wrong[:, 1] + 1 <= wrong[:, 2]
        share = np.where(loses[:, None], alone, share)
        is_wrong[:, 2] = np.where(loses[held.task], is_wrong[:, 0], is_wrong[:, 2])
        wrong = yield _count_wrong(held, is_wrong)
    return Weighed(share, prior, slope, wrong, is_wrong)


def _run(steps: Generator[Any, Any, Answer], answer: Callable[[Any], Any]) -> Answer:
    """Go through with it, every question answered at once."""
    asked = next(steps)
    while True:
        try:
            asked = steps.send(answer(asked))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _train_all(
    held: Held, candidates: Sequence[Candidate], lanes: list[Ints], reference: int
) -> Generator[Any, Any, tuple[Floats, Floats]]:
    """Train all candidates on all lanes; sides are found lane by lane from its own rows alone.

    Returns classifiers (candidate, lane, task, feature with the bias last) and sides (lane, task).
    """
    plain = np.ones((len(lanes), held.n_tasks))
    (own,) = yield [Job(candidates[reference], _with_sides(lanes, plain))]
    has_turned = any(candidate.family.is_turned for candidate in candidates)
    side = (yield from _sides(held, own, lanes)) if has_turned else plain
    rest = [
        Job(candidate, _with_sides(lanes, side if candidate.family.is_turned else plain))
        for m, candidate in enumerate(candidates)
        if m != reference
    ]
    found = list((yield rest)) if rest else []
    found.insert(reference, own)
    return np.stack(found), side


def _with_sides(lanes: list[Ints], side: Floats) -> list[Lane]:
    return [Lane(rows, turned) for rows, turned in zip(lanes, side, strict=True)]


def _sides(held: Held, own: Floats, lanes: list[Ints]) -> Generator[Floats, Floats, Floats]:
    """Find each lane's sides; a task with rows of one class in it says nothing."""
    counts = [
        np.bincount(2 * held.task[rows] + (held.y[rows] > 0), minlength=2 * held.n_tasks)
        for rows in lanes
    ]
    by_label = (yield np.array(counts, float)).reshape(len(lanes), held.n_tasks, 2)
    n_rows = np.where(by_label.min(axis=2) > 0, by_label.sum(axis=2), 0.0)
    return np.stack([sides(own[k, :, :-1], n_rows[k]) for k in range(len(lanes))])


def out_of_fold(held: Held, trained: Floats) -> Floats:
    """Return f(x) of every row by every candidate, from the lane that did not see it."""
    out = np.zeros((len(held.y), len(trained)))
    for t in range(held.n_tasks):
        mine = np.flatnonzero(held.task == t)
        for k in range(held.n_folds):
            rows = mine[held.fold[mine] == k]
            if len(rows):
                u = trained[:, k, t]
                out[rows] = held.X[rows] @ u[:, :-1].T + u[:, -1]
    return out


def _without_traces(share: Floats) -> Floats:
    """Drop candidates of which every task has next to nothing."""
    kept = np.where(share.max(axis=0) > LEAST, share, 0.0)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def _wrong_rows(
    held: Held, decisions: Floats, alone: Floats, best: int, share: Floats
) -> NDArray[np.bool_]:
    """Which rows are labelled wrong alone, by one candidate with company, and as chosen."""
    f = np.stack([
        (decisions * alone[held.task]).sum(axis=1),
        decisions[:, best],
        (decisions * share[held.task]).sum(axis=1),
    ], axis=1)  # fmt: skip
    return np.asarray((f > 0) != (held.y > 0)[:, None])


def _count_wrong(held: Held, is_wrong: NDArray[np.bool_]) -> Floats:
    """Count held-out rows by task: all, wrong alone, wrong as chosen, and where they differ."""
    alone, _, chosen = is_wrong.T
    columns = [np.ones(len(held.y)), alone, chosen, alone & ~chosen, chosen & ~alone]
    counts = [np.bincount(held.task, column, held.n_tasks) for column in columns]
    return np.stack(counts, axis=1)


def first_alike(jobs: list[Job]) -> list[int]:
    """Return each job's first that is the same: where no task is turned, sides change nothing."""
    seen: dict[Any, int] = {}
    return [
        seen.setdefault(
            (*job.candidate.family[:2], job.candidate.C, *(s.side.tobytes() for s in job.lanes)), k
        )
        for k, job in enumerate(jobs)
    ]
