import math

import pytest

from dtsvm import Network
from dtsvm.ui.page.layout import place_beside, place_nodes


@pytest.mark.parametrize("shape", ["ring", "line", "star", "grid", "complete"])
@pytest.mark.parametrize("n", [1, 2, 3, 9, 40])
def test_every_node_has_a_place_of_its_own_in_the_unit_square(shape, n):
    if shape == "ring" and n < 3:
        pytest.skip("A ring needs three nodes.")
    network = Network.named(shape, n)
    places = place_nodes(network.nodes, network)
    assert set(places) == set(network.nodes)
    assert all(-1e-9 <= v <= 1 + 1e-9 for place in places.values() for v in place)
    found = list(places.values())
    nearest = min((math.dist(a, b) for i, a in enumerate(found) for b in found[:i]), default=1.0)
    assert nearest > 0.2 / n


def test_neighbours_on_a_ring_are_all_as_far_from_each_other():
    network = Network.ring(10)
    places = place_nodes(network.nodes, network)
    lengths = [math.dist(places[u], places[v]) for u, v in network]
    assert max(lengths) == pytest.approx(min(lengths), rel=0.05)


def test_the_same_network_is_always_drawn_in_the_same_way():
    network = Network.grid(12)
    assert place_nodes(network.nodes, network) == place_nodes(network.nodes, network)


def test_parts_of_a_split_network_stand_apart():
    places = place_nodes("abcd", [("a", "b"), ("c", "d")])
    inside = math.dist(places["a"], places["b"])
    assert math.dist(places["a"], places["c"]) > inside


def test_a_newcomer_stands_where_nobody_is():
    places = {"a": (0.2, 0.5), "b": (0.8, 0.5)}
    new = place_beside(places, ["a", "b"])
    assert min(math.dist(new, place) for place in places.values()) > 0.1


def test_nodes_of_a_large_network_do_not_cover_each_other():
    network = Network.random(200, degree=0.02, seed=0)
    found = list(place_nodes(network.nodes, network).values())
    nearest = sorted(min(math.dist(a, b) for b in found if b != a) for a in found)
    assert nearest[20] > 0.4 / math.sqrt(200)
