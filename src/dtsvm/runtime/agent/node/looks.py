"""Certificates of all lanes of a question in a few sums, made beside the rounds.

A look is three sums over the network, as `certifier` makes them: what agents found, what rows lose
there and what their λ are worth, and, where a lane needs it, classes. All nodes are sent the same
totals, so all know the same gaps and look again at the same lanes. No cut through time is needed:
rounds go on meanwhile.
"""

from __future__ import annotations

from math import floor, log10

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import Certificate, Settings
from dtsvm.rounds.certify import Tally, certify
from dtsvm.runtime.agent.node.bench import Bench, Lane
from dtsvm.runtime.agent.node.masks import MOST
from dtsvm.runtime.agent.node.ranges import are_within
from dtsvm.runtime.agent.node.wave import Wave

__all__ = ["Looks"]

Floats = NDArray[np.float64]
NARROW = ("loss", "plus", "minus", "slant", "box")
WIDE = ("pull", "room")
CLASSES = ("positive", "negative")
FIRST_LOOK, NEAR = 8, 3  # rounds: until the first look, and between lanes looked at together
MOST_ROUNDS = 3000  # a lane that is not certified by then is taken as it is
WORST = 1.0  # with a larger gap it says nothing: who moves averages could make it say anything
ROUNDING = 1e-9


class Looks:
    """One node's part in certifying the lanes of a question.

    Parameters
    ----------
    benches : list of Bench
        The lanes.
    wave : Wave
        The sums.
    settings : Settings
        Of every lane, but for C.
    n_nodes : int
        In the network.
    """

    def __init__(self, benches: list[Bench], wave: Wave, settings: Settings, n_nodes: int) -> None:
        self.wave, self.settings, self.n_nodes = wave, settings, n_nodes
        self.lanes = [(bench, lane) for bench in benches for lane in bench.lanes]
        self.found: dict[int, Floats] = {}
        self.gaps: dict[int, float] = {}
        self.n_lies = 0  # totals that no honest nodes could have
        self._next = {lane.number: float(FIRST_LOOK) for _, lane in self.lanes}
        self._phase = "rest"
        self._now = 0  # rounds that this node has done
        self._age = 0.0  # of this look, on average
        self._some: list[tuple[Bench, Lane]] = []
        self._answers: dict[int, Floats] = {}
        self._sums: dict[int, dict[str, Floats]] = {}
        self._mine: dict[int, dict[str, Floats]] = {}

    @property
    def is_over(self) -> bool:
        """Whether every lane has its answer."""
        return len(self.found) == len(self.lanes)

    def step(self, age: int) -> bool:
        """Go on as far as totals allow; return whether a lane has got its answer."""
        n_found = len(self.found)
        while not self.is_over and not self.wave.is_open:
            if self._phase == "rest":
                if age < min(self._next.values()):
                    break
                self._begin(age)
            else:
                assert self.wave.total is not None
                self._now = age
                getattr(self, f"_take_{self._phase}")(self.wave.total)
        return len(self.found) > n_found

    def _begin(self, age: int) -> None:
        """Add up what agents found, in lanes that are due or nearly so."""
        due = min(self._next.values()) + NEAR
        self._some = [one for one in self.lanes if self._next.get(one[1].number, np.inf) <= due]
        parts = [
            bench.found(lane) if lane.slot >= 0 else np.zeros(_width(bench))
            for bench, lane in self._some
        ]
        self._add("average", [*parts, np.array([float(age)])])

    def _add(self, phase: str, parts: list[Floats]) -> None:
        self._phase = phase
        term = np.concatenate([np.zeros(0), *parts])
        self.wave.begin(self.wave.done + 1, np.clip(np.nan_to_num(term), -MOST, MOST))

    def _take_average(self, total: Floats) -> None:
        """Add up what rows are worth at the mean."""
        self._age = self._mean_age(float(total[-1]))
        parts, at = [], 0
        self._answers, self._mine = {}, {}
        for bench, lane in self._some:
            width = _width(bench)
            mean = total[at : at + width] / lane.n_nodes
            at += width
            self._answers[lane.number] = mean
            self._mine[lane.number] = mine = _tallied(bench, lane, mean)
            parts += [mine[name].ravel() for name in (*NARROW, *WIDE)]
        self._add("tally", parts)

    def _mean_age(self, total: float) -> float:
        """Return after how many rounds nodes added up what they found, on average.

        Nobody does before a look is due, nor has anybody done more rounds than this node by more
        than there are links between them. A total that says so is a lie: then it is when it was
        due, so that nobody has lanes taken as they are before their time.
        """
        due, n = min(self._next.values()), self.n_nodes
        if due * n <= total <= (self._now + n) * n:
            return total / n
        self.n_lies += 1
        return due

    def _take_tally(self, total: Floats) -> None:
        """Take the sums apart; where a lane lacks room, its classes are added up too."""
        at, parts = 0, []
        self._sums = {}
        for bench, lane in self._some:
            width = _width(bench)
            n = len(NARROW) + 2 * width
            self._sums[lane.number] = sums = _apart(total[at : at + n], width)
            at += n
            if _needs_classes(sums):
                parts += _classes(bench, lane, self._answers[lane.number])
        if parts:
            self._add("classes", parts)
        else:
            self._judge_all()

    def _take_classes(self, total: Floats) -> None:
        at = 0
        for bench, lane in self._some:
            if _needs_classes(self._sums[lane.number]):
                width = _width(bench)
                both = total[at : at + 2 * width].reshape(2, 1, width)
                self._sums[lane.number] |= dict(zip(CLASSES, both, strict=True))
                at += 2 * width
        self._judge_all()

    # What follows

    def _judge_all(self) -> None:
        self._phase = "rest"
        for _, lane in self._some:
            self._judge(lane)

    def _judge(self, lane: Lane) -> None:
        """Say how good an answer is; if not good enough, look later the worse it is."""
        sums, u = self._sums[lane.number], self._answers[lane.number]
        nothing = {name: np.zeros((1, len(u))) for name in CLASSES}
        tally = Tally(**{name: {**nothing, **sums}[name] for name in Tally._fields})
        reg = self.settings.common_reg, self.settings.specific_reg, 0.0
        found = certify(tally, 0.5 * u, 0.5 * u[None], np.ones(1), reg)
        age, number = self._age, lane.number
        if not _is_possible(sums, self._mine[number], found):
            self.n_lies += 1
            self._next[number] = age + max(4.0, floor(0.2 * age))
            return
        least = max(found.bound, 1e-6 * float(sums["box"][0]), 1e-300)
        gap = max(0.0, (found.objective - found.bound) / least)
        allowed = self.settings.tol
        if gap <= allowed or age >= MOST_ROUNDS:
            self.found[number] = u if gap <= max(allowed, WORST) else np.zeros_like(u)
            self.gaps[number] = gap
            del self._next[number]
            return
        over = min(max(gap / allowed, 1.0), 100.0) if np.isfinite(gap) else 100.0
        self._next[number] = age + max(4.0, floor((0.08 + 0.1 * log10(over)) * age))


def _width(bench: Bench) -> int:
    return bench.state.n_features + 1


def _tallied(bench: Bench, lane: Lane, mean: Floats) -> dict[str, Floats]:
    """Return what a node adds to the second sum of a lane."""
    if lane.slot < 0:
        wide = {name: np.zeros((1, _width(bench))) for name in WIDE}
        return {name: np.zeros(1) for name in NARROW} | wide
    sums = bench.tally(lane, mean, has_room=True)
    return {**sums, "box": np.array([bench.box(lane)])}


def _apart(term: Floats, width: int) -> dict[str, Floats]:
    n = len(NARROW)
    narrow = {name: term[i : i + 1] for i, name in enumerate(NARROW)}
    return narrow | dict(zip(WIDE, term[n:].reshape(2, 1, width), strict=True))


def _needs_classes(sums: dict[str, Floats]) -> bool:
    """Whether λ can be made feasible only by scaling one class down: see `kernel.repair`."""
    return not abs(float(sums["plus"][0] - sums["minus"][0])) <= float(sums["room"][0, -1])


def _classes(bench: Bench, lane: Lane, answer: Floats) -> list[Floats]:
    if lane.slot < 0:
        return [np.zeros(2 * _width(bench))]
    sums = bench.tally(lane, answer, has_room=False)
    return [sums[name].ravel() for name in CLASSES]


def _is_possible(sums: dict[str, Floats], mine: dict[str, Floats], found: Certificate) -> bool:
    """Whether totals can be those of honest nodes: every share has its sign and its range."""
    dual = float(sums["plus"][0] + sums["minus"][0])
    held = float(mine["plus"][0] + mine["minus"][0])
    others = float(sums["box"][0] - mine["box"][0])
    room = float(mine["room"][0, -1])
    return (
        all(are_within(sums[name], mine[name]) for name in ("loss", "plus", "minus", "box"))
        and are_within(dual, held, others)
        and are_within(float(sums["room"][0, -1]), room, 0.5 * others)
        and found.objective - found.bound >= -ROUNDING * (1.0 + abs(found.objective))
    )
