"""Rounds until a network of agents settles, beside a Session of the same rows.

    python -m benchmarks.agent_balance

The agents run in lock-step in one process, without a transport. A Session stops once its gap is
certified, agents stop when they are calm; so the rounds a Session needs to come as close to rest as
the agents do are shown too, and their ratio. The last column is of agents that keep the penalties
they begin with.
"""

from __future__ import annotations

import random

import numpy as np

from dtsvm import Network, Session
from dtsvm.problem import Settings
from dtsvm.runtime.agent.node.node import Node

Blocks = dict[str, tuple[np.ndarray, np.ndarray]]
SETTINGS = {"C": 1.0, "tol": 1e-4}
MOST = 10_000


def hospitals() -> tuple[Network, Blocks]:
    """Return the example of docs/network.md."""
    blocks: Blocks = {}
    for node in "abc":
        draw = random.Random(node).gauss
        rows = []
        for _ in range(100):
            age, dose = draw(0, 1), draw(0, 1)
            rows.append((round(age, 3), round(dose, 3), age + dose / 2 + draw(0, 0.5) > 0))
        table = np.array(rows, float)
        blocks[f"hospital-{node}"] = (table[:, :2], np.where(table[:, 2] > 0, 1.0, -1.0))
    return Network.ring(list(blocks)), blocks


def spread(network: Network, p: int = 8, n: int = 30) -> tuple[Network, Blocks]:
    """Return noisy rows of one task for every node of a network."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=p)
    blocks: Blocks = {}
    for name in network.nodes:
        X = rng.normal(size=(n, p))
        y = np.where(X @ direction + rng.normal(size=n) + 0.3 > 0, 1.0, -1.0)
        blocks[str(name)] = (X, y)
    return network, blocks


def rounds_of_agents(
    network: Network, blocks: Blocks, settings: dict[str, float], is_balanced: bool = True
) -> int:
    """Let agents meet, train and settle in lock-step; return the rounds they needed."""
    p = next(iter(blocks.values()))[0].shape[1]
    nodes = {
        name: Node(name, list(network.neighbours(name)), p, Settings(**settings), 7, 1)
        for name in blocks
    }
    for name, (X, y) in blocks.items():
        nodes[name].enter("flu", X, y)
        nodes[name].balancer.is_on = is_balanced

    def tell(messages: dict[str, dict[str, bytes]]) -> None:
        for sender, mine in messages.items():
            for name, data in mine.items():
                nodes[name].take(sender, data, 0.0)

    while not all(node.may_begin(0.0) for node in nodes.values()):
        tell({name: node.hello(0.0) for name, node in nodes.items()})
    while not all(node.is_settled for node in nodes.values()):
        working = {
            name
            for name, node in nodes.items()
            if not node.is_settled and not node.is_balancing(0.0)
        }
        tell({n: v.begin(0.0) if n in working else v.hello(0.0) for n, v in nodes.items()})
        for name in working:
            nodes[name].finish(0.0)
        if max(node.round for node in nodes.values()) > MOST:
            break
    return max(node.round for node in nodes.values())


def rounds_of_session(network: Network, blocks: Blocks, settings: dict[str, float]) -> list[int]:
    """Return when a Session is certified, and when its residuals are as small as the agents'."""
    live = Session(network, **settings)
    for name, (X, y) in blocks.items():
        live.enter(name, "flu", X, y, labels=(-1.0, 1.0))
    live.run(tol=settings["tol"])
    certified = live.info.n_rounds
    small = settings["tol"]
    while live.info.n_rounds < MOST:
        if max(live.info.primal_residual, live.info.dual_residual) <= small:
            break
        live.run(rounds=1)
    return [certified, live.info.n_rounds]


def main() -> None:
    """Print a line a network and C."""
    names = [f"n{i}" for i in range(10)]
    cases = {
        "three hospitals": hospitals(),
        "ring of 8": spread(Network.ring(names[:8])),
        "random of 10": spread(Network.random(names, degree=0.4, seed=0)),
        "line of 6": spread(Network.line(names[:6])),
    }
    print(
        f"{'network':18}{'C':>7}{'agents':>9}{'session':>9}{'at rest':>9}{'ratio':>7}{'fixed':>9}"
    )
    for case, (network, blocks) in cases.items():
        for C in (1.0, 0.01):
            settings = {**SETTINGS, "C": C}
            agents = rounds_of_agents(network, blocks, settings)
            certified, rest = rounds_of_session(network, blocks, settings)
            fixed = rounds_of_agents(network, blocks, settings, is_balanced=False)
            print(
                f"{case:18}{C:7}{agents:9}{certified:9}{rest:9}{agents / rest:7.2f}{fixed:9}",
                flush=True,
            )


if __name__ == "__main__":
    main()
