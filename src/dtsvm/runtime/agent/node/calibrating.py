"""Probabilities without a centre: sigmoids fitted by Newton steps that are sums over the network.

Once a node has settled it knows what lanes that did not see a row say of it. The first sum counts
rows of each side, every further one is a step of `problem.sigmoid.fitting`: all are sent the same
totals, so all take the same steps and end at the same numbers. When the network changes, all begins
anew. What the others added must be what rows can say (`Share`); if not there are no probabilities.

Under differential privacy there is one sum, of counts with noise, and all fit from its total.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import NetworkError
from dtsvm.problem.sigmoid import BINS, fit_histograms, fitting, sigmoid_counts, sigmoid_sums
from dtsvm.runtime.agent.node.collective import Collective
from dtsvm.runtime.agent.node.entry import NO_ROWS
from dtsvm.runtime.agent.node.ranges import LIGHTEST, Share
from dtsvm.runtime.agent.node.wave import Wave

__all__ = ["Calibrating", "Counting", "Unseen"]

Floats = NDArray[np.float64]
NOTHING = np.zeros((2, BINS))
MOST = 1e6  # of a and b, of decision values and of weights
FARTHER = 1e4  # may another node's decision values be than the largest here


class Unseen(NamedTuple):
    """What a node's lanes say of rows they did not see: of one main lane, row by row."""

    values: Floats
    is_positive: NDArray[np.bool_]
    weight: Floats


@dataclass
class Calibrating(Collective):
    """One node's part in fitting sigmoids.

    Parameters
    ----------
    name, network, roster, identity
        As in `Collective`.
    unseen : callable
        Returns what a node's lanes say of rows they did not see, by main lane; None while that is
        not settled.
    C : float
        The price of a row's loss, by which nodes say how many rows they have.
    """

    unseen: Callable[[], dict[str, Unseen] | None] = lambda: None
    C: float = 1.0
    _rows: tuple[Floats, NDArray[np.bool_], NDArray[np.int64], Floats] | None = None
    _counts: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    _fit: Generator[Floats, Floats, Floats] | None = None
    _share: Share | None = None
    _mine: Floats = field(default_factory=lambda: np.zeros((0, 2)))  # what was added last
    _found: Floats | None = None

    protocol = 902
    title = "sigmoids"

    def step(self) -> None:
        """Go as far as what is known allows."""
        wave = self._fresh()
        if self._found is not None or wave.is_open:
            return
        if wave.total is not None:
            self._follow(wave, wave.total)
        elif self._rows is not None or self._take_rows():
            self._called(wave, 1)

    @property
    def sigmoids(self) -> dict[str, Floats] | None:
        """(a, b) of every main lane in the network; None before they are found."""
        self._fresh()
        if self._found is None:
            return None
        return dict(zip(self._names, self._found, strict=True))

    @property
    def is_busy(self) -> bool:
        """Whether sigmoids are being fitted just now."""
        wave = self._wave
        return self._found is None and wave is not None and max(wave.wanted, wave.done) > 0

    @property
    def _names(self) -> list[str]:
        return [name for some in self._lanes.values() for name in some]

    def _take_rows(self) -> bool:
        found = self.unseen()
        if found is None:
            return False
        place = {name: i for i, name in enumerate(self._names)}
        some = [(one, place[name]) for name, one in found.items() if name in place]
        self._rows = (
            np.clip(np.concatenate([np.zeros(0), *(one.values for one, _ in some)]), -MOST, MOST),
            np.concatenate([np.zeros(0, bool), *(one.is_positive for one, _ in some)]),
            np.concatenate(
                [np.zeros(0, np.int64), *(np.full(len(one.values), i) for one, i in some)]
            ),
            np.concatenate([np.zeros(0), *(one.weight for one, _ in some)]),
        )
        return True

    def _called(self, wave: Wave, number: int) -> None:
        if number == 1 and (self._rows is not None or self._take_rows()):
            assert self._rows is not None
            _, is_positive, which, weight = self._rows
            self._mine = sigmoid_counts(is_positive, which, len(self._names), weight)
            wave.begin(1, self._mine.ravel())

    def _claimed(self) -> Floats:
        """What rows of each main lane weigh at other nodes, at most, as their entries say."""
        names, _ = self.roster.map(self.name)
        said = [task for n in names if n != self.name for task in self.roster.entries[n].tasks]
        place = {name: i for i, name in enumerate(self._names)}
        out = np.zeros(len(place))
        for task, _, _, weight in said:
            if task in place and weight > NO_ROWS:
                out[place[task]] += 2.0**weight / (self.C * LIGHTEST)
        return out

    def _doubt(self) -> None:
        super()._doubt()
        self._found = np.full((len(self._names), 2), np.nan)

    def _follow(self, wave: Wave, total: Floats) -> None:
        """Take the step that a total allows, and add this node's part of the next."""
        assert self._rows is not None
        if not self._is_possible(wave.done, total.reshape(self._mine.shape) - self._mine):
            self._doubt()
            return
        try:
            if wave.done == 1:
                self._counts = total.reshape(-1, 2)
                self._fit = fitting(self._counts)
                at = next(self._fit)
            else:
                assert self._fit is not None
                at = self._fit.send(total.reshape(-1, 6))
        except StopIteration as end:
            is_good = (np.abs(end.value) <= MOST).all(axis=1)
            self._found = np.where(is_good[:, None], end.value, np.nan)
            return
        assert self._share is not None
        at = np.clip(at, -MOST, MOST)  # lies can lead anywhere
        self._share.at(at)
        self._mine = np.clip(sigmoid_sums(*self._rows, at, self._counts), -(2.0**40), 2.0**40)
        wave.begin(wave.done + 1, self._mine.ravel())

    def _is_possible(self, number: int, rest: Floats) -> bool:
        """Whether the others can honestly have added this."""
        if number == 1 or self._share is None:
            assert self._rows is not None
            largest = FARTHER * (1.0 + float(np.abs(self._rows[0]).max(initial=0.0)))
            self._share = Share(self._claimed(), min(largest, MOST))
            return self._share.allow_counts(rest)
        return self._share.allow(rest, self._mine)

    def _changed(self, wave: Wave, was_open: bool) -> None:
        self._rows = self._fit = self._found = self._share = None


@dataclass
class Counting(Calibrating):
    """One node's part in fitting sigmoids from counts.

    Parameters
    ----------
    name, network, roster, identity
        As in `Collective`.
    counted : callable
        Returns `problem.sigmoid.histogram` of each main lane, with noise; None while the node has
        not settled.
    """

    counted: Callable[[], dict[str, Floats] | None] = lambda: None

    def step(self) -> None:
        """Go as far as what is known allows."""
        wave = self._fresh()
        if wave.total is not None and self._found is None:
            found = fit_histograms(wave.total.reshape(-1, 2, BINS))
            is_good = np.abs(found).max(axis=1, keepdims=True) <= MOST
            self._found = np.where(is_good, found, np.nan)
        elif not wave.is_open:
            self._called(wave, 1)

    def _called(self, wave: Wave, number: int) -> None:
        if number != 1 or wave.total is not None:
            return
        with suppress(NetworkError):  # the budget cannot be written: tried again
            mine = self.counted()
            if mine is not None:
                parts = [mine.get(name, NOTHING).ravel() for name in self._names]
                wave.begin(1, np.concatenate([np.zeros(0), *parts]))
