"""What differential privacy costs: digits over ten nodes, and vehicles over 23.

    DTSVM_MNIST=/path/to/idx DTSVM_DATA=/path/to/npz python -m benchmarks.private_digits

Every training image, 4 × 4 pixels averaged to one feature and each row scaled to length 1, which
needs no look at other rows; dealt at random to ten nodes. Errors on the official test images of
the answer that the network ends at, beside noise once on the certified optimum of all rows in one
place, and no noise.

C, the penalty and the rounds were not chosen on what is tested: of the values in `GRID`, those are
taken that err least at ε = 3 on the training images of other digits, `PUBLIC`, a quarter of
which is held out, over two dealings; C without noise and at the centre likewise. That choice is
made anew in every run, and printed. Vehicles, rows of 23 sensors at 23 nodes, a quarter held out,
are trained with what was chosen on digits: nothing was tuned to them. Their dealings differ
only in the network and the noise.

--small prints something else: errors by C where rows are few, of vehicles and of public digits
dealt like them, to as many nodes with as many rows each. Who may not look at vehicles takes the C
that is best for such digits; the vehicles' own columns say, in hindsight, what that costs.
"""

from __future__ import annotations

import itertools
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dtsvm import Network
from dtsvm.data import load_mnist
from dtsvm.problem import Privacy, Settings
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.privacy.veil import Veil, make_veil
from dtsvm.svm.release import release

TASKS, PUBLIC = {"3v6": (3, 6), "8v9": (8, 9)}, {"0v5": (0, 5), "4v7": (4, 7)}
EPSILONS = (1.0, 3.0, 8.0)
DELTA = 1e-5
N_NODES, N_SEEDS, MANY_ROUNDS = 10, 3, 300
GRID = {"C": (0.05, 0.1, 0.2, 0.4, 0.8), "eta": (3.0, 10.0, 30.0), "rounds": (5, 10, 20, 40)}
CENTRE_C = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
PLAIN_C = (0.05, 0.2, 0.8, 3.0)
SMALL_C, SMALL_ROUNDS = (0.2, 0.6, 2.0), 20


@dataclass(frozen=True)
class Chosen:
    """How nodes train."""

    C: float
    eta: float
    rounds: int


Block = tuple[np.ndarray, np.ndarray]


def features(images: np.ndarray) -> np.ndarray:
    """Average 4 × 4 pixels, and scale every row to length 1."""
    small = images.reshape(-1, 7, 4, 7, 4).astype(float).mean(axis=(2, 4)).reshape(len(images), 49)
    return small / np.maximum(np.linalg.norm(small, axis=1, keepdims=True), 1e-9)


def load(tasks: dict[str, tuple[int, int]]) -> tuple[dict[str, Block], dict[str, Block]]:
    """Return training and test rows by task."""
    wanted = sorted({digit for pair in tasks.values() for digit in pair})
    digits = load_mnist(os.environ.get("DTSVM_MNIST"), digits=wanted)
    parts = []
    for images, labels in (
        (digits.train_images, digits.train_labels),
        (digits.test_images, digits.test_labels),
    ):
        part = {}
        for task, pair in tasks.items():
            mine = np.isin(labels, pair)
            part[task] = features(images[mine]), np.where(labels[mine] == pair[1], 1.0, -1.0)
        parts.append(part)
    return parts[0], parts[1]


def load_vehicle() -> tuple[dict[tuple[str, str], Block], dict[str, Block]] | None:
    """Return the rows of every sensor but a quarter, which are tested on."""
    path = Path(os.environ.get("DTSVM_DATA", ".")) / "vehicle.npz"
    if not path.exists():
        return None
    with np.load(path) as found:
        X, y, sensor = found["X"], found["y"], found["task"]
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    is_test = np.random.default_rng(0).random(len(y)) < 0.25
    blocks = {
        (f"s{k}", "vehicle"): (X[mine], y[mine])
        for k in np.unique(sensor).tolist()
        for mine in [(sensor == k) & ~is_test]
    }
    return blocks, {"vehicle": (X[is_test], y[is_test])}


def deal(train: dict[str, Block], seed: int) -> dict[tuple[str, str], Block]:
    """Deal every task's rows to the nodes."""
    rng = np.random.default_rng(seed)
    blocks = {}
    for task, (X, y) in train.items():
        for k, mine in enumerate(np.array_split(rng.permutation(len(y)), N_NODES)):
            blocks[f"n{k}", task] = X[mine], y[mine]
    return blocks


def exchange(nodes: dict[str, Node], rounds: int) -> dict[str, np.ndarray]:
    """Let nodes meet and run so many rounds; return the classifiers that they agree on."""

    def deliver(messages: dict[str, dict[str, bytes]], now: float) -> None:
        for sender, some in messages.items():
            for name, data in some.items():
                assert nodes[name].take(sender, data, now), nodes[name].inbox.reasons

    now = 0.0
    while not all(node.may_begin(now) for node in nodes.values()):
        now += 0.01
        deliver({name: node.hello(now) for name, node in nodes.items()}, now)
    is_noisy = any(node.veil.is_noisy for node in nodes.values())
    for k in itertools.count():
        is_settled = all(node.is_settled for node in nodes.values())
        if is_settled or (k >= rounds and not is_noisy):
            break
        now += 0.01
        deliver({name: node.begin(now) for name, node in nodes.items()}, now)
        for node in nodes.values():
            node.finish(now)
    tasks = sorted({task for node in nodes.values() for task in node.holdings})
    return {
        task: np.mean([n.certified(task).sum(axis=0) for n in nodes.values() if task in n.holdings],
                      axis=0)
        for task in tasks
    }  # fmt: skip


def over_network(
    blocks: dict[tuple[str, str], Block], privacy: Privacy, chosen: Chosen, seed: int
) -> dict[str, np.ndarray]:
    """Train over the network, at a level of privacy."""
    names = list(dict.fromkeys(name for name, _ in blocks))
    network = Network.random(names, degree=0.8667, seed=seed)
    settings = Settings(
        C=chosen.C, local="exact", bias="mixed", task_penalty=chosen.eta, node_penalty=chosen.eta
    )
    draw = np.random.default_rng(seed).standard_normal
    privacy = replace(privacy, rounds=chosen.rounds)
    p = next(iter(blocks.values()))[0].shape[1]
    nodes = {}
    for name in map(str, network.nodes):
        veil = make_veil(privacy, draw=draw) if privacy.level == "dp" else Veil()
        node = Node(name, list(map(str, network.neighbours(name))), p, settings, 7, 1, veil=veil)
        mine = {task: block for (owner, task), block in blocks.items() if owner == name}
        for task, block in mine.items():
            node.enter(task, *block)
        if len(mine) > 1:
            node.couple(list(mine))
        nodes[name] = node
    return exchange(nodes, chosen.rounds)


def errors(found: dict[str, np.ndarray], test: dict[str, Block]) -> dict[str, float]:
    """Return the error by task, in per cent."""
    return {
        task: 100 * float((y * (X @ found[task][:-1] + found[task][-1]) <= 0).mean())
        for task, (X, y) in test.items()
    }


def at_centre(
    train: dict[str, Block], privacy: Privacy, C: float, seed: int
) -> dict[str, np.ndarray]:
    """Train on all rows in one place, with noise once."""
    X, y = (np.concatenate([block[i] for block in train.values()]) for i in (0, 1))
    task = np.repeat(list(train), [len(block[1]) for block in train.values()])
    draw = np.random.default_rng(seed).standard_normal
    model = release(X, y, task, privacy, C=C, tol=1e-6, draw=draw)
    return {str(one.task): np.append(one.coef[0], one.intercept[0]) for one in model.tasks}


# Choosing, on digits that are not tested


def choose() -> tuple[Chosen, Chosen, float]:
    """Return how to train with and without noise, and C at the centre."""
    every, _ = load(PUBLIC)
    rng = np.random.default_rng(0)
    held = {task: rng.random(len(y)) < 0.25 for task, (_, y) in every.items()}
    train = {task: (X[~held[task]], y[~held[task]]) for task, (X, y) in every.items()}
    test = {task: (X[held[task]], y[held[task]]) for task, (X, y) in every.items()}
    dp = Privacy("dp", 3.0, DELTA)
    deals = {seed: deal(train, seed) for seed in (11, 12)}

    def error(chosen: Chosen, privacy: Privacy) -> float:
        found = [errors(over_network(d, privacy, chosen, s), test) for s, d in deals.items()]
        return float(np.mean([list(one.values()) for one in found]))

    def error_at_centre(C: float) -> float:
        found = [errors(at_centre(train, dp, C, seed), test) for seed in deals]
        return float(np.mean([list(one.values()) for one in found]))

    noisy = min((Chosen(*one) for one in itertools.product(*GRID.values())),
                key=lambda one: error(one, dp))  # fmt: skip
    plain = min((Chosen(C, 10.0, MANY_ROUNDS) for C in PLAIN_C),
                key=lambda one: error(one, Privacy()))  # fmt: skip
    return noisy, plain, min(CENTRE_C, key=error_at_centre)


def line(name: str, found: list[dict[str, float]]) -> None:
    cells = []
    for task in found[0]:
        values = [one[task] for one in found]
        cells.append(f"{np.mean(values):.2f} ± {np.std(values):.2f}")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def table(
    deals: dict[int, dict[tuple[str, str], Block]], train: dict[str, Block],
    test: dict[str, Block], picked: tuple[Chosen, Chosen, float],
) -> None:  # fmt: skip
    noisy, plain, C = picked
    print(f"\n| error, % ({len(deals)} dealings, ± their spread) | {' | '.join(test)} |")
    print("|---|" + "---|" * len(test))
    for one in (plain, noisy):
        found = [errors(over_network(d, Privacy(), one, s), test) for s, d in deals.items()]
        line(f"no privacy, {one.rounds} rounds, C = {one.C:g}", found)
    for epsilon in EPSILONS:
        privacy = Privacy("dp", epsilon, DELTA)
        found = [errors(over_network(d, privacy, noisy, s), test) for s, d in deals.items()]
        line(f"ε = {epsilon:g}, every message", found)
        line(f"ε = {epsilon:g}, once, on the optimum at a trusted centre",
             [errors(at_centre(train, privacy, C, s), test) for s in deals])  # fmt: skip


def like(blocks: dict[tuple[str, str], Block]) -> tuple[dict[tuple[str, str], Block], Block]:
    """Deal public digits as other rows are dealt; return them, and rows to test on."""
    (X, y), *_ = load(PUBLIC)[0].values()
    order = np.random.default_rng(0).permutation(len(y))
    ends = np.cumsum([len(block[1]) for block in blocks.values()])
    *parts, rest = np.split(order, ends)
    dealt = {
        (name, "digits"): (X[mine], y[mine]) for (name, _), mine in zip(blocks, parts, strict=True)
    }
    return dealt, (X[rest], y[rest])


def small() -> None:
    """Print errors by C where rows are few."""
    found = load_vehicle()
    if found is None:
        raise SystemExit("DTSVM_DATA has no vehicle.npz.")
    blocks, held = found
    digits, rest = like(blocks)
    levels = [Privacy("dp", epsilon, DELTA) for epsilon in EPSILONS] + [Privacy()]
    names = [f"ε = {epsilon:g}" for epsilon in EPSILONS] + ["none"]
    print(f"| error, %, by C | {' | '.join(f'digits, {n}' for n in names)} | "
          f"{' | '.join(f'vehicle, {n}' for n in names)} |")  # fmt: skip
    print("|---|" + "---|" * 2 * len(names))
    for C in SMALL_C:
        chosen = Chosen(C, 10.0, SMALL_ROUNDS)
        cells = []
        for rows, test in ((digits, {"digits": rest}), (blocks, held)):
            for level in levels:
                (error,) = errors(over_network(rows, level, chosen, 1), test).values()
                cells.append(f"{error:.1f}")
        print(f"| {C:g} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    picked = choose()
    print(f"chosen on {', '.join(PUBLIC)}: {picked[0]};")
    print(f"without noise {picked[1]}; at the centre C = {picked[2]:g}")
    train, test = load(TASKS)
    seeds = range(1, 1 + N_SEEDS)
    table({seed: deal(train, seed) for seed in seeds}, train, test, picked)
    found = load_vehicle()
    if found is not None:
        blocks, held = found
        pooled = [np.concatenate([block[i] for block in blocks.values()]) for i in (0, 1)]
        table(dict.fromkeys(seeds, blocks), {"vehicle": (pooled[0], pooled[1])}, held, picked)


if __name__ == "__main__":
    small() if "--small" in sys.argv else main()
