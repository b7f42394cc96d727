"""What stands between a node's rows and its messages, by level of privacy."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import NetworkError
from dtsvm.problem import Privacy, Settings
from dtsvm.rounds import State
from dtsvm.runtime.privacy.accounting import shared_multiplier
from dtsvm.runtime.privacy.budget import Budget
from dtsvm.runtime.privacy.noise import (
    SLACK,
    Draw,
    check_weights,
    clip,
    noised,
    sensitivity,
    true_normal,
)

__all__ = ["COUNTED", "Hidden", "Noisy", "Veil", "make_veil"]

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]
STIR = 0.3  # hidden numbers, in what z of a link has moved
COUNTED = 0.15  # of the share for choosing, for counts of errors; the rest is for candidates
MOST_HEARD = 2.0**14  # in noise: a neighbour's larger numbers would take digits from local solves


class Held(Protocol):
    """A task that is held here: its agent's slot, and log₂ of its mean squared feature."""

    slot: int
    scale: int


class Veil:
    """Nothing: what the arithmetic gives is told.

    Parameters
    ----------
    privacy : Privacy
        The level.
    """

    stirs = False  # whether z are moved by more than what was heard
    is_noisy = False  # whether numbers carry the noise of differential privacy: they have no bound

    def __init__(self, privacy: Privacy | None = None) -> None:
        self.privacy = privacy or Privacy()

    heaviest = 1.0  # no row weighs more

    def weigh(self, weight: Floats | None) -> None:
        """Refuse weights of rows under which the level means nothing."""

    def share(self, slots: list[int], prices: list[float]) -> None:
        """Know that these agents, each at its C, and no others train on the same rows."""

    def check(self, settings: Settings) -> None:
        """Refuse settings under which the level means nothing."""

    def clip(self, X: Any) -> Any:
        """Return the rows as they are used."""
        return X

    def start(self, state: State, holding: Held) -> Floats | None:
        """Return the z that a new link of an agent begins at, if not zero."""
        return None

    def spend(self, state: State, agents: Slots, n_links: int) -> Slots:
        """Return the agents that may look at their rows in a round, to tell so many neighbours."""
        return agents

    def allows(self, state: State, agent: int, q: Floats, most: tuple[float, float]) -> bool:
        """Whether what a neighbour told may be taken in; `most`: without noise, weight and bias."""
        return True

    def may_end(self, agents: Slots) -> bool:
        """Whether nothing speaks against agreeing on what these agents found."""
        return True

    is_done = True  # whether what is agreed on is the answer

    @property
    def choice(self) -> int | None:
        """Which of several candidates was chosen."""
        return None

    def choose(self, candidate: int) -> None:
        """Go on with one candidate."""
        raise NotImplementedError

    @property
    def price(self) -> float | None:
        """The C that was chosen; None where none was."""
        return None if self.choice is None else self.privacy.candidates[self.choice]

    def cover(self, state: State, agents: Slots) -> None:
        """Cover what agents have just found, before anybody is told."""

    def give_up(self, state: State) -> None:
        """Forget what agents have found and nothing covers: the round failed."""

    def shown(self, state: State, agent: int) -> Floats:
        """Return what an agent found, as others may know it."""
        return state.estimate(agent)

    def recall(self, spent: int) -> None:
        """Refuse a budget that has forgotten what a checkpoint still knows."""

    def stir(self, state: State, ends: NDArray[np.int64], before: Floats) -> None:
        """Hide how z of these link ends have just moved from where they were."""

    def told(self, state: State, agent: int) -> Floats:
        """Return what an agent contributes to the network's answer."""
        return state.estimate(agent)

    def status(self) -> dict[str, Any]:
        """Return what `dtsvm status` says of it."""
        return self.privacy.describe()


class Hidden(Veil):
    """Links begin at hidden random numbers, as large as all of an agent's rows together.

    Any start leads to the same optimum. A neighbour sees x, a sum over all links of their z and of
    X̃ᵀYλ; of the z it knows its own alone, and from a hidden start not even that at first.

    Who is linked to a node's other neighbours too could follow how those links' z move. So what
    they move is mixed with hidden numbers a third as large, in every round: X̃ᵀYλ moves only when z
    does, and by no more than in proportion, so that its changes are never seen bare. What is mixed
    in dies out with the moves, and the network ends at the same optimum.
    """

    stirs = True

    def start(self, state: State, holding: Held) -> Floats | None:
        """Return hidden numbers."""
        p1 = state.n_features + 1
        most = state.settings.C * max(state.n_rows(holding.slot), 1)
        scale = np.append(np.full(p1 - 1, most * 2.0 ** (0.5 * holding.scale)), most)
        return np.asarray(scale * true_normal(2 * p1).reshape(2, p1))

    def stir(self, state: State, ends: NDArray[np.int64], before: Floats) -> None:
        """Add numbers STIR times as large as the moves, in random directions."""
        links = state.tables.ends.open("state")
        moved = links[ends] - before
        size = np.sqrt((moved**2).mean(axis=-1, keepdims=True))
        links[ends] += STIR * size * true_normal(moved.size).reshape(moved.shape)


class Noisy(Veil):
    """Differential privacy: fresh Gaussian noise on X̃ᵀYλ, and so on all that a round tells.

    Parameters
    ----------
    budget : Budget
        Paid from before a round looks at the rows. When it is spent x stays as it was told last.
    draw : callable, optional
        Draws standard normal numbers; from the operating system's entropy by default.
    """

    is_noisy = True

    def __init__(self, budget: Budget, draw: Draw = true_normal) -> None:
        super().__init__(budget.privacy)
        self.budget, self._draw = budget, draw
        self._means: dict[int, tuple[int, Floats]] = {}  # of what agents told lately
        self._before: dict[int, Floats] = {}  # x of agents that are at work, as it was told
        self._copies: dict[int, int] = {}  # agents that train on the same rows, by agent
        self._candidate: dict[int, int] = {}  # by agent
        chosen = budget.privacy
        self.heaviest = chosen.weight
        self.multiplier = shared_multiplier(
            chosen.epsilon, chosen.delta, chosen.share, chosen.rounds
        )
        if chosen.candidates:  # a row is in the messages of all of them
            share = (1.0 - COUNTED) * chosen.choosing / len(chosen.candidates)
            self.first_multiplier = shared_multiplier(
                chosen.epsilon, chosen.delta, share, chosen.first_rounds
            )

    def check(self, settings: Settings) -> None:
        """Refuse local solves that are not exact and biases that no link holds."""
        for name, value, wanted in (
            ("local", settings.local, ("exact",)),
            ("bias", settings.bias, ("common", "mixed")),
        ):
            if value not in wanted:
                raise NetworkError(
                    f"Differential privacy needs {name} = {' or '.join(map(repr, wanted))} under "
                    f"[settings]; got {value!r}: a row's influence has no bound otherwise."
                )

    def weigh(self, weight: Floats | None) -> None:
        """Refuse rows that weigh more than the noise is made for."""
        check_weights(weight, self.heaviest)

    def share(self, slots: list[int], prices: list[float]) -> None:
        """Know how many messages of a round a row is in, of each candidate."""
        every = self.privacy.candidates or tuple(set(prices))
        self._copies |= dict.fromkeys(slots, len(slots) // len(every))
        self._candidate |= {slot: every.index(C) for slot, C in zip(slots, prices, strict=True)}

    def clip(self, X: Any) -> Any:
        """Return rows no longer than the norm that was agreed on."""
        return clip(X, self.privacy.norm)

    def spend(self, state: State, agents: Slots, n_links: int) -> Slots:
        """Pay for a round that somebody will hear of: of all candidates, or of the chosen one."""
        if n_links == 0:
            return agents[:0]
        if (state.tables.agents["prox"][agents] > 0).any():
            raise NetworkError(
                "An agent has a bias that no link holds, so noise cannot hide its rows. "
                "Link the node to another that holds the same tasks."
            )
        if not self.budget.spend():
            return agents[:0]
        some = agents if self.budget.paid.is_first else agents[self._are_chosen(agents)]
        self._before = {a: state.estimate(a) for a in some.tolist()}
        return some

    def allows(self, state: State, agent: int, q: Floats, most: tuple[float, float]) -> bool:
        """Whether what a neighbour told leaves local solves the digits that noise counts on.

        Allowed is what the data could give without noise, or `MOST_HEARD` times the noise.
        """
        noise = MOST_HEARD * self._sizes(state, agent)
        return bool((np.abs(q) <= np.maximum(noise, np.repeat(most, [state.n_features, 1]))).all())

    def may_end(self, agents: Slots) -> bool:
        """Whether nothing more can be learnt from the rows for these agents."""
        return not self.budget.may_tell or not self._are_chosen(agents).any()

    @property
    def is_done(self) -> bool:  # type: ignore[override]
        """Whether all rounds were paid for, and so the answer is one of all of them."""
        return self.budget.left == 0

    @property
    def choice(self) -> int | None:
        """Which of several candidates was chosen."""
        return self.budget.choice

    def choose(self, candidate: int) -> None:
        """Go on with one candidate, for ever; that is on disk when this returns."""
        self.budget.choose(candidate)

    def _are_chosen(self, agents: Slots) -> NDArray[np.bool_]:
        """Which agents are of the candidate that trains on: all, before there is one."""
        choice = self.budget.choice
        own = [choice is None or self._candidate[a] == choice for a in agents.tolist()]
        return np.array(own, bool)

    def told(self, state: State, agent: int) -> Floats:
        """Return the mean of what an agent told in the second half of its rounds.

        It was told already, so that costs nothing; noise of several rounds cancels in part.
        """
        return self._means[agent][1] if agent in self._means else state.estimate(agent)

    def cover(self, state: State, some: Slots) -> None:
        """Set x = U⁻¹(g + noise + Σ z), the noise normal with covariance (m s)² D⁻¹.

        s is the sensitivity. Nothing else of x is made of rows: all of it follows from g and its
        noise, rounded, and from what neighbours know.
        """
        agents = state.tables.agents
        for a in some.tolist():
            each = np.repeat(agents["gain"][a], [state.n_features, 1], axis=1)  # (part, ·): U⁻¹
            pull = noised(np.array(agents["pull"][a]), self._sizes(state, a), self._draw)
            x = each * (pull + _inflow(state, a))
            agents.open("estimate")[a] = x
            agents.open("norm")[a] = float(np.linalg.norm(x))
            self._before.pop(a, None)
            self._remember(a, x)

    def give_up(self, state: State) -> None:
        """Put x back to what was told last: what was found has no noise."""
        for a, x in self._before.items():
            state.tables.agents.open("estimate")[a] = x
        self._before = {}

    def shown(self, state: State, agent: int) -> Floats:
        """Return x with its noise, also while a solve runs in another thread."""
        return self._before[agent] if agent in self._before else state.estimate(agent)

    def recall(self, spent: int) -> None:
        """Refuse a budget that says less was spent than a checkpoint knows of."""
        self.budget.refresh()
        if self.budget.spent < spent:
            raise NetworkError(
                f"The checkpoint knows of {spent} messages, but the privacy budget "
                f"{self.budget.path} of {self.budget.spent} only: it is an old copy, or a new one. "
                "Put the newest back; only new rows may have a new budget, and then take the "
                "checkpoint away, too."
            )

    def _remember(self, agent: int, x: Floats) -> None:
        is_first, number = self.budget.paid
        begun = 0 if is_first else self.privacy.first_rounds
        if number == begun + 1:
            self._means.pop(agent, None)
        n_rounds = self.privacy.first_rounds if is_first else self.privacy.rounds
        if 2 * (number - begun) > n_rounds:
            n, mean = self._means.get(agent, (0, np.zeros_like(x)))
            self._means[agent] = (n + 1, mean + (x - mean) / (n + 1))

    def _sizes(self, state: State, agent: int) -> Floats:
        """Return how large the noise on each number of an agent's g is."""
        agents = state.tables.agents
        d, C = agents["gain"][agent].sum(axis=0), float(agents["C"][agent])
        moved = sensitivity(self.heaviest * C, self.privacy.norm, *d.tolist())
        multiplier = self.first_multiplier if self.budget.paid.is_first else self.multiplier
        size = multiplier * (1.0 + SLACK) * moved * np.sqrt(self._copies.get(agent, 1))
        return np.asarray(size / np.sqrt(np.repeat(d, [state.n_features, 1])))

    def status(self) -> dict[str, Any]:
        """Return the level and what is left of the budget."""
        told = {**super().status(), "spent": self.budget.spent, "left": self.budget.left}
        return told if self.price is None else {**told, "C": self.price}


def _inflow(state: State, agent: int) -> Floats:
    """Σ z over an agent's links, and what cut ones left behind."""
    ends = state.tables.ends
    mine = ends.used[ends["owner"][ends.used] == agent]
    z = np.array(ends["state"][mine])
    z[ends["is_wide"][mine] == 0, 1] = 0.0
    return np.asarray(z.sum(axis=0) + state.offset(agent))


def make_veil(
    privacy: Privacy, budget: Any = None, draw: Draw = true_normal, holdout: float | None = None
) -> Veil:
    """Return what a level asks for; `budget` is the path of the budget, as in `Budget`."""
    if privacy.level == "dp":
        return Noisy(Budget(privacy, budget, holdout), draw)
    return Hidden(privacy) if privacy.level == "masked" else Veil(privacy)
