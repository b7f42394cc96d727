"""Which tasks are turned round."""

import itertools

import numpy as np
import pytest

from dtsvm.select import sides


def agreement(own, n_rows, s):
    v = own / np.linalg.norm(own, axis=1, keepdims=True) * np.sqrt(n_rows)[:, None]
    return np.linalg.norm(s @ v)


@pytest.mark.parametrize("seed", range(10))
def test_turned_tasks_are_found(seed):
    rng = np.random.default_rng(seed)
    turned = np.where(np.arange(12) < 4, -1.0, 1.0)
    own = turned[:, None] * (rng.normal(size=8) + 0.6 * rng.normal(size=(12, 8)))
    assert sides(own, np.full(12, 20)).tolist() == turned.tolist()


@pytest.mark.parametrize("seed", range(10))
def test_no_single_turn_would_gain(seed):
    rng = np.random.default_rng(seed)
    own, n_rows = rng.normal(size=(7, 3)), rng.integers(5, 50, size=7)
    s = sides(own, n_rows)
    for t in range(7):
        other = s.copy()
        other[t] *= -1
        assert agreement(own, n_rows, other) <= agreement(own, n_rows, s) + 1e-9


def test_the_best_sides_of_few_clear_tasks_are_found():
    rng = np.random.default_rng(1)
    own = rng.normal(size=4) * rng.choice([-1.0, 1.0], 5)[:, None] + 0.3 * rng.normal(size=(5, 4))
    n_rows = np.full(5, 10)
    best = max(agreement(own, n_rows, np.array(s)) for s in itertools.product([-1, 1], repeat=5))
    assert agreement(own, n_rows, sides(own, n_rows)) == pytest.approx(best)


def test_the_side_with_more_rows_stays_as_it_is():
    own = np.array([[1.0, 0.0], [-1.0, 0.1]])
    assert sides(own, np.array([12, 400])).tolist() == [-1.0, 1.0]


def test_a_task_without_a_classifier_is_not_turned():
    own = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.1]])
    assert sides(own, np.array([5, 0, 5])).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("seed", range(10))
def test_of_two_sides_with_as_many_rows_the_first_task_that_says_something_stays(seed):
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(2, 2)))[0]
    own = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.1]]) @ turn
    assert sides(own, np.array([0, 13, 13])).tolist() == [1.0, 1.0, -1.0]
