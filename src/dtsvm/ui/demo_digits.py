"""The demo's rows: digits dealt to the nodes, and a simulation on the very same rows."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import DigitFeatures, deal, load_mnist
from dtsvm.problem import Network
from dtsvm.svm.estimators import DTSVM
from dtsvm.svm.model_file import load_model

__all__ = [
    "SETTINGS",
    "Comparison",
    "DigitRows",
    "compare",
    "deal_digits",
    "simulate",
    "task_lines",
    "write_files",
]

ROWS_PER_NODE = {"3v6": 4, "8v9": 30}  # a task with few rows, and one that helps it
N_TEST = 1000
N_FEATURES = 10
SETTINGS = {"C": 0.01, "tol": 1e-4}
EXACT_TOL = 1e-6  # of the simulation, so that what is left is the network's own distance
MOST_ROUNDS = 100_000


@dataclass(frozen=True)
class DigitRows:
    """One task's rows, the node of each, and rows to test on."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    node: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def deal_digits(names: list[str], seed: int) -> dict[str, DigitRows]:
    """Draw rows of every task and deal them to the nodes."""
    digits = DigitFeatures(load_mnist(), n_components=N_FEATURES)
    rng = np.random.default_rng(seed)
    dealt = {}
    for task, n in ROWS_PER_NODE.items():
        X, y, X_test, y_test = digits.draw(task, n * len(names), N_TEST, rng=rng)
        node = np.array(names)[deal(len(y), len(names), seed=rng)]
        dealt[task] = DigitRows(X, y, node, X_test, y_test)
    return dealt


def task_lines() -> dict[str, dict[str, Any]]:
    """Return what a node's configuration says about its tasks."""
    return {
        task: {"data": f"{task}.csv", "label": "label", "labels": [-1, 1]} for task in ROWS_PER_NODE
    }


def write_files(site: Path, dealt: dict[str, DigitRows]) -> None:
    """Write every node's own rows into its folder, and the test rows beside the folders."""
    names = [f"pc{j + 1}" for j in range(N_FEATURES)]
    tests = []
    for task, rows in dealt.items():
        for node in np.unique(rows.node).tolist():
            mine = rows.node == node
            lines = [[*x, y] for x, y in zip(rows.X[mine].tolist(), rows.y[mine], strict=True)]
            _write_csv(site / node / f"{task}.csv", [*names, "label"], lines)
        pairs = zip(rows.X_test.tolist(), rows.y_test, strict=True)
        tests += [[*x, y, task] for x, y in pairs]
    _write_csv(site / "test.csv", [*names, "label", "task"], tests)


def _write_csv(path: Path, header: list[str], lines: list[list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(lines)


def simulate(network: Network, dealt: dict[str, DigitRows]) -> DTSVM:
    """Train all nodes in this process on the rows they have."""
    every = list(dealt.values())
    model = DTSVM(network, C=SETTINGS["C"], tol=EXACT_TOL, max_rounds=MOST_ROUNDS)
    return model.fit(
        np.concatenate([rows.X for rows in every]),
        np.concatenate([rows.y for rows in every]),
        task=np.repeat(list(dealt), [len(rows.y) for rows in every]),
        node=np.concatenate([rows.node for rows in every]),
    )


@dataclass(frozen=True)
class Comparison:
    """A node's answers beside the simulation's: risks by task, and how far the classifiers are."""

    node: str
    network: dict[str, float]
    simulation: dict[str, float]
    distance: float  # ‖u − u'‖ / ‖u'‖, the larger of the tasks

    @property
    def risk_distance(self) -> float:
        """The largest difference of the risks of a task."""
        return max(abs(risk - self.simulation[task]) for task, risk in self.network.items())


def compare(site: Path, simulation: DTSVM, dealt: dict[str, DigitRows]) -> list[Comparison]:
    """Read every node's model, and see how often it errs and how far it is from the simulation."""
    found = []
    for v, node in enumerate(simulation.nodes_.tolist()):
        model = load_model(site / node / "model.json")
        mine, theirs, distances = {}, {}, []
        for t, task in enumerate(simulation.tasks_.tolist()):
            X, y = dealt[task].X_test, dealt[task].y_test
            mine[task] = 1 - model.score(X, y, task=task)
            theirs[task] = 1 - simulation.score(X, y, task=task, node=node)
            at = model.tasks_.tolist().index(task)
            one = np.append(model.coef_[at], model.intercept_[at])
            other = np.append(simulation.node_coef_[v, t], simulation.node_intercept_[v, t])
            distances.append(float(np.linalg.norm(one - other) / np.linalg.norm(other)))
        found.append(Comparison(node, mine, theirs, max(distances)))
    return found
