"""More rows by partial_fit, and fits that begin where the last one ended."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from dtsvm import CSVM, CTSVM, DSVM, DTSVM, Network, Session
from dtsvm.errors import DataError, NetworkError


@pytest.fixture
def data(rng):
    X = rng.normal(size=(240, 3))
    task, node = np.arange(240) % 2, np.arange(240) // 2 % 4
    y = np.where(X[:, 0] + 0.5 * X[:, 1] * task + 0.4 * rng.normal(size=240) > 0, "yes", "no")
    return X, y, task, node


def parts(n, data):
    return [[column[k::n] for column in data] for k in range(n)]


@pytest.mark.parametrize("make", [CSVM, CTSVM, DSVM, DTSVM])
@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_the_answer_is_that_of_all_rows_so_far(data, make, kind):
    X, y, task, node = data
    clf = make(C=0.1, tol=1e-7)
    for X_k, y_k, task_k, node_k in parts(3, data):
        clf.partial_fit(kind(X_k), y_k, classes=["no", "yes"], task=task_k, node=node_k)
    whole = make(C=0.1, tol=1e-7).fit(X, y, task=task, node=node)
    np.testing.assert_allclose(clf.coef_, whole.coef_, atol=1e-3)
    assert np.array_equal(clf.predict(X, task=task), whole.predict(X, task=task))
    assert clf.nodes_.tolist() == whole.nodes_.tolist()


def test_tasks_and_nodes_may_come_later(data):
    X, y, task, node = data
    clf = DTSVM(C=0.1, tol=1e-7)
    for late in (False, True):
        mine = ((task == 1) | (node == 3)) == late
        clf.partial_fit(X[mine], y[mine], ["no", "yes"], task=task[mine], node=node[mine])
    whole = DTSVM(C=0.1, tol=1e-7).fit(X, y, task=task, node=node)
    np.testing.assert_allclose(clf.coef_, whole.coef_, atol=1e-3)


@pytest.mark.parametrize("classes", [None, ["no", "yes"]])
def test_a_task_all_of_whose_rows_have_weight_zero_comes_when_some_count(data, classes):
    X, y, task, node = data
    clf = DTSVM(C=0.1, tol=1e-7)
    clf.partial_fit(X, y, classes, task=task, node=node, sample_weight=(task == 0).astype(float))
    assert clf.tasks_.tolist() == [0]
    late = task == 1
    clf.partial_fit(X[late], y[late], classes, task=task[late], node=node[late])
    whole = DTSVM(C=0.1, tol=1e-7).fit(X, y, task=task, node=node)
    np.testing.assert_allclose(clf.coef_, whole.coef_, atol=1e-3)


def test_labels_that_come_later_are_named_at_first(rng):
    X = rng.normal(size=(90, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    clf = CSVM(C=0.1, tol=1e-7)
    for some in (y < 2, y == 2):
        clf.partial_fit(X[some], y[some], classes=[0, 1, 2])
    np.testing.assert_allclose(clf.coef_, CSVM(C=0.1, tol=1e-7).fit(X, y).coef_, atol=1e-3)
    with pytest.raises(DataError) as refused:
        clf.partial_fit(X[:1], [7])
    assert str(refused.value) == "Task 0 has labels 0, 1 and 2, got 7."


def test_labels_may_be_named_by_task(data):
    X, y, task, _ = data
    clf = CSVM(C=0.1).partial_fit(
        X, y, {0: ["no", "yes"], 1: ["maybe", "no", "yes"]}, task=task
    )  # fmt: skip
    assert clf.task_classes_.tolist() == [("no", "yes"), ("maybe", "no", "yes")]


def test_weights_go_with_their_rows(data):
    X, y, _, _ = data
    c = np.where(np.arange(240) % 3, 1.0, 3.0)
    clf = CSVM(C=0.1, tol=1e-7)
    for k in range(2):
        clf.partial_fit(X[k::2], y[k::2], ["no", "yes"], sample_weight=c[k::2])
    whole = CSVM(C=0.1, tol=1e-7).fit(X, y, sample_weight=c)
    np.testing.assert_allclose(clf.coef_, whole.coef_, atol=1e-3)


def test_rows_of_another_length_are_refused(data):
    X, y, _, _ = data
    clf = CSVM(C=0.1).partial_fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but CSVM is expecting 3 features"):
        clf.partial_fit(X[:, :2], y)


def test_a_node_that_the_network_does_not_know_is_refused(data):
    X, y, _, node = data
    clf = DTSVM(Network.ring(4), C=0.1).partial_fit(X, y, node=node)
    with pytest.raises(NetworkError, match="Node 9 has rows, but is not in the network"):
        clf.partial_fit(X, y, node=np.full(240, 9))


def test_balancing_rows_to_come_is_refused(data):
    X, y, _, _ = data
    with pytest.raises(DataError, match="cannot balance classes of rows that are still to come"):
        CSVM(class_weight="balanced").partial_fit(X, y)


def test_a_fit_in_between_begins_anew(data):
    X, y, _, _ = data
    clf = CSVM(C=0.1).partial_fit(X[:100], y[:100]).fit(X[100:], y[100:])
    assert np.array_equal(clf.coef_, CSVM(C=0.1).fit(X[100:], y[100:]).coef_)
    clf.partial_fit(X[:100], y[:100])
    assert np.array_equal(clf.coef_, CSVM(C=0.1).partial_fit(X[:100], y[:100]).coef_)


def test_a_pickled_estimator_goes_on(data):
    X, y, task, node = data
    clf = DTSVM("ring", C=0.1).partial_fit(X[::2], y[::2], task=task[::2], node=node[::2])
    again = pickle.loads(pickle.dumps(clf))
    for one in (clf, again):
        one.partial_fit(X[1::2], y[1::2], task=task[1::2], node=node[1::2])
    assert np.array_equal(clf.coef_, again.coef_)


def test_a_pickled_session_goes_on_bit_for_bit(rng):
    X = rng.normal(size=(30, 2))
    live = Session(Network.line(2), C=0.1)
    assert pickle.loads(pickle.dumps(live)).nodes == (0, 1)
    for v in range(2):
        live.enter(v, "sick", X[v::2], np.sign(X[v::2, 0]))
    live.run(rounds=10)
    again = pickle.loads(pickle.dumps(live))
    assert again.info == live.info
    live.run(rounds=20)
    again.run(rounds=20)
    assert np.array_equal(live.classifier("sick").coef_, again.classifier("sick").coef_)


# Warm starts


def test_the_same_rows_with_another_C_go_on_in_their_session(data):
    X, y, task, node = data
    warm = DTSVM("ring", C=0.1, tol=1e-6, warm_start=True).fit(X, y, task=task, node=node)
    begun = warm.info_.n_rounds
    warm.set_params(C=0.12, specific_reg=1.5).fit(X, y, task=task, node=node)
    cold = DTSVM("ring", C=0.12, specific_reg=1.5, tol=1e-6).fit(X, y, task=task, node=node)
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=2e-3)
    assert warm.n_iter_ == warm.info_.n_rounds - begun
    assert len(warm.history_) == warm.info_.n_rounds


def test_a_second_fit_of_the_same_is_done_at_once(data):
    X, y, task, node = data
    warm = DTSVM("ring", C=0.1, warm_start=True).fit(X, y, task=task, node=node)
    coef = warm.coef_
    warm.fit(X.copy(), y, task=task, node=node)
    assert warm.n_iter_ <= 10
    np.testing.assert_allclose(warm.coef_, coef, atol=1e-2)


def test_other_rows_begin_at_what_was_found(data, rng):
    X, y, task, node = data
    warm = DTSVM("ring", C=0.1, tol=1e-6, warm_start=True).fit(X, y, task=task, node=node)
    other = X + 0.01 * rng.normal(size=X.shape)
    warm.fit(other, y, task=task, node=node)
    cold = DTSVM("ring", C=0.1, tol=1e-6).fit(other, y, task=task, node=node)
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=2e-3)


def test_other_tasks_and_features_are_no_obstacle(data):
    X, y, task, node = data
    warm = DTSVM(C=0.1, warm_start=True).fit(X, y, task=task, node=node)
    warm.fit(X[:, :2], y)
    cold = DTSVM(C=0.1).fit(X[:, :2], y)
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-2)


def test_a_clone_begins_cold(data):
    X, y, _, _ = data
    warm = CSVM(C=0.1, warm_start=True).fit(X, y)
    assert np.array_equal(clone(warm).fit(X, y).coef_, warm.coef_)


def test_without_warm_start_no_rows_are_kept(data):
    X, y, task, node = data
    clf = DTSVM(C=0.1).fit(X, y, task=task, node=node)
    assert len(pickle.dumps(clf)) < X.nbytes + 20_000
    assert not [name for name in vars(clf) if isinstance(vars(clf)[name], Session)]


def test_probabilities_are_warm_too(data):
    X, y, task, node = data
    warm = DTSVM("ring", C=0.1, probability=True, warm_start=True)
    first = warm.fit(X, y, task=task, node=node).predict_proba(X, task=task)
    again = warm.fit(X, y, task=task, node=node).predict_proba(X, task=task)
    np.testing.assert_allclose(first, again, atol=0.02)
