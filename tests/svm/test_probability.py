import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV, _sigmoid_calibration
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dtsvm import CSVM, CTSVM, DSVM, DTSVM, Network, load_model, save_model
from dtsvm.errors import DataError
from dtsvm.problem.sigmoid import fit_sigmoids, sigmoid, sigmoid_counts, sigmoid_sums
from dtsvm.svm.probability import deal_folds


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_newtons_steps_end_where_scikit_learns_do(rng, scale):
    f = scale * rng.normal(size=300)
    is_positive = rng.random(300) < 1 / (1 + np.exp(-2 * f / scale - 0.3))
    weight = rng.exponential(size=300)
    rows = f, is_positive, np.zeros(300, int), weight
    counts = sigmoid_counts(is_positive, rows[2], 1, weight)
    ab = fit_sigmoids(lambda ab, counts: sigmoid_sums(*rows, ab, counts), counts)
    theirs = _sigmoid_calibration(f, is_positive.astype(float), sample_weight=weight)
    np.testing.assert_allclose(ab[0], theirs, rtol=1e-4)


def test_gradient_and_hessian_are_derivatives(rng):
    rows = rng.normal(size=40), rng.random(40) < 0.4, rng.integers(2, size=40), np.ones(40)
    counts = sigmoid_counts(rows[1], rows[2], 2, rows[3])
    ab = rng.normal(size=(2, 2))
    here = sigmoid_sums(*rows, ab, counts)
    for axis in range(2):
        step = np.zeros(2)
        step[axis] = 1e-6
        more, less = (sigmoid_sums(*rows, ab + s * step, counts) for s in (1, -1))
        np.testing.assert_allclose(here[:, 1 + axis], (more - less)[:, 0] / 2e-6, atol=1e-6)
        np.testing.assert_allclose(here[:, 3 + axis], (more - less)[:, 1] / 2e-6, atol=1e-6)
    np.testing.assert_allclose(here[:, 5], (more - less)[:, 2] / 2e-6, atol=1e-6)


def test_sums_over_nodes_are_sums_over_rows(rng):
    rows = rng.normal(size=60), rng.random(60) < 0.5, rng.integers(3, size=60), np.ones(60)
    counts = sigmoid_counts(rows[1], rows[2], 3, rows[3])
    ab = rng.normal(size=(3, 2))
    parts = [sigmoid_sums(*(r[k::4] for r in rows), ab, counts) for k in range(4)]
    np.testing.assert_allclose(sum(parts), sigmoid_sums(*rows, ab, counts))


def test_separated_values_stay_finite():
    f, is_positive = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0, 0, 1, 1]) > 0
    rows = f, is_positive, np.zeros(4, int), np.ones(4)
    counts = sigmoid_counts(is_positive, rows[2], 1, rows[3])
    ab = fit_sigmoids(lambda ab, counts: sigmoid_sums(*rows, ab, counts), counts)
    assert np.isfinite(ab).all()
    np.testing.assert_allclose(sigmoid(f, ab[0])[[0, 3]], [0.25, 0.75], atol=0.1)


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("data", [cancer, wine])
def test_probabilities_are_as_good_as_pooled_calibration(data, rng):
    X, y = data()
    order = rng.permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    ours = DSVM("ring", C=0.05, probability=True)
    ours.fit(X[train], y[train], node=rng.integers(4, size=len(train)))
    theirs = CalibratedClassifierCV(
        OneVsRestClassifier(SVC(kernel="linear", C=0.05)),
        cv=StratifiedKFold(5, shuffle=True, random_state=0), ensemble=False,
    ).fit(X[train], y[train])  # fmt: skip
    p, q = ours.predict_proba(X[test]), theirs.predict_proba(X[test])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert abs(log_loss(y[test], p) - log_loss(y[test], q)) < 0.02
    assert np.abs(p - q).mean() < 0.02


def test_the_classifier_is_the_same_with_and_without_probabilities(rng):
    X, y = cancer()
    node = rng.integers(3, size=len(y))
    plain = DTSVM("line", C=0.1, tol=1e-7).fit(X, y, node=node)
    more = DTSVM("line", C=0.1, tol=1e-7, probability=True).fit(X, y, node=node)
    np.testing.assert_allclose(more.coef_, plain.coef_, atol=1e-4)
    assert more.info_.objective == pytest.approx(plain.info_.objective, rel=1e-6)
    assert more.coef_.shape == plain.coef_.shape
    assert more.tasks_.tolist() == plain.tasks_.tolist()


def test_every_node_has_some_of_each_label_in_each_fold(rng):
    clf = DTSVM(C=0.1)
    X = rng.normal(size=(120, 2))
    y, node, task = np.arange(120) % 2, np.arange(120) // 2 % 3, np.arange(120) // 6 % 2
    table, _ = clf._table(X, y, task, node, None)
    fold = deal_folds(table, 5)
    for v in range(3):
        for t in range(2):
            for label in range(2):
                mine = (node == v) & (task == t) & (y == label)
                assert np.bincount(fold[mine], minlength=5).tolist() == [2] * 5


def test_a_node_of_one_row_stays_between_its_neighbours(rng):
    X = rng.normal(size=(41, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=41) > 0).astype(int)
    node = np.array([0] * 20 + [2] * 20 + [1])  # on a line, node 1 holds both others together
    clf = DTSVM(Network.line(3), C=0.1, probability=True).fit(X, y, node=node)
    assert log_loss(y, clf.predict_proba(X)) < 0.6


@pytest.fixture
def table(rng):
    n = 240
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    X["disease"] = np.array(["cold", "flu"])[np.arange(n) % 2]
    X["site"] = np.arange(n) // 2 % 3
    y = np.where(X.a + X.b * (X.disease == "flu") + 0.5 * rng.normal(size=n) > 0, "sick", "well")
    return X, y


def make(**more):
    return DTSVM(task_column="disease", node_column="site", C=0.1, **{"probability": True, **more})


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score", "roc_auc"])
def test_searches_score_probabilities(table, scoring):
    X, y = table
    y = (y == "sick").astype(int)
    search = GridSearchCV(make(), {"C": [0.01, 0.1]}, scoring=scoring, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict_proba(X).shape == (240, 2)


def test_probabilities_of_held_out_rows(table):
    X, y = table
    p = cross_val_predict(make(), X, y, cv=3, method="predict_proba")
    assert p.shape == (240, 2)
    assert ((p[:, 0] > 0.5) == (y == "sick")).mean() > 0.8


def test_labels_that_a_task_lacks_have_probability_zero(table):
    X, y = table
    y = np.where(X.disease == "flu", np.char.add(y.astype(str), "!"), y)
    clf = make().fit(X, y)
    p = clf.predict_proba(X)
    assert clf.classes_.tolist() == ["sick", "sick!", "well", "well!"]
    flu = (X.disease == "flu").to_numpy()
    assert (p[flu][:, [0, 2]] == 0).all()
    assert (p[~flu][:, [1, 3]] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_the_positive_side_has_the_probability_of_its_label(table):
    X, y = table
    plain, turned = make(tol=1e-7).fit(X, y), make(tol=1e-7, positive="sick").fit(X, y)
    own = turned.predict_proba(X)[:, list(turned.classes_).index("sick")]
    np.testing.assert_allclose(own, plain.predict_proba(X)[:, 0], atol=0.1)  # other folds


@pytest.mark.parametrize("method", [CSVM, CTSVM, DSVM, DTSVM])
def test_all_four_have_them_saved_and_sparse(method, rng, tmp_path):
    X = rng.normal(size=(90, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=90), [-0.5, 0.5])
    clf = method(C=0.1, probability=True).fit(csr_array(X), y)
    save_model(clf, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert np.array_equal(clf.predict_proba(X), again.predict_proba(X))
    assert log_loss(y, clf.predict_proba(X)) < 0.9


def test_without_asking_there_are_none(rng):
    X = rng.normal(size=(20, 2))
    clf = CSVM().fit(X, X[:, 0] > 0)
    assert not hasattr(clf, "predict_proba")
    clf.set_params(probability=True)
    with pytest.raises(DataError) as refused:
        clf.predict_proba(X)
    assert str(refused.value) == "Task 0 has no probabilities; train with probability=True."


def test_a_rows_weight_counts_for_its_probability(rng):
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    heavy = CSVM(C=0.1, probability=True).fit(X, y, sample_weight=np.where(y == 1, 5.0, 1.0))
    plain = CSVM(C=0.1, probability=True).fit(X, y)
    assert heavy.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.1
