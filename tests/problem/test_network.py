import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtsvm import Network
from dtsvm.errors import NetworkError


@pytest.mark.parametrize(("n", "degree"), [(20, 0.6368), (10, 0.8889), (10, 0.8667)])
def test_random_networks_have_the_papers_degrees(n, degree):
    for seed in range(20):
        net = Network.random(n, degree=degree, seed=seed)
        assert net.is_connected
        assert abs(net.degree - degree) < 5e-5


@given(st.integers(2, 25), st.floats(0, 1), st.integers(0, 1000))
def test_random_networks_are_connected_and_right_to_the_nearest_link(n, degree, seed):
    most = n * (n - 1) / 2
    if round(degree * most) < n - 1:
        with pytest.raises(NetworkError, match="No connected network"):
            Network.random(n, degree=degree, seed=seed)
        return
    net = Network.random(n, degree=degree, seed=seed)
    assert net.is_connected
    assert abs(net.degree - degree) * most <= 0.5 + 1e-9


def test_the_same_seed_draws_the_same_network():
    assert Network.random(9, 0.4, seed=1) == Network.random(9, 0.4, seed=1)
    assert Network.random(9, 0.4, seed=1) != Network.random(9, 0.4, seed=2)


@pytest.mark.parametrize(
    ("net", "graph"),
    [
        (Network.complete(6), nx.complete_graph(6)),
        (Network.ring(6), nx.cycle_graph(6)),
        (Network.line(6), nx.path_graph(6)),
        (Network.star(6), nx.star_graph(5)),
        (Network.grid(12, columns=4), nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4))),
    ],
)
def test_shapes_are_networkx_shapes(net, graph):
    assert nx.is_isomorphic(net.to_networkx(), graph)
    assert Network.from_networkx(net.to_networkx()) == net


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("shape", ["complete", "ring", "line", "star", "grid"])
def test_every_shape_of_every_size_is_connected(shape, n):
    net = Network.named(shape, n)
    assert net.n_nodes == n
    assert net.is_connected


def test_nodes_may_be_any_hashable():
    net = Network.from_links([("a", 1), (1, (2, 3)), ((2, 3), None)])
    assert net.nodes == ("a", 1, (2, 3), None)
    assert net.neighbours(1) == ("a", (2, 3))
    assert np.array_equal(net.links, [[0, 1], [1, 2], [2, 3]])


def test_components_are_named_largest_first():
    net = Network(range(5), [(0, 1), (2, 3), (3, 4)])
    assert net.components() == [(2, 3, 4), (0, 1)]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Network([0, 1], [(0, 1), (1, 0)]),
            "Link (1, 0) is given twice; give each link once.",
        ),
        (
            lambda: Network([0, 1], [(1, 1)]),
            "Node 1 is linked to itself; a link joins two nodes.",
        ),
        (
            lambda: Network([0, 1], [(0, 2)]),
            "Link (0, 2) names node 2, which is not in the network.",
        ),
        (
            lambda: Network.from_links([("a", "b"), ("c",)]),
            "Link ('c',) is no pair; a link joins two nodes: (a, b).",
        ),
        (lambda: Network([0, 1], [1]), "Link 1 is no pair; a link joins two nodes: (a, b)."),
        (lambda: Network([0, 0], []), "Node 0 is listed twice; every node needs its own label."),
        (lambda: Network([], []), "A network needs at least one node; got none."),
        (lambda: Network.ring(0), "A network needs at least one node; got 0."),
        (
            lambda: Network.named("rng", 3),
            "Unknown network 'rng'. Choose from complete, ring, line, star, grid. "
            "Did you mean 'ring'?",
        ),
        (
            lambda: Network.random(10, degree=0.1),
            "No connected network of 10 nodes has degree 0.1: choose a degree from 0.2 to 1.",
        ),
        (
            lambda: Network.ring(["north", "south"]).neighbours("nort"),
            "Unknown node 'nort'. Choose from north, south. Did you mean 'north'?",
        ),
    ],
)
def test_refusals_say_what_is_wrong(make, sentence):
    with pytest.raises(NetworkError) as refused:
        make()
    assert str(refused.value) == sentence
