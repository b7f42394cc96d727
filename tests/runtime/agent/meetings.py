"""Nodes in one process, with a carrier that may lose messages, and a Session to compare with."""

import numpy as np

from dtsvm import Network, Session
from dtsvm.problem import Settings
from dtsvm.runtime.agent.node.node import Node
from worlds import rows

FIXED = {"C": 0.1, "task_penalty": 2.0, "node_penalty": 3.0, "tol": 1e-9}


def make_blocks(nodes, tasks, p=4, n=12, seed=0):
    """Rows for each (node, task), tasks related."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=p)
    directions = {t: shared + 0.5 * rng.normal(size=p) for t in tasks}
    return {(v, t): rows(rng, n, p, directions[t]) for v in nodes for t in tasks}


def make_session(network, blocks, settings, couple=True, **more):
    live = Session(network, **settings, **more)
    for (node, task), (X, y) in blocks.items():
        live.enter(node, task, X, y, labels=(-1.0, 1.0))
    if couple and len(live.tasks) > 1:
        live.couple(*live.tasks)
    return live


def make_node(
    name, neighbours, blocks, settings=FIXED, *, couple=True, incarnation=1, network=7, **more
):
    mine = {task: block for (node, task), block in blocks.items() if node == name}
    p = next(iter(blocks.values()))[0].shape[1]
    node = Node(name, list(neighbours), p, Settings(**settings), network, incarnation, **more)
    for task, (X, y) in mine.items():
        node.enter(task, X, y)
    if couple and len(mine) > 1:
        node.couple(list(mine))
    return node


class Carrier:
    """Carries messages between nodes in rounds of its own, losing a share of them.

    With patience a node waits as many ticks for those it has not heard before it finishes a round.
    """

    def __init__(self, nodes, loss=0.0, rng=None, seconds=0.05, patience=0):
        self.nodes = {node.name: node for node in nodes}
        self.loss, self.rng, self.seconds, self.patience = loss, rng, seconds, patience
        self.cut = set()
        self.now, self.last = 0.0, np.inf
        self.begun = set()
        self.working = {}  # nodes in the middle of a round, and for how many ticks

    def deliver(self, sender, messages):
        for name, data in messages.items():
            is_cut = frozenset((sender, name)) in self.cut
            if name not in self.nodes or is_cut:
                continue
            if self.loss and self.rng.random() < self.loss:
                continue
            assert self.nodes[name].take(sender, data, self.now), self.nodes[name].refused

    def tick(self):
        """Everyone does a round, or says hello."""
        self.now += self.seconds
        self.working = {n: k for n, k in self.working.items() if n in self.nodes}
        for name, node in list(self.nodes.items()):
            if name not in self.begun and node.may_begin(self.now):
                self.begun.add(name)
            is_idle = name not in self.begun or name in self.working or node.round >= self.last
            if is_idle or node.is_balancing(self.now) or node.is_settled:
                self.deliver(name, node.outbox.earlier(node.present))
                self.deliver(name, node.hello(self.now))
            else:
                self.working[name] = 0
                self.deliver(name, node.begin(self.now))
        for name, waited in list(self.working.items()):
            if waited >= self.patience or self.nodes[name].is_complete():
                self.nodes[name].finish(self.now)
                del self.working[name]
            else:
                self.working[name] += 1

    def meet(self):
        """Let everyone hear of everyone before the first round."""
        for _ in range(100):
            self.now += self.seconds
            for name, node in self.nodes.items():
                self.deliver(name, node.hello(self.now))
            if all(node.may_begin(self.now) for node in self.nodes.values()):
                self.begun = set(self.nodes)
                return
        raise AssertionError("the nodes never met")

    def run_until_round(self, last):
        """Let everyone finish this round, and nobody begin the next."""
        self.last = last
        while any(node.round < last or name in self.working for name, node in self.nodes.items()):
            self.tick()
            assert not any(node.is_settled for node in self.nodes.values())
        self.last = np.inf

    def run_until_settled(self, most=20_000):
        for k in range(most):
            self.tick()
            if all(node.is_settled for node in self.nodes.values()):
                return k + 1
        left = {n: (v.residual, v.calm) for n, v in self.nodes.items() if not v.is_settled}
        raise AssertionError(f"not settled: {left}")


def build(network, blocks, settings=FIXED, **more):
    return [
        make_node(name, network.neighbours(name), blocks, settings, **more)
        for name in network.nodes
    ]


def distance(nodes, session):
    """Worst relative distance of the nodes' classifiers from those of a session."""
    worst = 0.0
    for node in nodes:
        for task in node.holdings:
            mine = node.decision(task)
            right = session.classifier(task)
            whole = np.append(right.coef_[0], right.intercept_)
            worst = max(worst, np.linalg.norm(mine - whole) / np.linalg.norm(whole))
    return worst


def cold(network, blocks, settings=FIXED):
    """The pooled optimum: a fresh session trained far beyond the nodes' tolerance."""
    live = make_session(network, blocks, settings)
    live.run(rounds=2000)
    return live


NAMES = ["a", "b", "c", "d", "e", "f"]
SHAPES = {"ring": Network.ring, "complete": Network.complete, "line": Network.line}
