"""More than two labels: one question a label, shared by the tasks that have it."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_wine
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dtsvm import CSVM, CTSVM, DSVM, DTSVM, Network, Session, export, load_model, save_model
from dtsvm.errors import DataError, ParameterError
from reference import solve_pooled


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["red", "rosé", "white"])[y]


def weights(ref):
    return np.vstack([one.coef_ for one in ref.estimators_]), np.hstack(
        [one.intercept_ for one in ref.estimators_]
    )


@pytest.mark.parametrize("shape", ["ring", "line", "star"])
def test_one_task_of_many_classes_is_one_vs_rest_on_pooled_rows(wine, shape, rng):
    X, y = wine
    node = rng.integers(4, size=len(y))
    ours = DSVM(shape, C=0.2, tol=1e-8).fit(X, y, node=node)
    both = DTSVM(shape, C=0.1, tol=1e-8).fit(X, y, node=node)
    theirs = OneVsRestClassifier(SVC(kernel="linear", C=0.2, tol=1e-10)).fit(X, y)
    coef, intercept = weights(theirs)
    for clf in (ours, both):
        np.testing.assert_allclose(clf.coef_, coef, atol=2e-4)
        np.testing.assert_allclose(clf.intercept_, intercept, atol=2e-4)
        assert np.array_equal(clf.predict(X), theirs.predict(X))
        np.testing.assert_allclose(clf.decision_function(X), theirs.decision_function(X), atol=2e-3)


def test_ten_digits_over_a_network_label_as_pooled_ones(rng):
    X, y = load_digits(return_X_y=True)
    X = X / 16
    clf = DSVM("ring", C=0.1, tol=1e-6).fit(csr_array(X), y, node=rng.integers(5, size=len(y)))
    theirs = OneVsRestClassifier(SVC(kernel="linear", C=0.1, tol=1e-8)).fit(X, y)
    assert np.array_equal(clf.predict(X), theirs.predict(X))
    assert clf.coef_.shape == (10, 64)
    assert clf.node_coef_.shape == (5, 10, 64)


@pytest.mark.parametrize("method", [DTSVM, DSVM, CTSVM, CSVM])
def test_shapes_are_those_of_scikit_learn(wine, method):
    X, y = wine
    clf = method(C=0.1).fit(X, y)
    assert clf.classes_.tolist() == ["red", "rosé", "white"]
    assert clf.coef_.shape == (3, 13)
    assert clf.intercept_.shape == (3,)
    assert clf.decision_function(X).shape == (178, 3)
    assert clf.task_classes_.tolist() == [("red", "rosé", "white")]


@pytest.fixture
def tasks(rng):
    """Three tasks over one space: of labels abc, bcd, and ab; nodes lack some."""
    n = 360
    X = rng.normal(size=(n, 4))
    task = np.array(["one", "two", "pair"])[np.arange(n) % 3]
    sets = {"one": "abc", "two": "bcd", "pair": "ab"}
    centre = dict(zip("abcd", 1.5 * rng.normal(size=(4, 4)), strict=True))
    y = np.array([rng.choice(list(sets[t])) for t in task])
    X += np.array([centre[label] for label in y])
    node = rng.integers(3, size=n)
    node[(y == "a") & (node == 2)] = 0
    return X, y, task, node, sets


def test_each_label_is_a_dtsvm_of_the_tasks_that_have_it(tasks):
    X, y, task, node, sets = tasks
    clf = DTSVM("line", C=0.1, specific_reg=2.0, tol=1e-8).fit(X, y, task=task, node=node)
    objective = 0.0
    row = {(t, label): k for k, (t, label) in enumerate(
        (t, label) for t in clf.tasks_.tolist() for label in sets[t])}  # fmt: skip
    for label in "abcd":
        names = [t for t in clf.tasks_.tolist() if label in sets[t]]
        mine = np.isin(task, names)
        index = np.array([names.index(t) for t in task[mine]])
        held = np.array([len(np.unique(node[task == t])) for t in names])
        best = solve_pooled(
            X[mine], np.where(y[mine] == label, 1.0, -1.0), index, held / held.sum(),
            C=0.1, common_reg=1.0, specific_reg=2.0,
        )  # fmt: skip
        objective += best.objective
        for k, name in enumerate(names):
            np.testing.assert_allclose(
                clf.coef_[row[name, label]], best.decision[k, :-1], atol=1e-3
            )
    np.testing.assert_allclose(clf.info_.objective, objective, rtol=1e-6)


def test_tasks_keep_to_their_own_labels(tasks):
    X, y, task, node, sets = tasks
    clf = DTSVM("line", C=0.1).fit(X, y, task=task, node=node)
    assert clf.classes_.tolist() == ["a", "b", "c", "d"]
    for name, labels in sets.items():
        mine = task == name
        for v in (None, 1):
            said = clf.predict(X[mine], task=name, node=v)
            assert set(said) <= set(labels)
            assert (said == y[mine]).mean() > 0.7
    values = clf.decision_function(X, task=task)
    assert values.shape == (360, 4)
    assert np.array_equal(clf.classes_[values.argmax(axis=1)], clf.predict(X, task=task))
    signed = clf.decision_function(X, task="pair")
    assert np.array_equal(np.where(signed > 0, "b", "a"), clf.predict(X, task="pair"))


def test_a_node_that_never_saw_a_label_knows_it_from_the_others(tasks):
    X, y, task, node, _ = tasks
    clf = DTSVM("line", C=0.1).fit(X, y, task=task, node=node)
    mine = (task == "one") & (y == "a")
    assert (clf.predict(X[mine], task="one", node=2) == "a").mean() > 0.7


def test_a_model_of_many_labels_is_saved_and_exported(tasks, tmp_path):
    X, y, task, node, _ = tasks
    clf = DTSVM("line", C=0.1).fit(X, y, task=task, node=node)
    save_model(clf, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    for name in ("one", "two", "pair"):
        for v in (None, 1):
            ask = {"task": name, "node": v}
            assert np.array_equal(clf.predict(X, **ask), again.predict(X, **ask))
            assert np.array_equal(
                clf.decision_function(X, **ask), again.decision_function(X, **ask)
            )
        assert np.array_equal(export(clf, name).predict(X), clf.predict(X, task=name))
    np.testing.assert_array_equal(again.common_coef_, clf.common_coef_)


def test_alone_each_task_is_its_own_one_vs_rest(tasks):
    X, y, task, node, _ = tasks
    clf = DSVM("line", C=0.2, tol=1e-8).fit(X, y, task=task, node=node)
    mine = task == "two"
    theirs = OneVsRestClassifier(SVC(kernel="linear", C=0.2, tol=1e-10)).fit(X[mine], y[mine])
    coef, _ = weights(theirs)
    np.testing.assert_allclose(clf.model_.task("two").coef, coef, atol=2e-4)
    assert clf.model_.task("pair").n_classifiers == 1


# In a session


def live(wine, rng, **more):
    X, y = wine
    session = Session(Network.ring(3), C=0.1, tol=1e-8, **more)
    node = rng.integers(3, size=len(y))
    for v in range(3):
        session.enter(v, "wine", X[node == v], y[node == v], labels=("red", "rosé", "white"))
    return session, X, y, node


def test_a_session_of_many_labels_ends_where_a_fit_ends(wine, rng):
    session, X, y, node = live(wine, rng)
    session.run()
    fit = DTSVM("ring", C=0.1, tol=1e-8).fit(X, y, node=node)
    own = session.classifier("wine")
    np.testing.assert_allclose(own.coef_, fit.coef_, atol=1e-4)
    assert np.array_equal(own.predict(X), fit.predict(X))
    assert np.array_equal(session.classifier("wine", 1).predict(X), fit.predict(X, node=1))
    risk = session.risk("wine", X, y)
    assert risk.network == (own.predict(X) != y).mean()
    assert set(risk.nodes) == {0, 1, 2}
    assert session.decisions("wine")[0].shape == (3, 14)
    assert session.row_counts("wine") == {v: int((node == v).sum()) for v in range(3)}


def test_rows_come_and_go_for_all_labels(wine, rng):
    session, X, y, node = live(wine, rng)
    session.run()
    session.drop_data(0, "wine", oldest=5)
    session.add_data(1, "wine", X[:7], y[:7], sample_weight=np.full(7, 2.0))
    session.leave(node=2)
    session.run()
    first, second = np.flatnonzero(node == 0)[5:], np.flatnonzero(node == 1)
    some = np.concatenate([first, second, np.arange(7), np.arange(7)])
    at = np.repeat([0, 1], [len(first), len(second) + 14])
    fit = DTSVM("line", C=0.1, tol=1e-8).fit(X[some], y[some], node=at)
    np.testing.assert_allclose(session.classifier("wine").coef_, fit.coef_, atol=1e-3)


def test_tasks_of_many_labels_are_coupled_label_by_label(tasks):
    X, y, task, node, sets = tasks
    session = Session(Network.line(3), C=0.1, tol=1e-8)
    some = task != "pair"
    for t in ("one", "two"):
        for v in range(3):
            mine = (task == t) & (node == v)
            session.enter(v, t, X[mine], y[mine], labels=tuple(sets[t]))
    assert session.groups == [["one"], ["two"]]
    session.couple("one", "two")
    assert session.groups == [["one", "two"]]
    session.run()
    fit = DTSVM("line", C=0.1, tol=1e-8).fit(X[some], y[some], task=task[some], node=node[some])
    for t in ("one", "two"):
        np.testing.assert_allclose(session.classifier(t).coef_, fit.model_.task(t).coef, atol=1e-3)
    session.decouple("one")
    assert session.groups == [["one"], ["two"]]


def test_two_labels_and_more_are_not_coupled_while_they_train(tasks):
    X, y, task, _, _ = tasks
    session = Session(C=0.1)
    for t in ("one", "pair"):
        session.enter(0, t, X[task == t], y[task == t])
    with pytest.raises(ParameterError, match="cannot be coupled while they train"):
        session.couple("one", "pair")
    assert session.groups == [["one"], ["pair"]]


def test_a_session_of_many_labels_is_saved_and_goes_on(wine, rng, tmp_path):
    session, X, _, _ = live(wine, rng)
    session.run(rounds=30)
    session.save(tmp_path / "session.npz")
    again = Session.load(tmp_path / "session.npz")
    session.run(rounds=30)
    again.run(rounds=30)
    assert again.tasks == ("wine",)
    assert np.array_equal(again.classifier("wine").coef_, session.classifier("wine").coef_)
    again.leave(task="wine")
    again.enter(0, "next", X[:4], [1, -1, 1, -1])
    again.save(tmp_path / "later.npz")
    kept = Session.load(tmp_path / "later.npz")
    assert np.array_equal(kept.classifier("wine").predict(X), again.classifier("wine").predict(X))
    assert kept.finished == ("wine",)


def test_strange_labels_are_refused_with_all_known_ones(wine, rng):
    session, X, _, _ = live(wine, rng)
    with pytest.raises(DataError) as refused:
        session.add_data(0, "wine", X[:1], ["green"])
    assert str(refused.value) == "Task 'wine' has labels 'red', 'rosé' and 'white', got 'green'."


def test_a_split_is_said_of_the_label(tasks):
    X, y, _, _, _ = tasks
    net = Network.line(3)
    some = np.isin(y, ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"Task 0 \(label 'a'\) is held by nodes that cannot hear"):
        DTSVM(net).fit(X[some], y[some], node=np.where(np.arange(some.sum()) % 2, 0, 2))
