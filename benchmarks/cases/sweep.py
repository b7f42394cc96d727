"""One sweep of coordinate descent over the rows, against the matrix products nobody can avoid.

`dtsvm.qp.solve` with one sweep, against NumPy's `X @ w` and `X.T @ v` over the same rows, both on
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
from dtsvm.qp import solve, squared_norms


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
    ids = np.arange(n)
    norms = np.empty(n)
    squared_norms(X, ids, ids, norms)
    cold = _State(np.full(n, 5e8), np.zeros(n), np.zeros(p + 1), 1e9)
    warm = _State(np.zeros(n), np.zeros(n), np.zeros(p + 1), 3.0 / n)
    for _ in range(settings.pick(60, 5)):
        warm.sweep(X, y, norms, ids)
    looked = _State(warm.dual, np.zeros(n), warm.u, warm.box, warm.travel)
    w, v = np.random.default_rng(1).normal(size=p), y.copy()

    def ours(state: _State) -> Callable[[], Callable]:
        def prepare() -> Callable:
            mine = state.copy()
            return lambda: mine.sweep(X, y, norms, ids)

        return prepare

    def products() -> Callable:
        return lambda: (X @ w, X.T @ v)

    names = {"all rows move": cold, "warm": looked, "warm, skipping": warm}
    ours(cold)()()  # compiled before the clock runs
    repeats = max(settings.repeats, settings.pick(15, 3))
    with threadpool_limits(1):
        seconds = race({"NumPy": products, **{k: ours(s) for k, s in names.items()}}, repeats)
    free = race({"NumPy": products}, repeats)
    one, all_cores = float(np.median(seconds["NumPy"])), float(np.median(free["NumPy"]))
    out = []
    for name, state in names.items():
        after = state.copy()
        after.sweep(X, y, norms, ids)
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

    def __init__(self, dual, until, u, box: float, travel: float = 0.0) -> None:
        self.dual, self.until, self.u, self.box, self.travel = dual, until, u, box, travel
        self.before, self.n_listed, self.wake = u.copy(), 0, -1.0
        self.listed, self.slept = np.zeros((2, len(dual)), np.int32)

    def copy(self) -> _State:
        other = _State(self.dual.copy(), self.until.copy(), self.u.copy(), self.box, self.travel)
        other.listed, other.n_listed, other.wake = self.listed.copy(), self.n_listed, self.wake
        return other

    def sweep(self, X, y, norms, ids) -> None:
        _, _, self.travel, _, self.n_listed, self.wake = solve(
            X,
            ids,
            y,
            self.dual,
            norms,
            self.until,
            ids,
            self.listed,
            0,
            len(ids),
            self.n_listed,
            self.wake,
            self.u,
            1.0,
            1.0,
            self.box,
            self.before,
            self.travel,
            0.0,
            0.0,
            0.0,
            1,
            self.slept,
        )
