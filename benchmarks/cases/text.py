"""Made-up sparse rows as texts have them, over a ring, against LIBLINEAR on pooled rows.

200,000 rows of 100,000 words, 50 drawn a row by Zipf's law, weighted and of length 1; two labels by
a tenth of the words, with noise. A ring of 4 nodes, C = 1, all cores for us (LIBLINEAR has one).
Ours at each tolerance, judged at its worst node, beside LIBLINEAR's quickest setting (up
to four tolerances and two constants of its bias, until one beats our best) whose
objective is at least as good. Memory is the peak of a process of its own while it fits, beyond what
it had before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import workers
from benchmarks.results import measured
from benchmarks.rivals.one_vs_rest import Rows, best, compare, pooled_curve, walk, worst_node
from benchmarks.settings import Settings
from dtsvm import DSVM, Network

TOLERANCES = (0.1, 0.03, 0.01)
N_WORDS, WORDS_A_ROW, N_NODES = 100_000, 50, 4


def make_rows(n: int, seed: int = 0) -> Rows:
    """Make texts and labels."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, N_WORDS + 1)
    words = np.searchsorted(np.cumsum(share / share.sum()), rng.random((n, WORDS_A_ROW)))
    words = np.minimum(np.sort(words, axis=1), N_WORDS - 1).astype(np.int32)
    values = rng.exponential(size=words.shape) * np.log1p(words + 1.0)
    starts = np.arange(0, words.size + 1, WORDS_A_ROW)
    X = sp.csr_matrix((values.ravel(), words.ravel(), starts), shape=(n, N_WORDS))
    X.sum_duplicates()
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(length, np.diff(X.indptr))
    score = X @ (rng.normal(size=N_WORDS) * (rng.random(N_WORDS) < 0.1))
    noise = 0.3 * score.std() * rng.normal(size=n)
    return Rows(X, np.where(score + noise > np.median(score), 1, -1), 1.0)


def run(settings: Settings) -> list[dict]:
    n = settings.pick(200_000, 2_000)
    rows = make_rows(n, settings.seed)
    node = np.random.default_rng(settings.seed).integers(N_NODES, size=n)
    ours = walk(
        lambda tol: _fit(rows, node, tol), [(tol,) for tol in TOLERANCES],
        lambda clf: worst_node(rows, clf), settings.repeats,
    )  # fmt: skip
    bound = max(one.clf.info_.objective / (1 + one.clf.info_.gap) for one in ours)
    result = compare(ours, pooled_curve(rows, settings.repeats, best(ours).objective), bound)
    tol = TOLERANCES[-1]
    found = workers.ask("text", {"n": n, "tol": tol}, 900.0)
    extra = None if found is None else found["extra"]
    return [
        *result,
        measured("peak beyond X", None if extra is None else extra / rows.n_bytes,
                 ours=None if extra is None else extra / 1e6, rival=rows.n_bytes / 1e6,
                 goal=("at most", 1.0, None), unit="of X", sides="MB"),
    ]  # fmt: skip


def _fit(rows: Rows, node: Any, tol: float) -> DSVM:
    return DSVM(Network.ring(N_NODES), C=rows.C, tol=tol).fit(rows.X, rows.y, node=node)


def _work(n: int, tol: float) -> dict:
    rows = make_rows(n)
    node = np.random.default_rng(0).integers(N_NODES, size=n)
    few = Rows(rows.X[:1000], rows.y[:1000], rows.C)
    _fit(few, node[:1000], tol)
    workers.reset_peak()
    before = workers.resident_bytes()
    _fit(rows, node, tol)
    return {"extra": workers.peak_bytes() - before}


if __name__ == "__main__":
    workers.answer(_work)
