"""Evidence and weights from tables against the same from raw margins."""

import numpy as np
import pytest
from raw import raw_losses, raw_weights

from dtsvm.select import losses, read_scales, read_table, scale_sums, slopes, table, weights
from dtsvm.select.margins import GRID


def margins_of(decisions, y, task, n_tasks, nodes=None):
    """Read the total of the nodes' tables."""
    nodes = np.zeros(len(y), int) if nodes is None else nodes
    parts = [nodes == v for v in np.unique(nodes)]
    sums = sum(scale_sums(decisions[mine], y[mine], task[mine], n_tasks) for mine in parts)
    scale, _, _ = read_scales(sums, n_tasks)
    total = sum(table(decisions[mine], y[mine], task[mine], n_tasks, scale) for mine in parts)
    return read_table(total, scale)


def make(seed, n_tasks=6, rows_a_task=30, n_candidates=8):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), rows_a_task)
    y = rng.choice([-1.0, 1.0], len(task))
    strength = rng.uniform(0.1, 2.0, (n_tasks, n_candidates)) * 10 ** rng.uniform(
        -2, 2, n_candidates
    )
    noise = rng.standard_t(4, size=(len(task), n_candidates)) * strength.mean(axis=0)
    return y[:, None] * strength[task] + noise, y, task


@pytest.mark.parametrize("seed", range(8))
def test_losses_from_tables_are_those_of_raw_margins(seed):
    decisions, y, task = make(seed)
    margins = margins_of(decisions, y, task, 6)
    slope = slopes(margins)
    expected, raw_slope = raw_losses(decisions, y, task, 6)
    np.testing.assert_allclose(slope, raw_slope, rtol=5e-3)
    np.testing.assert_allclose(losses(margins, slope), expected, rtol=5e-3, atol=0.06)


@pytest.mark.parametrize("seed", range(8))
def test_weights_from_tables_are_those_of_raw_margins_to_three_hundredths(seed):
    decisions, y, task = make(seed)
    is_alone = np.arange(8) < 2
    margins = margins_of(decisions, y, task, 6)
    share, _ = weights(losses(margins, slopes(margins)), is_alone)
    expected = raw_weights(raw_losses(decisions, y, task, 6)[0], is_alone)
    np.testing.assert_allclose(share, expected, atol=3e-2)


def test_tables_of_nodes_add_up_to_the_table_of_all_rows():
    decisions, y, task = make(3)
    nodes = np.random.default_rng(0).integers(5, size=len(y))
    whole, summed = (margins_of(decisions, y, task, 6, by) for by in (None, nodes))
    np.testing.assert_allclose(summed.counts, whole.counts, atol=1e-9)
    np.testing.assert_array_equal(summed.wrong, whole.wrong)
    assert (summed.rows == 30).all()


def test_a_table_keeps_the_number_and_the_mean_of_margins_inside_the_grid():
    decisions, y, task = make(5)
    margins = margins_of(decisions, y, task, 6)
    np.testing.assert_allclose(margins.counts.sum(axis=2), 30)
    z = y[:, None] * decisions / margins.scale
    assert np.abs(z).max() < GRID[-1]
    mean = np.array([z[task == t].mean(axis=0) for t in range(6)])
    np.testing.assert_allclose(margins.counts @ GRID / 30, mean, atol=1e-9)


def test_a_row_on_the_border_counts_as_the_negative_label():
    decisions, y = np.zeros((2, 1)), np.array([1.0, -1.0])
    margins = margins_of(decisions, y, np.array([0, 1]), 2)
    assert margins.wrong.ravel().tolist() == [1.0, 0.0]


def test_alone_keeps_a_tenth_of_the_prior_when_every_task_prefers_company():
    loss = np.tile([30.0, 31.0, 5.0, 6.0], (40, 1))
    _, prior = weights(loss, np.array([True, True, False, False]))
    assert prior[:2].sum() == pytest.approx(0.1)
    assert prior.sum() == pytest.approx(1.0)


def test_tasks_teach_each_other_what_to_expect():
    undecided = [10.0, 10.0]
    loss = np.array([undecided] + [[14.0, 8.0]] * 20)
    share, _ = weights(loss, np.array([True, False]))
    assert share[0, 1] > 0.8


def test_with_one_candidate_it_has_all_the_weight():
    share, prior = weights(np.array([[3.0], [4.0]]), np.array([True]))
    assert share.tolist() == [[1.0], [1.0]]
    assert prior.tolist() == [1.0]


def test_the_prior_is_learnt_from_tasks_that_vote_and_all_get_weights():
    loss = np.array([[9.0, 4.0, 5.0], [8.0, 5.0, 7.0], [3.0, 9.0, 9.0], [2.0, 9.0, 9.0]])
    is_alone, votes = np.array([True, False, False]), np.array([True, True, False, False])
    share, prior = weights(loss, is_alone, votes=votes)
    _, expected = weights(loss[:2], is_alone)
    np.testing.assert_array_equal(prior, expected)
    assert share.shape == (4, 3)
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
