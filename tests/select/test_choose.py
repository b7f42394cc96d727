"""The whole way with a trainer that solves pooled problems, no network needed."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from dtsvm.select import ALL, Held, Lift, candidates, choose, moments, split, weigh
from dtsvm.select.weighing import answered, measuring, weighing

pytestmark = pytest.mark.filterwarnings("ignore:Liblinear failed to converge")


def pooled(X, y, task, n_tasks, mean_square):
    """Train lanes with LIBLINEAR, biases almost free."""

    def fit(Z, labels, C):
        if len(np.unique(labels)) < 2:
            return np.append(np.zeros(Z.shape[1]), labels[:1].sum())
        svm = LinearSVC(C=C, loss="hinge", intercept_scaling=3 * mean_square**0.5, max_iter=10_000,
                        tol=1e-2, random_state=0).fit(Z, labels)  # fmt: skip
        return np.append(svm.coef_[0], svm.intercept_)

    def train(jobs):
        return [one(*job) for job in jobs]

    def one(candidate, lanes):
        lift = Lift(candidate.family, X.shape[1], n_tasks, mean_square)
        out = np.zeros((len(lanes), n_tasks, X.shape[1] + 1))
        for k, (rows, side) in enumerate(lanes):
            if candidate.family.is_alone:
                for t in range(n_tasks):
                    mine = rows[task[rows] == t]
                    out[k, t] = fit(X[mine], y[mine], candidate.C)
            else:
                Z = lift.rows(X[rows], task[rows])
                v = fit(Z, y[rows] * side[task[rows]], candidate.C)
                out[k] = lift.classifiers(v) * side[:, None]
        return out

    return train


def draw(seed, turned=(), n_tasks=6, rows_a_task=18, p=6, noise=0.3):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), rows_a_task)
    X = rng.normal(size=(len(task), p))
    direction = rng.normal(size=p) + 0.2 * rng.normal(size=(n_tasks, p))
    direction[list(turned)] *= -1
    score = (X * direction[task]).sum(axis=1)
    y = np.where(score + noise * rng.normal(size=len(task)) > 0, 1.0, -1.0)
    return X, y, task, direction


def run(X, y, task, hear=lambda candidate, found: None, **options):
    n_tasks = int(task.max()) + 1
    square, n = moments(X)
    held = Held(X, y, task, split(y, task, 3), n_tasks, 3)
    some = candidates(ALL[:6:2] + ALL[6::2], n_tasks=n_tasks, mean_square=square / n)
    ordinary = pooled(X, y, task, n_tasks, square / n)

    def train(jobs):
        found = ordinary(jobs)
        for job, one in zip(jobs, found, strict=True):
            hear(job.candidate, one)
        return found

    return choose(held, some, train, reference=1, **options)


def error(chosen, direction, seed=99):
    X = np.random.default_rng(seed).normal(size=(2000, direction.shape[1]))
    W = chosen.classifiers
    return np.mean((X @ W[:, :-1].T + W[:, -1] > 0) != (X @ direction.T > 0))


def test_turned_tasks_are_told_and_cost_nothing():
    X, y, task, direction = draw(0)
    plain = run(X, y, task)
    other = direction.copy()
    other[:2] *= -1
    turned = run(X, np.where(task < 2, -y, y), task)
    assert plain.side.tolist() == [1.0] * 6
    assert turned.side.tolist() == [-1.0, -1.0, 1.0, 1.0, 1.0, 1.0]
    assert error(turned, other) < error(plain, direction) + 0.02


def test_company_beats_training_alone_where_tasks_are_alike():
    X, y, task, direction = draw(1)
    chosen = run(X, y, task)
    alone = run_alone(X, y, task)
    assert error(chosen, direction) < error(alone, direction)
    is_alone = np.array([c.family.is_alone for c in chosen.candidates])
    assert chosen.found.weights[:, is_alone].sum(axis=1).mean() < 0.5


def run_alone(X, y, task):
    square, n = moments(X)
    held = Held(X, y, task, split(y, task, 3), 6, 3)
    some = candidates(ALL[:1], n_tasks=6, mean_square=square / n)
    return choose(held, some, pooled(X, y, task, 6, square / n), reference=1)


def test_weights_of_a_task_add_up_and_the_guard_never_makes_more_held_out_errors_than_alone():
    X, y, task, _ = draw(2, noise=2.0)
    for guard in (None, "alone"):
        chosen = run(X, y, task, guard=guard)
        assert chosen.found.weights.sum(axis=1) == pytest.approx(1.0)
        if guard:
            assert (chosen.found.wrong[:, 2] <= chosen.found.wrong[:, 1]).all()


def tasks_that_gain_but_the_first(n_others, n_losing=0):
    """Labels, decisions alone and with company: the first task is as well off either way.

    Of the others the last are better off alone.
    """
    n = 30 * (1 + n_others)
    y, task = np.tile([-1.0, 1.0], n // 2), np.repeat(np.arange(1 + n_others), 30)
    even, uneven = np.full(n, 1.0), np.random.default_rng(0).uniform(0.01, 1.0, n) ** 4
    loses, gains = task > n_others - n_losing, (task > 0) & (task <= n_others - n_losing)
    decisions = np.stack([np.where(gains, uneven, even), np.where(loses, uneven, even)], axis=1)
    held = Held(np.zeros((n, 1)), y, task, np.arange(n) % 3, 1 + n_others, 3)
    return y, y[:, None] * decisions, held


@pytest.mark.parametrize(("rare", "is_alone"), [(2, True), (3, False)])
def test_the_guard_asks_company_for_fewer_errors_where_a_class_has_fewer_rows_than_folds(
    rare, is_alone
):
    y, decisions, held = tasks_that_gain_but_the_first(20)
    y[:30] = np.where(np.arange(30) < rare, 1.0, -1.0)
    decisions[:30] = y[:30, None]
    for guard, expected in ((None, False), ("alone", is_alone)):
        found = weigh(held, decisions, np.array([True, False]), guard=guard)
        assert (found.wrong[0, 1:3] == 0).all()
        assert (found.weights[0, 0] == 1.0) == expected


@pytest.mark.parametrize("n_losing", [0, 15])
def test_the_guard_takes_what_most_others_have_found_for_likely(n_losing):
    _, decisions, held = tasks_that_gain_but_the_first(20, n_losing)
    lax, found = (
        weigh(held, decisions, np.array([True, False]), guard=guard) for guard in (None, "alone")
    )
    assert (found.wrong[:, 1:3] == 0).all()
    assert (lax.weights[:, 0] < 1.0).all()
    assert (found.weights[:, 0] == 1.0).tolist() == [n_losing > 0] + [
        task > 20 - n_losing for task in range(1, 21)
    ]


def test_who_the_guard_leaves_alone_gets_the_smallest_C_with_the_fewest_held_out_errors():
    y, task = np.tile([-1.0, 1.0], 15), np.zeros(30, int)
    held = Held(np.zeros((30, 1)), y, task, np.arange(30) % 3, 1, 3)
    wrong = [3, 2, 2, 5]  # of which the last has company
    decisions = np.stack([np.where(np.arange(30) < n, -y, y) for n in wrong], axis=1)
    is_alone, prices = np.arange(4) < 3, np.array([1.0, 10.0, 0.1, 0.1])

    def steps():
        margins = yield from measuring(held, decisions)
        return (yield from weighing(held, decisions, margins, is_alone, "alone", prices=prices))

    found = answered(steps(), np.asarray)
    assert found.weights.tolist() == [[0.0, 0.0, 1.0, 0.0]]
    assert found.wrong[0, 1:3].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("n_positive", "n_wrong", "is_alone"),
    [(14, 14, False), (14, 15, True), (6, 5, False), (6, 6, True), (0, 0, True)],
)
def test_the_guard_wants_company_to_beat_the_commoner_label(n_positive, n_wrong, is_alone):
    y, decisions, held = tasks_that_gain_but_the_first(40)
    y[:30] = np.where(np.arange(30) < n_positive, 1.0, -1.0)
    some = np.random.default_rng(0).permutation(30)
    wrong = np.arange(30)[:, None] < [0 if n_wrong == 0 else 16, n_wrong]  # alone, with company
    decisions[some] = np.where(wrong, -1.0, 1.0) * y[some, None]
    found = weigh(held, decisions, np.array([True, False]), guard="alone")
    assert (found.weights[0, 0] == 1.0) == is_alone
    assert (found.weights[1:, 0] < 1.0).all()


def test_the_guard_does_not_leave_a_task_without_rows_alone():
    y, task = np.tile([-1.0, 1.0], 15), np.zeros(30, int)
    held = Held(np.zeros((30, 1)), y, task, np.arange(30) % 3, 2, 3)
    decisions = y[:, None] * np.array([1.0, 1.0])
    found = weigh(held, decisions, np.array([True, False]), guard="alone")
    assert found.weights[0, 0] == 1.0
    assert found.weights[1, 0] < 1.0


def test_nodes_that_see_only_their_own_rows_and_totals_find_the_same_weights():
    X, y, task, _ = draw(3)
    rng = np.random.default_rng(0)
    decisions = y[:, None] * rng.uniform(0.2, 1, 5) + rng.normal(size=(len(y), 5))
    node, is_alone = rng.integers(3, size=len(y)), np.arange(5) < 2
    whole = weigh(Held(X, y, task, task, 6, 3), decisions, is_alone)
    barrier, parts = threading.Barrier(3), {}

    def total_at(v):
        def total(part):
            parts[v] = part
            barrier.wait()
            out = parts[0] + parts[1] + parts[2]
            barrier.wait()
            return out

        return total

    def at(v):
        mine = node == v
        held = Held(X[mine], y[mine], task[mine], task[mine], 6, 3)
        return weigh(held, decisions[mine], is_alone, total_at(v))

    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(at, range(3)):
            for part, expected in zip(found[:4], whole[:4], strict=True):
                np.testing.assert_allclose(part, expected, atol=1e-9)


def test_without_a_refit_the_folds_classifiers_are_averaged():
    X, y, task, direction = draw(4)
    assert error(run(X, y, task, refit=False), direction) < 0.25
