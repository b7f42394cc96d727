"""Rows that each attack reads, by level of privacy, network and rows a node.

    python -m benchmarks.attacks [--quick]

Rows are on the unit sphere in ten dimensions. In a star the curious node is the centre, so that it
is the victim's only neighbour; in a ring the victim has another neighbour, in a complete network of
four two others. A figure is rows read to 1e-6; the best membership advantage follows where there
are at least 20 rows. A lying neighbour asks for 20,000 rounds at most, a listener listens to 300.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from dtsvm import Network
from dtsvm.problem import Privacy, Settings
from dtsvm.problem.privacy import LEVELS
from dtsvm.runtime.agent.audit.room import VICTIM
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


def main(sizes: tuple[int, ...]) -> None:
    print("| privacy | network | rows | a neighbour that lies | one that listens | a reader |")
    print("|---|---|---|---|---|---|")
    for level in LEVELS:
        for shape, network in SHAPES.items():
            for n in sizes:
                privacy = Privacy(level, epsilon=3.0, rounds=20)
                target = Target(block(n, 1), block(n, 2), network, Settings(C=0.1), privacy)
                found = [shown(one.n_read, one.advantage) for one in audit(target)]
                print(f"| {level} | {shape} | {n} | {' | '.join(found)} |", flush=True)


if __name__ == "__main__":
    main((1, 5) if "--quick" in sys.argv else (1, 5, 50, 300))
