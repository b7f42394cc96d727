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
    nodes = list(network.nodes) if network else []
    links = list(network or ())
    if engine == "memory":
        members = Membership(n_features, settings, personal=personal, dtype=dtype)
    else:
        members = Membership(
            n_features, settings, personal=personal, dtype=dtype, make_state=_share(nodes, links)
        )
    for node in nodes:
        members.add_node(node)
    for u, v in links:
        members.link(u, v)
    return members, _runtime(engine)(members.state, **carrier)


def _share(nodes: list[Any], links: list[tuple[Any, Any]]) -> Any:
    from dtsvm.runtime.mpi.ranks import world
    from dtsvm.runtime.mpi.share import Share

    number = {node: v for v, node in enumerate(nodes)}
    ends = np.array([(number[u], number[v]) for u, v in links], np.int64).reshape(-1, 2)
    return partial(Share, comm=world(), network=(len(nodes), ends))


def _runtime(engine: str) -> type[Memory]:
    if engine == "memory":
        return Memory
    from dtsvm.runtime.mpi.engine import Mpi

    return Mpi
