"""The agents of a batch of lanes: entered, linked and given their rows, all at once.

Lanes ask for less than a session does: nobody comes or goes, and every owner trains by itself over
the same network. So who is there follows from who holds rows of an owner, relays from the nodes
that do, and the same nodes have the same relays.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import Network, Settings
from dtsvm.problem.reach import place_relays
from dtsvm.runtime import Memory
from dtsvm.svm.batch import Problem
from dtsvm.svm.company import Alone
from dtsvm.svm.engines import members_of, run_by

__all__ = ["Opened", "Opener"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Opened(NamedTuple):
    """What runs a batch's rounds, and its agents that hold rows.

    names : the owners, by the rank of a task. owner, slot : of every such agent.
    """

    memory: Memory
    names: Ints
    owner: Ints
    slot: Ints


class Opener:
    """Opens batches over one network: ½‖w‖² + C Σ hinge for every owner by itself.

    Parameters
    ----------
    network : Network
        Nodes and links.
    nodes : list
        Names of the nodes that rows are numbered by.
    tol : float
        When training ends.
    others : Alone
        Other processes with rows of other nodes.
    """

    def __init__(self, network: Network, nodes: list[Hashable], tol: float, others: Alone) -> None:
        self.network, self.others = network, others
        self.engine = "memory" if others.is_alone else "mpi"
        position = {node: i for i, node in enumerate(network.nodes)}
        self.place = np.array([position[node] for node in nodes], np.int64)
        self.settings = Settings(common_reg=2.0, specific_reg=2.0, tol=tol)
        self._between: dict[bytes, list[int]] = {}

    def __call__(self, problem: Problem, node: Ints, weight: Floats | None) -> Opened:
        """Open a batch; `node` is each row's."""
        X, _, at, y, owner, prices = problem
        owners = self.others.distinct(owner)
        index = np.zeros(len(prices), np.int64)
        index[owners] = np.arange(len(owners))
        where, what = self.place[node], index[owner]
        holds = np.zeros((len(self.network), len(owners)), bool)
        holds.flat[self.others.distinct(where * len(owners) + what)] = True
        settings = replace(self.settings, C=float(prices[owners[0]]))
        state = members_of(self.engine, self.network, settings, (X.shape[1], X.dtype, False)).state
        agent, whose = self._enter(state, holds)
        state.adopt_rows(X, y.astype(np.int8), agent[where, what].astype(np.int32), weight, at)
        state.price(whose[0], prices[owners[whose[1]]])
        state.pull_lightly()
        memory = run_by(self.engine)(state, n_threads=1)
        at, what = holds.nonzero()
        return Opened(memory, owners, owners[what], agent[at, what])

    def _enter(self, state: Any, holds: NDArray[np.bool_]) -> tuple[Ints, tuple[Ints, Ints]]:
        """Let holders and relays enter; return slots by node and owner, and all with their owner.

        A slot is −1 where nobody is.
        """
        is_there = holds.copy()
        for k, column in enumerate(holds.T):
            is_there[self._relays(column), k] = True
        at, what = is_there.nonzero()
        slots = state.add_agents(at, what, ~holds[at, what])
        agent = np.full(holds.shape, -1, np.int64)
        agent[at, what] = slots
        one, other = agent[self.network.links.T]
        both = (one >= 0) & (other >= 0)
        state.link(one[both], other[both], True, True)
        return agent, (slots, what)

    def _relays(self, holds: NDArray[np.bool_]) -> list[int]:
        """Return the nodes that join those who hold rows, where these do not hear each other."""
        key = holds.tobytes()
        if key not in self._between:
            nodes = self.network.nodes
            holders = [nodes[v] for v in np.flatnonzero(holds).tolist()]
            around = {node: list(self.network.neighbours(node)) for node in nodes}
            number = {node: v for v, node in enumerate(nodes)}
            placed = place_relays(around, {0: holders}, [[0]], False)
            self._between[key] = [number[node] for node, _ in placed]
        return self._between[key]
