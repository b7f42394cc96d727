"""Longer rows against the multi-task objective they stand for."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from dtsvm.select import Family, Lift


def draw(seed, n_tasks=3, p=4, n=60):
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(n, p)) + 0.3, np.arange(n) % n_tasks
    direction = rng.normal(size=p) + 0.5 * rng.normal(size=(n_tasks, p))
    y = np.where((X * direction[task]).sum(axis=1) + rng.normal(size=n) > 0.5, 1.0, -1.0)
    return X, y, task


def objective(W, b, *, X, y, task, C):
    margins = y * ((X * W[task]).sum(axis=1) + b[task])
    return C * np.maximum(0.0, 1.0 - margins).sum()


def solve_lifted(lift, X, y, task, C):
    Z = lift.rows(X, task).toarray()
    v, b = cp.Variable(Z.shape[1]), cp.Variable()
    value = 0.5 * cp.sum_squares(v) + C * cp.sum(cp.pos(1 - cp.multiply(y, Z @ v + b)))
    cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)
    return lift.classifiers(np.append(v.value, b.value)), value.value


def solve_multi_task(family, mean_square, X, y, task, C):
    """The objective as it is written, with ε₁ = 1/(1−θ), ε₂ = 1/θ and the family's biases."""
    T, p = task.max() + 1, X.shape[1]
    w0, W, b0, b = cp.Variable(p), cp.Variable((T, p)), cp.Variable(), cp.Variable(T)
    bias, share, _ = family
    value = 0.5 / (1 - share) * cp.sum_squares(w0) + 0.5 / share * cp.sum_squares(W)
    if bias == "mixed":
        value += 0.5 / (share * mean_square / p) * cp.sum_squares(b)
    scores = X @ w0 + b0 + cp.sum(cp.multiply(X, W[task]), axis=1)
    if bias != "common":
        scores = scores + b[task]
    value += C * cp.sum(cp.pos(1 - cp.multiply(y, scores)))
    cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)
    own = np.zeros(T) if bias == "common" else b.value
    return np.column_stack([w0.value + W.value, b0.value + own]), value.value


@pytest.mark.parametrize(
    "family", [Family("common", 0.3), Family("mixed", 0.6), Family("mixed", 0.02)]
)
def test_training_on_longer_rows_is_training_together(family):
    X, y, task = draw(0)
    mean_square = float((X**2).sum(axis=1).mean())
    lifted, value = solve_lifted(Lift(family, 4, 3, mean_square), X, y, task, 0.3)
    expected, best = solve_multi_task(family, mean_square, X, y, task, 0.3)
    assert value == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(lifted, expected, atol=1e-3)


@pytest.mark.parametrize("level", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("share", [0.02, 0.6])
def test_a_bias_of_the_tasks_own_is_almost_free(share, level):
    X, y, task = draw(1)
    mean_square = float((X**2).sum(axis=1).mean())
    family, C = Family("task", share), level / mean_square
    lifted, _ = solve_lifted(Lift(family, 4, 3, mean_square), X, y, task, C)
    expected, _ = solve_multi_task(family, mean_square, X, y, task, C)
    loss = objective(lifted[:, :4], lifted[:, 4], X=X, y=y, task=task, C=C)
    assert loss == pytest.approx(
        objective(expected[:, :4], expected[:, 4], X=X, y=y, task=task, C=C), rel=0.02
    )


def test_one_for_all_leaves_rows_as_they_are():
    X, _, task = draw(2)
    lift = Lift(Family("common", 0.0), 4, 3, 1.0)
    np.testing.assert_array_equal(lift.rows(X, task).toarray(), X)
    v = np.arange(5.0)
    np.testing.assert_array_equal(lift.classifiers(v), np.tile(v, (3, 1)))


@pytest.mark.parametrize(
    "family", [Family("task", 0.02), Family("mixed", 0.6), Family("common", 0.5)]
)
def test_a_longer_row_times_v_is_the_row_times_its_tasks_classifier(family):
    X, _, task = draw(3)
    lift = Lift(family, 4, 3, 2.5)
    v = np.random.default_rng(0).normal(size=lift.width + 1)
    W = lift.classifiers(v)
    for rows in (X, sparse.csr_array(X)):
        Z = lift.rows(rows, task)
        assert Z.shape == (60, lift.width)
        np.testing.assert_allclose(
            Z @ v[:-1] + v[-1], (X * W[task, :4]).sum(axis=1) + W[task, 4], atol=1e-12
        )


@pytest.mark.parametrize(
    "family", [Family("task", 0.6), Family("mixed", 0.02), Family("task", 0.0)]
)
def test_dense_and_sparse_longer_rows_are_the_same(rng, family):
    X, task = rng.normal(size=(9, 4)), np.arange(9) % 3
    X[2, 1] = 0.0
    lift = Lift(family, 4, 3, mean_square=2.0)
    sparse_rows = lift.rows(X, task)
    np.testing.assert_array_equal(lift.dense_rows(X, task), sparse_rows.toarray())
    assert lift.n_filled(X) == sparse_rows.nnz
