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

from dtsvm.runtime.agent.audit.room import VICTIM, Barred, Room
from dtsvm.runtime.agent.audit.shadow import Away, Shadow

__all__ = [
    "Findings", "Patient", "Prober", "lie", "listen", "overheard", "read_model", "recovered",
    "row_of",
]  # fmt: skip

Floats = NDArray[np.float64]
FEW = 20  # rows below which an advantage is chance
EXACT = 1e-6  # relative error below which a row counts as read
WIDE, NARROW = 20.0, 6.0  # in weights, the range of the bias for a sole neighbour, and for others
CALM = 1e-9  # change of g, in C, below which the victim has answered
AT_REST = 1e-14  # change of x, in what everybody is pushed to, below which all are at rest
MOST_ROUNDS, MOST_TO_REST, MOST_IN_ALL = 60, 1_000, 20_000  # for an answer, a rest, in all
LAG = 5  # rounds over which the patient see no change
MOST_TRIES = 3  # of one question
DEEPER, LEAST_LOW = 50.0, 0.04  # than all probes are others pushed, and the share they must keep
LOOSE = 4.0  # times as much as all are pushed down may links carry
N_DIRECTIONS, FIRST_REACH = 15, 4.0  # bisections, and the weights of the first; then larger


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


def _pull(gain: Floats, x: Floats, z: Floats) -> Floats:
    """Return g, given U⁻¹, x and the sum of z over all links."""
    is_used = gain[:, -1] > 0
    each = x / np.where(gain > 0, gain, 1.0) - z
    return np.append(each[:, :-1].mean(axis=0), each[is_used, -1].mean())


def row_of(change: Floats) -> Floats | None:
    """The row of which a change of g is a multiple, if it is of one row alone."""
    size = float(np.abs(change).max())
    if size == 0.0 or abs(change[-1]) < 1e-9 * size:
        return None
    return np.asarray(change[:-1] / change[-1])


# The listener


def listen(room: Room, rounds: int = 300) -> Findings:
    """Follow the protocol, and look at differences of X̃ᵀYλ over the rounds.

    What links between its neighbours carry it follows too; other links it takes to carry nothing.
    Allies tell it what they see.
    """
    pulls, decision = overheard(room, rounds)
    changes = [pulls[-1]]
    for lag in (1, 2, 3):
        changes += [after - before for before, after in _later(pulls, lag)]
    rows = [row for row in map(row_of, changes) if row is not None]
    return Findings(rows, decision, rounds)


def overheard(room: Room, rounds: int) -> tuple[list[Floats], Floats]:
    """Return g of the victim as a listener takes it to be, round by round, and its classifier."""
    for _ in range(rounds):
        room.step()
    league = list(room.league.values())
    heard = [
        {name: x for seen in some for name, x in seen.items()}
        for some in zip(*(one.seen for one in league), strict=True)
    ]
    pulled = [sum(some[1:], some[0]) for some in zip(*(one.pulled for one in league), strict=True)]
    known = sorted({name for one in league for name in one.neighbours})
    shadow, gain = Shadow(room, known), room.gain(VICTIM)
    pulls = [np.zeros(room.victim.n_features + 1)]
    for seen, z in zip(heard, pulled, strict=True):
        pulls.append(_pull(gain, seen[VICTIM], z + shadow.carried(VICTIM)))
        shadow.advance(seen)
    return pulls, np.asarray(heard[-1][VICTIM].sum(axis=0))


def _later(some: list[Floats], lag: int) -> list[tuple[Floats, Floats]]:
    """Return each with the one so much later."""
    return list(zip(some, some[lag:], strict=False))


# The liar


class Prober:
    """A neighbour that asks for the victim's prox at points it chooses.

    With z such that u = D g + m for a chosen m, and the bias of m far below all rows, λ = C for
    every positive row and 0 for every other; far above, the other way round. In between each row
    changes once, and takes −C x̃ from g. So the last number of g counts the rows on the way, and
    bisection finds the gaps between them.

    Other links of the victim carry something too. So first all honest nodes are pushed to where
    none of their multipliers moves, and neighbours of both are held there. Then what they
    answer follows from what the victim found (see `Shadow`), and is made up for on the liar's own
    link, a round ahead. Links between nodes that are held apart carry more and more; so as often
    as the victim is asked it is also taken to the other side of where all rest.
    """

    def __init__(self, room: Room, most_rounds: int = MOST_IN_ALL) -> None:
        self.room, self.most_rounds = room, most_rounds
        self.C = room.settings.C
        self.findings = Findings()
        p1 = room.victim.n_features + 1
        self._target = self._given = np.zeros((2, p1))  # to be, and as the victim has it
        self._push = np.zeros((2, p1))  # z that pushes a node down
        self._shadow: Shadow | None = None
        self._ahead: Away = {}
        self._hold: dict[str, Floats] = {}
        self._low = 0.0  # bias to which all are pushed
        room.curious.choose = self._answer
        room.step()
        self._gain = room.gain(VICTIM)

    def _answer(self, name: str, known: Floats) -> Floats:
        """Return the q that takes z from where it is known to be to where it is wanted."""
        wanted = self._target if name == VICTIM else self._push
        is_near = name == VICTIM or name in self.room.victim.neighbours
        if self._shadow is not None and is_near:
            made_up = self._shadow.carried(name, self._ahead)
            wanted = wanted - made_up
            self._hold[name] = -made_up
        kappa = self.room.settings.relaxation
        return np.asarray((wanted - (1.0 - kappa) * known) / kappa)

    def _step(self) -> None:
        shadow = self._shadow
        if shadow is not None:
            self._ahead = shadow.after({VICTIM: self._gain * (self._given - self._push)})
        self.room.step()
        self.findings.rounds += 1
        self._given = self._target
        if shadow is not None:
            shadow.advance({VICTIM: self.room.curious.seen[-1][VICTIM] - self._rest})
            shadow.given = dict(self._hold)

    def rest(self, bias: float) -> None:
        """Push everybody's bias far down, and wait until nothing moves."""
        rho = self.room.penalty(self.room.curious.name, VICTIM)
        self._push = np.zeros_like(self._target)
        self._push[0, -1] = rho[-1] * bias
        self._target, self._shadow = self._push, None
        last = None
        for _ in range(MOST_TO_REST):
            self._step()
            x = self.room.curious.seen[-1][VICTIM]
            if last is not None and np.abs(x - last).max() <= AT_REST * abs(bias):
                break
            last = x
        self._shadow, self._rest = Shadow(self.room), x
        self._low = float(x[:, -1].sum())

    def _aim(self, m: Floats) -> None:
        moved = (m - np.append(np.zeros(len(m) - 1), self._low)) / self._gain[0]
        self._target = self._push + np.stack([moved, np.zeros_like(m)])

    def _unwind(self, m: Floats) -> None:
        """Take the victim to the other side of where all rest, until links carry little again."""
        assert self._shadow is not None
        centre = np.append(np.zeros(len(m) - 1), self._low)
        for _ in range(MOST_ROUNDS):
            if self._shadow.largest() <= LOOSE * -self._low and self._are_low(0.8):
                return
            self._aim(2.0 * centre - m)
            self._step()

    def _are_low(self, share: float) -> bool:
        """Whether all others are still pushed down by this share."""
        assert self._shadow is not None
        return self._shadow.highest(VICTIM) <= (1.0 - share) * -self._low

    def ask(self, m: Floats) -> Floats:
        """Return g at u = D g + m, up to a constant, once the victim has found it."""
        for _ in range(MOST_TRIES):
            self._unwind(m)
            self._aim(m)
            self._step()  # the victim hears it
            last = None
            for _ in range(MOST_ROUNDS):
                self._step()
                x = self.room.curious.seen[-1][VICTIM]
                g = _pull(self._gain, x, self._target)
                is_calm = last is not None and np.abs(g - last).max() <= CALM * self.C
                if is_calm or not self._are_low(LEAST_LOW):
                    break
                last = g
            self.findings.decision = np.asarray(x.sum(axis=0))
            if is_calm:
                break
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
            row = row_of(low[1] - high[1])
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


class Patient(Prober):
    """A liar that waits until the whole network is at rest before it takes an answer.

    All honest nodes agree then, and links between them cancel in the sum of their conditions:

        Σ_a U_a x − Σ_(a, b) ρ x = Σ_a g_a + Σ z on links to the liar,

    with (a, b) all honest ends. So they answer like one node that has all their rows. Hidden
    numbers that are mixed into moves die out with these.
    """

    def __init__(self, room: Room, most_rounds: int = MOST_IN_ALL) -> None:
        self._near = [name for name in room.curious.neighbours if name in _reached(room)]
        super().__init__(room, most_rounds)
        curved = np.sum([1.0 / room.gain(name) for name in _reached(room)], axis=0)
        links = [pair for pair in room.honest_links() if pair[0] in _reached(room)]
        self._gain = np.asarray(1.0 / (curved - sum(room.penalty(*pair) for pair in links)))

    def _answer(self, name: str, known: Floats) -> Floats:
        wanted = self._target / len(self._near) if name in self._near else self._push
        kappa = self.room.settings.relaxation
        return np.asarray((wanted - (1.0 - kappa) * known) / kappa)

    def rest(self, bias: float) -> None:
        """Nobody has to be held."""

    def ask(self, m: Floats) -> Floats:
        """Return the sum of all g at u = D g + m, once nothing moves."""
        self._target = np.stack([m / self._gain[0], np.zeros_like(m)])
        past = [np.full(len(m), np.inf)] * LAG
        for _ in range(MOST_TO_REST):
            self._step()
            x = self.room.curious.seen[-1][VICTIM]
            past.append(_pull(self._gain, x, self._target))
            if np.abs(past[-1] - past[-1 - LAG]).max() <= CALM * self.C:
                break
        self.findings.decision = np.asarray(x.sum(axis=0))
        return past[-1]


def _reached(room: Room) -> set[str]:
    """The victim, and all who are linked to it over honest links."""
    found, links = {VICTIM}, room.honest_links()
    while more := {b for a, b in links if a in found} - found:
        found |= more
    return found


def lie(room: Room, seed: int = 0, most_rounds: int = MOST_IN_ALL) -> Findings:
    """Choose z, bisect the victim's bias, and read the rows one by one.

    A victim that finds the values too odd hears them no more: what was read until then counts.
    """
    room.keep_still()
    ways = [Prober] if room.is_alone else [Prober, Patient]
    if len(ways) > 1 and room.victim.veil.privacy.level == "masked":
        ways = [Patient]  # what is mixed into moves hides more from who does not wait
    found = Findings()
    for way in ways:
        try:
            prober = way(room, most_rounds // len(ways))
        except Barred:
            break
        with suppress(Barred):
            _probe(prober, np.random.default_rng(seed), room.victim.n_features)
        found.rows = _distinct(found.rows + prober.findings.rows)
        found.decision = prober.findings.decision
        found.rounds += prober.findings.rounds
    return found


def _probe(prober: Prober, rng: np.random.Generator, p: int) -> None:
    """Bisect along one random direction after another until that brings no new row."""
    width = WIDE if prober.room.is_alone else NARROW
    scale, n = FIRST_REACH, 0
    for _ in range(N_DIRECTIONS):
        direction = rng.normal(size=p)
        reach, before = width * scale, len(prober.findings.rows)
        prober.rest(-min(DEEPER * reach, 0.3 * prober.room.most_bias()))
        counted = prober.sweep(scale * direction / np.linalg.norm(direction), reach)
        prober.findings.rows = _distinct(prober.findings.rows)
        n, is_same = counted, counted == n
        n_read = len(prober.findings.rows)
        is_done = counted and is_same and n_read == before and n_read >= counted
        if is_done or prober.findings.rounds > prober.most_rounds:
            return
        scale = min(1.5 * scale, prober.room.most_bias() / 200.0)


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
    row = row_of(whole)
    return Findings([] if row is None else [row], whole, rounds)
