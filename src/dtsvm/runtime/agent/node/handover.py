"""Hand-over: who leaves politely leaves what its links carried, and nobody has to begin anew.

The neighbours keep it as offsets of their own inflow, see `rounds.iterates`. Until then the network
stands where it stood with the one that left. Then one masked sum a group adds up all offsets, and
every agent takes its share of the total off its own: so they sum to zero and change how fast the
optimum is reached, never where it is. The sum is made anew whenever the network changes, so that
what a node forgot, lost or forged does not stay.

What others did not say themselves is never kept: who dies, or is barred, leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dtsvm.rounds import State
from dtsvm.runtime.agent.node.bounds import Bounds
from dtsvm.runtime.agent.node.summing import HANDOVER, Summing
from dtsvm.runtime.agent.node.team import Team
from dtsvm.runtime.agent.node.team_sums import TeamSums

__all__ = ["Handover"]

Floats = NDArray[np.float64]


class Handover(TeamSums):
    """One node's part in keeping what others left behind.

    Parameters
    ----------
    state : State
        Its agents.
    sums : Summing
        Its part in sums over the network.
    """

    def __init__(self, state: State, sums: Summing) -> None:
        super().__init__(state, sums, HANDOVER)

    def begin(self, teams: list[Team], is_needed: bool) -> None:
        """Begin anew after the network has changed; `is_needed`, as all see: somebody parted."""
        self._teams, self._applied = (teams if is_needed else []), set()
        if not is_needed:
            self._drop(agent for team in teams for agent in team.agents.tolist())
        for team in self._teams:
            self.sums.wave(HANDOVER, team).begin(1, self._term(team))

    def _term(self, team: Team) -> Floats:
        """Offsets here: of the common part, then of the specific part of every task."""
        bounds = Bounds.of(team, self.state.settings, self.state.n_features)
        term = np.zeros((1 + len(team.members), self.state.n_features + 1))
        for agent, task in zip(team.agents.tolist(), team.task_of, strict=True):
            offset = self.state.offset(agent)
            if not bounds.allow_offset(offset):
                self._drop([agent])
                continue
            term[0] += offset[0]
            term[1 + task] += offset[1]
        return term.ravel()

    def apply(self) -> None:
        """Take every agent's share of the totals off its offset."""
        for team, total in self._news():
            rest = total.reshape(1 + len(team.members), -1)
            agents, n = team.agents.tolist(), sum(team.members)
            bounds = Bounds.of(team, self.state.settings, self.state.n_features)
            if not bounds.allow_offset(rest / n):
                self.n_lies += 1
                self._drop(agents)
                continue
            for agent, task in zip(agents, team.task_of, strict=True):
                share = np.stack([rest[0] / n, rest[1 + task] / team.members[task]])
                self.state.set_offset(agent, self.state.offset(agent) - share)

    def renew(self, team: Team) -> None:
        """Have no offsets: all begin anew after the same check."""
        self._drop(team.agents.tolist())
        if team in self._teams:
            self._applied.add(team.group)

    def _drop(self, agents: Iterable[int]) -> None:
        for agent in agents:
            if self.state.offset(agent).any():
                self.state.set_offset(agent, np.zeros((2, self.state.n_features + 1)))
