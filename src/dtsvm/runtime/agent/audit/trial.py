"""All attacks on one node's rows at one level of privacy, each on a copy of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import Network, Privacy, Settings
from dtsvm.runtime.agent.audit.attacks import FEW, Findings, lie, listen, read_model, recovered
from dtsvm.runtime.agent.audit.room import VICTIM, Room

__all__ = ["ATTACKS", "Outcome", "Target", "around", "audit", "split"]

Floats = NDArray[np.float64]
Block = tuple[Floats, Floats]
CURIOUS = "curious"
ATTACKS: dict[str, Callable[..., Findings]] = {
    "a neighbour that lies": lie,
    "a neighbour that listens": listen,
    "a reader of the model": read_model,
}


@dataclass(frozen=True)
class Target:
    """What is attacked: rows of the copy, rows of the same kind that it lacks, and its place."""

    members: Block
    others: Block
    network: Network
    settings: Settings
    privacy: Privacy


@dataclass(frozen=True)
class Outcome:
    """How far one attack came."""

    attack: str
    n_rows: int
    n_read: int
    advantage: float
    rounds: int


def around(n_neighbours: int) -> Network:
    """Return a victim among so many neighbours, who are linked to each other; one is curious."""
    names = [VICTIM, CURIOUS, *(f"n{k}" for k in range(2, n_neighbours + 1))]
    return Network.complete(names)


def split(X: Floats, y: Floats, seed: int = 0) -> tuple[Block, Block]:
    """Return the rows of the copy, and as many that it lacks; all of them if they are few."""
    if len(y) < 2 * FEW:
        return (X, y), (X[:0], y[:0])
    order = np.random.default_rng(seed).permutation(len(y))
    mine, rest = order[: len(y) // 2], order[len(y) // 2 :]
    return (X[mine], y[mine]), (X[rest], y[rest])


def _is_pointless(attack: Callable[..., Findings], target: Target) -> bool:
    """Whether going on asking tells no more."""
    return attack is lie and target.privacy.level == "dp"


def audit(target: Target, seed: int = 0) -> list[Outcome]:
    """Run every attack against a fresh copy.

    Neighbours that are not curious hold rows that are drawn from the others, or from the members.
    """
    X, y = target.members if not len(target.others[1]) else target.others
    found = []
    for name, attack in ATTACKS.items():
        rng = np.random.default_rng(seed)

        def rows(_: Any, rng: np.random.Generator = rng) -> Block:
            drawn = rng.integers(len(y), size=max(len(target.members[1]), 5))
            return X[drawn] + 0.1 * X.std() * rng.normal(size=(len(drawn), X.shape[1])), y[drawn]

        room = Room(target.members, target.network, CURIOUS, target.settings, target.privacy, rows)
        # Once a budget is spent there is nothing new to hear.
        more = {"most_rounds": 30 * target.privacy.rounds} if _is_pointless(attack, target) else {}
        seen = attack(room, **more)
        n_read = recovered(seen, room.rows[0])
        advantage = seen.advantage(target.members, target.others)
        found.append(Outcome(name, len(target.members[1]), n_read, advantage, seen.rounds))
    return found
