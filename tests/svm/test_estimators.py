import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dtsvm import CSVM, CTSVM, DSVM, DTSVM, Network, Session
from dtsvm.errors import NotConvergedWarning
from reference import solve_pooled

FOUR = [CSVM, CTSVM, DSVM, DTSVM]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(180, 4))
    task = np.repeat(["x", "y", "z"], 60)
    node = rng.permutation(np.arange(180) % 6)
    y = np.where(X[:, 0] + 0.5 * X[:, 1] * (task == "y") + 0.4 * rng.normal(size=180) > 0.2, 1, 0)
    return X, y, task, node


@pytest.mark.parametrize("C", [0.001, 0.1, 1.0, 10.0])
def test_one_node_one_task_is_an_ordinary_svm(C):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    theirs = SVC(kernel="linear", C=C, tol=1e-9).fit(X, y)
    ours = CSVM(C=C, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4 * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)


@pytest.mark.parametrize("make", [DTSVM, DSVM, CTSVM, CSVM])
def test_without_task_and_node_all_four_separate(make, rng):
    X = rng.normal(size=(60, 3))
    y = X[:, 0] > 0
    clf = make().fit(X, y)
    assert clf.score(X, y) > 0.95
    assert clf.classes_.tolist() == [False, True]
    assert clf.coef_.shape == (1, 3)


@pytest.mark.parametrize("shape", ["complete", "ring", "line", "star", "grid"])
def test_the_network_ends_where_pooling_ends(shape, data):
    X, y, task, node = data
    net = DTSVM(shape, C=0.3, specific_reg=3.0, tol=1e-7).fit(X, y, task=task, node=node)
    pooled = CTSVM(C=0.3, specific_reg=3.0, tol=1e-7).fit(X, y, task=task)
    np.testing.assert_allclose(net.coef_, pooled.coef_, atol=1e-4)
    np.testing.assert_allclose(net.node_coef_, np.broadcast_to(pooled.coef_, (6, 3, 4)), atol=1e-4)


def test_ctsvm_is_the_pooled_solution(data):
    X, y, task, _ = data
    ours = CTSVM(C=0.3, common_reg=0.5, specific_reg=2.0, tol=1e-7).fit(X, y, task=task)
    _, index = np.unique(task, return_inverse=True)
    best = solve_pooled(
        X, 2.0 * y - 1, index, np.full(3, 1 / 3), C=0.3, common_reg=0.5, specific_reg=2.0
    )
    np.testing.assert_allclose(ours.coef_, best.decision[:, :-1], atol=1e-4)
    np.testing.assert_allclose(ours.common_coef_, best.common[:-1], atol=1e-4)
    np.testing.assert_allclose(ours.info_.objective, best.objective, rtol=1e-6)


def test_dsvm_is_one_svm_a_task(data):
    X, y, task, node = data
    ours = DSVM("ring", C=0.5, tol=1e-7).fit(X, y, task=task, node=node)
    for t, name in enumerate("xyz"):
        theirs = SVC(kernel="linear", C=0.5, tol=1e-9).fit(X[task == name], y[task == name])
        np.testing.assert_allclose(ours.coef_[t], theirs.coef_[0], atol=2e-4)


def test_groups_train_apart(data):
    X, y, task, node = data
    some = DTSVM("ring", C=0.3, transfer=[["x", "z"]], tol=1e-7).fit(X, y, task=task, node=node)
    pair = CTSVM(C=0.3, tol=1e-7).fit(X[task != "y"], y[task != "y"], task=task[task != "y"])
    np.testing.assert_allclose(some.coef_[[0, 2]], pair.coef_, atol=1e-4)
    assert some.common_coef_.shape == (3, 4)


def test_relabelling_and_reordering_change_nothing(data, rng):
    X, y, task, node = data
    plain = DTSVM("complete", C=0.3, tol=1e-6).fit(X, y, task=task, node=node)
    order = rng.permutation(len(X))
    names = np.array(["n4", "n2", "n5", "n0", "n1", "n3"])
    other = {"x": "2nd", "y": "3rd", "z": "1st"}
    renamed = np.array([other[t] for t in task])
    again = DTSVM("complete", C=0.3, tol=1e-6)
    again.fit(X[order], y[order], task=renamed[order], node=names[node][order])
    assert again.tasks_.tolist() == ["1st", "2nd", "3rd"]
    np.testing.assert_allclose(again.coef_, plain.coef_[[2, 0, 1]], atol=1e-4)
    np.testing.assert_allclose(again.intercept_, plain.intercept_[[2, 0, 1]], atol=1e-4)


def test_turning_a_label_round_turns_the_classifier_round(data):
    X, y, task, _ = data
    plain = CSVM(C=0.3, tol=1e-8).fit(X, y, task=task)
    turned = CSVM(C=0.3, tol=1e-8, positive=0).fit(X, y, task=task)
    np.testing.assert_allclose(turned.coef_, -plain.coef_, atol=1e-5)
    assert np.array_equal(turned.predict(X, task=task), plain.predict(X, task=task))


def test_every_task_has_its_own_labels_and_gets_them_back(data):
    X, y, task, node = data
    names = {"x": ("well", "sick"), "y": ("no", "yes"), "z": ("left", "right")}
    labels = np.array([names[t][k] for t, k in zip(task, y, strict=True)])
    clf = DTSVM("ring", C=0.3, positive={"x": "sick"}).fit(X, labels, task=task, node=node)
    predicted = clf.predict(X, task=task, node=node)
    for t in "xyz":
        assert set(predicted[task == t]) <= set(names[t])
    assert clf.task_classes_.tolist() == [["well", "sick"], ["no", "yes"], ["left", "right"]]
    assert clf.score(X, labels, task=task) > 0.8


def test_tasks_may_have_labels_of_different_kinds(data):
    X, y, task, _ = data
    labels = np.array(
        [("no", "yes")[k] if t == "x" else k for t, k in zip(task, y, strict=True)], object
    )
    clf = CTSVM(C=0.3).fit(X, labels, task=task)
    assert set(clf.predict(X, task="x")) <= {"no", "yes"}
    assert set(clf.predict(X, task="y")) <= {0, 1}


def test_a_node_answers_for_itself_and_all_together_on_average(data):
    X, y, task, node = data
    clf = DTSVM("ring", C=0.3, tol=1e-6).fit(X, y, task=task, node=node)
    mean = np.mean([clf.decision_function(X, task="y", node=v) for v in range(6)], axis=0)
    np.testing.assert_allclose(clf.decision_function(X, task="y"), mean, atol=1e-4)
    mixed = clf.decision_function(X, task=task, node=node)
    for v, t in ((0, "x"), (5, "z")):
        mine = (node == v) & (task == t)
        alone = clf.decision_function(X[mine], task=t, node=v)
        np.testing.assert_allclose(mixed[mine], alone)


def test_a_node_without_rows_is_welcome(data):
    X, y, task, node = data
    net = Network(range(7), [*Network.ring(6), (0, 6)])
    clf = DTSVM(net, C=0.3).fit(X, y, task=task, node=node)
    assert np.isnan(clf.node_coef_[6]).all()


def test_relays_bridge_and_do_not_change_the_optimum(data):
    X, y, task, node = data
    far = Network(range(8), [(0, 6), (6, 7), (7, 1), *[(i, i + 1) for i in range(1, 5)]])
    bridged = DTSVM(far, C=0.3, tol=1e-7, relays="auto").fit(X, y, task=task, node=node)
    pooled = CTSVM(C=0.3, tol=1e-7).fit(X, y, task=task)
    np.testing.assert_allclose(bridged.coef_, pooled.coef_, atol=1e-4)
    assert np.isnan(bridged.node_coef_[6:]).all()


def test_info_and_history_tell_the_same_story(data):
    X, y, task, node = data
    clf = DTSVM("ring", C=0.3).fit(X, y, task=task, node=node)
    info, last = clf.info_, clf.history_[-1]
    assert len(clf.history_) == info.n_rounds == last["round"]
    assert info.gap == last["gap"] <= 1e-4
    assert max(last["primal_residual"], last["dual_residual"]) <= 1e-3
    # a ring of 6, three tasks: 36 messages of 2 × 5 float64 a round
    assert info.messages_sent == 36 * info.n_rounds
    assert info.bytes_sent == 36 * 80 * info.n_rounds


def test_not_converging_warns_once_with_what_to_change(data):
    X, y, task, node = data
    with pytest.warns(NotConvergedWarning, match=r"^DTSVM stopped after 3 rounds") as caught:
        clf = DTSVM("ring", max_rounds=3).fit(X, y, task=task, node=node)
    assert len(caught) == 1
    assert "raise max_rounds" in str(caught[0].message)
    assert clf.info_.status == "max_rounds"


def test_rows_stay_where_they_are_and_as_they_are(data):
    X, y, task, node = data
    for dtype in (np.float64, np.float32):
        rows = np.ascontiguousarray(X, dtype)
        before = rows.copy()
        seen = []

        def look(info, seen=seen):
            seen.append(info)

        clf = DTSVM("ring", C=0.3, callback=look).fit(rows, y, task=task, node=node)
        assert np.array_equal(rows, before)
        assert len(seen) == clf.info_.n_rounds
        np.testing.assert_allclose(
            clf.coef_, DTSVM("ring", C=0.3).fit(X, y, task=task, node=node).coef_, atol=1e-4
        )


@pytest.mark.parametrize("make", FOUR)
def test_clone_and_pickle_keep_everything(make, data):
    X, y, task, node = data
    clf = make(C=0.3).fit(X, y, task=task, node=node)
    back = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(back.predict(X, task=task), clf.predict(X, task=task))
    assert clone(clf).get_params() == clf.get_params()


def test_a_task_of_one_class_trains_with_the_others(data):
    X, y, task, node = data
    y = np.where(task == "z", 1, y)
    ours = DTSVM("ring", C=0.3, tol=1e-7).fit(X, y, task=task, node=node)
    assert ours.task_classes_.tolist() == [[0, 1]] * 3
    _, index = np.unique(task, return_inverse=True)
    share = np.array([len(np.unique(node[index == t])) for t in range(3)])
    best = solve_pooled(
        X, 2.0 * y - 1, index, share / share.sum(), C=0.3, common_reg=1.0, specific_reg=1.0
    )
    np.testing.assert_allclose(ours.coef_, best.decision[:, :-1], atol=1e-3)
    assert set(ours.predict(X[task == "z"], task="z")) == {1}


def test_a_task_of_one_class_keeps_the_positive_side_it_was_given(data):
    X, y, task, _ = data
    y = np.where(task == "z", 1, y)
    ours = CTSVM(C=0.3, positive={"z": 0}).fit(X, y, task=task)
    assert ours.task_classes_.tolist() == [[0, 1], [0, 1], [1, 0]]
    assert (ours.decision_function(X[task == "z"], task="z") < 0).all()


@pytest.mark.parametrize(("common", "specific"), [(1.0, 1.0), (0.5, 3.0)])
def test_alone_both_parts_regularise_one_classifier(data, common, specific):
    X, y, task, _ = data
    both = CTSVM(C=0.2, common_reg=common, specific_reg=specific, transfer=False, tol=1e-8)
    one = CSVM(C=0.2 * (1 / common + 1 / specific), tol=1e-8)
    np.testing.assert_allclose(
        both.fit(X, y, task=task).coef_, one.fit(X, y, task=task).coef_, atol=1e-4
    )


def test_specific_reg_counts_by_a_tasks_share(rng):
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, 1, -1)

    def trained(n_empty, specific_reg):
        live = Session(C=0.3, specific_reg=specific_reg, tol=1e-8)
        live.enter(0, "real", X, y)
        for t in range(n_empty):
            live.enter(0, t, labels=(-1, 1))
        if n_empty:
            live.couple("real", *range(n_empty))
        live.run()
        return live.classifier("real").coef_[0]

    np.testing.assert_allclose(trained(0, 1.0), trained(3, 4.0), atol=1e-4)
    assert np.abs(trained(0, 1.0) - trained(3, 1.0)).max() > 1e-3


def test_n_iter_is_the_number_of_rounds(data):
    X, y, task, node = data
    clf = DTSVM("ring", C=0.3).fit(X, y, task=task, node=node)
    assert clf.n_iter_ == clf.info_.n_rounds == len(clf.history_)


@pytest.mark.parametrize("seed", [5, 6, 7, 8])
def test_one_node_with_features_of_a_large_scale_is_certified_soon(seed):
    rng = np.random.default_rng(seed)
    X = 10 * rng.normal(size=(120, 3))
    y = np.where(X[:, 0] + 5 * rng.normal(size=120) > 0, 1, -1)
    info = DTSVM().fit(X, y).info_
    assert info.gap <= 1e-4
    assert info.n_rounds < 1000
