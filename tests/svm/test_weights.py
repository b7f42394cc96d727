"""A weight a row and a weight a class: exact against scikit-learn on pooled rows."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight

from dtsvm import CSVM, CTSVM, DSVM, DTSVM, Network, Session


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def svc(**more):
    return SVC(kernel="linear", tol=1e-6, **more)  # smaller ones may never end


def test_weighted_rows_are_scikit_learns(cancer, rng):
    X, y = cancer
    c = rng.exponential(size=len(y))
    theirs = svc(C=0.1).fit(X, y, sample_weight=c)
    node = rng.integers(4, size=len(y))
    for clf in (CSVM(C=0.1, tol=1e-8), DSVM("ring", C=0.1, tol=1e-8)):
        clf.fit(X, y, node=node, sample_weight=c)
        np.testing.assert_allclose(clf.coef_, theirs.coef_, atol=1e-4)
        np.testing.assert_allclose(clf.intercept_, theirs.intercept_, atol=1e-4)


@pytest.mark.parametrize("weight", ["balanced", {0: 5.0}, {0: 0.5, 1: 3.0}])
@pytest.mark.parametrize("make", [CSVM, CTSVM, DSVM, DTSVM])
def test_class_weights_are_scikit_learns(cancer, weight, make, rng):
    X, y = cancer
    alone = make in (CSVM, DSVM)
    ours = make(C=0.1 if alone else 0.05, class_weight=weight, tol=1e-8)
    ours.fit(X, y, node=rng.integers(4, size=len(y)))
    theirs = svc(C=0.1, class_weight=weight).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)


def test_balance_is_by_task_and_over_the_whole_network(cancer, rng):
    X, y = cancer
    task = rng.integers(2, size=len(y))
    keep = (task == 0) | (y == 1) | (rng.random(len(y)) < 0.2)  # task 1 has few of label 0
    X, y, task = X[keep], y[keep], task[keep]
    node = np.where(y == 0, 0, rng.integers(3, size=len(y)))  # one node has all of label 0
    ours = DSVM("line", C=0.1, class_weight="balanced", tol=1e-8)
    ours.fit(X, y, task=task, node=node)
    for t in range(2):
        mine = task == t
        theirs = svc(C=0.1, class_weight="balanced").fit(X[mine], y[mine])
        np.testing.assert_allclose(ours.coef_[t], theirs.coef_[0], atol=2e-4)


def test_weights_by_task(cancer, rng):
    X, y = cancer
    task = rng.integers(2, size=len(y))
    ours = CSVM(C=0.1, class_weight={1: {0: 4.0}}, tol=1e-8).fit(X, y, task=task)
    for t, weight in ((0, None), (1, {0: 4.0})):
        theirs = svc(C=0.1, class_weight=weight).fit(X[task == t], y[task == t])
        np.testing.assert_allclose(ours.coef_[t], theirs.coef_[0], atol=2e-4)


def test_balance_of_many_labels_counts_them_all(rng):
    X = rng.normal(size=(200, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=200), [-1.0, 1.2])
    ours = CSVM(C=0.1, class_weight="balanced", tol=1e-8).fit(X, y)
    c = compute_sample_weight("balanced", y)
    for k in range(3):
        theirs = svc(C=0.1).fit(X, y == k, sample_weight=c)
        np.testing.assert_allclose(ours.coef_[k], theirs.coef_[0], atol=2e-4)


def test_a_row_of_weight_zero_is_not_there(cancer, rng):
    X, y = cancer
    c = (rng.random(len(y)) < 0.5).astype(float)
    node = rng.integers(4, size=len(y))
    c[node == 3] = 0.0
    some = c > 0
    ours = DTSVM("complete", C=0.1, tol=1e-8).fit(X, y, node=node, sample_weight=c)
    again = DTSVM("complete", C=0.1, tol=1e-8).fit(X[some], y[some], node=node[some])
    np.testing.assert_allclose(ours.coef_, again.coef_, atol=1e-5)


def test_a_weight_of_two_is_the_row_twice(cancer, rng):
    X, y = cancer
    twice = rng.random(len(y)) < 0.3
    node = rng.integers(3, size=len(y))
    ours = DTSVM("line", C=0.1, tol=1e-8).fit(X, y, node=node, sample_weight=1.0 + twice)
    rows = np.concatenate([np.arange(len(y)), np.flatnonzero(twice)])
    again = DTSVM("line", C=0.1, tol=1e-8).fit(X[rows], y[rows], node=node[rows])
    np.testing.assert_allclose(ours.coef_, again.coef_, atol=1e-4)


def test_weights_and_labels_and_classes_together(rng):
    X = rng.normal(size=(150, 3))
    y = np.digitize(X[:, 0], [-0.6, 0.6])
    c = rng.exponential(size=150)
    ours = DSVM("ring", C=0.2, tol=1e-8).fit(X, y, node=np.arange(150) % 4, sample_weight=c)
    for k, one in enumerate(OneVsRestClassifier(svc(C=0.2)).fit(X, y).estimators_):
        weighted = svc(C=0.2).fit(X, y == k, sample_weight=c)
        assert not np.allclose(weighted.coef_, one.coef_, atol=1e-3)
        np.testing.assert_allclose(ours.coef_[k], weighted.coef_[0], atol=2e-4)


def test_a_session_takes_weights(cancer, rng):
    X, y = cancer
    c = rng.exponential(size=len(y))
    live = Session(Network.line(2), C=0.05, tol=1e-8)
    live.enter(0, "sick", X[:200], y[:200], sample_weight=c[:200])
    live.enter(1, "sick", X[200:400], y[200:400], sample_weight=c[200:400])
    live.run()
    live.add_data(1, "sick", X[400:], y[400:], sample_weight=c[400:])
    live.run()
    theirs = svc(C=0.1).fit(X, y, sample_weight=c)
    np.testing.assert_allclose(live.classifier("sick").coef_, theirs.coef_, atol=2e-4)
