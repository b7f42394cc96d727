"""Random networks, tasks and rows for hypothesis to play with."""

import os
from dataclasses import dataclass, field

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from dtsvm import Network, Session

# DTSVM_EXAMPLES multiplies how many cases hypothesis makes, for a long night's run; a share of 1
# makes fewer, for a build of the kernel that is slow.
EXAMPLES = float(os.environ.get("DTSVM_EXAMPLES", "1"))


def examples(n):
    """Settings for n cases of an ordinary run."""
    return settings(max_examples=len(seeds(n)))


def seeds(n):
    """The seeds of n cases of an ordinary run."""
    return range(max(1, round(n * EXAMPLES)))


@dataclass
class World:
    """Everything a session is told, kept beside it so that it can be pooled independently."""

    network: Network
    settings: dict
    blocks: dict = field(default_factory=dict)  # (node, task) -> (X, y)
    n_features: int = 1

    def session(self, **more):
        live = Session(self.network, **{"relays": "auto", **self.settings, **more})
        for (node, task), (X, y) in self.blocks.items():
            live.enter(node, task, X, y, n_features=self.n_features)
        if len(live.tasks) > 1:
            live.couple(*live.tasks)
        return live

    def pooled_rows(self, tasks):
        """Rows, labels, task index and A_t/A of these tasks together."""
        mine = [(t, *self.blocks[v, t]) for v, t in self.blocks if t in tasks]
        X = np.concatenate([np.zeros((0, self.n_features))] + [x for _, x, _ in mine])
        y = np.concatenate([np.zeros(0)] + [labels for _, _, labels in mine])
        index = np.concatenate(
            [np.zeros(0, int)] + [np.full(len(labels), tasks.index(t)) for t, _, labels in mine]
        )
        counts = np.array([sum(1 for t, _, _ in mine if t == task) for task in tasks])
        return X, y, index, counts / counts.sum()


def rows(rng, n, n_features, direction, one_class=False):
    """n rows with noisy linear labels, or all of one class."""
    X = rng.normal(size=(n, n_features))
    y = np.where(X @ direction + 0.7 * rng.normal(size=n) + 0.3 > 0, 1.0, -1.0)
    return X, np.full(n, y[0]) if one_class and n else y


def random_network(rng, n_nodes):
    """Any connected graph: a random tree and a random number of further links."""
    order = rng.permutation(n_nodes)
    links = {tuple(sorted((int(order[i]), int(order[rng.integers(i)])))) for i in range(1, n_nodes)}
    rest = [(i, j) for i in range(n_nodes) for j in range(i + 1, n_nodes) if (i, j) not in links]
    keep = rng.random(len(rest)) < rng.random()
    return Network(
        range(n_nodes), sorted(links | {x for x, k in zip(rest, keep, strict=True) if k})
    )


def make_world(rng, n_nodes, n_tasks, n_features, C, common_reg, specific_reg):
    """A world with missing, empty and one-class blocks; every task has both classes somewhere."""
    world = World(
        random_network(rng, n_nodes),
        {"C": C, "common_reg": common_reg, "specific_reg": specific_reg, "tol": 1e-6},
        n_features=n_features,
    )
    shared = rng.normal(size=n_features)
    for t in range(n_tasks):
        direction = shared + 0.5 * rng.normal(size=n_features)
        holders = rng.permutation(n_nodes)[: rng.integers(1, n_nodes + 1)]
        for i, v in enumerate(sorted(holders.tolist())):
            kind = "full" if i == 0 else rng.choice(["full", "full", "one class", "empty"])
            n = 0 if kind == "empty" else int(rng.integers(2, 9))
            X, y = rows(rng, n, n_features, direction, kind == "one class")
            if i == 0:
                y[:2] = 1.0, -1.0
            world.blocks[v, f"task {t}"] = (X, y)
    return world


@st.composite
def worlds(draw, max_nodes=12):
    """Strategy for `make_world`, C from 1e-3 to 10 and ε₁/ε₂ from 0.01 to 100."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ratio = 10 ** draw(st.floats(-2, 2))
    return make_world(
        rng,
        n_nodes=draw(st.integers(2, max_nodes)),
        n_tasks=draw(st.integers(1, 4)),
        n_features=draw(st.integers(1, 5)),
        C=10 ** draw(st.floats(-3, 1)),
        common_reg=ratio**0.5,
        specific_reg=ratio**-0.5,
    )
