"""Who carries a session's rounds: all nodes in this process, or spread over the ranks of MPI."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dtsvm.problem import Network, Settings
from dtsvm.rounds import Membership
from dtsvm.runtime import Memory

__all__ = ["ENGINES", "begin", "check_engine"]

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
    n_features, dtype, personal = rows
    if engine == "memory":
        members = Membership(n_features, settings, personal=personal, dtype=dtype)
    else:
        members = Membership(
            n_features, settings, personal=personal, dtype=dtype, make_state=_share(network)
        )
    if network is not None:
        members.add_network(network)
    return members, _runtime(engine)(members.state, **carrier)


def _share(network: Network | None) -> Any:
    from dtsvm.runtime.mpi.ranks import world
    from dtsvm.runtime.mpi.share import Share

    n_nodes, links = (len(network.nodes), network.links) if network else (0, np.zeros((0, 2)))
    return partial(Share, comm=world(), network=(n_nodes, links.astype(np.int64, copy=False)))


def _runtime(engine: str) -> type[Memory]:
    if engine == "memory":
        return Memory
    from dtsvm.runtime.mpi.engine import Mpi

    return Mpi
