"""Task sets for choosing: real rows, split anew by a seed into few to train on and the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from benchmarks.r_sets import CONFIRMING, DECIDING
from benchmarks.settings import MissingData
from dtsvm.data import DigitFeatures, load_mnist

__all__ = ["FRESH", "R_CONFIRMING", "R_DECIDING", "SENSORS", "SETS", "Places", "Split"]

OTHERS = ["1v4", "2v7", "3v5", "6v8", "9v0", "7v9", "5v6", "8v3"]
PAIRS = ["0v1", "2v3", "4v5", "6v7", "8v9", "3v6", "5v4", "1v7", "0v8", "2v5", "9v6", "3v4"]
TEST_ROWS = 1000  # of each digit task


class Places(NamedTuple):
    """Where data lie."""

    data: Path | None
    mnist: Path | None
    r_sets: Path | None = None


class Split(NamedTuple):
    """Rows to train on and rows to test on; tasks count from 0, labels are ±1."""

    X: np.ndarray
    y: np.ndarray
    task: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    task_test: np.ndarray


Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


@cache
def _load(places: Places, name: str) -> Rows:
    folders = [folder for folder in (places.data, places.r_sets) if folder]
    paths = [path for folder in folders if (path := folder / f"{name}.npz").is_file()]
    if not paths:
        raise MissingData(
            f"needs {name}.npz: give --data DIR, or of benchmarks.r_sets --r-sets DIR."
        )
    with np.load(paths[0]) as held:
        X, y, task = held["X"].astype(float), held["y"].astype(float), held["task"]
    return X, y, np.unique(task, return_inverse=True)[1]


def _cancer() -> Rows:
    """Breast cancer, in fifths by mean texture."""
    X, target = load_breast_cancer(return_X_y=True)
    edges = np.quantile(X[:, 1], [0.2, 0.4, 0.6, 0.8])
    return X, np.where(target == 1, 1.0, -1.0), np.digitize(X[:, 1], edges)


def _diabetes() -> Rows:
    """Diabetes, the worst 30 % from the rest, by sex and age."""
    X, target = load_diabetes(return_X_y=True, scaled=False)
    y = np.where(target > np.quantile(target, 0.7), 1.0, -1.0)
    return X, y, 3 * (X[:, 1] > 1).astype(int) + np.digitize(X[:, 0], [40, 55])


def _wine() -> Rows:
    """Wine, each of three kinds from the rest."""
    X, kind = load_wine(return_X_y=True)
    y = [np.where(kind == k, 1.0, -1.0) for k in range(3)]
    return np.concatenate([X] * 3), np.concatenate(y), np.repeat(np.arange(3), len(X))


BUNDLED = {"breast cancer": _cancer, "diabetes": _diabetes, "wine": _wine}


def _rows(
    name: str, n: int | float, *, at_least: int = 0, n_turned: int = 0
) -> Callable[[Places, int], Split]:
    """Draw n rows of each task, or that share of them; standardise by what was drawn.

    Tasks of fewer rows than `at_least` train along and are not tested on.
    """

    def split(places: Places, seed: int) -> Split:
        rng = np.random.default_rng(seed)
        X, y, task = BUNDLED[name]() if name in BUNDLED else _load(places, name)
        counts = np.bincount(task)
        turned = rng.permutation(len(counts))[:n_turned]
        y = np.where(np.isin(task, turned), -y, y)
        drawn = []
        for t in range(len(counts)):
            mine = rng.permutation(np.flatnonzero(task == t))
            drawn.append(mine[: n if isinstance(n, int) else int(n * len(mine))])
        train = np.concatenate(drawn)
        test = np.setdiff1d(np.flatnonzero(counts[task] >= at_least), train)
        mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
        X = (X - mean) / np.where(spread > 1e-9, spread, 1.0)
        return Split(X[train], y[train], task[train], X[test], y[test], task[test])

    return split


def _some(draw: Callable[[Places, int], Split], n_tasks: int) -> Callable[[Places, int], Split]:
    """Keep some of a set's tasks, others for every seed."""

    def split(places: Places, seed: int) -> Split:
        X, y, task, X_test, y_test, task_test = draw(places, seed)
        order = np.random.default_rng([seed, 5]).permutation(int(task.max()) + 1)
        number = np.full(len(order), -1)
        number[order[:n_tasks]] = np.arange(n_tasks)
        train, test = number[task] >= 0, number[task_test] >= 0
        return Split(X[train], y[train], number[task[train]],
                     X_test[test], y_test[test], number[task_test[test]])  # fmt: skip

    return split


@cache
def _digits(places: Places, n_components: int) -> DigitFeatures:
    if places.mnist is None:
        raise MissingData("needs the four MNIST files: give --mnist DIR or set DTSVM_MNIST.")
    return DigitFeatures(load_mnist(places.mnist), n_components)


def _pairs(
    counts: dict[str, int | tuple[int, int]], n_components: int = 10
) -> Callable[[Places, int], Split]:
    """Draw rows of pairs of digits: so many in all, or so many of each digit."""

    def split(places: Places, seed: int) -> Split:
        rng, features = np.random.default_rng(seed), _digits(places, n_components)
        draws = [
            features.draw(pair, n, TEST_ROWS, rng=rng) if isinstance(n, int)
            else features.draw(pair, None, TEST_ROWS, draw=n, rng=rng)
            for pair, n in counts.items()
        ]  # fmt: skip
        train, test = ([len(draw[k]) for draw in draws] for k in (1, 3))
        tasks = np.arange(len(draws))
        X, y, X_test, y_test = (np.concatenate([draw[k] for draw in draws]) for k in range(4))
        return Split(X, y.astype(float), np.repeat(tasks, train),
                     X_test, y_test.astype(float), np.repeat(tasks, test))  # fmt: skip

    return split


SETS: dict[str, Callable[[Places, int], Split]] = {
    "school (20 rows a task)": _rows("school", 20),
    "vehicle (20; tested on tasks of ≥ 27)": _rows("vehicle", 20, at_least=27),
    "vehicle, 7 of 23 tasks turned round": _rows("vehicle", 20, at_least=27, n_turned=7),
    "contraception (10)": _rows("contraception", 10),
    "heart (75 %)": _rows("heart", 0.75),
    "heart (20)": _rows("heart", 20),
    "digits 3v6 (50), 8v9 (400)": _pairs({"3v6": 50, "8v9": 400}),
    "digits 3v6 (2 of 12), 8v9 (200)": _pairs({"3v6": (2, 10), "8v9": 200}),
    "the same with 9v8": _pairs({"3v6": (2, 10), "9v8": 200}),
    "digits 3v6 (30), 5v4 (60), 8v9 (400)": _pairs({"3v6": 30, "5v4": 60, "8v9": 400}),
    "12 pairs of digits (20), 30 components": _pairs(dict.fromkeys(PAIRS, 20), 30),
}

# Every node a task of its own, as in MOCHA: three quarters of each vehicle sensor's rows.
SENSORS = _rows("vehicle", 0.75)

# Nothing was ever tuned on these.
FRESH: dict[str, Callable[[Places, int], Split]] = {
    "40 schools (10)": _some(_rows("school", 10), 40),
    "vehicle (10; tested on tasks of ≥ 27)": _rows("vehicle", 10, at_least=27),
    "contraception (20)": _rows("contraception", 20),
    "heart (40)": _rows("heart", 40),
    "breast cancer by texture (20)": _rows("breast cancer", 20),
    "diabetes by sex and age (25)": _rows("diabetes", 25),
    "wine, each kind from the rest (15)": _rows("wine", 15),
    "8 pairs (15), 20 components": _pairs(dict.fromkeys(OTHERS, 15), 20),
    "10 pairs (10)": _pairs(dict.fromkeys(PAIRS[:10], 10)),
    "4v9 (2 of 12), 7v1 (200)": _pairs({"4v9": (2, 10), "7v1": 200}),
    "5v8 (3 of 18), 2v3 (100)": _pairs({"5v8": (3, 15), "2v3": 100}),
    "7v1 (2 of 22), 4v9 (150), 0v6 (40)": _pairs({"7v1": (2, 20), "4v9": 150, "0v6": 40}),
    "3v5 (3 of 20), 4v9 (2 of 20), 7v9 (17 of 20), 2v8 (60)": _pairs(
        {"3v5": (3, 17), "4v9": (2, 18), "7v9": (17, 3), "2v8": 60}
    ),
}

# From R's packages: nothing was ever tuned on the latter.
R_DECIDING, R_CONFIRMING = (
    {title: _rows(name, n) for title, (name, n) in some.items()} for some in (DECIDING, CONFIRMING)
)
