"""From out-of-fold decisions to weights: margins summed, losses, a posterior, held-out errors."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dtsvm.select.evidence import losses, slopes
from dtsvm.select.held import Held
from dtsvm.select.margins import Margins, counting, read_table, table
from dtsvm.select.posterior import chance_of_company, given_prior, likelihoods, weights

__all__ = [
    "Evidence",
    "Weighed",
    "Weighing",
    "answered",
    "evidence",
    "measuring",
    "shares",
    "weigh",
    "weighing",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Answer = TypeVar("Answer")
Weighing = Generator[Floats, Floats, "Weighed"]

LIKELY = 0.6  # with the guard company is to be likelier than alone by odds of three to two
LEAST = 1e-2  # a candidate with less of every task has no part in the answer


class Weighed(NamedTuple):
    """What out-of-fold decisions say.

    weights : (task, candidate), the share of each candidate in a task's classifier.
    prior : (candidate,), what all tasks together say of the candidates.
    slopes : (candidate,), what candidates are multiplied with to be comparable.
    wrong : (task, 5), held-out rows: all, wrong alone, wrong as chosen, wrong alone only, wrong as
    chosen only.
    values : (row, 3), decision values of rows that are here when they are held out: alone, by the
    one candidate with company that is best for all, and as chosen.
    is_wrong : (row, 3), which of them are labelled wrong.
    """

    weights: Floats
    prior: Floats
    slopes: Floats
    wrong: Floats
    values: Floats
    is_wrong: NDArray[np.bool_]


def weigh(
    held: Held,
    decisions: Floats,
    is_alone: Mask,
    total: Callable[[Floats], Floats] = np.asarray,
    guard: str | None = None,
) -> Weighed:
    """Find the weights from out-of-fold decisions of the rows that are here, and from totals."""

    def steps() -> Weighing:
        margins = yield from measuring(held, decisions)
        return (yield from weighing(held, decisions, margins, is_alone, guard))

    return answered(steps(), total)


def measuring(held: Held, decisions: Floats) -> Generator[Floats, Floats, Margins]:
    """Sum margins over the network: gives what this node adds and is sent the totals."""
    scale, each, labels = yield from counting(held, decisions)
    mine = table(decisions, held.y, held.task, held.n_tasks, scale, each)
    return replace(read_table((yield mine), scale), labels=labels)


class Evidence(NamedTuple):
    """What margins say of candidates, each by itself.

    slope : (candidate,), what it is multiplied with to be comparable.
    loss : (task, candidate), for as many rows as are independent.
    """

    slope: Floats
    loss: Floats

    def beside(self, more: Evidence) -> Evidence:
        """Return that of these candidates and more of them."""
        return Evidence(
            np.concatenate([self.slope, more.slope]), np.concatenate([self.loss, more.loss], axis=1)
        )


def evidence(margins: Margins, n_folds: int, votes: Mask | None = None) -> Evidence:
    """Return what margins say; slopes are learnt from the tasks with `votes`, all by default.

    Classifiers that hold out different rows were trained on overlapping ones, so their losses vary
    together. With k folds Nadeau and Bengio (2003) count a row for 1 / (1 + k / (k − 1)): 0.4 with
    three.
    """
    slope = slopes(margins if votes is None else margins.of(votes))
    counts = 1.0 / (1.0 + n_folds / (n_folds - 1))
    return Evidence(slope, counts * losses(margins, slope))


def shares(said: Evidence, is_alone: Mask) -> Floats:
    """Return every task's weights over candidates."""
    return _without_traces(weights(said.loss, is_alone)[0])


def weighing(
    held: Held,
    decisions: Floats,
    margins: Margins,
    is_alone: Mask,
    guard: str | None = None,
    aside: Mask | None = None,
    prices: Floats | None = None,
    said: Evidence | None = None,
) -> Weighing:
    """Find the weights from margins, and count held-out errors over the network.

    Tasks set `aside` get weights, too, but what is learnt from all is learnt from the others.
    `prices` : C of every candidate, the smaller the better where errors are as many.
    `said` : what margins say if nobody is set aside, where that is known.
    """
    votes = np.ones(held.n_tasks, bool) if aside is None else ~aside
    slope, loss = (
        said if said is not None and votes.all() else evidence(margins, held.n_folds, votes)
    )
    share, prior = weights(loss, is_alone, votes=votes)
    alone = np.zeros_like(share)
    alone[:, is_alone] = given_prior(loss[:, is_alone], prior[is_alone])
    share, alone = _without_traces(share), _without_traces(alone)
    summed = loss[votes].sum(axis=0)
    best = int(np.where(is_alone & ~is_alone.all(), np.inf, summed).argmin())
    values = _values(held, decisions * slope, alone, best, share)
    is_wrong = _are_wrong(held, values)
    wrong = yield _count_wrong(held, is_wrong)
    if guard is not None:
        loses = _loses(wrong, (yield _count_labels(held)), held.n_folds)
        own, company = (likelihoods(loss, prior, some) for some in (is_alone, ~is_alone))
        loses |= (chance_of_company(company - own, votes) < LIKELY) & (wrong[:, 0] > 0)
        tuned = _tuned_alone(margins, is_alone, prices)
        share = np.where(loses[:, None], tuned, share)
        left = (decisions * slope * tuned[held.task]).sum(axis=1)
        values[:, ::2] = np.where(loses[held.task, None], left[:, None], values[:, ::2])
        is_wrong = _are_wrong(held, values)
        wrong = yield _count_wrong(held, is_wrong)
    return Weighed(share, prior, slope, wrong, values, is_wrong)


def _tuned_alone(margins: Margins, is_alone: Mask, prices: Floats | None) -> Floats:
    """Give every task what it would have alone: C with the fewest held-out errors.

    The mean over all C is better for most tasks, yet not for each of them, and who is left alone
    is to be no worse off than alone.
    """
    order = np.arange(len(is_alone)) if prices is None else np.argsort(prices, kind="stable")
    wrong = np.where(is_alone, margins.wrong, np.inf)[:, order]
    share = np.zeros_like(margins.wrong)
    share[np.arange(len(share)), order[wrong.argmin(axis=1)]] = 1.0
    return share


def _count_labels(held: Held) -> Floats:
    """Count rows by task and label, the positive one last."""
    counts = np.bincount(2 * held.task + (held.y > 0), minlength=2 * held.n_tasks)
    return counts.reshape(held.n_tasks, 2).astype(np.float64)


def _loses(wrong: Floats, by_label: Floats, n_folds: int) -> Mask:
    """Return the tasks for which held-out errors say that company is no better than alone.

    Company is to make no error more than alone, nor more than who always says the task's commoner
    label: that is what alone comes to where few rows tell anything. Fewer than alone, if a class
    has fewer rows than there are folds: some fold then holds none of it out, and errors hardly tell
    who always says the other. Fewer than the commoner label, if the task's share of labels is a
    standard error or more from that of all: towards that is where company pulls.
    """
    n, alone, chosen = wrong[:, :3].T
    rarer = by_label.min(axis=1)
    share = by_label[:, 1].sum() / (by_label.sum() or 1.0)
    spread = np.sqrt(by_label.sum(axis=1) * share * (1.0 - share))
    is_odd = np.abs(by_label[:, 1] - by_label.sum(axis=1) * share) >= spread
    is_rare = rarer < n_folds
    loses = (chosen - alone >= 1 - is_rare) | (chosen - rarer >= 1 - is_odd)
    return np.asarray(loses & (n > 0))


def answered(steps: Generator[Any, Any, Answer], answer: Callable[[Any], Any]) -> Answer:
    """Go through with it, every question answered at once."""
    asked = next(steps)
    while True:
        try:
            asked = steps.send(answer(asked))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _without_traces(share: Floats) -> Floats:
    """Drop candidates of which every task has next to nothing."""
    kept = np.where(share.max(axis=0) > LEAST, share, 0.0)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def _values(held: Held, decisions: Floats, alone: Floats, best: int, share: Floats) -> Floats:
    """Decision values of held-out rows alone, by one candidate with company, and as chosen."""
    return np.stack([
        (decisions * alone[held.task]).sum(axis=1),
        decisions[:, best],
        (decisions * share[held.task]).sum(axis=1),
    ], axis=1)  # fmt: skip


def _are_wrong(held: Held, values: Floats) -> Mask:
    return np.asarray((values > 0) != (held.y > 0)[:, None])


def _count_wrong(held: Held, is_wrong: NDArray[np.bool_]) -> Floats:
    """Count held-out rows by task: all, wrong alone, wrong as chosen, and where they differ."""
    alone, _, chosen = is_wrong.T
    columns = [np.ones(len(held.y)), alone, chosen, alone & ~chosen, chosen & ~alone]
    counts = [np.bincount(held.task, column, held.n_tasks) for column in columns]
    return np.stack(counts, axis=1).astype(np.float64)  # of no rows they are ints
