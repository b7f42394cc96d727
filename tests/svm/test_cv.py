"""Choosing over a network: what is chosen, that the network does not matter, refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from dtsvm import DTSVM, DTSVMCV, Network, load_model, save_model
from dtsvm.errors import DataError, ParameterError
from worlds import examples, random_network


def draw(seed=0, n_tasks=4, rows_a_task=24, p=4, turned=(), noise=0.4):
    rng = np.random.default_rng(seed)
    task = np.repeat([f"task {t}" for t in range(n_tasks)], rows_a_task)
    index = np.repeat(np.arange(n_tasks), rows_a_task)
    X = rng.normal(size=(len(task), p))
    direction = rng.normal(size=p) + 0.2 * rng.normal(size=(n_tasks, p))
    direction[list(turned)] *= -1
    y = np.where((X * direction[index]).sum(axis=1) + noise * rng.normal(size=len(task)) > 0, 1, -1)
    return X, y, task, rng.integers(4, size=len(task))


FEW = [("task", 1.0), ("task", 0.6, True), ("common", 0.0), ("mixed", 0.5, True)]
QUICK = {"C": [0.1, 1.0], "n_jobs": 1}


def test_a_turned_task_is_found_said_and_used():
    X, y, task, node = draw(turned=[2])
    clf = DTSVMCV(Network.ring(4), **QUICK).fit(X, y, task=task, node=node)
    assert [one.is_turned for one in clf.choices_] == [False, False, True, False]
    assert ", turned round; " in str(clf.choices_[2])
    assert clf.score(X, y, task=task) > 0.85


def test_a_task_whose_rows_have_one_label_is_trained_and_that_is_said():
    X, y, task, node = draw(5)
    y = np.where(task == "task 1", 1, y)
    clf = DTSVMCV(Network.ring(4), **QUICK).fit(X, y, task=task, node=node)
    assert [one.n_labels for one in clf.choices_].count(1) == 1
    assert "of one label only" in clf.choices_[1].sentence


def test_a_task_with_labels_drawn_by_lot_is_set_aside_and_the_others_do_without_it():
    X, y, task, node = draw(22, n_tasks=6, rows_a_task=40, noise=0.1)
    lies, rng = task == "task 1", np.random.default_rng(0)
    y = np.where(lies, rng.choice([-1, 1], len(y)), y)
    # One node has nothing but such rows: it passes messages on and is answered for by the others.
    node = np.where(lies, 3, node % 3)
    options = {**QUICK, "folds": np.arange(len(y)) % 3, "candidates": FEW, "tol": 1e-4}
    clf = DTSVMCV(Network.ring(4), **options).fit(X, y, task=task, node=node)
    assert [one.is_aside for one in clf.choices_] == [False, True, False, False, False, False]
    assert "errs as often as a coin would" in clf.choices_[1].sentence
    assert not any("task 1" in one.company for one in clf.choices_)
    assert "trains with 4 other tasks" in clf.choices_[0].sentence
    assert np.isfinite(clf.decision_function(X[lies], task=task[lies], node=3)).all()
    without = DTSVMCV(Network.ring(4), **{**options, "folds": options["folds"][~lies]})
    without.fit(X[~lies], y[~lies], task=task[~lies], node=node[~lies])
    f, g = (one.decision_function(X[~lies], task=task[~lies]) for one in (clf, without))
    assert np.mean((f > 0) == (g > 0)) > 0.98


def test_a_larger_c_is_tried_only_in_families_that_gain_by_the_one_before():
    X, y, task, node = draw(23, rows_a_task=80, noise=2.0)
    seen = []
    prices = [0.01, 0.1, 1.0, 10.0, 100.0]
    clf = DTSVMCV("ring", C=prices, refit=False, callback=seen.append, n_jobs=1, tol=0.2)
    clf.fit(X, y, task=task, node=node)
    tried = {(one.candidate.family[:2], one.candidate.C) for one in seen}
    assert len(tried) < 5 * len({family for family, _ in tried})
    assert {C for _, C in tried} >= set(prices[:3])
    assert clf.weights_.shape == (4, len(clf.candidates_))
    np.testing.assert_allclose(clf.weights_.sum(axis=1), 1.0)


def test_a_larger_c_is_tried_only_if_the_one_before_has_its_even_share():
    tried = {}
    for noise in (0.0, 2.0):  # rows that a line parts want a large C, noisy ones a small one
        X, y, task, node = draw(24, rows_a_task=80, noise=noise)
        clf = DTSVMCV("ring", C=[0.01, 0.1, 1.0, 10.0], n_jobs=1).fit(X, y, task=task, node=node)
        by_price = dict.fromkeys((candidate.C for candidate in clf.candidates_), 0.0)
        for candidate, share in zip(clf.candidates_, clf.weights_.mean(axis=0), strict=True):
            by_price[candidate.C] += share
        tried[noise] = list(by_price.values())
    assert tried[0.0][-1] > 1 / 4
    assert tried[2.0][-1] == 0.0
    assert tried[2.0][-2] < 1 / 3


def test_three_labels_are_chosen_for_one_after_the_other(tmp_path):
    rng = np.random.default_rng(24)
    centre = {"a": [2, 0, 0], "b": [-1, 2, 0], "c": [-1, -2, 0]}
    y = rng.choice(["a", "b", "c"], 150)
    X = np.array([centre[label] for label in y]) + rng.normal(size=(150, 3))
    task, node = np.arange(150) % 3, rng.integers(4, size=150)
    y[(task == 2) & (y == "c")] = "a"  # a task of two labels among tasks of three
    clf = DTSVMCV("ring", class_weight="balanced", **QUICK).fit(X, y, task=task, node=node)
    assert clf.task_classes_[2] == ("a", "b")
    assert [(one.task, one.label) for one in clf.choices_][-2:] == [(0, "c"), (1, "c")]
    assert "1 (label c) trains with 0; " in clf.choices_[-1].sentence
    seen = task < 2
    assert np.mean(clf.predict(X[seen], task=task[seen]) == y[seen]) > 0.85
    assert clf.is_wrong_.shape == (150, 3)
    assert clf.is_wrong_[:, 2].mean() < 0.3
    assert len(clf.weights_) == len(clf.choices_) == 8
    save_model(clf, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(X, task=task), clf.predict(X, task=task))


def test_choices_tell_shares_that_add_up_errors_and_limits():
    X, y, task, node = draw(1)
    clf = DTSVMCV("ring", **QUICK).fit(X, y, task=task, node=node)
    for one in clf.choices_:
        assert sum(one.weights.values()) == pytest.approx(1.0, abs=0.05)
        assert one.n_rows == 24
        assert one.alone.low <= one.alone.value <= one.alone.high
        assert one.chosen.low <= one.chosen.value <= one.chosen.high
        assert one.difference.value == pytest.approx(one.chosen.value - one.alone.value)
        assert 0.1 <= one.C <= 1.0
    np.testing.assert_allclose(clf.weights_.sum(axis=1), 1.0)
    assert len(clf.candidates_) == clf.weights_.shape[1] == 16


def test_every_holder_answers_and_agrees_with_the_network_to_the_tolerance():
    X, y, task, node = draw(2)
    clf = DTSVMCV(Network.line(4), tol=1e-4, **QUICK).fit(X, y, task=task, node=node)
    whole = clf.decision_function(X, task=task)
    for v in range(4):
        own = clf.decision_function(X, task=task, node=v)
        assert np.abs(own - whole).max() < 0.1 * np.abs(whole).mean()


@examples(50)
@given(seed=st.integers(0, 2**32 - 1), n_nodes=st.integers(2, 7))
def test_spread_over_any_network_the_weights_are_those_of_pooled_rows(seed, n_nodes):
    rng = np.random.default_rng(seed)
    X, y, task, _ = draw(seed, n_tasks=3, rows_a_task=18, p=3, turned=rng.choice(3, 1))
    options = {"folds": rng.permutation(len(y)) % 3, "C": [0.1, 1.0], "tol": 1e-8, "n_jobs": 1,
               "max_rounds": 20_000, "candidates": FEW}  # fmt: skip
    pooled = DTSVMCV(**options).fit(X, y, task=task)
    node = rng.integers(n_nodes, size=len(y))
    spread = DTSVMCV(random_network(rng, n_nodes), **options).fit(X, y, task=task, node=node)
    np.testing.assert_allclose(spread.weights_, pooled.weights_, atol=1e-3)
    f, g = (clf.decision_function(X, task=task) for clf in (spread, pooled))
    np.testing.assert_allclose(f, g, atol=5e-3 * np.abs(g).max())


@examples(20)
@given(seed=st.integers(0, 2**32 - 1))
def test_nodes_that_are_each_a_task_of_their_own_choose_what_pooled_rows_choose(seed):
    rng = np.random.default_rng(seed)
    X, y, task, _ = draw(seed, n_tasks=5, rows_a_task=15, p=3, turned=[4])
    options = {"folds": rng.permutation(len(y)) % 3, "C": [0.1, 1.0], "tol": 1e-8, "n_jobs": 1,
               "max_rounds": 20_000, "candidates": FEW}  # fmt: skip
    pooled = DTSVMCV(**options).fit(X, y, task=task)
    network = random_network(rng, 5)
    spread = DTSVMCV(network, **options).fit(X, y, task=task, node=np.repeat(np.arange(5), 15))
    np.testing.assert_allclose(spread.weights_, pooled.weights_, atol=1e-3)
    f, g = (clf.decision_function(X, task=task) for clf in (spread, pooled))
    np.testing.assert_allclose(f, g, atol=5e-3 * np.abs(g).max())
    assert [str(one) for one in spread.choices_] == [str(one) for one in pooled.choices_]


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**30])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_the_unit_of_all_features_together_changes_no_bit(kind, unit):
    X, y, task, node = draw(3)
    plain, other = (
        DTSVMCV("ring", candidates=FEW).fit(kind(some), y, task=task, node=node)
        for some in (X, unit * X)
    )
    assert other.info_.n_rounds == plain.info_.n_rounds
    np.testing.assert_array_equal(other.weights_, plain.weights_)
    np.testing.assert_array_equal(unit * other.coef_, plain.coef_)
    np.testing.assert_array_equal(other.intercept_, plain.intercept_)


def test_csr_rows_choose_what_dense_ones_choose():
    X, y, task, node = draw(12)
    X[np.abs(X) < 0.5] = 0.0
    options = {**QUICK, "candidates": FEW, "tol": 1e-7, "max_rounds": 20_000}
    dense = DTSVMCV("ring", **options).fit(X, y, task=task, node=node)
    thin = DTSVMCV("ring", **options).fit(csr_array(X), y, task=task, node=node)
    np.testing.assert_allclose(thin.weights_, dense.weights_, atol=1e-3)
    np.testing.assert_allclose(
        thin.decision_function(csr_array(X), task=task), dense.decision_function(X, task=task),
        atol=5e-3 * np.abs(dense.decision_function(X, task=task)).max(),
    )  # fmt: skip


def test_a_row_of_weight_zero_is_not_there():
    X, y, task, node = draw(13)
    kept = np.arange(len(y)) % 5 > 0
    folds = np.arange(len(y)) % 3
    options = {**QUICK, "candidates": FEW, "n_jobs": 1}
    some = DTSVMCV("ring", folds=folds[kept], **options).fit(
        X[kept], y[kept], task=task[kept], node=node[kept]
    )
    weighted = DTSVMCV("ring", folds=folds, **options).fit(
        X, y, task=task, node=node, sample_weight=kept.astype(float)
    )
    np.testing.assert_allclose(weighted.coef_, some.coef_, rtol=1e-12, atol=1e-12)
    assert weighted.is_wrong_.shape == (len(y), 3)
    assert not weighted.is_wrong_[~kept].any()


@pytest.mark.parametrize("kind", [DTSVM, DTSVMCV])
def test_a_task_all_of_whose_rows_have_weight_zero_is_not_there(kind):
    X, y, task, node = draw(13)
    kept = task != "task 1"
    some = kind("ring").fit(X[kept], y[kept], task=task[kept], node=node[kept])
    weighted = kind("ring").fit(X, y, task=task, node=node, sample_weight=kept.astype(float))
    assert weighted.tasks_.tolist() == ["task 0", "task 2", "task 3"]
    np.testing.assert_array_equal(weighted.coef_, some.coef_)
    with pytest.raises(DataError, match="Unknown task 'task 1'"):
        weighted.predict(X, task=task)


def test_a_task_alone_with_weights_is_the_task_with_as_many_rows():
    X, y, _, _ = draw(14, n_tasks=1, rows_a_task=40)
    rng = np.random.default_rng(0)
    weight, folds = rng.integers(1, 4, len(y)), rng.integers(3, size=len(y))
    many = np.repeat(np.arange(len(y)), weight)
    options = {"C": [1.0], "tol": 1e-9, "max_rounds": 20_000, "n_jobs": 1}
    one = DTSVMCV(folds=folds, **options).fit(X, y, sample_weight=weight)
    other = DTSVMCV(folds=folds[many], **options).fit(X[many], y[many])
    f, g = one.decision_function(X), other.decision_function(X)
    np.testing.assert_allclose(f / np.abs(f).max(), g / np.abs(g).max(), atol=1e-3)


def test_balanced_classes_find_more_of_a_rare_label():
    X, y, task, node = draw(15, noise=1.5, rows_a_task=60)
    kept = (y < 0) | (np.arange(len(y)) % 5 == 0)
    X, y, task, node = X[kept], y[kept], task[kept], node[kept]
    plain, fair = (
        DTSVMCV("ring", class_weight=w, **QUICK).fit(X, y, task=task, node=node)
        for w in (None, "balanced")
    )
    rare = y > 0
    found = [clf.predict(X[rare], task=task[rare]).mean() for clf in (plain, fair)]
    assert found[1] > found[0]


def test_the_number_of_threads_changes_nothing():
    X, y, task, node = draw(3)
    one, two = (
        DTSVMCV("ring", C=[0.1, 1.0], n_jobs=n).fit(X, y, task=task, node=node) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.weights_, two.weights_)


def test_one_task_chooses_its_c_alone():
    X, y, _, node = draw(4, n_tasks=1, rows_a_task=60)
    clf = DTSVMCV("complete").fit(X, y, node=node)
    assert [str(c.family) for c in clf.candidates_] == ["alone"] * 4
    assert str(clf.choices_[0]).startswith("0 trains alone; ")
    assert clf.score(X, y) > 0.8


def test_a_task_of_two_rows_and_a_task_of_one_class_follow_the_others():
    X, y, task, node = draw(5, n_tasks=5, rows_a_task=30, noise=0.1)
    small = np.flatnonzero(task == "task 0")
    two = small[[np.argmax(y[small] > 0), np.argmax(y[small] < 0)]]
    single = np.flatnonzero((task == "task 1") & (y > 0))[:6]
    kept = np.concatenate(
        [two, single, np.flatnonzero(np.isin(task, ["task 2", "task 3", "task 4"]))]
    )
    clf = DTSVMCV("ring", n_jobs=1).fit(X[kept], y[kept], task=task[kept], node=node[kept])
    mine = task == "task 0"
    assert clf.score(X[mine], y[mine], task=task[mine]) > 0.75
    assert [one.n_rows for one in clf.choices_] == [2, 6, 30, 30, 30]


def test_hundreds_of_tasks_of_a_few_rows_are_chosen_for_together():
    X, y, task, node = draw(16, n_tasks=200, rows_a_task=6, p=3)
    clf = DTSVMCV("ring", C=1.0, n_jobs=1, candidates=[("task", 1.0), ("common", 0.0)])
    clf.fit(X, y, task=task, node=node)
    assert len(clf.choices_) == 200
    assert "199 other tasks" in clf.choices_[0].sentence
    assert clf.score(X, y, task=task) > 0.85


def test_nodes_without_rows_or_with_one_class_pass_messages_on():
    X, y, task, _ = draw(6)
    node = np.where(y > 0, 0, 4)
    clf = DTSVMCV(Network.line(5), **QUICK).fit(X, y, task=task, node=node)
    assert clf.score(X, y, task=task) > 0.85
    assert clf.node_coef_.shape == (5, 4, 4)
    assert np.isnan(clf.node_coef_[2]).all()


def test_each_node_may_have_a_task_of_its_own():
    X, y, task, _ = draw(7, n_tasks=5)
    node = np.array([int(name[-1]) for name in task])
    clf = DTSVMCV(Network.ring(5), **QUICK).fit(X, y, task=task, node=node)
    assert clf.score(X, y, task=task) > 0.8


def test_with_the_guard_no_task_makes_more_held_out_errors_than_alone():
    X, y, task, node = draw(8, noise=3.0)
    clf = DTSVMCV("ring", guard="alone", **QUICK).fit(X, y, task=task, node=node)
    assert all(one.chosen.value <= one.alone.value for one in clf.choices_)


@pytest.mark.parametrize("refit", [True, False])
def test_every_holder_ends_with_what_was_certified(refit):
    X, y, task, node = draw(9)
    clf = DTSVMCV("ring", refit=refit, **QUICK).fit(X, y, task=task, node=node)
    for own in clf.node_coef_:
        np.testing.assert_array_equal(own, clf.coef_)
    assert clf.score(X, y, task=task) > 0.85


def test_progress_names_every_candidate_that_is_done():
    X, y, task, node = draw(10)
    seen = []
    DTSVMCV("ring", callback=seen.append, refit=False, candidates="alone", **QUICK).fit(
        X, y, task=task, node=node
    )
    assert [(p.n_done, p.n_jobs, p.candidate.C) for p in seen] == [(1, 1, 0.1), (1, 1, 1.0)]


def test_a_saved_model_predicts_the_same(tmp_path):
    X, y, task, node = draw(11)
    clf = DTSVMCV("ring", folds=np.arange(len(y)) % 3, **QUICK).fit(X, y, task=task, node=node)
    save_model(clf, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert isinstance(again, DTSVMCV)
    np.testing.assert_array_equal(
        again.decision_function(X, task=task), clf.decision_function(X, task=task)
    )


@pytest.mark.parametrize("price", [np.float32(0.5), np.int64(1)])
def test_c_may_be_a_number_of_numpy(price):
    X, y, task, node = draw()
    clf = DTSVMCV("ring", C=price, n_jobs=1).fit(X, y, task=task, node=node)
    assert {one.C for one in clf.candidates_} == {float(price)}


def test_folds_that_hold_no_row_out_are_not_there():
    X, y, task, node = draw()
    close = np.arange(len(y)) % 3
    one, other = (
        DTSVMCV("ring", folds=folds, **QUICK).fit(X, y, task=task, node=node)
        for folds in (close, 5 * close + 2)
    )
    np.testing.assert_array_equal(one.weights_, other.weights_)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"folds": 1}, ParameterError, "The 'folds' parameter of DTSVMCV must be an int of at "
         "least 2 or a fold for each row. Got 1 instead."),
        ({"folds": [0, 1]}, DataError, "X has 96 rows, but folds has 2."),
        ({"folds": np.ones(96, int)}, DataError, "folds must number each row's fold with ints from "
         "0, two at least."),
        ({"folds": ["a", "b"] * 48}, DataError, "folds must number each row's fold with ints from "
         "0, two at least."),
        ({"guard": "alon"}, ParameterError, "Unknown 'guard' of DTSVMCV: 'alon'. Choose from "
         "alone. Did you mean 'alone'?"),
        ({"C": []}, ParameterError, "The 'C' parameter of DTSVMCV must name at least one value."),
        ({"tol": 0}, ParameterError, "The 'tol' parameter of DTSVMCV must be a positive float. Got "
         "0 instead."),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_sentence(options, error, sentence):
    X, y, task, node = draw()
    with pytest.raises(error) as caught:
        DTSVMCV("ring", **options).fit(X, y, task=task, node=node)
    assert str(caught.value) == sentence
