"""The whole way: lanes trained, rows held out, margins summed, weights found, classifiers mixed.

`choosing` is what each node does with its own rows, and what follows at every node alike: it asks
for jobs to be trained and vectors to be added up over the network, and is sent the answers. Who
runs it supplies them: memory trains and adds at once, agents over their links.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.select.candidates import Candidate
from dtsvm.select.held import Held, Job, Lane, out_of_fold
from dtsvm.select.margins import Margins
from dtsvm.select.sides import sides
from dtsvm.select.stretch import stretching
from dtsvm.select.suspects import suspects
from dtsvm.select.weighing import (
    Evidence,
    Weighed,
    answered,
    evidence,
    measuring,
    shares,
    weighing,
)

__all__ = ["Chosen", "choose", "choosing"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Total = Callable[[Floats], Floats]

AHEAD = 2  # levels of C that are tried for every family, counted from the reference's
WORTH = 0.01  # of a task: a family that gives less at the largest C so far tries no larger one

# Trains jobs side by side; gives (lane, task, feature with the bias last) for each.
Train = Callable[[list[Job]], list[Floats]]


# What is asked for is a list of jobs or a node's own vector, what is sent are the answers.
Choosing = Generator[Any, Any, "Chosen"]


@dataclass(frozen=True)
class Chosen:
    """What was found.

    Parameters
    ----------
    candidates : list of Candidate
        What was tried.
    found : Weighed
        Weights, slopes and held-out errors.
    stretch : ndarray of shape (n_candidates,)
        What each candidate's biases are multiplied by: see `stretching`.
    n_labels : ndarray of shape (n_tasks,)
        How many labels a task's rows have.
    side : ndarray of shape (n_tasks,)
        −1 for tasks that are turned round where sides are turned.
    aside : ndarray of shape (n_tasks,)
        Which tasks' rows the others train without: see `suspects`.
    classifiers : ndarray of shape (n_tasks, n_features + 1)
        The answer, with the bias last.
    """

    candidates: list[Candidate]
    found: Weighed
    stretch: Floats
    n_labels: Ints
    side: Floats
    aside: NDArray[np.bool_]
    classifiers: Floats

    def in_ones(self, unit: float) -> Chosen:
        """Return what was chosen on rows in a unit, for rows as they are."""
        tried = [candidate._replace(C=candidate.C / unit**2) for candidate in self.candidates]
        weights, biases = self.classifiers[:, :-1] / unit, self.classifiers[:, -1:]
        return replace(self, candidates=tried, classifiers=np.hstack([weights, biases]))


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
        With "alone", a task trains alone if company makes more held-out errors than that, or than
        always to say its commoner label; as many are too many where a class has fewer rows than
        there are folds, or the share of labels is unlike that of all tasks. So does one whose
        held-out margins, and what other tasks have found, do not make company likelier to be better
        by odds of three to two. It gets what it would have alone: C with the fewest held-out
        errors.
    refit : bool
        Whether to train on all rows, beside the folds; else these' classifiers are averaged.
    """
    steps = choosing(held, candidates, reference=reference, guard=guard, refit=refit)
    return answered(steps, lambda asked: train(asked) if isinstance(asked, list) else total(asked))


def choosing(
    held: Held,
    candidates: Sequence[Candidate],
    *,
    reference: int,
    guard: str | None = None,
    refit: bool = True,
) -> Choosing:
    """Choose by validation inside the network; the parameters are those of `choose`.

    All rows are a lane beside the folds: no round more than these, and no second training of what
    gets a share.

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
    lanes += [np.arange(len(held.y))] if refit else []
    keeps = _are_alone(candidates, list(range(len(candidates)))) | (guard is not None)
    tried = yield from _climb(held, candidates, lanes, reference, keeps)
    aside = np.zeros(held.n_tasks, bool)
    found = yield from _judging(held, tried, candidates, None, aside)
    while (suspects(found.wrong) & ~aside).any():
        aside |= suspects(found.wrong)
        tried = yield from _set_aside(held, candidates, lanes, tried, aside, keeps)
        found = yield from _judging(held, tried, candidates, None, aside)
    if guard is not None:
        found = yield from _judging(held, tried, candidates, guard, aside)
    share, slope = found.weights, found.slopes
    kept = np.flatnonzero(share.any(axis=0) | (np.arange(len(candidates)) == reference)).tolist()
    final, side = tried.trained[[tried.which.index(m) for m in kept]], tried.side
    final, side = (final[:, -1:], side[-1:]) if refit else (final, side)
    answer = np.einsum("tm,mtj->tj", (share * slope)[:, kept], final.mean(axis=1))
    stretch = np.ones(len(candidates))
    stretch[tried.which] = tried.stretch
    assert tried.margins.labels is not None
    n_labels = (tried.margins.labels > 0).sum(axis=1)
    return Chosen(list(candidates), found, stretch, n_labels, side[0], aside, answer)


class _Tried(NamedTuple):
    """Candidates trained on lanes, in the order they were tried; sides are (lane, task)."""

    which: list[int]
    trained: Floats  # (candidate, lane, task, feature with the bias last), biases as stretched
    stretch: Floats  # (candidate,), what their biases were multiplied by
    decisions: Floats  # (row, candidate), out of fold
    margins: Margins
    said: Evidence | None  # of all tasks; None once some are set aside
    side: Floats


def _climb(
    held: Held,
    candidates: Sequence[Candidate],
    lanes: list[Ints],
    reference: int,
    keeps: NDArray[np.bool_],
) -> Generator[Any, Any, _Tried]:
    """Train on all lanes, small C first; a larger one only in families that gain by what they have.

    Large C is what takes rounds, and loss along C falls, then rises. A larger one is tried only if
    the largest so far has at least its even share of all weight, a third if it is one of three, by
    families of which it gives some task a share of `WORTH`.
    """
    own, side = yield from _own(held, candidates, lanes, reference)
    prices = sorted({candidate.C for candidate in candidates})
    top = min(prices.index(candidates[reference].C) + AHEAD, len(prices)) - 1
    nobody = np.zeros(held.n_tasks, bool)
    which, trained, margins, said = [reference], own[None], None, None
    decisions, stretch = np.zeros((len(held.y), 0)), np.zeros(0)
    more = [m for m, c in enumerate(candidates) if prices[top] >= c.C and m != reference]
    while True:
        if more:
            found = yield [_job(candidates[m], lanes, side, nobody) for m in more]
            which, trained = [*which, *more], np.concatenate([trained, np.stack(found)])
        kept = keeps[which[len(stretch) :]]
        fresh, much = yield from _stretched(held, trained[len(stretch) :], kept, ~nobody)
        trained = np.concatenate([trained[: len(stretch)], fresh])
        stretch, new = np.append(stretch, much), out_of_fold(held, fresh)
        measured = yield from measuring(held, new)
        heard = evidence(measured, held.n_folds)
        margins = measured if margins is None else margins.beside(measured)
        said = heard if said is None else said.beside(heard)
        decisions = np.concatenate([decisions, new], axis=1)
        top += 1
        more = _worth(candidates, which, said, prices[top - 1 : top + 1])
        if not more:
            return _Tried(which, trained, stretch, decisions, margins, said, side)


def _worth(
    candidates: Sequence[Candidate], which: list[int], said: Evidence, prices: list[float]
) -> list[int]:
    """Return what to try at the second of two prices: families of worth at the first, if it has."""
    if len(prices) < 2:
        return []
    share = shares(said, _are_alone(candidates, which))
    is_last = np.array([prices[0] == candidates[m].C for m in which])
    n_prices = len({candidates[m].C for m in which})
    if n_prices * share[:, is_last].sum() < len(share):
        return []
    has_worth = is_last & (share.max(axis=0) > WORTH)
    families = {candidates[m].family for m, has in zip(which, has_worth, strict=True) if has}
    return [m for m, c in enumerate(candidates) if prices[1] == c.C and c.family in families]


def _set_aside(
    held: Held,
    candidates: Sequence[Candidate],
    lanes: list[Ints],
    tried: _Tried,
    aside: NDArray[np.bool_],
    keeps: NDArray[np.bool_],
) -> Generator[Any, Any, _Tried]:
    """Train what was tried with company anew, without the rows of some tasks.

    These keep what they had when they were last trained with: if it was a mistake to set one aside,
    it is the others that lose its rows, not the task itself.
    """
    is_alone = _are_alone(candidates, tried.which)
    again = np.flatnonzero(~is_alone)
    if not len(again):
        return tried
    jobs = [_job(candidates[tried.which[k]], lanes, tried.side, aside) for k in again.tolist()]
    trained, stretch = tried.trained.copy(), tried.stretch.copy()
    anew = np.where(aside[:, None], trained[again], np.stack((yield jobs)))
    kept = keeps[tried.which][again]
    trained[again], stretch[again] = yield from _stretched(held, anew, kept, ~aside)
    decisions = out_of_fold(held, trained)
    margins = yield from measuring(held, decisions)
    return tried._replace(
        trained=trained, stretch=stretch, decisions=decisions, margins=margins, said=None
    )


def _stretched(
    held: Held, trained: Floats, keeps: NDArray[np.bool_], votes: NDArray[np.bool_]
) -> Generator[Floats, Floats, tuple[Floats, Floats]]:
    """Return candidates with the biases of tasks with `votes` stretched, and by how much.

    Who trains alone keeps its own, and so do all with a guard: one number for all tasks helps most
    of them, and those of a few, whose shares of labels are far from the others', it harms.
    """
    stretch, together = np.ones(len(trained)), np.flatnonzero(~keeps)
    if len(together):
        some = trained[together]
        biases = some[:, held.fold, held.task, -1].T
        steps = stretching(held, out_of_fold(held, some), biases, votes)
        stretch[together] = yield from steps
    trained = trained.copy()
    trained[:, :, votes, -1] *= stretch[:, None, None]
    return trained, stretch


def _judging(
    held: Held,
    tried: _Tried,
    candidates: Sequence[Candidate],
    guard: str | None,
    aside: NDArray[np.bool_],
) -> Generator[Floats, Floats, Weighed]:
    """Weigh what was tried; what was not has no weight."""
    is_alone = _are_alone(candidates, tried.which)
    prices = np.array([candidates[m].C for m in tried.which])
    found = yield from weighing(
        held, tried.decisions, tried.margins, is_alone, guard, aside, prices, tried.said
    )
    weights, prior, slopes = (
        _spread(part, tried.which, len(candidates))
        for part in (found.weights, found.prior, found.slopes)
    )
    return found._replace(weights=weights, prior=prior, slopes=slopes)


def _spread(part: Floats, which: list[int], n: int) -> Floats:
    out = np.zeros((*part.shape[:-1], n))
    out[..., which] = part
    return out


def _are_alone(candidates: Sequence[Candidate], which: list[int]) -> NDArray[np.bool_]:
    return np.array([candidates[m].family.is_alone for m in which])


def _own(
    held: Held, candidates: Sequence[Candidate], lanes: list[Ints], reference: int
) -> Generator[Any, Any, tuple[Floats, Floats]]:
    """Train the reference; sides are found lane by lane from its own rows alone."""
    plain = np.ones((len(lanes), held.n_tasks))
    (own,) = yield [Job(candidates[reference], _with_sides(lanes, plain))]
    has_turned = any(candidate.family.is_turned for candidate in candidates)
    return own, (yield from _sides(held, own, lanes)) if has_turned else plain


def _job(candidate: Candidate, lanes: list[Ints], side: Floats, aside: NDArray[np.bool_]) -> Job:
    """Say what to train: tasks on their sides, and without some where there is company."""
    turned = side if candidate.family.is_turned else np.ones_like(side)
    is_in = ~aside | candidate.family.is_alone
    return Job(candidate, _with_sides(lanes, np.where(is_in, turned, 0.0)))


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
