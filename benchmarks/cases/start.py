"""A newcomer's first minute: import, the first fit, the command line, each in new processes.

*First fit*: 4 nodes, 2 tasks, 80 rows, 5 features, right after the import; nothing is cached
between processes, so this is also the first fit of a new installation. *Import*: beyond what
`import sklearn.svm` takes, in processes that take turns. *Command line*: `dtsvm --version`.
The rival's column: LinearSVC, its import and first fit of the same rows.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import workers
from benchmarks.results import measured
from benchmarks.settings import Settings


def run(settings: Settings) -> list[dict]:
    ours, rival, words = [], [], []
    for _ in range(settings.repeats):
        ours.append(workers.ask("start", {"who": "dtsvm"}, 600.0))
        rival.append(workers.ask("start", {"who": "LinearSVC"}, 600.0))
        words.append(_version())

    def median(side: list[dict], key: str) -> float:
        return float(np.median([one[key] for one in side]))

    fit, other_fit = median(ours, "fit"), median(rival, "fit")
    load, other_load = median(ours, "load"), median(rival, "load")
    more, version = load - other_load, float(np.median(words))
    return [
        measured(
            "first fit", fit, unit="s", ours=fit, rival=other_fit, goal=("at most", 0.1, 0.01)
        ),
        measured(
            "import beyond sklearn.svm", more, unit="s", ours=load, rival=other_load,
            goal=("at most", 0.2, 0.05),
        ),
        measured("dtsvm --version", version, unit="s", ours=version, goal=("at most", 0.3, 0.1)),
    ]  # fmt: skip


def _version() -> float:
    command = [str(Path(sys.executable).with_name("dtsvm")), "--version"]
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


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
