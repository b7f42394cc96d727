"""Nodes that choose, in one process, and what memory chooses on the same rows."""

import functools

import numpy as np

from dtsvm import DTSVMCV
from dtsvm.problem import Settings
from dtsvm.runtime.agent.node.chooser import Chooser
from dtsvm.runtime.agent.node.node import Node
from dtsvm.select import choosing_at_node, read_families

FAMILIES = [("task", 1.0), ("task", 0.6), ("common", 0.0), ("mixed", 0.6, True)]
PRICES = [0.3, 3.0]


def make_chooser(
    name, neighbours, blocks, p, tol=1e-6, *, incarnation=1, network=7,
    families=FAMILIES, prices=PRICES, **more,
):  # fmt: skip
    """Blocks are by (node, task)."""
    node = Node(name, list(neighbours), p, Settings(), network, incarnation, **more)
    for (v, task), (X, y, *weight) in blocks.items():
        if v == name:
            node.enter(task, X, y, weight=weight[0] if weight else None)
    settings = Settings(common_reg=2.0, specific_reg=2.0, tol=tol)
    some = read_families("a test", families)
    return Chooser(node, functools.partial(choosing_at_node, families=some, C=prices), settings)


def agents(network, blocks, p, tol, **more):
    return [make_chooser(n, network.neighbours(n), blocks, p, tol, **more) for n in network.nodes]


class Room:
    """Carries what choosers say, losing a share of it."""

    def __init__(self, choosers, loss=0.0, seed=0, seconds=0.01):
        self.choosers = {one.node.name: one for one in choosers}
        self.loss, self.rng = loss, np.random.default_rng(seed)
        self.now, self.seconds = 0.0, seconds
        self.n_bytes = 0

    def say(self, name, messages):
        for other, data in messages.items():
            if other in self.choosers and self.rng.random() >= self.loss:
                self.choosers[other].node.take(name, data, self.now)

    def tick(self):
        self.now += self.seconds
        for name, one in list(self.choosers.items()):
            self.say(name, one.node.hello(self.now))
        for name, one in list(self.choosers.items()):
            for other, envelopes in one.step(self.now).items():
                for data in envelopes:
                    self.n_bytes += len(data)
                    if other in self.choosers and self.rng.random() >= self.loss:
                        self.choosers[other].hear(name, data)

    def run(self, most=50_000):
        for k in range(most):
            self.tick()
            epochs = {one.epoch for one in self.choosers.values()}
            if all(one.outcome for one in self.choosers.values()) and len(epochs) == 1:
                return k + 1
        raise AssertionError({n: one.status() for n, one in self.choosers.items()})


def memory(network, blocks, tol=1e-6, families=FAMILIES, prices=PRICES):
    X, y = (np.concatenate([block[i] for block in blocks.values()]) for i in (0, 1))
    weights = [block[2] for block in blocks.values() if len(block) > 2]
    node = np.repeat([v for v, _ in blocks], [len(b[1]) for b in blocks.values()])
    task = np.repeat([t for _, t in blocks], [len(b[1]) for b in blocks.values()])
    clf = DTSVMCV(network, candidates=families, C=prices, tol=tol, max_rounds=200_000, n_jobs=1)
    weight = np.concatenate(weights) if weights else None
    return clf.fit(X, y.astype(int), task=task, node=node, sample_weight=weight)
