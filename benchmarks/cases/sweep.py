"""One sweep of coordinate descent over the rows, against the matrix products nobody can avoid.

`dtsvm.kernel` with one sweep, against NumPy's `X @ w` and `X.T @ v` over the same rows, both on
one thread. *All rows move*: every row changes λ and u. *Warm*: after 60 sweeps at C = 3/n; every
row is looked at, few move. *Warm, skipping*: as training meets it, rows with slack left alone. The
rows fill about 50 MB. Read as: our time over NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.results import measured
from benchmarks.settings import Settings
from benchmarks.timing import race
from dtsvm.kernel import compiled


def run(settings: Settings) -> list[dict]:
    out = []
    for p, n in ((784, settings.pick(8_000, 500)), (10, settings.pick(600_000, 5_000))):
        rng = np.random.default_rng(settings.seed)
        X = rng.standard_normal((n, p))
        score = X @ rng.normal(size=p) / np.sqrt(p)
        y = np.where(score + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
        out += _shape(X, y, settings)
    return out


def _shape(X: np.ndarray, y: np.ndarray, settings: Settings) -> list[dict]:
    n, p = X.shape
    cold = _State(X, y, np.full(n, 5e8), 1e9)
    warm = _State(X, y, np.zeros(n), 3.0 / n)
    for _ in range(settings.pick(60, 5)):
        warm.sweep()
    looked = warm.copy()
    looked.until[:] = 0.0
    looked.screening = (0, -1.0, looked.screening[2])
    w, v = np.random.default_rng(1).normal(size=p), y.copy()

    def ours(state: _State) -> Callable[[], Callable]:
        def prepare() -> Callable:
            mine = state.copy()
            return mine.sweep

        return prepare

    def products() -> Callable:
        return lambda: (X @ w, X.T @ v)

    names = {"all rows move": cold, "warm": looked, "warm, skipping": warm}
    repeats = max(settings.repeats, settings.pick(15, 3))
    with threadpool_limits(1):
        seconds = race({"NumPy": products, **{k: ours(s) for k, s in names.items()}}, repeats)
    free = race({"NumPy": products}, repeats)
    one, all_cores = float(np.median(seconds["NumPy"])), float(np.median(free["NumPy"]))
    out = []
    for name, state in names.items():
        after = state.copy()
        after.sweep()
        moved = float(np.mean(after.dual != state.dual))
        a = float(np.median(seconds[name]))
        out.append(
            measured(
                f"p = {p}, {name}",
                a / one,
                ours=a,
                rival=one,
                goal=("at most", 2.0, 1.2),
                note=f"{a / all_cores:.2f} of NumPy on all cores; {moved:.0%} of rows moved",
                rows=n,
            )
        )
    return out


class _State:
    """One agent's λ and u, and a sweep over them."""

    def __init__(self, X, y, dual, box: float) -> None:
        n = len(y)
        self.given = X, y, box
        self.dual, self.until, self.listed = dual, np.zeros(n), np.zeros(n, np.int32)
        self.u, self.screening = np.zeros(X.shape[1] + 1), (0, -1.0, 0.0)
        ids = np.arange(n, dtype=np.int32)
        numbers = {"y": y.astype(np.int8), "weight": np.full(n, box), "dual": dual}
        numbers["norms"] = np.zeros(n)
        numbers |= {"until": self.until, "ids": ids, "at": ids, "listed": self.listed}
        self.rows = compiled.Rows(X, numbers)
        compiled.squared_norms(self.rows, ids)
        self.work = compiled.Work(X.shape[1] + 1, n)

    def copy(self) -> _State:
        X, y, box = self.given
        other = _State(X, y, self.dual.copy(), box)
        other.until[:], other.listed[:] = self.until, self.listed
        other.u, other.screening = self.u, self.screening
        return other

    def sweep(self) -> None:
        compiled.lean(self.work, self.u, self.u, self.screening)
        reached = compiled.solve_rows(self.rows, self.work, (1.0, 1.0), 0.0, (0.0, 1))[3]
        self.u, self.screening = reached[0], reached[1:]
