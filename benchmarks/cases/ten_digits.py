"""All ten digits of MNIST as CSR rows over a network, against LIBLINEAR with all rows in one place.

60,000 images, pixels/255, one task of ten labels, 10 nodes in a random network of degree 0.8667,
C = 0.01, all cores for us (LIBLINEAR has one). Ours at each tolerance, judged
at its worst node, beside LIBLINEAR's quickest setting (four tolerances, two constants of its bias)
whose objective is at least as good. Errors are those on the 10,000 test images, each side's best.
Memory is the peak of a process of its own while it fits, beyond what it held before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import workers
from benchmarks.results import measured
from benchmarks.rivals.one_vs_rest import Rows, best, compare, pooled_curve, walk, worst_node
from benchmarks.settings import MissingData, Settings
from dtsvm import DSVM, Network
from dtsvm.data import load_mnist

TOLERANCES = (0.1, 0.03, 0.01)
C = 0.01


def run(settings: Settings) -> list[dict]:
    if settings.mnist is None and not settings.quick:
        raise MissingData("needs the four MNIST files: give --mnist DIR or set DTSVM_MNIST.")
    source = None if settings.quick else str(settings.mnist)
    rows, X_test, y_test = _digits(source)
    node = np.random.default_rng(settings.seed).integers(10, size=len(rows.y))
    network = Network.random(10, degree=0.8667, seed=settings.seed)

    def fit(tol: float) -> DSVM:
        return DSVM(network, C=C, tol=tol).fit(rows.X, rows.y, node=node)

    ours = walk(fit, [(tol,) for tol in TOLERANCES], lambda clf: worst_node(rows, clf),
                settings.repeats)  # fmt: skip
    bound = max(one.clf.info_.objective / (1 + one.clf.info_.gap) for one in ours)
    theirs = pooled_curve(rows, settings.repeats, best(ours).objective)
    errors = [float((best(side).clf.predict(X_test) != y_test).mean()) for side in (ours, theirs)]
    return [
        *compare(ours, theirs, bound),
        measured("test error beside LIBLINEAR's", 100 * abs(errors[0] - errors[1]),
                 ours=100 * errors[0], rival=100 * errors[1], goal=("at most", 0.1, 0.0),
                 unit="points", sides="%"),
        _memory(source, TOLERANCES[-1], rows.n_bytes),
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
