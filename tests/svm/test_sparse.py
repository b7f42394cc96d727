"""CSR rows, never made dense."""

import numpy as np
import pytest
from scipy import sparse

from dtsvm import CSVM, CTSVM, DSVM, DTSVM, Network, Session
from dtsvm.svm import LinearClassifier


@pytest.fixture
def data(rng):
    X = rng.normal(size=(160, 6)) * (rng.random((160, 6)) < 0.4)
    task, node = np.arange(160) % 2, np.arange(160) // 2 % 4
    y = np.where(X[:, 0] + X[:, 1] * task + 0.2 * rng.normal(size=160) > 0, 1, -1)
    return X, y, task, node


def wide(X):
    """CSR rows with 64-bit indices."""
    found = sparse.csr_array(X)
    found.indices, found.indptr = found.indices.astype(np.int64), found.indptr.astype(np.int64)
    return found


@pytest.mark.parametrize("make", [CSVM, CTSVM, DSVM, DTSVM])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, wide])
def test_sparse_and_dense_rows_give_one_answer(data, make, kind):
    X, y, task, node = data
    dense = make(C=0.1).fit(X, y, task=task, node=node)
    thin = make(C=0.1).fit(kind(X), y, task=task, node=node)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-9)
    assert np.array_equal(thin.predict(kind(X), task=task), dense.predict(X, task=task))
    assert thin.info_.gap < 1e-4


def test_single_precision_stays_single(data):
    X, y, task, node = data
    dense = DTSVM(C=0.1).fit(X.astype(np.float32), y, task=task, node=node)
    thin = DTSVM(C=0.1).fit(sparse.csr_array(X.astype(np.float32)), y, task=task, node=node)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-9)


def test_rows_are_used_where_they_lie(data):
    X, y, task, node = data
    rows = sparse.csr_array(X)
    values = rows.data
    clf = DTSVM(C=0.1)
    table, network = clf._table(rows, y, task, node, None)
    session = clf._session(network)
    session._enter_all(table)
    matrix = session._members.state.tables.matrix.X
    assert np.shares_memory(matrix.data, values)
    assert np.array_equal(rows.toarray(), X)


def test_a_column_named_twice_is_added_up(data):
    X, y, _, _ = data
    halves = sparse.csr_array(X)
    doubled = sparse.csr_array(
        (np.repeat(halves.data / 2, 2), np.repeat(halves.indices, 2), 2 * halves.indptr), X.shape
    )
    clf = DTSVM(C=0.1).fit(doubled, y)
    np.testing.assert_allclose(clf.coef_, DTSVM(C=0.1).fit(X, y).coef_, atol=1e-9)


def test_a_row_without_a_number_counts_by_its_bias(data):
    X, y, _, _ = data
    X = X.copy()
    X[::5] = 0.0
    thin = DTSVM(C=0.1, tol=1e-7).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(
        thin.intercept_, DTSVM(C=0.1, tol=1e-7).fit(X, y).intercept_, atol=1e-6
    )


def test_a_session_of_sparse_rows_comes_goes_and_is_saved(data, tmp_path):
    X, y, task, node = data
    thin, dense = (Session(Network.ring(4), C=0.1, tol=1e-7) for _ in range(2))
    for live, kind in ((thin, sparse.csr_array), (dense, np.array)):
        for v in range(4):
            for t in range(2):
                mine = (node == v) & (task == t)
                live.enter(v, t, kind(X[mine]), y[mine])
        live.couple(0, 1)
        live.run(rounds=20)
        live.drop_data(0, 0, oldest=3)
        live.add_data(1, 1, kind(X[:9]), y[:9])
        live.leave(node=2)
        live.run()
    thin.save(tmp_path / "thin.npz")
    again = Session.load(tmp_path / "thin.npz")
    for t in range(2):
        np.testing.assert_allclose(thin.classifier(t).coef_, dense.classifier(t).coef_, atol=1e-4)
        assert np.array_equal(thin.classifier(t).coef_, again.classifier(t).coef_)
        thin_risk = thin.risk(t, sparse.csr_array(X), y)
        assert thin_risk.network == thin.risk(t, X, y).network
    again.run(rounds=3)
    thin.run(rounds=3)
    assert np.array_equal(thin.classifier(0).coef_, again.classifier(0).coef_)


def test_a_trained_classifier_labels_sparse_rows():
    clf = LinearClassifier([1.0, -1.0], 0.5, ["no", "yes"])
    assert clf.predict(sparse.csr_array([[1.0, 0.0], [0.0, 2.0]])).tolist() == ["yes", "no"]
