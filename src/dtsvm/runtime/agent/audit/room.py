"""A copy of one node among neighbours that listen or lie, all in one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import NetworkError
from dtsvm.problem import Network, Privacy, Settings
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.pattern import Letter
from dtsvm.runtime.privacy.veil import Veil, make_veil

__all__ = ["TASK", "VICTIM", "Barred", "Curious", "Room"]

Floats = NDArray[np.float64]
Block = tuple[Floats, Floats]
VICTIM, TASK = "victim", "task"
MOST_HELLOS = 100
SECONDS = 0.01  # of the room's own clock, a round


class Barred(NetworkError):
    """The victim hears the curious neighbour no more: its values were too odd."""


class Curious(Node):
    """A neighbour that keeps what the victim tells it, and may answer with what it likes.

    It holds no rows. `choose` is called in every round with a neighbour's name and z[neighbour→me],
    which it knows because it sent all that z is made of, and returns the q to send; without it, it
    is honest.
    """

    choose: Callable[[str, Floats], Floats] | None = None

    def watch(self) -> None:
        """Begin to keep what it sees."""
        self.seen: list[dict[str, Floats]] = []  # x of its neighbours, round by round
        self.pulled: list[Floats] = []  # z[victim→me] under it
        self.theirs = {name: np.zeros((2, self.n_features + 1)) for name in self.neighbours}

    def _is_allowed(self, name: str, news: Letter, now: float) -> bool:
        return True  # it wants to hear everything

    def _check_estimates(self) -> None:
        """Keep whatever its own estimates have become."""

    def solve(self) -> None:
        """Answer as it should, or with the numbers it chose."""
        super().solve()
        if self.choose is not None:
            for name, i in self._places().items():
                self.ends.told[i] = self.choose(name, self.theirs[name])

    def finish(self, now: float) -> None:
        """Take in what was heard, and keep it."""
        places = self._places()
        said = {name: np.array(self.ends.told[i]) for name, i in places.items()}
        if not self.state.is_stale:
            seen = {name: self._read(name, i) for name, i in places.items()}
            self.seen.append({name: x for name, x in seen.items() if x is not None})
            self.pulled.append(self.theirs[VICTIM])
        super().finish(now)
        kappa = self.settings.relaxation
        for name, q in said.items():
            self.theirs[name] = (1.0 - kappa) * self.theirs[name] + kappa * q

    def _read(self, name: str, i: int) -> Floats | None:
        """Return a neighbour's x, which its q = 2ρx − z shows to who knows z."""
        letter = self.mail[name].letters.get(self.round)
        told = letter.values.get((TASK, TASK)) if letter is not None else None
        if told is None:
            return None
        if told.check:
            raise NetworkError("An audit holds penalties; this node balances them.")
        penalty = self.state.tables.ends["penalty"][self.ends.ends[i].half]
        rho = np.repeat(penalty, [self.n_features, 1])
        return np.asarray((told.numbers + self.theirs[name]) / (2.0 * rho))

    def _places(self) -> dict[str, int]:
        """Where the links to its neighbours are."""
        found = {end.key[1]: i for i, end in enumerate(self.ends.ends)}
        if VICTIM not in found:
            raise Barred(f"Node {VICTIM} is linked to {self.name} no more.")
        return found


class Room:
    """The copy, its neighbours, and a carrier that loses nothing.

    Parameters
    ----------
    rows : tuple of (X, y)
        The victim's rows; y is ±1.
    network : Network
        Who is linked; one node is the victim.
    curious : str
        Which neighbour is curious. All others hold rows from `others`, or none.
    settings : Settings
        As the node has them; penalties are held where they would begin.
    privacy : Privacy
        The level to be tried.
    others : callable, optional
        Called with a node's name; returns its rows.
    allies : sequence of str
        Other neighbours of the victim who hold no rows and pool what they know with the curious.
    """

    def __init__(
        self, rows: Block, network: Network, curious: str, settings: Settings, privacy: Privacy,
        others: Callable[[Any], Block] | None = None, allies: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.settings = _held(settings, network, rows, privacy)
        privacy = replace(privacy, candidates=(), choosing=0.0)  # noise of one C is less
        self.rows = rows
        p = rows[0].shape[1]
        self.nodes: dict[Any, Node] = {}
        for name in map(str, network.nodes):
            is_curious = name in {curious, *allies}
            kind = Curious if is_curious else Node
            # A curious neighbour keeps the letter of the level and none of its spirit.
            veil = Veil(privacy) if is_curious else make_veil(privacy)
            node = kind(
                name, list(map(str, network.neighbours(name))), p, self.settings, 7, 1, veil=veil
            )
            block = rows if name == VICTIM else (others(name) if others else None)
            node.enter(TASK, *(block if block and not is_curious else (None, None)))
            self.nodes[name] = node
        self.victim = self.nodes[VICTIM]
        self.league = {n: one for n, one in self.nodes.items() if isinstance(one, Curious)}
        self.curious = self.league[curious]
        self.now = 0.0
        self._meet()
        for one in self.league.values():
            one.watch()

    def _meet(self) -> None:
        for _ in range(MOST_HELLOS):
            self.now += SECONDS
            for name, node in self.nodes.items():
                self._deliver(name, node.hello(self.now))
            if all(node.may_begin(self.now) for node in self.nodes.values()):
                return
        raise NetworkError("The nodes of an audit never met.")

    def _deliver(self, sender: Any, messages: dict[str, bytes]) -> None:
        for name, data in messages.items():
            if not self.nodes[name].take(sender, data, self.now):
                if sender in self.league:
                    raise Barred(f"Node {name} has barred {sender}.")
                reason = self.nodes[name].inbox.reasons[sender]
                raise NetworkError(f"Node {name} refused what {sender} said: {reason}.")

    def gain(self, name: str) -> Floats:
        """U⁻¹ of a node, from what everybody is told: settings, roster and penalties."""
        node = self.nodes[name]
        slot = next(iter(node.holdings.values())).slot
        found = node.state.tables.agents["gain"][slot]
        return np.repeat(found, [node.n_features, 1], axis=1)

    def penalty(self, one: str, other: str) -> Floats:
        """ρ of every number on a link, likewise."""
        node = self.nodes[one]
        half = node.ends.halves[TASK, other, TASK]
        return np.repeat(node.state.tables.ends["penalty"][half], [node.n_features, 1])

    def most_bias(self) -> float:
        """Return how large a bias the victim believes: it follows from what everybody is told."""
        return float(self.victim.bounds(TASK).bias)

    def honest_links(self) -> list[tuple[str, str]]:
        """All links that neither the curious neighbour nor an ally has an end of, both ways."""
        return [
            (name, other)
            for name, node in self.nodes.items()
            for other in node.neighbours
            if not {name, other} & set(self.league)
        ]

    @property
    def is_alone(self) -> bool:
        """Whether all neighbours of the victim are in league."""
        return set(self.victim.neighbours) <= set(self.league)

    def keep_still(self) -> None:
        """Have allies carry nothing on their links."""
        for one in self.league.values():
            if one is not self.curious:
                one.choose = lambda _, known: np.zeros_like(known)

    def step(self) -> None:
        """Let everybody do a round."""
        self.now += SECONDS
        for name, node in self.nodes.items():
            self._deliver(name, node.begin(self.now))
        for node in self.nodes.values():
            node.finish(self.now)


def _held(settings: Settings, network: Network, rows: Block, privacy: Privacy) -> Settings:
    """Hold penalties near where they would begin, so that what is seen can be read in one piece."""
    square = float((rows[0] ** 2).sum(axis=1).mean()) if len(rows[0]) else 1.0
    reg = np.sqrt(settings.common_reg * settings.specific_reg)
    n = len(network.nodes)
    rho = 9.0 * np.sqrt(settings.C * reg / n) / max(np.sqrt(square / rows[0].shape[1]), 1e-6)
    eta = 0.5 * n * float(rho)
    held = replace(settings, task_penalty=eta, node_penalty=eta)
    return replace(held, local="exact", bias="mixed") if privacy.level == "dp" else held
