"""One rank's share: who is here is known at every rank, rows are at their node's rank alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dtsvm.errors import DataError
from dtsvm.problem.settings import Settings
from dtsvm.rounds import Elsewhere, State
from dtsvm.rounds.plan import MANY_ROWS, row_sums
from dtsvm.runtime.mpi.collect import gather_rows
from dtsvm.runtime.mpi.place import place_nodes
from dtsvm.runtime.mpi.ranks import maximum

__all__ = ["Share"]

Slots = NDArray[np.int64]
Floats = NDArray[np.float64]


class Share(State):
    """The agents of all ranks, with the rows of this one's nodes.

    Every rank is told of every change. Agents and links are known everywhere, so that every rank
    derives the same plan; their numbers are right where they are worked on, and everywhere once
    training has ended. Rows that a rank is given of another one's node are left aside.

    Parameters
    ----------
    n_features, settings, dtype
        As in `State`.
    comm : mpi4py communicator
        The ranks.
    network : (n_nodes, links)
        Nodes and links known from the beginning; who comes later goes to the rank with the fewest.
    """

    def __init__(
        self,
        n_features: int,
        settings: Settings,
        dtype: DTypeLike = np.float64,
        *,
        comm: Any,
        network: tuple[int, Slots],
    ) -> None:
        super().__init__(n_features, settings, dtype)
        self.comm = comm
        n_nodes, links = network
        self.rank_of_node = place_nodes(np.ones(n_nodes, np.int64), links, comm.size)

    # Where

    def ranks(self, agents: Any) -> Slots:
        """Return the ranks of agents."""
        nodes = self.tables.agents["node"][agents]
        self._place_newcomers(int(nodes.max(initial=-1)) + 1)
        return np.asarray(self.rank_of_node[nodes])

    def is_here(self, agent: int) -> bool:
        """Whether an agent is at this rank."""
        return bool(self.ranks(np.array([agent]))[0] == self.comm.rank)

    def _place_newcomers(self, n_nodes: int) -> None:
        while len(self.rank_of_node) < n_nodes:
            counts = np.bincount(self.rank_of_node, minlength=self.comm.size)
            self.rank_of_node = np.append(self.rank_of_node, counts.argmin())

    def place_by_rows(self, agent: Slots) -> None:
        """Place nodes by the agents of their rows, which come all at once.

        Where every rank was given all rows, nodes are placed to cut few links; where each was given
        rows of its own, a node is where its rows are.
        """
        agents, ends = self.tables.agents, self.tables.ends
        n_nodes = max(int(agents["node"][agents.used].max(initial=-1)) + 1, len(self.rank_of_node))
        mine = np.bincount(agents["node"][agent], minlength=n_nodes).astype(np.int64)
        most, ranks = self._tally(mine)
        across = ends.used[ends["is_across"][ends.used] > 0]
        links = np.stack([agents["node"][ends["owner"][across]], ends["other_node"][across]], 1)
        links = np.unique(np.sort(links, 1), axis=0)
        placed = place_nodes(most, links, self.comm.size)
        if (ranks > 1).any() and not self._are_equal(mine, most):
            _refuse_mixture(int(np.argmax(ranks > 1)))
        if (ranks <= 1).all():
            here = np.where(mine > 0, self.comm.rank, 0).astype(np.int64)
            placed = np.where(ranks > 0, self._add(here), placed)
        self.rank_of_node = placed

    def _tally(self, mine: Slots) -> tuple[Slots, Slots]:
        """The most rows that a rank has of every node, and how many ranks have any."""
        gathered = np.empty_like(mine)
        self.comm.Allreduce(mine, gathered, maximum())
        return gathered, self._add((mine > 0).astype(np.int64))

    def _add(self, mine: Slots) -> Slots:
        total = np.empty_like(mine)
        self.comm.Allreduce(mine, total)
        return total

    def _are_equal(self, mine: Slots, most: Slots) -> bool:
        is_other = np.array([not np.array_equal(mine, most)], np.int64)
        return not self._add(is_other)[0]

    # Changes

    def adopt_rows(
        self,
        X: Any,
        y: NDArray[Any],
        agent: NDArray[Any],
        weight: Floats | None = None,
        at: NDArray[Any] | None = None,
    ) -> None:
        """Take over the rows of this rank's nodes: see `Tables.adopt_rows`."""
        self.place_by_rows(agent)
        here = self.ranks(agent) == self.comm.rank
        if not here.all():
            at = np.flatnonzero(here) if at is None else at[here]
            y, agent = y[here], agent[here]
            weight = None if weight is None else weight[here]
        if len(y):
            super().adopt_rows(X, y, agent, weight, at)
        self._touch()

    def add_rows(self, agent: int, X: Any, y: Floats, weight: Floats | None = None) -> None:
        """Give an agent more rows, at its rank."""
        if self.is_here(agent):
            super().add_rows(agent, X, y, weight)
        self._touch()

    def share_rows(self, agent: int, at: Slots, y: Floats, weight: Floats | None = None) -> None:
        """Give an agent rows that lie at its rank already."""
        if self.is_here(agent):
            super().share_rows(agent, at, y, weight)
        self._touch()

    def drop_rows(self, agent: int, is_dropped: NDArray[np.bool_]) -> None:
        """Take rows away from an agent, at its rank."""
        if self.is_here(agent):
            super().drop_rows(agent, is_dropped)
        self._touch()

    def n_rows(self, agent: int) -> int:
        """How many rows an agent has, wherever it is."""
        root = int(self.ranks(np.array([agent]))[0])
        return int(self.comm.bcast(super().n_rows(agent), root=root))

    # What follows

    def prepare(self) -> None:
        """Derive what the last changes made stale, at every rank alike."""
        if self.is_stale:
            self._elsewhere = self._look_elsewhere()
        super().prepare()

    def _look_elsewhere(self) -> Elsewhere:
        """‖x‖² and box of rows elsewhere, added up if they are many: penalties begin with them."""
        used = self.tables.agents.used
        rank = self.ranks(used)
        own, order = used[rank == self.comm.rank], used[np.argsort(rank, kind="stable")]
        sums = np.zeros((self.tables.agents.capacity, 3))
        sums[order] = gather_rows(self.comm, row_sums(self.tables, own))
        if sums[:, 0].sum() > MANY_ROWS:
            return Elsewhere(row_sums=sums)
        norms = self.tables.rows["norms"][self.tables.slots_of(own)]
        both = gather_rows(self.comm, np.stack([norms, self.tables.boxes(own)], 1))
        stops = np.cumsum(sums[order, 0].astype(np.int64))
        here = set(own.tolist())
        parts = dict(zip(order.tolist(), np.split(both, stops)[:-1], strict=True))
        return Elsewhere(rows={a: part for a, part in parts.items() if a not in here})


def _refuse_mixture(node: int) -> None:
    """Every node's rows must be at one rank, or all rows at all."""
    raise DataError(
        f"Several ranks were given rows of one node (number {node}), but not the same rows of all "
        "nodes: give every rank all rows, or each node's rows to one rank."
    )
