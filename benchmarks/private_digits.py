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

--small prints something else: vehicles by ε, where nodes have few rows. C, the penalty and the
rounds are those that err least, at each ε, over two dealings of public digits that are dealt like
vehicles, to as many nodes, as many rows to each; vehicles' errors are means over four networks.
Beside it: no noise with the same three; noise once at a trusted centre, whose C is picked likewise.
Then, what stands against what: how hard rows pull, and how large the noise is.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dtsvm import Network
from dtsvm.data import load_mnist
from dtsvm.problem import Privacy, Settings
from dtsvm.runtime.agent.node.electing import decide
from dtsvm.runtime.agent.node.lanes import Lane, candidate_lanes, candidate_name
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.privacy.accounting import noise_multiplier
from dtsvm.runtime.privacy.sums import NoisySums
from dtsvm.runtime.privacy.veil import Veil, make_veil
from dtsvm.svm.release import release

TASKS, PUBLIC = {"3v6": (3, 6), "8v9": (8, 9)}, {"0v5": (0, 5), "4v7": (4, 7)}
EPSILONS = (1.0, 3.0, 8.0)
DELTA = 1e-5
N_NODES, N_SEEDS, MANY_ROUNDS = 10, 3, 300
GRID = {"C": (0.05, 0.1, 0.2, 0.4, 0.8), "eta": (3.0, 10.0, 30.0), "rounds": (5, 10, 20, 40)}
CENTRE_C = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
PLAIN_C = (0.05, 0.2, 0.8, 3.0)
SMALL_EPSILONS = (1.0, 3.0, 8.0, 16.0, 64.0)
SMALL_GRID = {"C": (0.2, 0.8), "eta": (10.0,), "rounds": (5, 10, 20)}


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


def exchange(
    nodes: dict[str, Node], rounds: int, elect: Callable[[dict[str, Node]], None] = lambda _: None
) -> dict[str, np.ndarray]:
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
        elect(nodes)
    tasks = sorted({task for node in nodes.values() for task in node.tasks})
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
        for task, (X, y) in mine.items():
            lanes = [Lane(task, y)]
            node.enter(task, X, candidate_lanes(lanes, privacy.candidates or (chosen.C,)))
        if len(mine) > 1:
            node.couple(list(mine))
        nodes[name] = node

    def elect(nodes: dict[str, Node]) -> None:
        wrong = [_wrong(node, blocks, draw) for node in nodes.values()]
        known = [one for one in wrong if one is not None]
        if len(known) == len(nodes):
            best = decide(np.concatenate([np.sum(known, axis=0), np.zeros(len(known[0]))]))
            PICKED.append(privacy.candidates[best])
            for node in nodes.values():
                node.take_choice(best)

    return exchange(nodes, chosen.rounds, elect if privacy.candidates else lambda _: None)


PICKED: list[float] = []  # what was chosen, in the order of runs


def _wrong(
    node: Node, blocks: dict[tuple[str, str], Block], draw: Callable[[int], np.ndarray]
) -> np.ndarray | None:
    """Return a node's errors by candidate, with noise, once all candidates have trained."""
    budget = node.veil.budget
    if not budget.is_comparing or budget.may_tell:
        return None
    found = [
        {task: node.agreed(candidate_name(task, k)) for task in node.tasks}
        for k in range(len(budget.privacy.candidates))
    ]
    if any(part is None for parts in found for part in parts.values()):
        return None

    def count() -> np.ndarray:
        held = {task: blocks[node.name, task] for task in node.tasks}
        return np.array([sum(n_wrong(parts[t].sum(axis=0), *held[t]) for t in held)
                         for parts in found])  # fmt: skip

    return NoisySums(budget, draw).compared(count)


def n_wrong(u: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    return float((y * (X @ u[:-1] + u[-1]) <= 0).sum())


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


def line(name: str, found: list[dict[str, float]], *more: str) -> None:
    cells = []
    for task in found[0]:
        values = [one[task] for one in found]
        cells.append(f"{np.mean(values):.2f} ± {np.std(values):.2f}")
    print(f"| {name} | {' | '.join([*cells, *more])} |", flush=True)


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
    """Print vehicles by ε, with values that digits dealt like them say."""
    found = load_vehicle()
    if found is None:
        raise SystemExit("DTSVM_DATA has no vehicle.npz.")
    blocks, held = found
    digits, rest = like(blocks)
    grid = [Chosen(*one) for one in itertools.product(*SMALL_GRID.values())]
    public = {"digits": tuple(np.concatenate([b[i] for b in digits.values()]) for i in (0, 1))}
    pooled = {"vehicle": tuple(np.concatenate([b[i] for b in blocks.values()]) for i in (0, 1))}
    print("| ε | C, penalty, rounds | vehicle, every message | the same, no noise | "
          "once, at a trusted centre |")  # fmt: skip
    print("|---|---|---|---|---|")
    for epsilon in SMALL_EPSILONS:
        level = Privacy("dp", epsilon, DELTA)
        test = {"digits": rest}
        best = min(grid, key=lambda one: _error(digits, level, one, test, 2))
        mine = [_error(blocks, level, best, held, 4), _error(blocks, Privacy(), best, held, 1)]
        C = min(CENTRE_C, key=lambda C: _central(public, level, C, test))
        cells = [f"{one:.1f}" for one in (*mine, _central(pooled, level, C, held))]
        print(f"| {epsilon:g} | {best.C:g}, {best.eta:g}, {best.rounds} | {' | '.join(cells)} |",
              flush=True)  # fmt: skip
    why()


def why(rounds: int = 10, epsilon: float = 3.0) -> None:
    """Print how hard all rows pull at first, and how large the noise of all nodes is, by task.

    Both in the most that one row can move: ‖Σ y x‖ / (2 √2) if rows and bias are of length 1, and
    m √(nodes) √(numbers told).
    """
    digits = deal(load(TASKS)[0], 1)
    vehicle, _ = load_vehicle() or ({}, {})
    print("\n| at first, in what a row can move | all rows together | noise of all nodes |")
    print("|---|---|---|")
    for task in ("3v6", "8v9", "vehicle"):
        some = [block for key, block in {**digits, **vehicle}.items() if key[1] == task]
        pull = np.linalg.norm(sum(y @ X for X, y in some)) / math.sqrt(8)
        size = math.sqrt(len(some) * (some[0][0].shape[1] + 1))
        noise = noise_multiplier(epsilon, DELTA, rounds) * size
        print(f"| {task} | {pull:,.0f} | {noise:,.0f} |")


def _error(
    blocks: dict, level: Privacy, chosen: Chosen, test: dict[str, Block], n_seeds: int
) -> float:
    seeds = range(1, 1 + n_seeds)
    found = [errors(over_network(blocks, level, chosen, seed), test) for seed in seeds]
    return float(np.mean([list(one.values()) for one in found]))


def _central(train: dict, level: Privacy, C: float, test: dict[str, Block]) -> float:
    found = [errors(at_centre(train, level, C, seed), test) for seed in (1, 2, 3)]
    return float(np.mean([list(one.values()) for one in found]))


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
