"""Rows that each attack reads, by level of privacy, network and rows a node.

    python -m benchmarks.attacks [--quick | --dp | --pooled | --epsilon | --choosing]

Rows are on the unit sphere in ten dimensions. In a star the curious node is the centre, so that it
is the victim's only neighbour; in a ring the victim has another neighbour, in a complete network of
four two others. A figure is rows read to 1e-6; the best membership advantage follows where there
are at least 20 rows. A lying neighbour asks for 20,000 rounds at most, under differential privacy
for 30 times as many as the budget allows; a listener listens to 300. A patient liar, who reads the
rows of all honest nodes in one heap, spends its rounds on three times as many rows.

Then, how many rows a liar has read after as many rounds as training takes; what neighbours read who
pool what they know (--pooled prints that alone), those in league holding no rows; and ε that the
best attack on membership shows, over 10,000 trials with each of two nodes that differ in one row
(--epsilon prints that alone; --dp the first table's lines under differential privacy). Last, what
choosing C adds to all that: see `benchmarks.attacks.choosing` (--choosing prints it alone).
"""

from __future__ import annotations

import logging
import math
import sys

import numpy as np

from benchmarks.attacks.choosing import elections, epsilon_of, lanes
from dtsvm import Network
from dtsvm.problem import Privacy, Settings
from dtsvm.problem.privacy import LEVELS
from dtsvm.runtime.agent.audit.attacks import lie, listen, recovered
from dtsvm.runtime.agent.audit.room import TASK, VICTIM, Room
from dtsvm.runtime.agent.audit.trial import CURIOUS, Target, audit

NAMES = [VICTIM, CURIOUS, "c", "d"]
SHAPES = {
    "star": Network(NAMES, [(CURIOUS, name) for name in NAMES if name != CURIOUS]),
    "ring": Network.ring(NAMES),
    "complete": Network.complete(NAMES),
}


def block(n: int, seed: int, p: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


def shown(n_read: int, advantage: float) -> str:
    return f"{n_read}" + ("" if math.isnan(advantage) else f" ({advantage:.2f})")


def main(sizes: tuple[int, ...], levels: tuple[str, ...] = LEVELS) -> None:
    print("| privacy | network | rows | a neighbour that lies | one that listens | a reader |")
    print("|---|---|---|---|---|---|")
    for level in levels:
        for shape, network in SHAPES.items():
            for n in sizes:
                privacy = Privacy(level, epsilon=3.0, rounds=20)
                target = Target(block(n, 1), block(n, 2), network, Settings(C=0.1), privacy)
                found = [shown(one.n_read, one.advantage) for one in audit(target)]
                print(f"| {level} | {shape} | {n} | {' | '.join(found)} |", flush=True)


def early(n: int = 50) -> None:
    print("\n| rows read of 50 after rounds | 30 | 100 | 300 | 1,000 |")
    print("|---|---|---|---|---|")
    for level in ("none", "masked"):
        for shape, network in SHAPES.items():
            read = []
            for most in (30, 100, 300, 1000):
                room = Room(block(n, 1), network, CURIOUS, Settings(C=0.1), Privacy(level),
                            lambda name: block(n, 3 + ord(name[0])))  # fmt: skip
                read.append(recovered(lie(room, most_rounds=most), room.rows[0]))
            print(f"| {level}, {shape} | {' | '.join(map(str, read))} |", flush=True)


def pooled(n: int = 50) -> None:
    print("\n| rows read of 50 by neighbours who pool what they know | lying | listening |")
    print("|---|---|---|")
    cases = {"both of two": ("ring", ("d",)), "two of three": ("complete", ("c",)),
             "all three": ("complete", ("c", "d"))}  # fmt: skip
    for level in LEVELS:
        for who, (shape, allies) in cases.items():
            read = []
            for attack in (lie, listen):
                room = Room(block(n, 1), SHAPES[shape], CURIOUS, Settings(C=0.1),
                            Privacy(level, epsilon=3.0, rounds=20),
                            lambda name: block(n, 3 + ord(name[0])), allies)  # fmt: skip
                more = {"most_rounds": 600} if level == "dp" and attack is lie else {}
                read.append(recovered(attack(room, **more), room.rows[0]))
            print(f"| {level}, {who} | {' | '.join(map(str, read))} |", flush=True)


def shown_epsilon(epsilon: float, rounds: int, n: int = 10_000, delta: float = 1e-5) -> float:
    """Return ε that telling two nodes apart shows, 98 % sure, from all that they ever tell.

    One has a row, the other the same with its label turned: no two rows move X̃ᵀYλ further. The
    neighbour holds z still; then the mean over rounds of what is told, along the row, is all that
    matters (Neyman and Pearson). Noise grows with the root of the rounds, so few show as much.
    """
    settings = Settings(C=0.1, local="exact", bias="mixed", task_penalty=2.0, node_penalty=2.0)
    network = Network([VICTIM, CURIOUS], [(VICTIM, CURIOUS)])
    told = []
    for sign in (1.0, -1.0):
        rows = np.eye(3)[:1], np.array([sign])
        privacy = Privacy("dp", epsilon, delta, rounds)
        room = Room(rows, network, CURIOUS, settings, privacy)
        victim = room.victim
        room.curious.choose = lambda _, known: np.zeros_like(known)
        room.step()
        slot, veil, state = victim.holding(TASK).slot, victim.veil, victim.state
        found = np.zeros(n)
        for i in range(n):
            for _ in range(rounds):
                veil.cover(state, state.plan.used)
                found[i] += state.estimate(slot)[0] @ [1.0, 0.0, 0.0, 1.0]
        told.append(found / rounds)
    return epsilon_of(*told, delta)


def epsilons() -> None:
    print("\n| ε accounted, 5 rounds, δ = 1e-5 | ε shown by the best of 10,000 trials |")
    print("|---|---|")
    for epsilon in (1.0, 3.0, 8.0):
        print(f"| {epsilon:g} | {shown_epsilon(epsilon, 5):.2f} |", flush=True)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # victims complain
    only = {"--epsilon", "--pooled", "--choosing", "--dp"} & set(sys.argv)
    if not only:
        main((1, 5) if "--quick" in sys.argv else (1, 5, 50, 300))
        early()
    if "--dp" in only:
        main((1, 5, 50, 300), ("dp",))
    if not only or "--pooled" in only:
        pooled()
    if not only or "--epsilon" in only:
        epsilons()
    if not only or "--choosing" in only:
        lanes(SHAPES, block)
        elections()
