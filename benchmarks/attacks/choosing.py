"""What choosing C adds: many trainings of the same rows at once, and a count of errors.

Without differential privacy every candidate trains as a lane of its own, on all rows and on all but
each fold's; a neighbour sees all lanes. It also looks at differences between lanes, in units of C.
Here are as many lanes as one task alone has, each in a network of its own, as it would have.

Under differential privacy two nodes that differ in one row's label are told apart from all that is
told while C is chosen and after: the messages of all candidates, the count of errors, the messages
of the chosen one. The neighbour holds z still; what it goes by is the likelihood ratio of all that.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import beta

from dtsvm import Network
from dtsvm.data.folds import FOLDS, deal
from dtsvm.problem import Privacy, Settings
from dtsvm.runtime.agent.audit.attacks import Findings, lie, overheard, recovered, row_of
from dtsvm.runtime.agent.audit.room import TASK, Room
from dtsvm.runtime.agent.audit.trial import CURIOUS
from dtsvm.runtime.agent.node.electing import decide
from dtsvm.runtime.agent.node.lanes import Lane, candidate_lanes
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.site.level import CANDIDATES, CHOOSING
from dtsvm.runtime.privacy.budget import Budget
from dtsvm.runtime.privacy.noise import sensitivity
from dtsvm.runtime.privacy.sums import NoisySums
from dtsvm.runtime.privacy.veil import Noisy, make_veil
from dtsvm.select.candidates import LEVELS as PRICES

Block = tuple[np.ndarray, np.ndarray]
N_ROWS, N_ROUNDS, EVERY = 50, 300, 10
ROUNDS = 4  # after the choice; noise grows with their root, so ε does not depend on it


def rooms(level: str, network: Network, block: Callable[[int, int], Block]) -> list[Room]:
    """Return the lanes of one task at every C: on all rows, and on all but each fold's."""
    found = []
    for C in PRICES:
        for fold in range(-1, FOLDS):

            def part(seed: int, fold: int = fold) -> Block:
                X, y = block(N_ROWS, seed)
                mine = deal((y > 0).astype(np.int64), ["-", "+"]) != fold
                return X[mine], y[mine]

            found.append(Room(part(1), network, CURIOUS, Settings(C=C), Privacy(level),
                              lambda name, part=part: part(3 + ord(name[0]))))  # fmt: skip
    return found


def listened(some: list[Room]) -> Findings:
    """Return what a listener reads in all lanes, and in differences between them."""
    told = [np.array(overheard(room, N_ROUNDS)[0]) / room.settings.C for room in some]
    changes = [change for one in told for lag in (1, 2, 3) for change in one[lag:] - one[:-lag]]
    changes += [one[-1] for one in told]
    for i, one in enumerate(told):
        for other in told[:i]:
            changes += [*(one - other)[::-EVERY]]
    return Findings([row for row in map(row_of, changes) if row is not None])


def lied(some: list[Room], most_rounds: int) -> Findings:
    """Return what a liar reads in as many rounds, asking something else in every lane."""
    found = [lie(room, seed, most_rounds) for seed, room in enumerate(some)]
    return Findings([row for one in found for row in one.rows])


def lanes(shapes: dict[str, Network], block: Callable[[int, int], Block]) -> None:
    """Print rows read by who follows all lanes of a choice, beside one training."""
    X = block(N_ROWS, 1)[0]
    n = len(PRICES) * (FOLDS + 1)
    print(f"\n| rows read of {N_ROWS} | listening, one training | listening, {n} lanes "
          f"| lying for 100 rounds, one training | lying for 100 rounds, {n} lanes |")  # fmt: skip
    print("|---|---|---|---|---|")
    for level in ("none", "masked"):
        for shape, network in shapes.items():
            found = [
                listened(rooms(level, network, block)[:1]),
                listened(rooms(level, network, block)),
                lied(rooms(level, network, block)[:1], 100),
                lied(rooms(level, network, block), 100),
            ]
            cells = " | ".join(str(recovered(one, X)) for one in found)
            print(f"| {level}, {shape} | {cells} |", flush=True)


# Under differential privacy


def epsilon_of(one: np.ndarray, other: np.ndarray, delta: float) -> float:
    """Return ε that trials of two nodes show, 98 % sure, by the best threshold."""
    best, n = 0.0, len(one)
    for at in np.quantile(one, np.linspace(0.005, 0.995, 199)):
        hit, miss = (beta.ppf(q, k + a, n - k + 1 - a) for q, k, a in (
            (0.01, (one >= at).sum(), 0), (0.99, (other >= at).sum(), 1)))  # fmt: skip
        best = max(best, math.log(max(hit - delta, 1e-12) / miss))
    return best


def victim(sign: float, privacy: Privacy) -> Node:
    """Return a node of one row whose candidates have trained for a round."""
    settings = Settings(C=CANDIDATES[0], local="exact", bias="mixed", task_penalty=2.0,
                        node_penalty=2.0)  # fmt: skip
    node, other = (
        Node(name, [to], 3, settings, 7, 1, veil=make_veil(privacy))
        for name, to in (("a", "b"), ("b", "a"))
    )
    node.enter(TASK, np.eye(3)[:1], candidate_lanes([Lane(TASK, np.array([sign]))], CANDIDATES))
    other.enter(TASK, None, candidate_lanes([Lane(TASK, np.zeros(0))], CANDIDATES))
    for now in (0.1, 0.2):
        for one, to in ((node, other), (other, node)):
            to.take(one.name, one.hello(now)[to.name], now)
    node.begin(0.3)
    return node


def shown_by_choosing(epsilon: float, n: int = 10_000, delta: float = 1e-5) -> float:
    """Return ε that telling two nodes apart shows, from all that is told with a choice of C."""
    privacy = Privacy("dp", epsilon, delta, ROUNDS, candidates=CANDIDATES, choosing=CHOOSING)
    both = [victim(sign, privacy) for sign in (1.0, -1.0)]
    agents = [node.state.tables.agents for node in both]
    slots = [holding.slot for holding in both[0].holdings.values()]
    apart = agents[0]["pull"][slots] - agents[1]["pull"][slots]
    d = agents[0]["gain"][slots].sum(axis=1)
    each = np.repeat(d, [3, 1], axis=1) * apart  # what g is compared along
    size = [sensitivity(C, 1.0, *some) for C, some in zip(CANDIDATES, d.tolist(), strict=True)]
    told = []
    for k, node in enumerate(both):
        found = np.zeros(n)
        for i in range(n):
            found[i] = _trial(node, privacy, float(k), slots, (each, np.array(size)))
        told.append(found)
    return epsilon_of(*told, delta)


def _trial(
    node: Node, privacy: Privacy, wrong: float, slots: list[int], known: tuple[np.ndarray, ...]
) -> float:
    """Return the log likelihood ratio of all that a node tells, up to a constant."""
    veil, state, (each, size) = node.veil, node.state, known
    assert isinstance(veil, Noisy)
    veil.budget = Budget(privacy)
    some = np.array(slots)
    gain = np.repeat(state.tables.agents["gain"][some, 0], [3, 1], axis=1)
    ratio = 0.0

    def rounds(count: int, mine: np.ndarray, multiplier: float) -> float:
        total = 0.0
        for _ in range(count):
            veil.budget.spend()
            veil.cover(state, some[mine])
            g = state.tables.agents["estimate"][some[mine], 0] / gain[mine]
            total += float(((each[mine] * g).sum(axis=1) / (multiplier * size[mine]) ** 2).sum())
        return total

    ratio += rounds(privacy.first_rounds, np.arange(len(slots)), veil.first_multiplier)
    errors = NoisySums(veil.budget).compared(lambda: np.full(len(slots), wrong))
    spread = NoisySums(Budget(privacy), np.ones).compared(lambda: np.zeros(len(slots)))
    ratio -= float((errors / spread**2).sum())
    choice = decide(np.concatenate([errors, np.zeros(len(slots))]))
    veil.choose(choice)
    return ratio + rounds(privacy.rounds, np.array([choice]), veil.multiplier)


def elections() -> None:
    """Print ε that the best attack shows where C is chosen."""
    head = "ε accounted, C chosen from three in 2 + 4 rounds, δ = 1e-5"
    print(f"\n| {head} | ε shown by the best of 10,000 trials |")
    print("|---|---|")
    for epsilon in (1.0, 3.0, 8.0):
        print(f"| {epsilon:g} | {shown_by_choosing(epsilon):.2f} |", flush=True)
