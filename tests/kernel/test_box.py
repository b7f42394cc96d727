import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dtsvm.qp import class_sums, distance, dot, pull, solve, tally


def setup(seed, n=30, p=4, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(dtype)
    y = np.where(rng.random(n) > 0.5, 1.0, -1.0)
    return X, y, (X.astype(float) ** 2).sum(axis=1)


def run(X, y, norms, u, d_weights, d_bias, box, dual=None, until=None):
    n = len(y)
    dual = np.zeros(n) if dual is None else dual
    until = np.zeros(n) if until is None else until
    sweeps, violation, travel, *_ = solve(
        X,
        np.arange(n),
        y,
        dual,
        norms,
        until,
        np.arange(n),
        np.zeros(n, np.int32),
        0,
        n,
        0,
        -1.0,
        u,
        d_weights,
        d_bias,
        box,
        u.copy(),
        0.0,
        0.0,
        0.0,
        1e-14,
        100_000,
        np.zeros(n, np.int32),
    )
    return dual, sweeps, violation, travel


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.floats(0.01, 10), st.floats(0.01, 10), st.floats(0.01, 10))
def test_the_solution_satisfies_the_kkt_conditions(seed, d_weights, d_bias, box):
    X, y, norms = setup(seed)
    m = np.random.default_rng(seed + 1).normal(size=X.shape[1] + 1)
    u = m.copy()
    dual, *_ = run(X, y, norms, u, d_weights, d_bias, box)
    Xt = np.column_stack([X, np.ones(len(X))])
    D = np.append(np.full(X.shape[1], d_weights), d_bias)
    np.testing.assert_allclose(u, D * (Xt.T @ (y * dual)) + m, atol=1e-9)
    slope = y * (Xt @ u) - 1
    assert np.all((dual >= 0) & (dual <= box))
    assert np.all(slope[dual == 0] >= -1e-9)
    assert np.all(slope[dual == box] <= 1e-9)
    assert np.all(np.abs(slope[(dual > 0) & (dual < box)]) <= 1e-9)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.01, 1))
def test_skipping_bound_rows_changes_no_bit(seed, box):
    n, D = 200, np.array([0.5] * 4 + [0.7])
    X, y, norms = setup(seed, n=n)
    rng = np.random.default_rng(seed)
    ids, listed, slept = np.arange(n), np.zeros(n, np.int32), np.zeros(n, np.int32)
    dual, until, u, travel, n_listed, wake = np.zeros(n), np.zeros(n), np.zeros(5), 0.0, 0, -1.0
    plain, v = np.zeros(n), np.zeros(5)
    looked = 0
    for k in range(40):  # the neighbours move u less and less
        before = u.copy()
        push = rng.normal(size=5) * 0.5 * 0.8**k
        u, v = u + push, v + push
        moved = float(np.sqrt(((u - before) ** 2 / D).sum()))
        sweeps, _, travel, looks, n_listed, wake = solve(
            X, ids, y, dual, norms, until, ids, listed, 0, n, n_listed, wake,
            u, D[0], D[-1], box, before, travel, moved, 0.0, 0.0, 3, slept,
        )  # fmt: skip
        looked += looks / sweeps
        for _ in range(sweeps):
            solve(
                X, ids, y, plain, norms, np.zeros(n), ids, np.zeros(n, np.int32), 0, n, 0, -1.0,
                v, D[0], D[-1], box, v.copy(), 0.0, 0.0, 0.0, 0.0, 1, slept,
            )  # fmt: skip
    assert np.array_equal(dual, plain)
    assert np.array_equal(u, v)
    assert looked < 0.7 * 40 * n


def test_float32_rows_give_the_same_answer_to_their_precision():
    X, y, norms = setup(7)
    u, v = np.zeros(5), np.zeros(5)
    run(X, y, norms, u, 1.0, 1.0, 0.5)
    run(X.astype(np.float32), y, norms, v, 1.0, 1.0, 0.5)
    np.testing.assert_allclose(u, v, atol=1e-5)


def test_dot_is_the_dot_product_for_every_length(rng):
    for p in range(40):
        X, u = rng.normal(size=(3, p)), rng.normal(size=p + 1)
        np.testing.assert_allclose(dot(X, 1, u), X[1] @ u[:p], atol=1e-12)


def test_tally_pull_and_class_sums_sum_what_they_say(rng):
    X, y, _ = setup(9)
    ids, w = np.arange(30), rng.normal(size=5)
    dual = np.clip(rng.normal(0.5, 0.5, 30), 0.0, 1.0)
    positive, negative, room, total = np.zeros((4, 5))
    pull(X, ids, y, dual, ids, total)
    awake = np.zeros(30)
    found = tally(X, ids, y, dual, awake, ids, 1.0, w, 0.0, total, room)
    class_sums(X, ids, y, dual, ids, positive, negative)
    Xt = np.column_stack([X, np.ones(30)])
    inside = np.minimum(dual, 1.0 - dual)
    hinge = np.maximum(0, 1 - y * (Xt @ w)).sum()
    np.testing.assert_allclose(found, [hinge, dual[y > 0].sum(), dual[y < 0].sum(), y @ inside])
    np.testing.assert_allclose((positive - negative)[:-1], total[:-1])
    np.testing.assert_allclose(total, Xt.T @ (y * dual))
    np.testing.assert_allclose(room, Xt.T @ inside)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.floats(0.01, 10), st.floats(0, 1), st.floats(0.01, 1))
def test_rows_that_sleep_are_tallied_without_a_look(seed, d_weights, way, box):
    """Whatever classifier is near u, the sums are those of a look at every row."""
    X, y, norms = setup(seed)
    rng = np.random.default_rng(seed + 1)
    u, ids, until = rng.normal(size=5), np.arange(30), np.zeros(30)
    dual, _, _, travel = run(X, y, norms, u, d_weights, 1.0, box, until=until)
    w = u + way * rng.normal(size=5)
    (room, room_by_looks, total) = np.zeros((3, 5))
    pull(X, ids, y, dual, ids, total)
    horizon = travel + distance(u, w, d_weights, 1.0)
    found = tally(X, ids, y, dual, until, ids, box, w, horizon, total, room)
    looked = tally(X, ids, y, dual, until, ids, box, w, np.inf, total, room_by_looks)
    np.testing.assert_allclose(found, looked, atol=1e-9)
    np.testing.assert_allclose(room, room_by_looks)
    if way == 0:
        blind = np.where((dual == 0) | (dual == box), np.nan, 1.0)[:, None] * X
        is_awake = (until <= horizon) & ((dual == 0) | (dual == box))
        unseen = tally(blind, ids, y, dual, until, ids, box, w, horizon, total, np.zeros(5))
        assert is_awake.any() or np.isfinite(unseen).all()
