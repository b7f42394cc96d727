import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtsvm.runtime.mpi.halo import find_borders
from dtsvm.runtime.mpi.place import cut_links, place_nodes
from worlds import random_network


def drawn(seed, n_nodes):
    rng = np.random.default_rng(seed)
    links = np.array(list(random_network(rng, n_nodes)), np.int64).reshape(-1, 2)
    return rng, links, rng.integers(0, 50, n_nodes)


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 6))
def test_no_rank_has_much_more_than_its_share(seed, n_nodes, n_ranks):
    _, links, weight = drawn(seed, n_nodes)
    rank = place_nodes(weight, links, n_ranks)
    assert rank.min() >= 0
    assert rank.max() < n_ranks
    load = np.bincount(rank, weights=weight, minlength=n_ranks)
    fair = weight.sum() / n_ranks
    assert load.max() <= max(1.1 * fair, fair + weight.max()) + 0.1


def test_a_grid_is_cut_along_few_links():
    side = 40
    number = np.arange(side * side).reshape(side, side)
    links = np.concatenate([
        np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], 1),
        np.stack([number[:-1].ravel(), number[1:].ravel()], 1),
    ])  # fmt: skip
    rank = place_nodes(np.ones(side * side, np.int64), links, 4)
    by_chance = 0.75 * len(links)
    assert cut_links(rank, links) < 0.1 * by_chance


@given(st.integers(0, 2**32 - 1), st.integers(2, 20), st.integers(2, 5))
def test_whom_a_rank_tells_is_whom_the_other_hears(seed, n_nodes, n_ranks):
    rng, links, _ = drawn(seed, n_nodes)
    rank = rng.integers(n_ranks, size=n_nodes)
    borders = [find_borders(rank, links[:, 0], links[:, 1], r) for r in range(n_ranks)]
    for here, one in enumerate(borders):
        for there, agents in one.told.items():
            assert agents.tolist() == borders[there].heard[here].tolist()
            assert set(rank[agents]) == {here}
    n_told = sum(len(agents) for one in borders for agents in one.told.values())
    assert (n_told > 0) == (cut_links(rank, links) > 0)


@pytest.mark.parametrize("n_ranks", [1, 3])
def test_a_network_without_links_is_placed_too(n_ranks):
    rank = place_nodes(np.ones(6, np.int64), np.zeros((0, 2), np.int64), n_ranks)
    assert np.bincount(rank).tolist() == [6 // n_ranks] * n_ranks
