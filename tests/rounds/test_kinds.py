"""The one objective in all its kinds against an independent solver: biases, weights, sparse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from dtsvm.problem import Settings
from dtsvm.rounds import State, average, certificates
from dtsvm.runtime import Memory
from reference import solve_kinds
from worlds import examples, random_network


def spread(rng, chosen, n_nodes=4, n_tasks=2, p=3, kind="dense"):
    """A state whose agents hold random weighted rows; and the rows, pooled."""
    state = State(p, chosen)
    net = random_network(rng, n_nodes)
    nodes = np.repeat(np.arange(n_nodes), n_tasks)
    tasks = np.tile(np.arange(n_tasks), n_nodes)
    slots = state.add_agents(nodes, tasks).reshape(n_nodes, n_tasks)
    for u, v in net.links.tolist():
        state.link(slots[u], slots[v], True, True)
    for v in range(n_nodes):
        for t in range(1, n_tasks):
            state.link(slots[v, :1], slots[v, t : t + 1], False, False)
    n = 12 * n_nodes * n_tasks
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 2.0)
    if kind == "sparse":
        X[rng.random(X.shape) < 0.5] = 0.0
    node, task = rng.integers(0, n_nodes, n), rng.integers(0, n_tasks, n)
    direction = rng.normal(size=p) + 0.7 * rng.normal(size=(n_tasks, p))
    shift = rng.normal(size=n_tasks)
    y = np.where((X * direction[task]).sum(1) + shift[task] + rng.normal(size=n) > 0, 1.0, -1.0)
    weight = rng.choice([0.0, 0.3, 1.0, 2.5], n)
    given_rows = csr_array(X) if kind == "sparse" else X
    state.adopt_rows(given_rows, y, slots[node, task], weight)
    return state, (X, y, task, np.full(n_tasks, 1 / n_tasks), weight)


@examples(60)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["task", "common", "mixed"]),
    st.sampled_from(["dense", "sparse"]),
    st.floats(-2, 1),
    st.floats(-1, 1),
)
def test_the_network_ends_at_the_pooled_optimum_whatever_the_bias(seed, bias, kind, C, ratio):
    rng = np.random.default_rng(seed)
    chosen = Settings(C=10**C, common_reg=10**ratio, specific_reg=10**-ratio, bias=bias)
    state, rows = spread(rng, chosen, kind=kind)
    info = Memory(state).train(max_rounds=20_000, tol=1e-7)
    assert info.status == "converged"
    square = max(float((rows[0] ** 2).sum(1).mean() / rows[0].shape[1]), 1e-12)
    best, weights = solve_kinds(*rows, chosen, square)
    assert info.objective >= best * (1 - 1e-8) - 1e-9
    assert (info.objective - best) <= max(info.gap, 1e-7) * best + 1e-9
    common, specific = average(state).swapaxes(0, 1)
    for t in range(2):
        agent = int(np.flatnonzero(state.tables.agents["task"] == t)[0])
        found = (common[agent] + specific[agent])[:-1]
        assert np.linalg.norm(found - weights[t]) <= 2e-2 * max(np.linalg.norm(weights[t]), 1e-2)


@pytest.mark.parametrize("bias", ["task", "common", "mixed"])
def test_a_certificate_is_a_bound_at_every_round(rng, bias):
    chosen = Settings(C=0.3, bias=bias)
    state, rows = spread(rng, chosen)
    memory = Memory(state)
    square = float((rows[0] ** 2).sum(1).mean() / rows[0].shape[1])
    best, _ = solve_kinds(*rows, chosen, square)
    for _ in range(30):
        memory.train(max_rounds=1, tol=None)
        (found,) = certificates(state)
        assert found.bound <= best * (1 + 1e-9)
        assert found.objective >= best * (1 - 1e-9)


def test_one_bias_for_all_is_one_for_all(rng):
    state, _ = spread(rng, Settings(C=0.3, bias="common"))
    Memory(state).train(max_rounds=500, tol=1e-6)
    used = state.plan.used
    assert np.all(state.estimate(used)[:, 1, -1] == 0.0)


def test_agents_over_the_same_rows_find_what_agents_over_copies_find(rng):
    """Two problems with labels of their own on one block of rows, as one class against the rest."""
    X = rng.normal(size=(40, 3))
    labels = [np.where(X[:, k] + 0.4 * rng.normal(size=40) > 0, 1.0, -1.0) for k in range(2)]
    found = []
    for is_shared in (True, False):
        state = State(3, Settings(C=0.5))
        slots = state.add_agents([0, 0], [0, 1])
        if is_shared:
            state.add_rows(slots[0], X, labels[0])
            at = state.tables.rows["at"][state.row_slots[int(slots[0])]]
            state.share_rows(slots[1], at, labels[1])
            assert state.tables.matrix.X.shape[0] == 40
        else:
            for k in range(2):
                state.add_rows(slots[k], X, labels[k])
        Memory(state).train(max_rounds=200, tol=None)
        found.append(state.estimate(slots))
    assert np.array_equal(*found)


def test_a_shared_row_stays_until_nobody_holds_it(rng):
    X, y = rng.normal(size=(6, 3)), np.array([1.0, -1.0] * 3)
    state = State(3, Settings())
    one, other = state.add_agents([0, 0], [0, 1])
    state.add_rows(one, X, y)
    state.share_rows(other, state.tables.rows["at"][state.row_slots[int(one)]], -y)
    state.drop_rows(one, np.ones(6, bool))
    state.add_rows(one, 10 + X, y)
    np.testing.assert_array_equal(state.tables.rows_of(int(other))[0], X)
    state.drop_rows(other, np.ones(6, bool))
    state.add_rows(one, 20 + X, y)
    np.testing.assert_array_equal(state.tables.rows_of(int(one))[0], np.vstack([10 + X, 20 + X]))
    assert len(state.tables.matrix.X) <= 24
