"""What is trained on: rows dealt to the nodes of a network, and the one objective over them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from benchmarks.settings import MissingData, Settings
from dtsvm import DTSVM, Network, Session
from dtsvm.data import DigitFeatures, deal, load_mnist

__all__ = ["Problem", "breast_cancer", "digits", "digits_pixels", "synthetic", "vehicle"]

PAIRS = ("3v6", "8v9")


@dataclass(frozen=True)
class Problem:
    """Rows of every node and task; `y` is ±1, `task` and `node` count from 0.

    Every node holds every task, so A_t/A = 1/T and one node that pools all rows has the same
    objective.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    task: np.ndarray
    node: np.ndarray
    network: Network
    C: float
    common_reg: float = 1.0
    specific_reg: float = 1.0

    @cached_property
    def n_tasks(self) -> int:
        """How many tasks."""
        return int(self.task.max()) + 1

    @property
    def weights(self) -> dict[str, float]:
        """C, ε₁ and ε₂ as every estimator takes them."""
        return {
            "C": self.C,
            "common_reg": self.common_reg,
            "specific_reg": self.specific_reg,
        }

    def replace(self, **changes: Any) -> Problem:
        """Return the same with some parts changed."""
        return replace(self, **changes)

    def fit(self, **options: Any) -> DTSVM:
        """Train as a user would."""
        clf = DTSVM(self.network, **self.weights, **options)
        return clf.fit(self.X, self.y, task=self.task, node=self.node)

    def session(self, **options: Any) -> Session:
        """Open the same training as a session; no round is run."""
        live = Session(self.network, **self.weights, **options)
        for node in range(len(self.network)):
            for task in range(self.n_tasks):
                mine = (self.node == node) & (self.task == task)
                live.enter(node, task, self.X[mine], self.y[mine], labels=(-1.0, 1.0))
        if self.n_tasks > 1:
            live.couple(*range(self.n_tasks))
        return live

    def objective(self, decision: np.ndarray) -> np.ndarray:
        """Evaluate the one objective for classifiers u_t = w₀ + w_t of shape (…, T, p + 1).

        The common part is the best one for these classifiers: it minimises ε₁/2 ‖w₀‖² +
        Σ_t ε₂/2T ‖u_t − w₀‖², so w₀ = ε₂ mean(u_t) / (ε₁ + ε₂). A solver is judged by its
        classifiers alone, whatever it thinks their parts are.
        """
        decision = np.asarray(decision)
        w = decision[..., :-1]
        common = self.specific_reg * w.mean(axis=-2) / (self.common_reg + self.specific_reg)
        specific = w - common[..., None, :]
        value = 0.5 * self.common_reg * (common**2).sum(axis=-1)
        value = value + 0.5 * self.specific_reg * (specific**2).sum(axis=-1).mean(axis=-1)
        for t in range(self.n_tasks):
            mine = self.task == t
            u = decision[..., t, :]
            scores = self.X[mine] @ np.moveaxis(u[..., :-1], -1, 0).reshape(w.shape[-1], -1)
            margins = self.y[mine, None] * (scores + u[..., -1].reshape(1, -1))
            loss = np.maximum(0.0, 1.0 - margins).sum(axis=0)
            value = value + self.C * loss.reshape(decision.shape[:-2])
        return value

    def worst(self, by_node: np.ndarray, optimum: float) -> float:
        """Return the relative suboptimality of the worst node's classifiers (V, T, p + 1)."""
        return float(self.objective(by_node).max() / optimum - 1.0)


def node_decisions(clf: DTSVM) -> np.ndarray:
    """Return what every node found, (V, T, p + 1)."""
    return np.concatenate([clf.node_coef_, clf.node_intercept_[:, :, None]], axis=2)


def session_decisions(live: Session, n_tasks: int) -> np.ndarray:
    """Return what every node found so far, (V, T, p + 1), straight from the state.

    Agents entered node by node, so slot order is (node, task).
    """
    state = live._members.state
    estimate = state.estimate(state.tables.agents.used)
    return (estimate[:, 0] + estimate[:, 1]).reshape(-1, n_tasks, estimate.shape[2])


# Data


@cache
def _features(n_components: int) -> DigitFeatures:
    return DigitFeatures(load_mnist(), n_components)


def digits(network: Network, rows_an_agent: int, C: float, seed: int) -> Problem:
    """Two tasks of bundled MNIST digits, 10 principal components of pixels/255."""
    features, rng = _features(10), np.random.default_rng(seed)
    n = rows_an_agent * len(network)
    draws = [features.draw(pair, n, 0, rng=rng) for pair in PAIRS]
    X = np.concatenate([draw.X_train for draw in draws])
    y = np.concatenate([draw.y_train for draw in draws]).astype(float)
    node = np.concatenate([deal(n, len(network), seed=rng) for _ in PAIRS])
    return Problem("digits", X, y, np.repeat(np.arange(2), n), node, network, C)


def digits_pixels(network: Network, settings: Settings, C: float) -> Problem:
    """All MNIST training images of two tasks, pixels/255; a quick run takes 600 bundled ones."""
    if settings.quick:
        source = load_mnist()
    elif settings.mnist is None:
        raise MissingData("needs the four MNIST files: give --mnist DIR or set DTSVM_MNIST.")
    else:
        source = load_mnist(settings.mnist)
    rng = np.random.default_rng(settings.seed)
    images, labels, tasks = [], [], []
    for t, pair in enumerate(PAIRS):
        for digit, sign in ((int(pair[0]), 1.0), (int(pair[2]), -1.0)):
            chosen = source.train_images[source.train_labels == digit]
            chosen = chosen[:150] if settings.quick else chosen
            images.append(chosen)
            labels.append(np.full(len(chosen), sign))
            tasks.append(np.full(len(chosen), t))
    X = np.concatenate(images) / 255.0
    y, task = np.concatenate(labels), np.concatenate(tasks)
    order = rng.permutation(len(y))
    node = deal(len(y), len(network), seed=rng)
    return Problem("mnist", X[order], y[order], task[order], node, network, C)


def breast_cancer(network: Network, C: float, seed: int) -> Problem:
    """Return scikit-learn's breast cancer rows, standardised: 398 of 569, one task, ½‖w‖²."""
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(seed)
    train = rng.permutation(len(y))[:398]
    X = np.ascontiguousarray(StandardScaler().fit_transform(X[train]))
    node = deal(len(train), len(network), seed=rng)
    task = np.zeros(len(train), int)
    y = np.where(y[train] > 0, 1.0, -1.0)
    return Problem("breast cancer", X, y, task, node, network, C, 2.0, 2.0)


def vehicle(network: Network, settings: Settings, rows_an_agent: int, C: float) -> Problem:
    """Some of the vehicle rows, standardised; sensors 0–10 and 11–22 are two tasks."""
    path = settings.data / "vehicle.npz" if settings.data else None
    if path is None or not path.is_file():
        raise MissingData("needs vehicle.npz: give --data DIR or set DTSVM_DATA.")
    with np.load(path) as held:
        X, y, sensor = held["X"].astype(float), held["y"].astype(float), held["task"]
    task = (sensor > 10).astype(int)
    rng = np.random.default_rng(settings.seed)
    n = rows_an_agent * len(network)
    drawn = np.concatenate([rng.permutation(np.flatnonzero(task == t))[:n] for t in (0, 1)])
    X = np.ascontiguousarray(StandardScaler().fit_transform(X)[drawn])
    return _dealt("vehicle", X, y[drawn], task[drawn], network, C, rng)


def synthetic(
    network: Network,
    rows_an_agent: int,
    n_features: int,
    C: float,
    seed: int | np.random.Generator,
    n_tasks: int = 2,
) -> Problem:
    """Gaussian rows with noisy linear labels, the tasks' directions related."""
    rng = np.random.default_rng(seed)
    n = rows_an_agent * len(network)
    shared = rng.normal(size=n_features)
    X = rng.normal(size=(n_tasks * n, n_features))
    task = np.repeat(np.arange(n_tasks), n)
    direction = shared + 0.5 * rng.normal(size=(n_tasks, n_features))
    score = np.einsum("ij,ij->i", X, direction[task]) / np.sqrt(n_features)
    y = np.where(score + 0.7 * rng.normal(size=len(X)) > 0, 1.0, -1.0)
    return _dealt("synthetic", X, y, task, network, C, rng)


def _dealt(
    name: str,
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    network: Network,
    C: float,
    seed: int | np.random.Generator,
) -> Problem:
    """Deal each task's rows evenly."""
    rng = np.random.default_rng(seed)
    node = np.empty(len(y), np.int64)
    for t in np.unique(task):
        node[task == t] = deal(int((task == t).sum()), len(network), seed=rng)
    return Problem(name, X, y, task, node, network, C)
