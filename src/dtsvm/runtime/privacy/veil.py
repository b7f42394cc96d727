"""What stands between a node's rows and its messages, by level of privacy."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dtsvm.errors import NetworkError
from dtsvm.problem import Privacy, Settings
from dtsvm.rounds import State
from dtsvm.runtime.privacy.accounting import shared_multiplier
from dtsvm.runtime.privacy.budget import Budget

__all__ = ["COUNTED", "Hidden", "Noisy", "Veil", "clip", "make_veil", "sensitivity", "true_normal"]

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]
Draw = Callable[[int], Floats]
STIR = 0.3  # hidden numbers, in what z of a link has moved
COUNTED = 0.15  # of the share for choosing, for counts of errors; the rest is for candidates
SLACK = 1e-6  # by how much more noise is added than exact local solves ask for


def true_normal(n: int) -> Floats:
    """Draw standard normal numbers from the operating system's own entropy."""
    words = np.frombuffer(os.urandom(8 * n), "<u8") >> np.uint64(11)
    return np.asarray(ndtri((words + 0.5) / 2.0**53))


def clip(X: Any, norm: float) -> Any:
    """Return rows, those longer than `norm` shortened to it; CSR rows stay CSR.

    Examples
    --------
    >>> clip([[3.0, 4.0], [0.3, 0.4]], 1.0).round(9).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    if hasattr(X, "tocsr"):
        found = X.tocsr()
        length = np.sqrt(np.asarray(found.multiply(found).sum(axis=1)).ravel())
        share = np.minimum(1.0, norm / np.maximum(length, 1e-300))
        return found.multiply(share[:, None]).tocsr()
    rows = np.asarray(X, float)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.where(length > norm, rows * (norm / np.maximum(length, 1e-300)), rows))


def sensitivity(C: float, norm: float, d_weights: float, d_bias: float) -> float:
    """Return how far g = X̃ᵀYλ of a local problem can move, in ‖D^½ ·‖, if one row is replaced.

    An agent's x is the minimiser of

        F(x) = ½ xᵀUx − zᵀx + C Σ_i ℓ_i(u),    u = x₀ + x₁,    ℓ_i(u) = max(0, 1 − y_i x̃_iᵀu)

    with U > 0 diagonal, and x = U⁻¹(g + z) for both parts: all that its messages tell beyond what
    the neighbours sent is g, and u = D g + m with D = U₀⁻¹ + U₁⁻¹. In u alone the problem is
    ½ ‖u − m‖² in the norm of D⁻¹ plus the losses, so strongly convex with modulus 1 in that norm.
    Let F' have row k in place of row i, and u, u' be the minimisers. Adding the two inequalities
    of strong convexity,

        ‖u − u'‖²_{D⁻¹} ≤ C |(ℓ_k − ℓ_i)(u) − (ℓ_k − ℓ_i)(u')|
                        ≤ C (‖x̃_i‖_D + ‖x̃_k‖_D) ‖u − u'‖_{D⁻¹}

    for ℓ is Lipschitz with constant ‖x̃‖_D in that norm. So, with ‖x‖ ≤ R and g = D⁻¹(u − m),

        ‖g − g'‖_D = ‖u − u'‖_{D⁻¹} ≤ 2 C √(R² d_w + d_b).

    With a weight c_i a row, C c_i stands for C in the losses: rows that weigh at most c move g by
    at most c times as much. A row that several agents of a node train on, one for each of K
    labels, moves the K vectors g together by at most √K times as much: noise √K times as large
    on each is noise for the K messages of a round as one.

    Neither the number of rows nor z, which neighbours may choose as they like, occurs in it.

    Examples
    --------
    >>> sensitivity(0.1, 1.0, 2.0, 2.0)
    0.4
    """
    return 2.0 * C * float(np.sqrt(norm * norm * d_weights + d_bias))


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

    def spend(self, agents: Slots, n_links: int) -> Slots:
        """Return the agents that may look at their rows in a round, to tell so many neighbours."""
        return agents

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
        most = 0.0 if weight is None else float(np.max(weight, initial=0.0))
        if most > self.heaviest * (1.0 + SLACK / 2):
            raise NetworkError(
                f"A row weighs {most:g}, but under differential privacy none may weigh more than "
                f"{self.heaviest:g}: noise is in proportion. Write the most that a row may weigh, "
                "known without a look at any row, as weight under [privacy]."
            )

    def share(self, slots: list[int], prices: list[float]) -> None:
        """Know how many messages of a round a row is in, of each candidate."""
        every = self.privacy.candidates or tuple(set(prices))
        self._copies |= dict.fromkeys(slots, len(slots) // len(every))
        self._candidate |= {slot: every.index(C) for slot, C in zip(slots, prices, strict=True)}

    def clip(self, X: Any) -> Any:
        """Return rows no longer than the norm that was agreed on."""
        return clip(X, self.privacy.norm)

    def spend(self, agents: Slots, n_links: int) -> Slots:
        """Pay for a round that somebody will hear of: of all candidates, or of the chosen one."""
        if n_links == 0 or not self.budget.spend():
            return agents[:0]
        return agents if self.budget.is_comparing else agents[self._are_chosen(agents)]

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
        """Set x ← x + U⁻¹ noise, the noise normal with covariance (m s)² D⁻¹, s the sensitivity."""
        agents = state.tables.agents
        for a in some.tolist():
            if (agents["prox"][a] > 0).any():
                raise NetworkError(
                    "An agent has a bias that no link holds, so noise cannot hide its rows. "
                    "Link the node to another that holds the same tasks."
                )
            gain = agents["gain"][a]  # (part, weights or bias): U⁻¹
            each = np.repeat(gain, [state.n_features, 1], axis=1)
            size = np.sqrt(self._copies.get(a, 1))
            C = float(agents["C"][a])
            noise = size * self._noise(C, gain.sum(axis=0), state.n_features + 1)
            found = agents.open("estimate")
            found[a] += each * noise
            agents.open("norm")[a] = float(np.linalg.norm(found[a]))
            self._remember(a, found[a])

    def _remember(self, agent: int, x: Floats) -> None:
        begun = 0 if self.budget.is_comparing else self.privacy.first_rounds
        if self.budget.spent == begun + 1:
            self._means.pop(agent, None)
        n_rounds = self.privacy.first_rounds if self.budget.is_comparing else self.privacy.rounds
        if 2 * (self.budget.spent - begun) > n_rounds:
            n, mean = self._means.get(agent, (0, np.zeros_like(x)))
            self._means[agent] = (n + 1, mean + (x - mean) / (n + 1))

    def _noise(self, C: float, d: Floats, n: int) -> Floats:
        moved = sensitivity(self.heaviest * C, self.privacy.norm, *d.tolist())
        multiplier = self.first_multiplier if self.budget.is_comparing else self.multiplier
        size = multiplier * (1.0 + SLACK) * moved
        each = np.repeat(d, [n - 1, 1])
        return np.asarray(size / np.sqrt(each) * self._draw(n))

    def status(self) -> dict[str, Any]:
        """Return the level and what is left of the budget."""
        told = {**super().status(), "spent": self.budget.spent, "left": self.budget.left}
        return told if self.price is None else {**told, "C": self.price}


def make_veil(privacy: Privacy, budget: Any = None, draw: Draw = true_normal) -> Veil:
    """Return what a level asks for; `budget` is the path of the budget."""
    if privacy.level == "dp":
        return Noisy(Budget(privacy, budget), draw)
    return Hidden(privacy) if privacy.level == "masked" else Veil(privacy)
