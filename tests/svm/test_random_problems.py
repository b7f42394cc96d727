"""Random networks, tasks, labels, weights and rows: always the optimum of an independent solver."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from dtsvm import DTSVM
from reference import solve_pooled
from worlds import random_network, seeds


def problem(rng):
    """Rows of 1–3 tasks with 2–5 labels over 1–5 nodes; some labels are missing at some nodes."""
    n_nodes, n_tasks, p = (int(rng.integers(1, most + 1)) for most in (5, 3, 5))
    labels = [rng.permutation(5)[: rng.integers(2, 6)] for _ in range(n_tasks)]
    rows = []
    for t in range(n_tasks):
        lacks = rng.random((n_nodes, len(labels[t]))) < 0.3
        for k, label in enumerate(labels[t]):
            lacks[rng.integers(n_nodes), k] = False  # somebody has it
            for v in np.flatnonzero(~lacks[:, k]):
                rows += [(t, v, label)] * int(rng.integers(1, 7))
    task, node, y = np.array(rows).T
    centre = rng.normal(size=(5, p))
    X = np.round(centre[y] + rng.normal(size=(len(y), p)), 3) * (rng.random((len(y), p)) < 0.8)
    return random_network(rng, n_nodes), X, y, task, node


def pooled(X, y, task, node, weight, settings):
    """The optimum of every label's problem, straight from the formula."""
    found, labels = {}, {t: np.unique(y[task == t]) for t in np.unique(task)}
    by_label = max(len(own) for own in labels.values()) > 2
    for label in np.unique(y) if by_label else [None]:
        names = [t for t in labels if label is None or label in labels[t]]
        mine = np.isin(task, names)
        larger = np.array([labels[t][-1] for t in task.tolist()])
        is_positive = y == (label if by_label else larger)
        held = np.array([len(np.unique(node[task == t])) for t in names])
        index = np.searchsorted(names, task[mine])
        best = solve_pooled(
            X[mine], np.where(is_positive[mine], 1.0, -1.0), index, held / held.sum(),
            weight=weight[mine], **settings,
        )  # fmt: skip
        for k, t in enumerate(names):
            found[t, label] = best.decision[k]
        found["objective"] = found.get("objective", 0.0) + best.objective
    return found


@pytest.mark.parametrize("block", seeds(10))
def test_the_network_ends_at_the_independent_solvers_optimum(block):
    for seed in range(20 * block, 20 * block + 20):
        rng = np.random.default_rng(seed)
        network, X, y, task, node = problem(rng)
        weight = rng.exponential(size=len(y)) if rng.random() < 0.5 else np.ones(len(y))
        ratio = 10 ** rng.uniform(-1, 1)
        settings = {"C": 10 ** rng.uniform(-2, 0.5), "common_reg": ratio, "specific_reg": 1 / ratio}
        clf = DTSVM(network, tol=1e-7, relays="auto", max_rounds=50_000, **settings)
        rows = csr_array(X) if rng.random() < 0.5 else X
        clf.fit(rows, y, task=task, node=node, sample_weight=weight)
        best = pooled(X, y, task, node, weight, settings)
        assert clf.info_.objective == pytest.approx(best["objective"], rel=1e-6, abs=1e-9), seed
        for one in clf.model_.tasks:
            asked = [None] if one.n_classifiers == 1 else one.classes
            for k, label in enumerate(asked):
                size = max(1.0, np.abs(one.coef[k]).max())
                np.testing.assert_allclose(
                    one.coef[k], best[one.task, label][:-1], atol=5e-3 * size, err_msg=str(seed)
                )
