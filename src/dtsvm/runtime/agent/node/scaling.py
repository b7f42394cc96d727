"""The features' mean square, exactly: a mixed bias is regularised by it, so all must know the same.

The roster has it to powers of two, which is good enough for penalties to begin from. One masked sum
a group, of Σ ‖x‖² and rows, gives it as memory has it. Nobody settles before.
"""

from __future__ import annotations

import numpy as np

from dtsvm.rounds import State
from dtsvm.runtime.agent.node.summing import SCALE, Summing
from dtsvm.runtime.agent.node.team import Team
from dtsvm.runtime.agent.node.team_sums import TeamSums

__all__ = ["Scaler"]

MOST_RATIO = 2.0**24  # to what the roster says, at the most
LEAST = 1e-12  # as in `rounds.plan`


class Scaler(TeamSums):
    """One node's part in finding the mean square.

    Parameters
    ----------
    state : State
        Its agents.
    sums : Summing
        Its part in sums over the network.
    is_on : bool
        Whether anything depends on it.
    """

    def __init__(self, state: State, sums: Summing, is_on: bool) -> None:
        super().__init__(state, sums, SCALE)
        self.is_on = is_on
        self._last: dict[int, float] = {}  # by agent

    def begin(self, teams: list[Team]) -> None:
        """Begin anew after the network has changed, with what was known before."""
        if not self.is_on:
            return
        self._teams, self._applied = teams, set()
        here = {agent for team in teams for agent in team.agents.tolist()}
        self._last = {agent: square for agent, square in self._last.items() if agent in here}
        if self._last:
            self.state.know_square(self._last)
        norms, slots = self.state.tables.rows["norms"], self.state.row_slots
        for team in teams:
            rows = np.concatenate([slots[agent] for agent in team.agents.tolist()])
            scaled = norms[rows].sum() / (team.square * self.state.n_features)
            term = np.array([min(scaled, MOST_RATIO * max(len(rows), 1)), len(rows)])
            self.sums.wave(SCALE, team).begin(1, term)

    def apply(self) -> None:
        """Go on with what the totals say."""
        for team, total in self._news():
            scaled, n_rows = total.tolist()
            ratio = scaled / n_rows if n_rows >= 1 else 1.0
            if not 1.0 / MOST_RATIO <= ratio <= MOST_RATIO:
                self.n_lies += 1
                ratio = 1.0
            square = max(ratio * team.square, LEAST)
            self._last |= dict.fromkeys(team.agents.tolist(), square)
        self.state.know_square(self._last)
