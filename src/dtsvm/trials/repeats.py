"""One repeat of an experiment, many times, on some processes: same seed, same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from zlib import crc32

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

from dtsvm.data import DigitFeatures
from dtsvm.trials.regimes import Regime
from dtsvm.trials.tables import Cell, Table

__all__ = ["OneRepeat", "Repeats", "crew"]

OneRepeat = Callable[[DigitFeatures, Regime, np.random.Generator], list[tuple[Cell, ...]]]
Job = tuple[OneRepeat, Regime, np.random.SeedSequence]
Rows = list[tuple[Cell, ...]]
Mapper = Callable[[list[Job]], Iterator[Rows]]


@dataclass(frozen=True)
class Repeats:
    """How often, in which regimes, from which seed, and who does the work.

    Parameters
    ----------
    name : str
        The experiment; with the seed and the regime it decides the draws, whatever else runs.
    regimes : tuple of Regime
        The regimes to run.
    n : int
        Repeats in each regime.
    seed : int
        The seed of everything random.
    mapper : callable
        Does jobs and returns what they return, in order; see `crew`.
    advance : callable, optional
        Called after every repeat.
    """

    name: str
    regimes: tuple[Regime, ...]
    n: int
    seed: int
    mapper: Mapper
    advance: Callable[[], object] = field(default=lambda: None)

    def table(self, columns: Sequence[str], one: OneRepeat) -> Table:
        """Run `one` n times in each regime; its rows get their regime and repeat in front."""
        jobs: list[Job] = []
        for regime in self.regimes:
            source = np.random.SeedSequence([self.seed, _number(self.name), _number(regime.name)])
            jobs += [(one, regime, child) for child in source.spawn(self.n)]
        rows: Rows = []
        for i, found in enumerate(self.mapper(jobs)):
            rows += [(jobs[i][1].name, i % self.n + 1, *row) for row in found]
            self.advance()
        return Table(["regime", "repeat", *columns], rows)


@contextmanager
def crew(features: DigitFeatures, jobs: int) -> Iterator[Mapper]:
    """Open a mapper: in this process, or on as many others as `jobs` says.

    The features are computed once and handed over, so no number depends on `jobs`.
    """
    if jobs == 1:
        # As in the other processes: small products gain nothing from a second BLAS thread.
        with threadpool_limits(1):
            _held["features"] = features
            yield lambda todo: map(_do, todo)
        return
    # Started afresh: forking a process that has threads (progress, BLAS) can hang.
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_receive, initargs=(features,)) as pool:
        try:
            yield lambda todo: pool.map(_do, todo)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


_held: dict[str, DigitFeatures] = {}


def _receive(features: DigitFeatures) -> None:
    threadpool_limits(1)
    _held["features"] = features


def _do(job: Job) -> Rows:
    one, regime, seed = job
    return one(_held["features"], regime, np.random.default_rng(seed))


def _number(name: str) -> int:
    return crc32(name.encode())
