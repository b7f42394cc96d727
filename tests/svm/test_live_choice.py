"""Choosing while nodes, links and rows come and go."""

from importlib import import_module
from itertools import count

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtsvm import DTSVMCV, Network, Session
from dtsvm.errors import DataError, NetworkError, ParameterError
from dtsvm.svm.warm import LiveChoice
from worlds import examples

choosing = import_module("dtsvm.select.choosing")  # the package has a function of that name
OPTIONS = {"C": [0.1, 1.0], "tol": 1e-7, "max_rounds": 20_000, "n_jobs": 1,
           "candidates": [("task", 1.0), ("common", 0.0), ("mixed", 0.5, True)]}  # fmt: skip


def rows(rng, task, n=12):
    X = rng.normal(size=(n, 3))
    side = -1.0 if task == "b" else 1.0
    return X, side * np.where(X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


def begin(seed=0, n_nodes=4):
    rng = np.random.default_rng(seed)
    live = Session(Network.ring(n_nodes))
    for node in range(n_nodes):
        for task in "abc":
            live.enter(node, task, *rows(rng, task))
    return live, rng


def cold(live):
    """The same rows in the same folds, every candidate from the start."""
    warm = live._choice
    anew = LiveChoice(warm.options)
    anew.seen, anew.n_rows, anew.n_choices = warm.seen, warm.n_rows, warm.n_choices
    anew.tasks, anew.mean_square = warm.tasks, warm.mean_square
    return anew.choose(live)


CHANGES = {
    "more rows": lambda live, rng: live.add_data(1, "a", *rows(rng, "a", 6)),
    "fewer rows": lambda live, rng: live.drop_data(2, "b", oldest=5),
    "a node leaves": lambda live, rng: live.leave(node=3),
    "an agent leaves": lambda live, rng: live.leave(node=3, task="c"),
    "a node joins": lambda live, rng: live.enter("new", "a", *rows(rng, "a"), links=[0, 2]),
    "a link is drawn": lambda live, rng: live.link(0, 2),
    "a link is cut": lambda live, rng: live.unlink(0, 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change_a_warm_choice_is_the_cold_one(change):
    live, rng = begin()
    live.choose(**OPTIONS)
    CHANGES[change](live, rng)
    warm, anew = live.choose(**OPTIONS), cold(live)
    np.testing.assert_allclose(warm.weights_, anew.weights_, atol=1e-3)
    np.testing.assert_allclose(warm.coef_, anew.coef_, atol=1e-2 * np.abs(anew.coef_).max())


def test_after_changes_to_different_tasks_of_a_node_a_warm_choice_is_the_cold_one():
    live, rng = begin()
    live.choose(**OPTIONS)
    changes = (
        lambda: live.add_data(2, "a", *rows(rng, "a", 6)),  # before those of b, but last to come
        lambda: live.drop_data(2, "b", oldest=5),
        lambda: live.leave(node=2, task="a"),
    )
    for change in changes:
        change()
        warm, anew = live.choose(**OPTIONS), cold(live)
        np.testing.assert_allclose(warm.weights_, anew.weights_, atol=1e-3)
        np.testing.assert_allclose(warm.coef_, anew.coef_, atol=1e-2 * np.abs(anew.coef_).max())


@examples(10)
@given(seed=st.integers(0, 2**32 - 1))
def test_after_any_changes_with_a_choice_after_each_a_warm_choice_is_the_cold_one(seed):
    options = {**OPTIONS, "tol": 1e-6}
    live, rng = begin(seed)
    live.choose(**options)
    for _ in range(5):
        node, task = int(rng.integers(3)), str(rng.choice(list("abc")))
        kind = rng.integers(5)
        if kind in (0, 1):
            live.add_data(node, task, *rows(rng, task, 4))
        elif kind in (2, 3):
            live.drop_data(node, task, oldest=2)
        elif 3 in live.nodes:
            live.leave(node=3)
        else:
            live.enter(3, task, *rows(rng, task), links=[0, 2])
        warm = live.choose(**options)
    anew = cold(live)
    np.testing.assert_allclose(warm.weights_, anew.weights_, atol=5e-3)
    np.testing.assert_allclose(warm.coef_, anew.coef_, atol=1e-2 * np.abs(anew.coef_).max())


def test_a_choice_of_the_same_rows_takes_no_round_though_a_task_is_turned_and_one_is_set_aside():
    live, rng = begin()
    for node in range(4):
        for task in ("lot", "even"):
            X, y = rows(rng, task)
            live.enter(node, task, X, y if task == "even" else rng.permutation([-1.0, 1.0] * 6))
    first = live.choose()
    assert [one.task for one in first.choices_ if one.is_turned] == ["b"]
    assert [one.task for one in first.choices_ if one.is_aside] == ["lot"]
    again = live.choose()
    assert again.info_.n_rounds == 0
    np.testing.assert_allclose(again.weights_, first.weights_, atol=1e-9)


def test_a_choice_of_the_same_rows_takes_no_round_though_tasks_are_set_aside_in_turn(monkeypatch):
    asked = count()

    def suspects(_):  # asked five times a choice: one task at first, then another
        return np.array([True, next(asked) % 5 >= 2, False])

    monkeypatch.setattr(choosing, "suspects", suspects)
    live, _ = begin()
    first = live.choose(**OPTIONS)
    assert [one.is_aside for one in first.choices_] == [True, True, False]
    again = live.choose(**OPTIONS)
    assert again.info_.n_rounds == 0
    np.testing.assert_allclose(again.weights_, first.weights_, atol=1e-9)


@pytest.mark.parametrize("change", [change for change in CHANGES if change != "a node leaves"])
def test_a_warm_choice_sends_less_than_a_cold_one(change):
    live, rng = begin()
    options = {**OPTIONS, "tol": 0.05}
    live.choose(**options)
    CHANGES[change](live, rng)
    warm, anew = live.choose(**options), cold(live)
    assert warm.info_.bytes_sent < anew.info_.bytes_sent


def test_a_choice_knows_sides_and_leaves_the_session_as_it_is():
    live, _ = begin(1)
    live.run()
    before = live.round, live.classifier("a").coef_.copy()
    clf = live.choose(**OPTIONS)
    assert isinstance(clf, DTSVMCV)
    assert [one.is_turned for one in clf.choices_] == [False, True, False]
    assert live.round == before[0]
    np.testing.assert_array_equal(live.classifier("a").coef_, before[1])


def test_a_new_task_begins_anew_and_is_chosen_for():
    live, rng = begin(2)
    live.choose(**OPTIONS)
    live.enter(0, "d", *rows(rng, "d"))
    clf = live.choose(**OPTIONS)
    assert clf.tasks_.tolist() == ["a", "b", "c", "d"]
    assert clf.choices_[3].n_rows == 12


def test_nothing_changed_takes_next_to_no_rounds():
    live, _ = begin(3)
    first, second = live.choose(**OPTIONS), live.choose(**OPTIONS)
    np.testing.assert_allclose(second.weights_, first.weights_, atol=1e-3)
    assert second.info_.n_rounds < first.info_.n_rounds / 2


def test_an_empty_session_cannot_choose():
    with pytest.raises(DataError, match="The session is empty"):
        Session(Network.ring(3)).choose()


def test_rows_with_weights_are_refused_in_one_sentence():
    live, rng = begin(4)
    live.add_data(0, "a", *rows(rng, "a", 2), sample_weight=[2.0, 3.0])
    with pytest.raises(DataError, match="have a sample_weight, which choose"):
        live.choose(**OPTIONS)


def test_choosing_again_where_nothing_changed_takes_no_round_and_says_the_same():
    live, _ = begin()
    options = {**OPTIONS, "tol": 0.05}
    first, again = live.choose(**options), live.choose(**options)
    assert again.info_.n_rounds == 0
    assert [one.sentence for one in again.choices_] == [one.sentence for one in first.choices_]
    np.testing.assert_array_equal(again.coef_, first.coef_)


def test_a_choice_among_new_nodes_alone_begins_anew():
    live, rng = begin()
    live.choose(**OPTIONS)
    for node in (4, 5, 6):
        for task in "abc":
            is_new = node not in live.nodes
            live.enter(node, task, *rows(rng, task), links=list(live.nodes) if is_new else ())
    for node in range(4):
        live.leave(node=node)
    warm, anew = live.choose(**OPTIONS), cold(live)
    np.testing.assert_array_equal(warm.coef_, anew.coef_)


@pytest.mark.parametrize("change", [
    lambda live, new: (live.enter(4, "a", *new, links=[0]), live.unlink(4, 0, allow_split=True)),
    lambda live, _: [live.unlink(0, node, allow_split=True) for node in (1, 3)],
])  # fmt: skip
def test_a_choice_in_a_network_that_fell_into_parts_says_so(change):
    live, rng = begin()
    live.choose(**OPTIONS)
    change(live, rows(rng, "a"))
    with pytest.raises(NetworkError, match="The network falls into parts that cannot hear"):
        live.choose(**OPTIONS)


def test_a_session_whose_agents_have_no_rows_cannot_choose():
    live = Session(Network.ring(3))
    live.enter(0, "a", n_features=2, labels=(-1, 1))
    with pytest.raises(DataError, match="No agent of this session has rows: add_data"):
        live.choose()


def test_a_task_without_rows_is_nobodys_company():
    live, _ = begin()
    for node in range(4):
        live.drop_data(node, "c", oldest=12)
    said = live.choose(candidates=[("task", 1.0), ("task", 0.02, True)]).choices_
    assert [one.company for one in said[:2]] == [("b",), ("a",)]
    assert str(said[2]) == "c has no rows; it takes what the others have in common."


@pytest.mark.parametrize("kind", [np.array, pd.Series])
def test_another_callback_or_number_of_threads_does_not_begin_anew(kind):
    live, _ = begin()
    seen = []
    live.choose(C=kind([0.1, 1.0]), callback=seen.append, n_jobs=1)
    again = live.choose(C=kind([0.1, 1.0]), callback=lambda _: None, n_jobs=2)
    assert seen
    assert again.info_.n_rounds == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"class_weight": "balanced"}, "choose() does not take 'class_weight': choose with "
         "DTSVMCV(..., class_weight=...).fit(...)."),
        ({"network": "ring"}, "choose() does not take 'network': the session has one."),
        ({"gaurd": "alone"}, "Unknown option 'gaurd' of choose. Choose from candidates, C, folds, "
         "guard, refit, tol, max_rounds, seed, n_jobs, callback. Did you mean 'guard'?"),
        ({"folds": 2.5}, "The 'folds' parameter of DTSVMCV must be an int of at least 2 or a fold "
         "for each row. Got 2.5 instead."),
        ({"folds": [0, 1, 2]}, "choose() finds each row's fold itself: give 'folds' as an int of "
         "at least 2."),
    ],
)  # fmt: skip
def test_options_that_a_session_cannot_use_are_refused_in_one_sentence(options, sentence):
    live, _ = begin()
    with pytest.raises(ParameterError) as caught:
        live.choose(**options)
    assert str(caught.value) == sentence
