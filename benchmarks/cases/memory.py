"""How much memory `fit` takes beyond the rows it is given.

1,000,000 rows, 50 features, float64 (400 MB), 100 nodes in a ring of degree 4, 1 task, all cores.
A process of its own makes the rows, fits something tiny, forgets its peak, then fits for 30
rounds; the value is the peak of its resident memory beyond what it held before, over the size of
X.
"""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks import workers
from benchmarks.results import measured
from benchmarks.settings import Settings


def run(settings: Settings) -> list[dict]:
    n = settings.pick(1_000_000, 20_000)
    found = workers.ask("memory", {"n": n}, 1800.0)
    if found is None:
        return [
            measured(
                "peak beyond X",
                None,
                goal=("at most", 0.5, 0.2),
                unit="of X",
                note="fit took over 1800 s",
            )
        ]
    return [
        measured(
            "peak beyond X",
            found["extra"] / found["X"],
            ours=found["extra"] / 1e6,
            rival=found["X"] / 1e6,
            sides="MB",
            goal=("at most", 0.5, 0.2),
            unit="of X",
            **found,
        )
    ]


def _work(n: int) -> dict:
    from dtsvm import DSVM, Network
    from dtsvm.errors import NotConvergedWarning

    warnings.simplefilter("ignore", NotConvergedWarning)
    rng = np.random.default_rng(0)
    n_nodes, p = 100, 50
    direction = rng.normal(size=p) / np.sqrt(p)
    X, y = np.empty((n, p)), np.empty(n)
    for start in range(0, n, 10_000):
        some = slice(start, min(start + 10_000, n))
        rng.standard_normal(out=X[some])
        y[some] = np.sign(X[some] @ direction + 0.5 * rng.standard_normal(len(X[some])))
    node = np.arange(n) % n_nodes
    links = sorted({tuple(sorted((i, (i + k) % n_nodes))) for i in range(n_nodes) for k in (1, 2)})
    clf = DSVM(Network(range(n_nodes), links), C=10.0 / n, max_rounds=30)
    few = slice(0, 1000)
    clf.fit(X[few], y[few], node=node[few])
    workers.reset_peak()
    before = workers.resident_bytes()
    clf.fit(X, y, node=node)
    return {
        "X": X.nbytes,
        "before": before,
        "extra": workers.peak_bytes() - before,
        "seconds": clf.info_.seconds,
        "rounds": clf.info_.n_rounds,
    }


if __name__ == "__main__":
    workers.answer(_work)
