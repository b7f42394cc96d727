"""Three attacks on a node's rows: a neighbour that lies, one that listens, and a reader.

All use that the victim's x, which its messages tell, is U⁻¹(X̃ᵀYλ + Σ z): who knows the z knows

    g = X̃ᵀYλ = Σ_i λ_i y_i x̃_i,    0 ≤ λ_i ≤ C,

and where a single λ changes, the difference of two g is a multiple of that row; x̃ ends in 1.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.runtime.agent.audit.room import Barred, Room

__all__ = ["Findings", "Prober", "lie", "listen", "read_model", "recovered"]

Floats = NDArray[np.float64]
FEW = 20  # rows below which an advantage is chance
EXACT = 1e-6  # relative error below which a row counts as read
CALM = 1e-11  # relative change of g below which the victim has answered
MOST_ROUNDS, MOST_IN_ALL = 60, 20_000  # for one answer, and of the attack
N_DIRECTIONS, FIRST_REACH = 10, 4.0  # bisections, and the weights of the first; then twice as large


@dataclass
class Findings:
    """What an attacker has: rows it believes to have read, and the last classifier it saw."""

    rows: list[Floats] = field(default_factory=list)
    decision: Floats | None = None
    rounds: int = 0

    def matches(self, X: Floats, tol: float = EXACT) -> NDArray[np.bool_]:
        """Which of these rows it has read."""
        if not self.rows or not len(X):
            return np.zeros(len(X), bool)
        found = np.array(self.rows)
        size = np.maximum(np.linalg.norm(X, axis=1), 1e-12)
        gaps = [np.linalg.norm(found - x, axis=1).min() for x in X]
        return np.asarray(np.array(gaps) <= tol * size)

    def advantage(self, members: tuple[Floats, Floats], others: tuple[Floats, Floats]) -> float:
        """Best true minus false positive rate in telling members from rows that are not.

        The threshold is the best in hindsight, so a little of it is luck; NaN where rows are few.
        """
        if min(len(members[0]), len(others[0])) < FEW:
            return float("nan")
        found = self.matches(members[0]).mean() - self.matches(others[0]).mean()
        if self.decision is None:
            return float(max(found, 0.0))
        inside, outside = (self._margins(*block) for block in (members, others))
        return float(max(found, _separation(inside, outside)))

    def _margins(self, X: Floats, y: Floats) -> Floats:
        assert self.decision is not None
        return np.asarray(y * (X @ self.decision[:-1] + self.decision[-1]))


def _separation(inside: Floats, outside: Floats) -> float:
    """The largest distance of two distributions of scores, either way round."""
    at = np.concatenate([inside, outside])
    above = (inside >= at[:, None]).mean(axis=1) - (outside >= at[:, None]).mean(axis=1)
    return float(np.abs(above).max())


def recovered(findings: Findings, X: Floats) -> int:
    """How many of these rows an attacker has read."""
    return int(findings.matches(X).sum())


def _pull(room: Room, x: Floats, z: Floats) -> Floats:
    """G as a neighbour computes it that takes all other links to carry nothing."""
    gain = np.repeat(_gain(room), [x.shape[1] - 1, 1], axis=1)
    is_used = gain[:, -1] > 0
    each = x / np.where(gain > 0, gain, 1.0) - z
    return np.append(each[:, :-1].mean(axis=0), each[is_used, -1].mean())


def _gain(room: Room) -> Floats:
    """U⁻¹ of the victim, from what everybody is told: settings, roster and penalties."""
    slot = next(iter(room.victim.holdings.values())).slot
    return np.asarray(room.victim.state.tables.agents["gain"][slot])


def _candidate(change: Floats) -> Floats | None:
    """The row of which a change of g is a multiple, if it is of one row alone."""
    size = float(np.abs(change).max())
    if size == 0.0 or abs(change[-1]) < 1e-9 * size:
        return None
    return np.asarray(change[:-1] / change[-1])


# The listener


def listen(room: Room, rounds: int = 300) -> Findings:
    """Follow the protocol, and look at differences of X̃ᵀYλ over the rounds."""
    found = Findings()
    for _ in range(rounds):
        room.step()
    seen = room.curious.seen
    pulls = [np.zeros(room.victim.n_features + 1)] + [_pull(room, x, z) for x, z in seen]
    last = _candidate(pulls[-1])
    found.rows += [] if last is None else [last]
    for lag in (1, 2, 3):
        for before, after in zip(pulls, pulls[lag:], strict=False):
            row = _candidate(after - before)
            if row is not None:
                found.rows.append(row)
    found.decision, found.rounds = np.asarray(seen[-1][0].sum(axis=0)), rounds
    return found


# The liar


class Prober:
    """A neighbour that asks for the victim's prox at points it chooses.

    With z such that u = D g + m for a chosen m, and the bias of m far below all rows, λ = C for
    every positive row and 0 for every other; far above, the other way round. In between each row
    changes once, and takes −C x̃ from g. So the last number of g counts the rows on the way, and
    bisection finds the gaps between them.
    """

    def __init__(self, room: Room, most_rounds: int = MOST_IN_ALL) -> None:
        self.room, self.most_rounds = room, most_rounds
        self.C = room.settings.C
        self.findings = Findings()
        self._target = np.zeros((2, room.victim.n_features + 1))
        room.curious.choose = self._answer
        room.step()
        gain = _gain(room)
        self._divide = np.repeat(gain[0], [room.victim.n_features, 1])

    def _answer(self, known: Floats) -> Floats:
        """Q that takes z from where it is known to be to the target."""
        kappa = self.room.settings.relaxation
        return np.asarray((self._target - (1.0 - kappa) * known) / kappa)

    def ask(self, m: Floats) -> Floats:
        """Return g at u = D g + m, once the victim has found it."""
        self._target = np.stack([m / self._divide, np.zeros_like(m)])
        self.room.step()  # the victim hears it
        last = None
        for _ in range(MOST_ROUNDS):
            self.room.step()
            self.findings.rounds += 1
            x, z = self.room.curious.seen[-1]
            g = _pull(self.room, x, z)
            if last is not None and np.abs(g - last).max() <= CALM * np.abs(g).max():
                break
            last = g
        self.findings.decision = np.asarray(x.sum(axis=0))
        return g

    def sweep(self, weights: Floats, reach: float) -> int:
        """Bisect the bias under these weights; return how many rows there are, 0 if unclear."""
        low, high = ((b, self.ask(np.append(weights, b))) for b in (-reach, reach))
        self._split(weights, low, high, depth=0)
        return self._count(low[1] - high[1]) or 0

    def _count(self, change: Floats) -> int | None:
        n = change[-1] / self.C
        return round(n) if abs(n - round(n)) < 1e-6 and n > -0.5 else None

    def _split(self, weights: Floats, low: Any, high: Any, depth: int) -> None:
        n = self._count(low[1] - high[1])
        if not n or depth > 40 or self.findings.rounds > self.most_rounds:
            return
        if n == 1:
            row = _candidate(low[1] - high[1])
            if row is not None:
                self.findings.rows.append(row)
            return
        for share in (0.5, 0.41, 0.62, 0.3, 0.7, 0.2, 0.8):
            b = low[0] + share * (high[0] - low[0])
            middle = (b, self.ask(np.append(weights, b)))
            if self._count(low[1] - middle[1]) is not None:
                self._split(weights, low, middle, depth + 1)
                self._split(weights, middle, high, depth + 1)
                return


def lie(room: Room, seed: int = 0, most_rounds: int = MOST_IN_ALL) -> Findings:
    """Choose z, bisect the victim's bias, and read the rows one by one.

    A victim that finds the values too odd hears them no more: what was read until then counts.
    """
    prober = Prober(room, most_rounds)
    with suppress(Barred):
        _probe(prober, np.random.default_rng(seed), room.victim.n_features)
    prober.findings.rows = _distinct(prober.findings.rows)
    return prober.findings


def _probe(prober: Prober, rng: np.random.Generator, p: int) -> None:
    """Bisect along one random direction after another until the rows are counted and read."""
    n, scale = 0, FIRST_REACH
    for _ in range(N_DIRECTIONS):
        direction = rng.normal(size=p)
        counted = prober.sweep(scale * direction / np.linalg.norm(direction), 20.0 * scale)
        prober.findings.rows = _distinct(prober.findings.rows)
        is_done = counted and counted == n and len(prober.findings.rows) >= n
        if is_done or prober.findings.rounds > prober.most_rounds:
            return
        n, scale = counted, 2.0 * scale


def _distinct(rows: list[Floats]) -> list[Floats]:
    """Rows that were read twice count once."""
    kept: list[Floats] = []
    for row in rows:
        size = max(float(np.linalg.norm(row)), 1e-12)
        if all(float(np.linalg.norm(row - other)) > EXACT * size for other in kept):
            kept.append(row)
    return kept


# The reader


def read_model(room: Room, rounds: int = 300) -> Findings:
    """Have nothing but the classifier that training ends with."""
    for _ in range(rounds):
        room.step()
    slot = next(iter(room.victim.holdings.values())).slot
    x = room.victim.state.estimate(slot)
    whole = np.asarray(x.sum(axis=0))
    row = _candidate(whole)
    return Findings([] if row is None else [row], whole, rounds)
