"""The modules that a fit and an agent's round pass through, in order, and how many calls they make.

    python -m benchmarks.walk                            # of this commit
    /path/to/other/python benchmarks/walk.py             # of another one

Compiled code counts as one module, `kernel/rounds`, and its calls do not show.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np

import dtsvm
from dtsvm import DTSVM, Network

ROOT = Path(dtsvm.__file__).parent


def walk(what: Callable[[], object]) -> dict[str, int]:
    """Return how often each module of ours was called, in the order of the first call."""
    seen: dict[str, int] = {}

    def note(frame, event, _) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            name = path.relative_to(ROOT).with_suffix("").as_posix()
            seen[name] = seen.get(name, 0) + 1

    sys.setprofile(note)
    try:
        what()
    finally:
        sys.setprofile(None)
    return seen


def a_fit() -> Callable[[], object]:
    rng = np.random.default_rng(0)
    X, task, node = rng.normal(size=(200, 10)), np.arange(200) % 2, np.arange(200) // 2 % 10
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, 1, -1)
    clf = DTSVM(Network.ring(10), C=0.01, n_jobs=1)
    clf.fit(X, y, task=task, node=node)
    return lambda: clf.fit(X, y, task=task, node=node)


def a_round() -> Callable[[], object]:
    """One node's round, in the middle of training, with what its neighbour says coming in."""
    place = import_module("dtsvm.runtime.agent.node")
    Node = getattr(place, "Node", None) or import_module("dtsvm.runtime.agent.node.node").Node
    settings = import_module("dtsvm.problem.settings").Settings
    rng = np.random.default_rng(0)
    nodes = [Node(one, [other], 4, settings(C=0.1, tol=1e-12), 7, 1) for one, other in ("ab", "ba")]
    for node in nodes:
        X = rng.normal(size=(20, 4))
        node.enter("sick", X, np.where(X[:, 0] > 0, 1.0, -1.0))
    now = 0.0

    def go() -> None:
        nonlocal now
        now += 0.05
        for node in nodes:
            for data in node.begin(now).values():
                next(other for other in nodes if other is not node).take(node.name, data, now)
        for node in nodes:
            node.finish(now)

    for _ in range(15):
        go()
    return go


if __name__ == "__main__":
    for name, make in (("a fit", a_fit), ("a round of two agents", a_round)):
        seen = walk(make())
        print(f"{name}: {len(seen)} modules, {sum(seen.values())} calls: {', '.join(seen)}\n")
