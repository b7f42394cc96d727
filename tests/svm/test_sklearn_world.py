import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dtsvm import CSVM, CTSVM, DSVM, DTSVM, DTSVMCV
from dtsvm.errors import DataError


# Weighted and repeated rows have to agree to 1e-7, so the tolerance is small.
# Some of these checks use rows far from standardised, on which 10,000 rounds may not be enough.
@pytest.mark.filterwarnings("ignore::dtsvm.errors.NotConvergedWarning")
@parametrize_with_checks([make(tol=1e-10) for make in (CSVM, CTSVM, DSVM, DTSVM)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


# A row that is there twice is held out in two folds, a row of weight 2 in one.
UNEQUAL = dict.fromkeys(
    ("check_sample_weight_equivalence_on_dense_data",
     "check_sample_weight_equivalence_on_sparse_data"),
    "repeated rows fall into different folds",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::dtsvm.errors.NotConvergedWarning")
@parametrize_with_checks([DTSVMCV(n_jobs=1)], expected_failed_checks=lambda _: UNEQUAL)
def test_scikit_learns_own_checks_of_the_chooser(estimator, check):
    check(estimator)


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def data(rng):
    X = 3 + 2 * rng.normal(size=(160, 5))
    task = np.arange(160) % 2
    node = (np.arange(160) // 2) % 4
    return X, np.where(X[:, 0] - X[:, 1] * task > 3 * (1 - task), 1, -1), task, node


@pytest.mark.parametrize("make", [DTSVM, DSVM])
def test_grid_search_routes_task_and_node(make, data, routed):
    X, y, task, node = data
    clf = make("ring")
    clf = clf.set_fit_request(task=True, node=True).set_score_request(task=True, node=True)
    search = GridSearchCV(clf, {"C": [0.01, 1.0]}, cv=KFold(3))
    search.fit(X - 3, y, task=task, node=node)
    assert search.best_score_ > 0.8
    assert search.best_estimator_.predict(X[:3], task=0).shape == (3,)


def asked(search, data):
    """What the first warning of a search without scores says in its last line."""
    X, y, task, node = data
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        search.fit(X - 3, y, task=task, node=node)
    assert np.isnan(search.best_score_)
    return str(said[0].message).strip().splitlines()[-1]


def test_a_forgotten_request_is_the_last_line_of_the_searchs_warning(data):
    search = GridSearchCV(DTSVM("ring"), {"C": [0.1]}, cv=KFold(3))
    assert asked(search, data).endswith(
        "and score was not told which: say it with task=…, or train on a frame with task_column=…. "
        "In a search, ask for it with set_fit_request(task=True) and set_score_request(task=True), "
        "after sklearn.set_config(enable_metadata_routing=True)."
    )
    search.set_params(error_score="raise")
    with pytest.raises(DataError, match="score was not told which"):
        asked(search, data)


def test_a_scorer_by_name_says_that_only_a_column_can_tell_it_the_task(data, routed):
    clf = DTSVM("ring").set_fit_request(task=True, node=True)
    search = GridSearchCV(clf, {"C": [0.1]}, cv=KFold(3), scoring="roc_auc")
    assert asked(search, data).endswith("so for them only task_column helps.")


@pytest.mark.parametrize("step", [StandardScaler(), PCA(4)])
def test_a_pipeline_scales_first_and_routes_the_rest(step, data, routed):
    X, y, task, node = data
    clf = DTSVM("ring", C=0.1).set_fit_request(task=True, node=True)
    clf = clf.set_score_request(task=True, node=True).set_predict_request(task=True)
    pipe = make_pipeline(step, clf)
    scores = cross_validate(pipe, X, y, cv=KFold(3), params={"task": task, "node": node})
    assert scores["test_score"].min() > 0.7
    pipe.fit(X, y, task=task, node=node)
    assert pipe.predict(X, task=task).shape == y.shape


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_come_in_and_their_columns_are_checked(frame, data):
    X, y, task, node = data
    names = list("abcde")
    table = frame(dict(zip(names, X.T, strict=True)))
    series = pd.Series if frame is pd.DataFrame else pl.Series
    clf = DTSVM("ring", C=0.1).fit(table, series(y), task=series(task), node=series(node))
    assert clf.feature_names_in_.tolist() == names
    plain = DTSVM("ring", C=0.1).fit(X, y, task=task, node=node)
    np.testing.assert_allclose(clf.coef_, plain.coef_, atol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(table[names[::-1]], task=0)


def test_the_response_is_that_of_the_positive_class(data):
    X, y, _, _ = data
    clf = CSVM(C=0.1).fit(X, y)
    assert np.array_equal(clf.predict(X) == clf.classes_[1], clf.decision_function(X) > 0)
