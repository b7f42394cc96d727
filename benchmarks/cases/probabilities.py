"""Probabilities learnt over a ring beside scikit-learn's calibration of pooled rows.

Four real sets (school, vehicle, contraception, heart), standardised, all tasks taken as one, a
random half for training (at most 2,000 rows), 8 nodes, C = 0.1 over the mean squared row. The rival
is CalibratedClassifierCV over the same linear SVM, five shuffled folds, one sigmoid. Log loss and
the calibration error of ten bins are those of the other half.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.results import measured
from benchmarks.settings import MissingData, Settings
from dtsvm import DSVM

SETS = ("school", "vehicle", "contraception", "heart")
N_NODES, MOST_ROWS = 8, 2000
GOAL = ("at most", 0.01, None)


def run(settings: Settings) -> list[dict]:
    if settings.data is None:
        raise MissingData("needs school.npz and the like: give --data DIR or set DTSVM_DATA.")
    names = SETS if not settings.quick else SETS[-1:]
    return [result for name in names for result in _compare(settings.data, name, settings.seed)]


def _compare(folder: Path, name: str, seed: int) -> list[dict]:
    rng = np.random.default_rng(seed)
    with np.load(folder / f"{name}.npz") as file:
        X, y = StandardScaler().fit_transform(file["X"].astype(float)), file["y"]
    order = rng.permutation(len(y))
    train, test = order[: min(len(y) // 2, MOST_ROWS)], order[len(y) // 2 :]
    C = 0.1 / (X[train] ** 2).sum(axis=1).mean()
    node = rng.integers(N_NODES, size=len(train))
    ours = DSVM("ring", C=C, probability=True).fit(X[train], y[train], node=node)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    theirs = CalibratedClassifierCV(SVC(kernel="linear", C=C), cv=folds, ensemble=False)
    theirs.fit(X[train], y[train])
    p, q = (clf.predict_proba(X[test])[:, 1] for clf in (ours, theirs))
    return [
        measured(f"{name}: {what}", abs(measure(y[test] > 0, p) - measure(y[test] > 0, q)),
                 ours=float(measure(y[test] > 0, p)), rival=float(measure(y[test] > 0, q)),
                 goal=GOAL, unit="apart", sides="")
        for what, measure in (("log loss", log_loss), ("calibration error", _calibration_error))
    ]  # fmt: skip


def _calibration_error(is_positive: np.ndarray, p: np.ndarray) -> float:
    """Mean distance of share and probability over ten bins, by their rows."""
    bins = np.minimum((10 * p).astype(int), 9)
    gaps = [abs(is_positive[bins == b].mean() - p[bins == b].mean()) * (bins == b).mean()
            for b in np.unique(bins)]  # fmt: skip
    return float(np.sum(gaps))
