"""All ten digits of MNIST as CSR rows over a network, against LIBLINEAR with all rows in one place.

60,000 images, pixels/255, one task of ten labels, 10 nodes in a random network of degree 0.8667,
C = 0.01, all cores for us (LIBLINEAR has one). Each side has the loosest tolerance at which its
objective, ours at the worst node, is within 3 % of a proven bound. Errors are those on the 10,000
test images. Memory is the peak of a process of its own while it fits, beyond what it held before.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich import print

from benchmarks import workers
from benchmarks.results import measured
from benchmarks.rivals.one_vs_rest import Rows, loosest, loosest_pooled, pooled
from benchmarks.settings import MissingData, Settings
from benchmarks.timing import race, spread
from dtsvm import DSVM, Network
from dtsvm.data import load_mnist

TARGET = 0.03
C = 0.01


def run(settings: Settings) -> list[dict]:
    if settings.mnist is None and not settings.quick:
        raise MissingData("needs the four MNIST files: give --mnist DIR or set DTSVM_MNIST.")
    source = None if settings.quick else str(settings.mnist)
    rows, X_test, y_test = _digits(source)
    node = np.random.default_rng(settings.seed).integers(10, size=len(rows.y))
    network = Network.random(10, degree=0.8667, seed=settings.seed)
    best = DSVM(network, C=C, tol=1e-2).fit(rows.X, rows.y, node=node)
    bound = best.info_.objective / (1 + best.info_.gap)
    print(f"{len(rows.y)} rows; reference proven to {best.info_.gap:.1e}")

    def fit(tol: float) -> DSVM:
        return DSVM(network, C=C, tol=tol).fit(rows.X, rows.y, node=node)

    def worst(tol: float) -> float:
        clf = fit(tol)
        each = zip(clf.node_coef_, clf.node_intercept_, strict=True)
        return max(rows.objective(*own) for own in each) / bound - 1

    tol, rival = loosest(worst, TARGET), loosest_pooled(rows, bound, TARGET)
    if tol is None or rival is None:
        note = f"not within {TARGET}: ours {tol}, LIBLINEAR {rival}"
        return [measured("whole fit", None, note=note)]
    done: dict[str, Any] = {}
    sides = {
        "ours": lambda: lambda: done.update(ours=fit(tol)),
        "LIBLINEAR": lambda: lambda: done.update(theirs=pooled(rows, *rival)),
    }
    seconds = race(sides, settings.repeats, 600.0)
    us, them = (float(np.median(seconds[name])) for name in sides)
    errors = [float((done[who].predict(X_test) != y_test).mean()) for who in ("ours", "theirs")]
    return [
        measured("whole fit", us / them, ours=us, rival=them, goal=("at most", 3.0, 1.0),
                 note=f"{done['ours'].info_.n_rounds} rounds", our_tol=tol,
                 their_tol=rival, cores=os.cpu_count(),
                 spread={who: spread(seconds[who]) for who in sides}),
        measured("test error beside LIBLINEAR's", 100 * abs(errors[0] - errors[1]),
                 ours=100 * errors[0], rival=100 * errors[1], goal=("at most", 0.1, 0.0),
                 unit="points", sides="%"),
        _memory(source, tol, rows.n_bytes),
    ]  # fmt: skip


def _digits(source: str | None) -> tuple[Rows, Any, Any]:
    digits = load_mnist(source) if source else load_mnist()
    X, X_test = (sp.csr_matrix(images) / 255.0 for images in (digits.train_images,
                                                             digits.test_images))  # fmt: skip
    return Rows(X, digits.train_labels, C), X_test, digits.test_labels


def _memory(source: str | None, tol: float, n_bytes: int) -> dict:
    found = workers.ask("ten_digits", {"source": source, "tol": tol}, 900.0)
    goal = ("at most", 1.5, None)
    if found is None:
        return measured("peak beyond X", None, goal=goal, unit="of X", note="took over 900 s")
    return measured("peak beyond X", found["extra"] / n_bytes, ours=found["extra"] / 1e6,
                    rival=n_bytes / 1e6, goal=goal, unit="of X", sides="MB")  # fmt: skip


def _work(source: str | None, tol: float) -> dict:
    rows, _, _ = _digits(source)
    node = np.random.default_rng(0).integers(10, size=len(rows.y))
    clf = DSVM(Network.random(10, degree=0.8667, seed=0), C=C, tol=tol)
    clf.fit(rows.X[:1000], rows.y[:1000], node=node[:1000])
    workers.reset_peak()
    before = workers.resident_bytes()
    clf.fit(rows.X, rows.y, node=node)
    return {"extra": workers.peak_bytes() - before}


if __name__ == "__main__":
    workers.answer(_work)
