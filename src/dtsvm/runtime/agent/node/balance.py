"""One node's part in balancing penalties: measure its link ends, tally, decide with the others.

At checks (`rounds.agreement`) neighbours tell each other x and z instead of q, so that each end
sees the primal and the dual residual of `kernel.exchange`. A node that has measured all its ends
tallies them; once it has everybody's tally it knows the next level, and so do they. Until then it
waits, as long as for a message of a round: all change their penalties after the same round, to the
same bits as in memory. Whoever cannot wait goes on, and follows when it hears of the new level. In
the meantime the two ends of a link may pull differently: what was made with another penalty is not
used, as if it had been lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.rounds import State
from dtsvm.rounds.agreement import Decision, apply, measure
from dtsvm.runtime.agent.node.ledger import Ledger, Level, Tally

__all__ = ["Balancer", "Team"]

MOST_REPEATS = 8  # rounds for which x and z are told again to a neighbour that missed them


@dataclass(frozen=True)
class Team:
    """The agents of one group here, and with whom they balance."""

    group: str
    agents: NDArray[np.int64]  # slots
    halves: frozenset[int]  # slots of link ends to other nodes
    neighbours: frozenset[str]
    nodes: frozenset[str]  # all that must agree, this one too


class Balancer:
    """Balances the penalties of one node's links.

    Parameters
    ----------
    state : State
        The agents of the node.
    ledger : Ledger
        What the node knows of levels and tallies.
    """

    def __init__(self, state: State, ledger: Ledger) -> None:
        self.state, self.ledger = state, ledger
        self.is_on = "auto" in (state.settings.task_penalty, state.settings.node_penalty)
        self.teams: list[Team] = []
        self.check = 0  # the age of the check that is going on, or 0
        self._open: dict[str, int] = {}  # groups not decided yet, and the level they began from
        self._due = 0  # no check comes before this age
        self._until = 0.0
        self._measured: dict[int, int] = {}  # at which check an end was last measured
        self._applied: dict[str, Level] = {}

    def begin(self, teams: list[Team]) -> None:
        """Begin anew after the network has changed."""
        self.teams = teams
        self._due = 0
        self.close()
        self._measured.clear()
        self._applied.clear()
        for team in teams:
            self._set(team)

    def close(self) -> None:
        """Let a check be; what is decided elsewhere will be heard."""
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

    def wants(self, neighbour: str, age: int) -> bool:
        """Whether a neighbour still needs x and z for the coming check."""
        if self.coming(age) != self.check:
            return True
        if age > self.check + MOST_REPEATS:
            return False
        return any(
            not self.ledger.has_tallied(team.group, neighbour, self.check)
            for team in self._undecided()
            if neighbour in team.neighbours
        )

    def note(self, halves: list[int], check: int) -> None:
        """Remember that these ends have been measured."""
        self._measured.update(dict.fromkeys(halves, check))

    def open(self, check: int, until: float) -> None:
        """Begin a check; it is worth waiting for until then."""
        self.check, self._until = check, until
        self._open = {team.group: self.ledger.level(team.group).decided for team in self.teams}

    def tally(self, node: str, incarnation: int, round_: int) -> None:
        """Tally what has been measured, and decide what can be decided."""
        for team in self._undecided():
            is_measured = all(self._measured.get(half) == self.check for half in team.halves)
            if is_measured and not self.ledger.has_tallied(team.group, node, self.check):
                found = measure(self.state, self._set_of(team))
                if found is None:
                    del self._open[team.group]  # nobody to agree with
                    continue
                numbers = tuple(found[0].tolist())
                decided = self.ledger.level(team.group).decided
                tally = Tally(team.group, node, incarnation, round_, decided, self.check, numbers)
                self.ledger.merge({}, [tally])
            start = float(self.state.plan.start[team.agents[0], 0])
            self.ledger.decide(team.group, sorted(team.nodes), self.check, start)
        if not self._undecided():
            self.close()

    def is_waiting(self, now: float) -> bool:
        """Whether a check is going on that may yet be decided in time."""
        return bool(self._open) and now < self._until and bool(self._undecided())

    def _undecided(self) -> list[Team]:
        for team in self.teams:
            before = self._open.get(team.group)
            if before is not None and self.ledger.level(team.group).decided > before:
                del self._open[team.group]
        return [team for team in self.teams if team.group in self._open]

    # What was decided

    @property
    def has_news(self) -> bool:
        """Whether a level is known that has not taken effect here."""
        return any(
            self.ledger.level(team.group) != self._applied[team.group] for team in self.teams
        )

    def apply(self) -> None:
        """Leap where that was decided, and write the levels known into the agents.

        `State.pull_anew` lets them take effect.
        """
        for team in self.teams:
            level = self.ledger.level(team.group)
            is_next = level.decided == self._applied[team.group].decided + 1
            if level.leap and is_next:
                decision = Decision(level[1:4], level.leap)
                apply(self.state, self._set_of(team), decision)
            self._set(team)

    def _set_of(self, team: Team) -> int:
        """Which of the plan's sets a team's agents are."""
        return self.state.plan.set_of(int(team.agents[0]))

    def _set(self, team: Team) -> None:
        level = self._applied[team.group] = self.ledger.level(team.group)
        self.state.iterates.set_level(team.agents, np.array(level[1:4]))
