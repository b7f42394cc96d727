"""How much held-out rows of either label count: what new rows of the task will be."""

import numpy as np
import pytest

from dtsvm.select import Held, expected_rates, label_weights, read_scales, scale_sums
from dtsvm.select.weighing import answered, measuring


def drawn(rates, n_rows, seed=0):
    """Rows of either label of tasks with these shares of positive ones."""
    k = np.random.default_rng(seed).binomial(n_rows, rates)
    return np.stack([n_rows - k, k], axis=1).astype(float)


def test_tasks_of_one_rate_are_expected_to_have_it_and_tasks_of_their_own_rates_keep_theirs():
    same, other = np.full(200, 0.4), np.tile([0.1, 0.9], 100)
    assert np.abs(expected_rates(drawn(same, 10)) - 0.4).max() < 0.1
    own = drawn(other, 10)
    np.testing.assert_allclose(expected_rates(own), own[:, 1] / 10, atol=0.06)


@pytest.mark.parametrize("seed", range(5))
def test_expected_rates_are_nearer_to_the_true_ones_than_those_drawn(seed):
    true = np.random.default_rng(seed).beta(6, 4, 100)
    counts = drawn(true, 10, seed)
    far = [np.square(rate - true).mean() for rate in (expected_rates(counts), counts[:, 1] / 10)]
    assert far[0] < 0.7 * far[1]


@pytest.mark.parametrize(
    "counts", [[[3.0, 7.0]], [[3.0, 7.0], [0.0, 0.0]], [[5.0, 0.0], [8.0, 0.0]], [[1.0, 0.0]] * 3]
)
def test_where_nothing_can_be_learnt_from_others_every_row_counts_for_one(counts):
    np.testing.assert_allclose(label_weights(np.array(counts)), 1.0, rtol=1e-12)


def test_rows_of_a_task_count_for_as_many_as_there_are():
    counts = drawn(np.random.default_rng(1).uniform(size=30), 12)
    np.testing.assert_allclose((label_weights(counts) * counts).sum(axis=1), 12)


def test_classes_balanced_by_weights_need_no_other():
    y, task = np.array([1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0, -1.0]), np.repeat([0, 1], 4)
    weight = np.where((y > 0) == (task == 0), 2.0, 2 / 3)
    _, counts, _ = read_scales(scale_sums(np.ones((8, 1)), y, task, 2, weight), 2)
    np.testing.assert_allclose(label_weights(counts), 1.0, atol=1e-6)


def test_margins_count_as_labels_are_expected():
    y, task = np.tile([1.0, 1.0, 1.0, -1.0], 2) * np.repeat([1, -1], 4), np.repeat([0, 1], 4)
    held = Held(np.zeros((8, 1)), y, task, np.zeros(8, np.int64), 2, 3)
    margins = answered(measuring(held, np.ones((8, 1))), np.asarray)
    np.testing.assert_allclose(margins.counts.sum(axis=2), 4.0)
    expected = label_weights(np.array([[1.0, 3.0], [3.0, 1.0]]))[[0, 1], [1, 1]]
    positive = margins.counts[:, 0, 32:].sum(axis=1)  # margins above 0, of positive rows
    np.testing.assert_allclose(positive, expected * [3.0, 1.0])
