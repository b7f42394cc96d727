"""Where rows lie and who trains together: over a network, or pooled on one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dtsvm.errors import DataError, NetworkError, ParameterError, did_you_mean
from dtsvm.problem import Network
from dtsvm.problem.settings import refusal
from dtsvm.svm.base import ConsensusSVM, Levels
from dtsvm.svm.session import Session

__all__ = ["Central", "NamedSession", "Networked", "chosen_groups"]


class Networked(ConsensusSVM):
    """Those that run over a network."""

    def _place(self, where: Levels, has_nodes: bool) -> tuple[Network, Levels]:
        nodes, index = where
        network = self.network
        if isinstance(network, str):
            network = Network.named(network, nodes)
        elif network is None:
            network = Network.complete(nodes)
        elif not isinstance(network, Network):
            raise refusal(
                type(self).__name__, "network", "a Network, the name of a shape or None", network
            )
        if not has_nodes:
            return network, ([network.nodes[0]], index)
        strange = [node for node in nodes if node not in network]
        if strange:
            raise NetworkError(
                f"Node {strange[0]!r} has rows, but is not in the network. "
                f"{did_you_mean(strange[0], network.nodes)}"
            )
        return network, where

    def _make(
        self, network: Network, common_reg: float, specific_reg: float, **more: Any
    ) -> Session:
        return NamedSession(
            type(self).__name__, network, C=self.C, common_reg=common_reg,
            specific_reg=specific_reg, node_penalty=self.node_penalty,
            relaxation=self.relaxation, local=self.local, tol=self.tol, relays=self.relays,
            n_jobs=self.n_jobs, engine=self.engine, **more,
        )  # fmt: skip


class Central(ConsensusSVM):
    """Those that pool the rows on one node; `node` is accepted and changes nothing."""

    def _place(self, where: Levels, has_nodes: bool) -> tuple[Network, Levels]:
        return Network([0], []), ([0], np.zeros_like(where[1]))

    def _positions(
        self, wanted: ArrayLike | None, n_rows: int, name: str, known: list[Any]
    ) -> NDArray[np.int64]:
        return super()._positions(None if name == "node" else wanted, n_rows, name, known)


class NamedSession(Session):
    """A session whose refusals speak of the estimator that opened it."""

    def __init__(self, owner: str, network: Network, **options: Any) -> None:
        self._owner = owner
        super().__init__(network, **options)


def chosen_groups(transfer: Any, tasks: list[Any]) -> list[list[Any]]:
    """Return the groups of tasks that `transfer` asks for."""
    if transfer is True:
        return [tasks]
    if transfer is False:
        return [[task] for task in tasks]
    if isinstance(transfer, str) or not isinstance(transfer, Sequence):
        raise ParameterError(
            f"The 'transfer' parameter must be True, False or a list of groups of tasks. "
            f"Got {transfer!r} instead."
        )
    groups = [list(group) for group in transfer]
    named = [task for group in groups for task in group]
    for task in named:
        if task not in tasks:
            raise DataError(
                f"transfer names task {task!r}, which has no rows. {did_you_mean(task, tasks)}"
            )
        if named.count(task) > 1:
            raise ParameterError(f"transfer names task {task!r} twice; a task is in one group.")
    return groups + [[task] for task in tasks if task not in named]
