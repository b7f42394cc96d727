"""Who carries a session's rounds: all nodes in this process, or spread over the ranks of MPI."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dtsvm.problem import Network, Settings
from dtsvm.rounds import Membership
from dtsvm.runtime import Memory

__all__ = ["ENGINES", "begin", "check_engine", "members_of", "run_by"]

ENGINES = ("memory", "mpi")


def check_engine(engine: str) -> None:
    """Refuse an engine that this installation cannot run."""
    if engine == "mpi":
        from dtsvm.runtime.mpi.ranks import world

        world()


def begin(
    engine: str,
    network: Network | None,
    settings: Settings,
    carrier: dict[str, Any],
    rows: tuple[int, DTypeLike, bool],
) -> tuple[Membership, Memory]:
    """Return an empty membership of this network and what runs its rounds.

    `rows` says how long they are, of which type, and whether links are personal.
    """
    members = members_of(engine, network, settings, rows)
    if network is not None:
        members.add_network(network)
    return members, run_by(engine)(members.state, **carrier)


def members_of(
    engine: str,
    network: Network | None,
    settings: Settings,
    rows: tuple[int, DTypeLike, bool],
) -> Membership:
    """Return a membership without nodes; those of the network are placed already."""
    n_features, dtype, personal = rows
    more = {} if engine == "memory" else {"make_state": _share(network)}
    return Membership(n_features, settings, personal=personal, dtype=dtype, **more)


def _share(network: Network | None) -> Any:
    from dtsvm.runtime.mpi.ranks import world
    from dtsvm.runtime.mpi.share import Share

    n_nodes, links = (len(network.nodes), network.links) if network else (0, np.zeros((0, 2)))
    return partial(Share, comm=world(), network=(n_nodes, links.astype(np.int64, copy=False)))


def run_by(engine: str) -> type[Memory]:
    """Return what runs rounds under an engine."""
    if engine == "memory":
        return Memory
    from dtsvm.runtime.mpi.engine import Mpi

    return Mpi
