"""What honest links carry, followed by somebody who sees only what nodes at their ends found.

A link's two ends move by z[a→b] ← (1 − κ) z[a→b] + κ (2ρ x_b − z[b→a]) and the other way round. So
who knows x of both nodes from some round on knows both z from then on, up to where they were: of
that start z[a→b] + z[b→a] dies out as (1 − 2κ)ᵗ, z[a→b] − z[b→a] stays as it was, a constant that
cancels in differences. And a node none of whose multipliers can move, because its bias is pushed
far below all its rows, is a linear map of what its links carry, x = U⁻¹(Σ z + constant): nobody
has to see it to know how it moves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dtsvm.runtime.agent.audit.room import Room

__all__ = ["Away", "Shadow"]

Floats = NDArray[np.float64]
Away = dict[tuple[str, str], Floats]


class Shadow:
    """How far the z of honest links are from where they were when this began.

    Parameters
    ----------
    room : Room
        Where the links are; only what everybody is told is used.
    known : list of str, optional
        Follow links between these nodes alone; all honest ones by default.
    """

    def __init__(self, room: Room, known: list[str] | None = None) -> None:
        links = room.honest_links()
        links = [pair for pair in links if known is None or set(pair) <= set(known)]
        self.kappa = room.settings.relaxation
        self._penalty = {pair: room.penalty(*pair) for pair in links}
        self._gain = {name: room.gain(name) for pair in links for name in pair}
        self._away = {pair: np.zeros((2, room.victim.n_features + 1)) for pair in links}
        self._empty = np.zeros((2, room.victim.n_features + 1))
        self.given: dict[str, Floats] = {}  # z on links to the curious, as far as it has moved

    def carried(self, name: str, away: Away | None = None) -> Floats:
        """Return Σ z over a node's honest links."""
        chosen = self._away if away is None else away
        return sum((z for (one, _), z in chosen.items() if one == name), self._empty)

    def _found(self, name: str) -> Floats:
        """Return x of a node that is linear."""
        whole = self.carried(name) + self.given.get(name, self._empty)
        return np.asarray(self._gain[name] * whole)

    def highest(self, but: str) -> float:
        """Return how far the bias of any node has come up, `but` for one."""
        up = [float(self._found(name)[:, -1].sum()) for name in self._gain if name != but]
        return max(up, default=-np.inf)

    def largest(self) -> float:
        """Return the largest x that what links carry could hold against what holds it now."""
        sizes = [np.abs(z / self._penalty[pair]).max() for pair, z in self._away.items()]
        return float(max(sizes, default=0.0))

    def after(self, seen: dict[str, Floats]) -> Away:
        """Return the z after a round in which these nodes found these x; all others are linear."""
        x = {name: seen[name] if name in seen else self._found(name) for name in self._gain}
        told = {p: 2.0 * rho * x[p[0]] - self._away[p] for p, rho in self._penalty.items()}
        return {
            (a, b): (1.0 - self.kappa) * z + self.kappa * told[b, a]
            for (a, b), z in self._away.items()
        }

    def advance(self, seen: dict[str, Floats]) -> None:
        """Go on by a round."""
        self._away = self.after(seen)
