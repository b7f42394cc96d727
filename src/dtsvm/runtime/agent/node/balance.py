"""One node's part in balancing penalties: measure its link ends, add up, decide as all others do.

At checks (`rounds.agreement`) neighbours tell each other x and z instead of q, so that each end
sees the primal and the dual residual of `kernel.exchange`. A node that has measured all its ends
adds what they show to the sum over the network, with its level; whoever has the total decides the
same next level. Until then it waits, as long as for a message of a round: all change their
penalties after the same round. Whoever cannot wait goes on, and follows when the total has come. In
the meantime the two ends of a link may pull differently: what was made with another penalty is not
used, as if it had been lost.

After a change the first sum, number 1, brings the levels alone: nodes that have just met go on with
the geometric mean of theirs, newcomers with that of the others.

A node that had to begin anew leaves its neighbours with multipliers that answer nothing any more.
Around a circle of links such a rest never fades: it adds up to nothing at any agent, and yet
penalties are made after it. So whoever began anew, or finds more on its links than all rows could
have put there, says so in the sum, and all begin anew after the same check; once after a change of
the network. So they do if their rows together lose more than they would at zero: wherever a liar
has led them, the way from zero is shorter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.rounds import State
from dtsvm.rounds.agreement import N_SHOWN, apply, decide, measure
from dtsvm.runtime.agent.node.bounds import Bounds
from dtsvm.runtime.agent.node.ends import Ends
from dtsvm.runtime.agent.node.masks import MOST
from dtsvm.runtime.agent.node.ranges import LEVEL_BANDS, are_counts, are_within, is_gram
from dtsvm.runtime.agent.node.summing import BALANCE, Summing
from dtsvm.runtime.agent.node.team import Team
from dtsvm.runtime.agent.node.wave import Wave

__all__ = ["Balancer"]

Floats = NDArray[np.float64]
MOST_REPEATS = 8  # rounds for which x and z are told again to a neighbour that missed them
N_PRODUCTS = int(compiled.constants()["N_PRODUCTS"])
N_LEVEL = 4  # agents that have a level, and Σ log of its three factors
LENGTH = N_LEVEL + 1 + N_SHOWN + N_PRODUCTS + 2  # last: how bad, and whether to begin anew
FLOW = 4  # the place of squared multipliers in what links show
SAME = 1e-9  # levels that differ by less are one
NEWER = 1.01  # a level that differs by more is another one


class Balancer:
    """Balances the penalties of one node's links.

    Parameters
    ----------
    name : str
        The node.
    state : State
        Its agents.
    sums : Summing
        Its part in sums over the network.
    ends : Ends
        The ends of its links.
    """

    def __init__(self, name: str, state: State, sums: Summing, ends: Ends) -> None:
        self.name, self.state, self.sums, self.ends = name, state, sums, ends
        self.is_on = "auto" in (state.settings.task_penalty, state.settings.node_penalty)
        self.teams: list[Team] = []
        self.check = 0  # the age of the check that is going on, or 0
        self.n_lies = 0  # totals that no honest nodes could have
        self.remembered: dict[str, Floats] = {}  # levels from a checkpoint, by group
        self._has_level: set[int] = set()  # agents whose level was decided, not begun with
        self._open: set[str] = set()  # groups not decided yet
        self._due = 0  # no check comes before this age
        self.until = 0.0  # a check is worth waiting for
        self._measured: dict[int, int] = {}  # at which check an end was last measured
        self._applied: dict[str, int] = {}  # sums that took effect, by group
        self._mine: dict[tuple[str, int], Floats] = {}  # this node's terms, by group and sum
        self._doubtful: set[int] = set()  # agents whose links carry what answers nothing any more
        self._renewed: set[str] = set()  # groups that began anew since the network changed
        self.on_renewal: Callable[[Team], None] = lambda team: None

    def begin(self, teams: list[Team]) -> None:
        """Begin anew after the network has changed."""
        self.teams = teams
        self._due = 0
        self.close()
        self._measured.clear()
        self._mine.clear()
        self._renewed.clear()
        self._applied = dict.fromkeys((team.group for team in teams), 0)
        for team in teams:
            if team.group in self.remembered:
                self._set(team, self.remembered.pop(team.group))
            if self.is_on and len(team.nodes) > 1:
                self._add(team, 1, None)

    def close(self) -> None:
        """Let a check be; what is decided will be heard."""
        self.check = 0
        self._open.clear()

    # A round

    def coming(self, age: int) -> int:
        """Return the check for which ends are measured in a round that ends at this age, or 0.

        A node that has been away may skip rounds, and so meet a check late.
        """
        if age < self._due:
            return self.check
        is_warm = self.state.is_warm
        last = compiled.last_check(age, is_warm) if self.is_on else 0
        if last > compiled.last_check(self.state.age, is_warm):
            return last
        self._due = compiled.next_check(age, is_warm)
        return self.check

    @property
    def next_age(self) -> int:
        """Before which no check is measured for."""
        return 0 if self.check else self._due

    def wants(self, neighbour: str, age: int) -> bool:
        """Whether a neighbour still needs x and z for the coming check."""
        if self.coming(age) != self.check:
            return True
        if age > self.check + MOST_REPEATS:
            return False
        return any(
            self._wave(team).works_at(neighbour) < self.check
            for team in self._undecided()
            if neighbour in team.neighbours(self.name)
        )

    def note(self, halves: list[int], check: int) -> None:
        """Remember that these ends have been measured."""
        self._measured.update(dict.fromkeys(halves, check))

    def open(self, check: int, until: float) -> None:
        """Begin a check; it is worth waiting for until then."""
        self.check, self.until = check, until
        self._open = {team.group for team in self.teams}

    def tally(self) -> None:
        """Add up what has been measured, where all ends have been."""
        for team in self._undecided():
            is_measured = all(self._measured.get(half) == self.check for half in team.halves)
            wave = self._wave(team)
            is_behind = wave.done > self._applied[team.group]  # another level is to be measured at
            is_early = wave.wanted == 1 > wave.done  # all must have one level first
            is_known = max(wave.wanted, wave.done) >= self.check
            if is_behind or is_early or is_known or not is_measured:
                continue
            found = measure(self.state, self._set_of(team))
            if found is None:
                self._open.discard(team.group)  # nobody to agree with
                continue
            bounds = Bounds.of(team, self.state.settings, self.state.n_features)
            if not bounds.allow_flow(found[0][FLOW], len(team.halves)):
                self.doubt(team.agents.tolist())
            self._add(team, self.check, found[0])
            self.sums.version += 1
        if not self._undecided():
            self.close()

    def doubt(self, agents: list[int]) -> None:
        """Have all begin anew with these agents at the next check."""
        self._doubtful.update(agents)

    def is_waiting(self, now: float) -> bool:
        """Whether a check is going on that may yet be decided in time."""
        return bool(self._open) and now < self.until and bool(self._undecided())

    def _undecided(self) -> list[Team]:
        for team in self.teams:
            if self._wave(team).done >= self.check:
                self._open.discard(team.group)
        return [team for team in self.teams if team.group in self._open]

    # What is summed

    def _add(self, team: Team, number: int, found: Floats | None) -> None:
        self._mine[team.group, number] = term = self._term(team, found)
        self._wave(team).begin(number, term)

    def _term(self, team: Team, found: Floats | None) -> Floats:
        """Level, whether snapshots were taken, what links show, products of moves, doubts."""
        term = np.zeros(LENGTH)
        known = [a for a in team.agents.tolist() if a in self._has_level]
        if known:
            term[0] = len(known)
            term[1:N_LEVEL] = np.log(self._levels(known)).sum(axis=0)
        if found is not None:
            term[-2] = np.clip(self._loss_beyond_zero(team), -MOST, MOST)
            term[-1] = not self._doubtful.isdisjoint(team.agents.tolist())
            term[N_LEVEL] = len(found) > N_SHOWN
            term[N_LEVEL + 1 : N_LEVEL + 1 + len(found)] = np.clip(found, -MOST, MOST)
        return term

    def _loss_beyond_zero(self, team: Team) -> float:
        """Σ box · hinge of the rows here at their own agents' estimates, less Σ box.

        Nothing where rows may be looked at by accounted noise alone.
        """
        if self.ends.veil.is_noisy:
            return 0.0
        plan, beyond = self.state.plan, 0.0
        for agent in team.agents.tolist():
            sums = compiled.Sums(1, self.state.n_features + 1)
            sums.arrays["common"][:], sums.arrays["specific"][0] = self.state.estimate(agent)
            compiled.tally_agent(agent, 0, plan.rows, plan.agents, sums, False)
            box = self.state.tables.boxes(np.array([agent])).sum()
            beyond += float(sums.arrays["loss"][0] - box)
        return beyond

    def _levels(self, agents: list[int]) -> Floats:
        return np.asarray(self.state.tables.agents["level"][agents])

    def _is_possible(self, total: Floats, mine: Floats, team: Team) -> bool:
        """Whether a total can be one of honest nodes, and so can what is not of this one."""
        n = float(total[0] - mine[0])
        counts = np.array([0, N_LEVEL, -1])
        members, nodes = sum(team.members) - len(team.agents), len(team.nodes) - 1
        least, most = n * LEVEL_BANDS.T
        shown = slice(N_LEVEL + 1, N_LEVEL + 1 + N_SHOWN)
        return (
            are_counts(total[counts], mine[counts], np.array([members, nodes, nodes]))
            and are_within(total[1:N_LEVEL], mine[1:N_LEVEL] + least, most - least)
            and bool((total[shown] >= 0.0).all())
            and are_within(total[shown], mine[shown], nodes * MOST)
            and is_gram(total[shown.stop : -2], mine[shown.stop : -2])
        )

    # What was decided

    @property
    def has_news(self) -> bool:
        """Whether there is a total that has not taken effect here."""
        return any(self._wave(team).done > self._applied[team.group] for team in self.teams)

    def apply(self) -> bool:
        """Leap and set levels as the totals say; return whether anything changed.

        `State.pull_anew` lets them take effect.
        """
        has_changed = False
        for team in self.teams:
            wave = self._wave(team)
            if wave.done > self._applied[team.group] and wave.total is not None:
                self._applied[team.group] = wave.done
                mine = self._mine[team.group, wave.done]
                if not self._is_possible(wave.total, mine, team):
                    self.n_lies += 1
                elif self._follow(team, wave.done, wave.total):
                    has_changed = True
                    self.note(list(team.halves), 0)  # they were measured at another level
        return has_changed

    def _follow(self, team: Team, check: int, total: Floats) -> bool:
        level = mine = self._levels(team.agents[:1].tolist())[0]
        n = total[0]
        if n > 0:
            mean = np.exp(total[1:N_LEVEL] / n)
            level = mine if (np.abs(mean - mine) <= SAME * mine).all() else mean
        if check == 1:
            if n > 0:
                self._set(team, level)
            return bool((level != mine).any())
        if total[-2:].max() > 0 and team.group not in self._renewed:
            self._renew(team)
            return True
        has_products = total[N_LEVEL] == len(team.nodes)
        end = LENGTH - 2 if has_products else N_LEVEL + 1 + N_SHOWN
        start = float(self.state.plan.start[team.agents[0], 0])
        decision = decide(level, np.ascontiguousarray(total[N_LEVEL + 1 : end]), start, check)
        apply(self.state, self._set_of(team), decision)
        self._set(team, np.array(decision.level))
        return True

    def _renew(self, team: Team) -> None:
        """Begin anew, at another level than now: so nothing told before is taken in after it."""
        agents = team.agents.tolist()
        is_new = abs(self._levels(agents[:1])[0][0] - 1.0) > NEWER - 1.0
        self.ends.begin_anew(agents)
        self.on_renewal(team)
        self._set(team, np.array([1.0 if is_new else NEWER * NEWER, 1.0, 1.0]))
        self._doubtful.difference_update(agents)
        self._renewed.add(team.group)

    def _set_of(self, team: Team) -> int:
        """Which of the plan's sets a team's agents are."""
        return self.state.plan.set_of(int(team.agents[0]))

    def _set(self, team: Team, level: Floats) -> None:
        self.state.iterates.set_level(team.agents, level)
        self._has_level.update(team.agents.tolist())

    def _wave(self, team: Team) -> Wave:
        return self.sums.wave(BALANCE, team)

    def forget(self, agent: int) -> None:
        """Know no more of an agent that has left."""
        self._has_level.discard(agent)
        self._doubtful.discard(agent)

    def levels(self) -> dict[str, list[float]]:
        """Return the levels that were decided, by group."""
        return {
            team.group: self._levels(team.agents[:1].tolist())[0].tolist()
            for team in self.teams
            if int(team.agents[0]) in self._has_level
        }
