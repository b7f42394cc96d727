"""One sum a group whenever the network changes, whose total takes effect once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dtsvm.rounds import State
from dtsvm.runtime.agent.node.summing import Summing
from dtsvm.runtime.agent.node.team import Team

__all__ = ["TeamSums"]


class TeamSums:
    """One node's part in such sums.

    Parameters
    ----------
    state : State
        Its agents.
    sums : Summing
        Its part in sums over the network.
    kind : str
        What is summed, as `summing` names it.
    """

    def __init__(self, state: State, sums: Summing, kind: str) -> None:
        self.state, self.sums, self.kind = state, sums, kind
        self.n_lies = 0  # totals that no honest nodes could have
        self._teams: list[Team] = []  # that have something to add up
        self._applied: set[str] = set()

    @property
    def is_known(self) -> bool:
        """Whether every total has taken effect."""
        return len(self._applied) == len(self._teams)

    @property
    def has_news(self) -> bool:
        """Whether there is a total that has not taken effect."""
        return any(
            team.group not in self._applied and self.sums.wave(self.kind, team).done
            for team in self._teams
        )

    def _news(self) -> Iterator[tuple[Team, NDArray[np.float64]]]:
        """Give the totals that have come, each once."""
        for team in self._teams:
            total = self.sums.wave(self.kind, team).total
            if team.group not in self._applied and total is not None:
                self._applied.add(team.group)
                yield team, total
