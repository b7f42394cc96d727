"""A certificate without a centre: sums over the network say how good everybody's answer is.

Three sums in a row, by all nodes that must agree. The first adds up what agents found; divided by
their number that is the network's answer. The second adds up each node's loss at this answer and
what its multipliers are worth; from it everybody computes the objective and a bound on what pooled
training could reach. Where a task's multipliers cannot be balanced by those inside their boxes, a
third adds up classes. No cut through time is needed: any multipliers give a true bound.

Under differential privacy only the first sum is made, once every node has spent its budget: what
agents told has its noise, the loss at an answer would have none. Then there is no certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor, inf, log10

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.problem import Certificate
from dtsvm.rounds import State
from dtsvm.rounds.certify import Tally, certify
from dtsvm.rounds.stopping import residual_tol
from dtsvm.runtime.agent.node.lanes import is_main
from dtsvm.runtime.agent.node.masks import MOST
from dtsvm.runtime.agent.node.ranges import are_within
from dtsvm.runtime.agent.node.summing import CERTIFICATE, Summing
from dtsvm.runtime.agent.node.team import Team
from dtsvm.runtime.agent.node.wave import Wave
from dtsvm.runtime.privacy.veil import Veil

__all__ = ["Answer", "Certifier"]

Floats = NDArray[np.float64]
BY_TASK = ("loss", "plus", "minus", "slant")
WIDE = ("pull", "room")
CLASSES = ("positive", "negative")
FIRST_MILESTONE = 64
ROUNDING = 1e-9
WORTH_WAITING = 5.0  # times what is allowed that the last gap was at most, to wait for the next
FOLLOW = 10.0  # times `round_seconds`, after which a neighbour that calls is followed in any case
NEAR = 4.0  # residuals, and links between them, by which the answer may differ from an agent's own


@dataclass(frozen=True)
class Answer:
    """What the network found, and how good that is.

    Parameters
    ----------
    common : ndarray of shape (p + 1,)
        Common part, the bias last.
    specific : dict of int to ndarray
        Specific part, by agent's slot here.
    certificate : Certificate or None
        Its objective, and a bound on what could be reached; None under differential privacy.
    """

    common: Floats
    specific: dict[int, Floats]
    certificate: Certificate | None


@dataclass
class _Look:
    """How far a team has come with its certificate."""

    phase: str = "average"
    next_look: float = 0.0
    milestone: int = FIRST_MILESTONE
    taken: int = 0  # the last sum that was used
    begun: int = 0  # when the last sums were, of one's own rounds
    follow_at: float = -inf  # when a neighbour that calls is followed, of the clock
    over: float = 1.0  # how many times too large the last gap was
    is_good: bool = False
    common: Floats = field(default_factory=lambda: np.zeros(0))
    specific: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    sums: dict[str, Floats] = field(default_factory=dict)
    mine: dict[str, Floats] = field(default_factory=dict)  # what the rows here added to them
    answer: Answer | None = None
    first: Answer | None = None  # that was good

    @property
    def soonest(self) -> float:
        """When it follows a neighbour that looks already: nobody can have it look all the time."""
        return 0.5 * (self.begun + self.next_look)


class Certifier:
    """Certifies what the agents of one node found, with all others.

    Parameters
    ----------
    state : State
        The node's agents.
    sums : Summing
        Its part in sums over the network.
    veil : Veil
        What stands between its rows and its messages.
    round_seconds : float
        For how long a message of a round is waited for.
    """

    def __init__(self, state: State, sums: Summing, veil: Veil, round_seconds: float = 1.0) -> None:
        self.state, self.sums, self.veil = state, sums, veil
        self._follow_seconds = FOLLOW * round_seconds
        self.teams: list[Team] = []
        self.n_lies = 0  # totals that no honest nodes could have
        self._looks: dict[str, _Look] = {}
        self.until = 0.0  # certificates are worth waiting for
        self.n_rounds = 0  # computed here since the network changed
        self._seen = -1  # sums as last looked at
        self._next_look = self._next_if_calm = 0.0  # when something is due
        self._follow_at = inf  # when somebody that calls is followed
        self.residual_tol = residual_tol(state.settings.tol)  # at which a certificate is worth it

    def begin(self, teams: list[Team]) -> None:
        """Begin anew after the network has changed."""
        self.teams = teams
        self.n_rounds, self._next_look, self._next_if_calm = 0, 0.0, 0.0
        self._looks = {team.group: _Look() for team in teams}

    @property
    def is_good(self) -> bool:
        """Whether everything here is certified to `tol`."""
        return all(look.is_good for look in self._looks.values())

    @property
    def gap(self) -> float | None:
        """The worst gap of the groups here; None while one has no certificate."""
        found = self._certificates()
        return max(one.gap for one in found) if found else None

    @property
    def objective(self) -> float | None:
        """The objective of all groups here; None while one has no certificate."""
        found = self._certificates()
        return sum(one.objective for one in found) if found else None

    def _certificates(self) -> list[Certificate]:
        """Return those of the groups that answer for a task; none while one is lacking."""
        answers = [look.answer for group, look in self._looks.items() if is_main(group)]
        found = [one.certificate for one in answers if one is not None]
        known = [one for one in found if one is not None]
        return known if len(known) == len(answers) else []

    def answer(self, agent: int) -> Answer | None:
        """Return what the network found for an agent here."""
        for team in self.teams:
            if agent in team.agents:
                return self._looks[team.group].answer
        return None

    def first(self, agent: int) -> Answer | None:
        """Return the first answer for an agent here that was good: the same at every node.

        All nodes are told the totals of all certificates, in the same order.
        """
        for team in self.teams:
            if agent in team.agents:
                return self._looks[team.group].first
        return None

    def doubt(self, agents: Sequence[int] | None = None) -> None:
        """Certify anew: something has moved, at these agents or anywhere."""
        for team in self.teams:
            if agents is None or not set(agents).isdisjoint(team.agents.tolist()):
                self._looks[team.group].is_good = False
        self._seen = -1

    @property
    def is_called(self) -> bool:
        """Whether a neighbour certifies anew what is certified here."""
        return any(
            self._looks[team.group].is_good and self._wave(team).is_called for team in self.teams
        )

    # Going on

    def look(self, is_calm: bool, until: float) -> None:
        """Begin to certify where it is time for that: all are calm, or just to show progress."""
        self.n_rounds += 1
        age = self.n_rounds
        due = self._next_if_calm if is_calm else self._next_look
        is_idle = self._seen == self.sums.changes and until < self._follow_at
        if age < due and is_idle and not self.veil.is_noisy:
            return  # nothing is due, and nothing has come
        self._seen = self.sums.changes  # what is begun here is looked at once more
        self.follow()
        for team in self.teams:
            look, wave = self._looks[team.group], self._wave(team)
            is_due = is_calm and age >= look.next_look
            is_milestone = age >= look.milestone
            is_late = wave.is_called and until >= look.follow_at  # others wait for this node
            if (look.is_good and not is_late) or wave.is_open or look.phase != "average":
                continue
            if not self.veil.may_end(team.agents):
                continue
            if is_due or is_milestone or is_late or (wave.is_called and age >= look.soonest):
                while look.milestone <= age:
                    look.milestone *= 2
                look.begun, look.is_good = age, False
                look.follow_at = until + self._follow_seconds
                if is_due and look.over <= WORTH_WAITING:
                    self.until = until
                self._add(wave, self._found(team))
        self.follow()
        bad = [look for look in self._looks.values() if not look.is_good]
        self._next_look = min((look.milestone for look in bad), default=inf)
        self._next_if_calm = min((self._next_look, *(look.next_look for look in bad)))
        waves = [(self._wave(team), self._looks[team.group]) for team in self.teams]
        called = [look.follow_at for wave, look in waves if wave.is_called and not wave.is_open]
        self._follow_at = min(called, default=inf)

    def n_idle(self, is_calm: bool) -> float:
        """For how many rounds nothing is due unless something comes, or all become calm."""
        is_idle = self._seen == self.sums.changes and not self.veil.is_noisy
        due = self._next_if_calm if is_calm else self._next_look
        return due - self.n_rounds - 1.0 if is_idle else 0.0

    def is_waiting(self, now: float) -> bool:
        """Whether certificates are being made that may be ready in time."""
        if now >= self.until:
            return False
        looks = [(self._wave(team), self._looks[team.group]) for team in self.teams]
        return any(wave.is_open or wave.done > look.taken for wave, look in looks)

    def follow(self) -> None:
        """Use the totals that have come."""
        for team in self.teams:
            wave, look = self._wave(team), self._looks[team.group]
            while wave.done > look.taken and wave.total is not None:
                look.taken = wave.done
                self._use(team, look, wave)

    def _use(self, team: Team, look: _Look, wave: Wave) -> None:
        total = wave.total
        assert total is not None
        if look.phase == "average":
            self._take_average(team, look, total)
            if self.veil.is_noisy:
                look.answer = self._answer(team, look, None)
                look.is_good = self.veil.may_end(team.agents)
                return
            look.phase = "tally"
            term = self._tally(team, look)
            look.mine = self._apart(team, term)
            self._add(wave, term)
            return
        if look.phase == "tally":
            look.sums = self._apart(team, total)
            look.sums |= {name: np.zeros((len(team.members), self._p1)) for name in CLASSES}
            look.phase = "classes"
            if self._needs_classes(team, look):
                self._add(wave, self._classes(team, look))
                return
        else:
            self._take_classes(team, look, total)
        look.phase = "average"
        self._judge(team, look)

    def _add(self, wave: Wave, term: Floats) -> None:
        wave.begin(wave.done + 1, np.clip(term, -MOST, MOST))
        self.sums.version += 1

    def _wave(self, team: Team) -> Wave:
        return self.sums.wave(CERTIFICATE, team)

    # What is summed

    @property
    def _p1(self) -> int:
        return self.state.n_features + 1

    def _found(self, team: Team) -> Floats:
        """Σ x of the agents here: the common part, then the specific one task by task."""
        out = np.zeros((1 + len(team.members), self._p1))
        for agent, t in zip(team.agents.tolist(), team.task_of, strict=True):
            common, specific = self.veil.told(self.state, agent)
            out[0] += common
            out[1 + t] += specific
        return out.ravel()

    def _take_average(self, team: Team, look: _Look, total: Floats) -> None:
        parts = total.reshape(1 + len(team.members), self._p1)
        look.common = parts[0] / sum(team.members)
        look.specific = parts[1:] / np.array(team.members)[:, None]

    def _tally(self, team: Team, look: _Look) -> Floats:
        """What the rows here contribute at the network's answer, and their total box."""
        sums = self._counted(team, look, has_room=True)
        each = [self.state.tables.boxes(np.array([a])) for a in team.agents.tolist()]
        box = sum(float(some.sum()) for some in each)
        parts = [sums[name].ravel() for name in (*BY_TASK, *WIDE)]
        return np.concatenate([*parts, [box]])

    def _counted(self, team: Team, look: _Look, has_room: bool) -> dict[str, Floats]:
        plan = self.state.plan
        sums = compiled.Sums(len(team.members), self._p1)
        sums.arrays["common"][:], sums.arrays["specific"][:] = look.common, look.specific
        for agent, t in zip(team.agents.tolist(), team.task_of, strict=True):
            compiled.tally_agent(agent, t, plan.rows, plan.agents, sums, has_room)
        found: dict[str, Floats] = sums.arrays
        return found

    def _apart(self, team: Team, term: Floats) -> dict[str, Floats]:
        """Take a term of the second sum apart, or its total."""
        n, p1 = len(team.members), self._p1
        narrow, wide = term[: 4 * n].reshape(4, n), term[4 * n : -1].reshape(2, n, p1)
        return dict(zip((*BY_TASK, *WIDE, "box"), (*narrow, *wide, term[-1:]), strict=True))

    def _needs_classes(self, team: Team, look: _Look) -> bool:
        """Whether λ can be made feasible only by scaling one class down: see `kernel.repair`."""
        uneven = look.sums["plus"] - look.sums["minus"]
        room = look.sums["room"][:, -1]
        if self._reg(team)[2] > 0.0:
            return not abs(uneven.sum()) <= room.sum()
        return not bool((np.abs(uneven) <= room).all())

    def _classes(self, team: Team, look: _Look) -> Floats:
        sums = self._counted(team, look, has_room=False)
        return np.concatenate([sums[name].ravel() for name in CLASSES])

    def _take_classes(self, team: Team, look: _Look, total: Floats) -> None:
        both = total.reshape(2, len(team.members), self._p1)
        look.sums |= dict(zip(CLASSES, both, strict=True))

    def _reg(self, team: Team) -> tuple[float, float, float]:
        one, other, bias = self.state.plan.reg[team.agents[0]].tolist()
        return one, other, bias

    # What follows

    def _judge(self, team: Team, look: _Look) -> None:
        """Say how good the answer is; if not good enough, wait the longer the worse it is.

        As `kernel.conclude` does, but that all of `tol` is allowed: a node's answer is the one that
        was certified, none is worse. All looked at the same time, so all will again.
        """
        share = np.array(team.members) / sum(team.members)
        tally = Tally(**{name: look.sums[name] for name in Tally._fields})
        found = certify(tally, look.common, look.specific, share, self._reg(team))
        if not self._is_possible(look, found):
            self.n_lies += 1
            look.over = inf
            look.next_look = look.begun + max(2.0, floor(0.2 * look.begun))
            return
        look.answer = self._answer(team, look, found)
        least = max(found.bound, 1e-6 * min(float(look.sums["box"][0]), team.weight), 1e-300)
        worst = (found.objective - found.bound) / least
        allowed = self.state.settings.tol
        look.is_good = worst <= allowed and self._is_near(team, look)
        if look.is_good and look.first is None:
            look.first = look.answer
        look.over = min(max(worst / allowed, 1.0), 100.0) if worst < inf else 100.0
        wait = floor((0.02 + 0.15 * log10(look.over)) * look.begun)
        look.next_look = look.begun + max(2.0, wait)

    def _answer(self, team: Team, look: _Look, found: Certificate | None) -> Answer:
        tasks = zip(team.agents.tolist(), team.task_of, strict=True)
        return Answer(look.common, {agent: look.specific[t] for agent, t in tasks}, found)

    def _is_possible(self, look: _Look, found: Certificate) -> bool:
        """Whether totals can be those of honest nodes: every share has its sign and its range.

        No bound on the least objective is above the objective.
        """
        sums, mine = look.sums, look.mine
        dual = sums["plus"].sum() + sums["minus"].sum()
        held = mine["plus"].sum() + mine["minus"].sum()
        room = float(mine["room"][:, -1].sum())
        others = float(sums["box"][0] - mine["box"][0])
        signed = ("loss", "plus", "minus", "box")
        return (
            all(are_within(sums[name], mine[name]) for name in signed)
            and are_within(dual, held, others)
            and are_within(sums["room"][:, -1].sum(), room, 0.5 * others)
            and found.objective - found.bound >= -ROUNDING * (1.0 + abs(found.objective))
            and bool(np.isfinite(look.common).all() and np.isfinite(look.specific).all())
        )

    def _is_near(self, team: Team, look: _Look) -> bool:
        """Whether the network's answer is what the agents here found, as far as calm ones differ.

        A term of the average cannot be seen; but agents that are calm are within `residual_tol` of
        their neighbours, so who adds something else moves the answer no further than that.
        """
        far = NEAR * len(team.nodes) * self.residual_tol
        for agent, t in zip(team.agents.tolist(), team.task_of, strict=True):
            x = self.state.estimate(agent)
            answer = np.stack([look.common, look.specific[t]])
            if np.linalg.norm(answer - x) > far * np.linalg.norm(x) + ROUNDING:
                return False
        return True
