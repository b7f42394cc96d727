"""The agents of one group here, and with whom in the network they agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Team"]


@dataclass(frozen=True)
class Team:
    """The agents of one group at a node, and all with whom they must agree.

    Parameters
    ----------
    group : str
        The group's name.
    agents : ndarray of int
        Slots of the agents here.
    halves : frozenset of int
        Slots of their link ends to other nodes.
    nodes : tuple of str
        All nodes that must agree, this one too, in order.
    links : frozenset of (str, str)
        Between these nodes.
    members : tuple of int
        How many agents each task has in the network, for every task of the group.
    task_of : tuple of int
        Which of these tasks each agent here has.
    weight : float
        C times all rows, or somewhat more: the objective at zero.
    square : float
        Mean squared feature, roughly.
    """

    group: str
    agents: NDArray[np.int64]
    halves: frozenset[int]
    nodes: tuple[str, ...]
    links: frozenset[tuple[str, str]]
    members: tuple[int, ...]
    task_of: tuple[int, ...]
    weight: float = 0.0
    square: float = 1.0

    def neighbours(self, name: str) -> list[str]:
        """Return the nodes next to one."""
        return sorted({other for link in self.links if name in link for other in link} - {name})
