"""The first fit of a new process, what is compiled being cached on disk.

New Python processes, numba's cache warm: import, then the first `fit` of 4 nodes, 80 rows, 5
features. The rival's column: importing LinearSVC and its first fit of the same rows, in processes
that take turns with ours.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks import workers
from benchmarks.results import measured
from benchmarks.settings import Settings


def run(settings: Settings) -> list[dict]:
    workers.ask("start", {"who": "dtsvm"}, 600.0)  # fills the cache
    ours, rival = [], []
    for _ in range(settings.repeats):
        ours.append(workers.ask("start", {"who": "dtsvm"}, 600.0))
        rival.append(workers.ask("start", {"who": "LinearSVC"}, 600.0))
    out = []
    for name, keys, goal in (
        ("first fit", ("fit",), ("at most", 0.5, 0.2)),
        ("import and first fit", ("load", "fit"), None),
    ):
        a, b = (
            float(np.median([sum(one[key] for key in keys) for one in side]))
            for side in (ours, rival)
        )
        out.append(measured(name, a, unit="s", ours=a, rival=b, goal=goal))
    return out


def _work(who: str) -> dict:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    y = np.sign(X[:, 0] + 0.1)
    started = time.perf_counter()
    if who == "dtsvm":
        from dtsvm import DTSVM

        loaded = time.perf_counter()
        DTSVM(network="ring", C=0.1).fit(X, y, node=np.arange(80) % 4, task=np.arange(80) // 40)
    else:
        from sklearn.svm import LinearSVC

        loaded = time.perf_counter()
        LinearSVC(C=0.1).fit(X, y)
    return {"load": loaded - started, "fit": time.perf_counter() - loaded}


if __name__ == "__main__":
    workers.answer(_work)
