"""Dealing rows to nodes: every row to one node, in the sizes asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtsvm.data import deal
from dtsvm.errors import DataError, ParameterError

SEEDS = st.integers(0, 2**32 - 1)


def refusal(kind, *arguments, **options):
    with pytest.raises(kind) as caught:
        deal(*arguments, **options)
    return str(caught.value)


@given(n_rows=st.integers(0, 200), n_nodes=st.integers(1, 30), seed=SEEDS)
def test_even_sizes_differ_by_one_at_most(n_rows, n_nodes, seed):
    nodes = deal(n_rows, n_nodes, seed=seed)
    sizes = np.bincount(nodes, minlength=n_nodes)
    assert nodes.shape == (n_rows,)
    assert len(sizes) == n_nodes
    assert sizes.max() - sizes.min() <= 1


@given(counts=st.lists(st.integers(0, 20), min_size=1, max_size=12), seed=SEEDS)
def test_counts_are_dealt_exactly(counts, seed):
    nodes = deal(sum(counts), len(counts), how="counts", counts=counts, seed=seed)
    assert np.bincount(nodes, minlength=len(counts)).tolist() == counts


@given(
    y=st.lists(st.sampled_from(["cup", "plate", "fork"]), max_size=60),
    n_nodes=st.integers(1, 9),
    alpha=st.floats(1e-3, 1e3),
    seed=SEEDS,
)
def test_skew_gives_every_row_one_of_the_nodes(y, n_nodes, alpha, seed):
    nodes = deal(y, n_nodes, how="skew", alpha=alpha, seed=seed)
    assert nodes.shape == (len(y),)
    assert ((nodes >= 0) & (nodes < n_nodes)).all()


def test_a_small_alpha_gathers_a_label_and_a_large_one_spreads_it():
    y = np.repeat([1, -1], 500)
    gathered = deal(y, 5, how="skew", alpha=1e-3, seed=0)
    spread = deal(y, 5, how="skew", alpha=1e6, seed=0)
    assert np.bincount(gathered[y == 1]).max() == 500
    assert np.ptp(np.bincount(spread[y == 1])) <= 2


def test_rows_are_dealt_at_random_and_seeded():
    one, same, other = deal(50, 5, seed=3), deal(50, 5, seed=3), deal(50, 5, seed=4)
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert np.array_equal(one, deal(50, 5, seed=np.random.default_rng(3)))


def test_labels_and_their_number_deal_the_same():
    assert np.array_equal(deal(["a"] * 9, 2, seed=0), deal(9, 2, seed=0))


@pytest.mark.parametrize("n_nodes", [0, -2, 1.5, True])
def test_a_wrong_number_of_nodes_is_refused(n_nodes):
    assert refusal(ParameterError, 10, n_nodes) == (
        f"The 'n_nodes' parameter of deal must be a positive integer. Got {n_nodes} instead."
    )


def test_an_unknown_way_is_refused():
    assert refusal(ParameterError, 10, 2, how="evn") == (
        "Unknown way to deal 'evn'. Choose from even, skew, counts. Did you mean 'even'?"
    )


def test_skew_needs_labels_and_alpha():
    assert refusal(DataError, 10, 2, how="skew", alpha=1.0) == (
        "Dealing with how='skew' needs the labels, not just the number of rows."
    )
    for alpha in (None, 0, -1.0, float("inf")):
        assert refusal(ParameterError, [1, -1], 2, how="skew", alpha=alpha) == (
            f"The 'alpha' parameter of deal must be a positive float. Got {alpha} instead."
        )


def test_counts_that_do_not_fit_are_refused():
    assert refusal(DataError, 10, 3, how="counts", counts=[5, 5]) == (
        "counts has 2 entries, but there are 3 nodes."
    )
    assert refusal(DataError, 10, 2, how="counts", counts=[5, 4]) == (
        "counts sums to 9, but there are 10 rows."
    )
    for counts in (None, [5.5, 4.5], [11, -1]):
        assert refusal(ParameterError, 10, 2, how="counts", counts=counts) == (
            "The 'counts' parameter of deal must be a list of whole numbers, one a node. "
            f"Got {counts} instead."
        )


def test_an_option_of_another_way_is_refused():
    assert refusal(ParameterError, 10, 2, alpha=1.0) == (
        "The 'alpha' parameter of deal is for how='skew', not 'even'."
    )
    assert refusal(ParameterError, [1], 2, how="skew", alpha=1.0, counts=[1, 0]) == (
        "The 'counts' parameter of deal is for how='counts', not 'skew'."
    )


def test_what_is_neither_labels_nor_a_number_is_refused():
    assert refusal(DataError, -3, 2) == (
        "deal needs one label a row or the number of rows. Got -3 instead."
    )
