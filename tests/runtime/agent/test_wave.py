"""The sum over the network: exact, the same everywhere, and no term is seen on its way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtsvm import Network
from dtsvm.runtime.agent.node.identity import Nameless
from dtsvm.runtime.agent.node.masks import MOST, add, decode, encode, masked, pairs
from dtsvm.runtime.agent.node.wave import Parcel, Tree, Wave

NAMES = list("abcdefg")
SHAPES = [Network.ring, Network.complete, Network.line, Network.star]
terms = st.floats(-MOST, MOST, allow_subnormal=False)


@given(st.lists(terms, min_size=1, max_size=20))
def test_fixed_point_holds_what_a_double_holds(values):
    back = decode(encode(np.array(values)))
    np.testing.assert_allclose(back, values, rtol=1e-15, atol=2.0**-79)


@given(st.lists(st.tuples(terms, terms), min_size=1, max_size=20))
def test_sums_do_not_depend_on_their_order(values):
    one, other = np.array(values).T
    ab, ba = add(encode(one), encode(other)), add(encode(other), encode(one))
    assert np.array_equal(ab, ba)
    np.testing.assert_allclose(decode(ab), one + other, rtol=1e-15, atol=2.0**-40)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2 * MOST])
def test_a_term_out_of_range_is_refused(value):
    with pytest.raises(ValueError, match="a term of a sum is above"):
        encode(np.array([0.0, value]))


def waves(network, identities=None):
    """A wave at every node of a network, and who may talk to whom."""
    identities = identities or {name: Nameless() for name in network.nodes}

    def secrets(name):
        others = pairs(name, list(network.nodes), network.neighbours(name))
        return lambda: [
            (identities[name].shared(identities[other].agreement), name < other) for other in others
        ]

    return {
        name: Wave("x", Tree.of(name, list(network)), 5, secrets(name)) for name in network.nodes
    }


def carry(network, found, rng, loss=0.0, most=10_000, seen=None):
    """Let neighbours tell each other, losing some, until everybody has the total."""
    for turn in range(most):
        if not any(wave.is_open for wave in found.values()):
            return turn
        for name, wave in found.items():
            for other in network.neighbours(name):
                parcel = wave.parcel(other)
                if seen is not None and parcel.up:
                    seen.append(parcel.up)
                if rng.random() >= loss:
                    found[other].hear(name, parcel)
    raise AssertionError("the wave never came back")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", [0.0, 0.6])
def test_everybody_gets_the_same_total_whatever_is_lost(shape, loss):
    rng = np.random.default_rng(3)
    network = shape(NAMES)
    found = waves(network)
    for number in (1, 2, 7):
        values = {name: rng.normal(size=9) * 10.0 ** rng.integers(-9, 9) for name in NAMES}
        for name, wave in found.items():
            wave.begin(number, values[name])
        carry(network, found, rng, loss)
        totals = np.array([wave.total for wave in found.values()])
        assert (totals == totals[0]).all()
        np.testing.assert_allclose(totals[0], sum(values.values()), rtol=1e-12, atol=1e-20)


def test_a_wave_is_as_quick_as_twice_the_depth_of_its_tree():
    network = Network.line(NAMES)
    found = waves(network)
    for wave in found.values():
        wave.begin(1, np.ones(3))
    assert carry(network, found, np.random.default_rng(0)) <= 2 * found["a"].tree.depth


def test_what_travels_shows_no_term():
    network, n = Network.line(NAMES), 4000
    seen, found = [], waves(network)
    for wave in found.values():
        wave.begin(1, np.ones(n))
    carry(network, found, np.random.default_rng(0), seen=seen)
    assert len(seen) >= len(NAMES) - 1
    for data in seen:
        bits = np.unpackbits(np.frombuffer(data, np.uint8))
        assert abs(bits.mean() - 0.5) < 0.01  # as coins fall
    assert found["a"].total.tolist() == [7.0] * n


def test_the_parent_of_a_leaf_does_not_see_its_term():
    # On a line the leaf g talks to f alone; f knows the mask it shares with g and no other.
    network, identities = Network.line(NAMES), {name: Nameless() for name in NAMES}
    found = waves(network, identities)
    found["g"].begin(1, np.ones(5))
    sent = np.frombuffer(found["g"].parcel("f").up, "<u8").reshape(-1, 2).astype(np.uint64)
    shared = identities["f"].shared(identities["g"].agreement)
    opened = masked(sent, [(shared, True)], found["g"]._id(1))
    assert not np.isclose(decode(opened), 1.0).any()


def test_a_mask_is_used_once():
    found = waves(Network.ring(NAMES))
    found["c"].begin(1, np.zeros(3))
    first = found["c"]._mine
    found["c"].done = 1
    found["c"].begin(2, np.zeros(3))
    assert not np.array_equal(first, found["c"]._mine)
    with pytest.raises(ValueError, match="sum 2 of x was begun already"):
        found["c"].begin(2, np.ones(3))


def test_a_sum_of_another_length_is_not_used():
    network = Network.line(["a", "b"])
    found = waves(network)
    found["a"].begin(1, np.ones(3))
    found["a"].hear("b", Parcel(1, 0, bytes(16), b""))
    assert found["a"].is_open
    found["a"].hear("b", Parcel(2, 0, bytes(48), b""))
    assert found["a"].is_open
    assert found["a"].is_called


def test_who_went_on_to_the_next_sum_takes_a_late_total_and_begins_that_sum_anew():
    network = Network.line(list("abc"))
    found = waves(network)
    a, b, c = found.values()
    for wave in found.values():
        wave.begin(1, np.full(2, 1.0))
    b.hear("c", c.parcel("b"))
    c.begin(2, np.full(2, 50.0))  # it gave up waiting
    early = c.parcel("b")
    b.hear("a", a.parcel("b"))
    assert b.total.tolist() == [3.0, 3.0]
    c.hear("b", b.parcel("c"))
    assert (c.done, c.wanted, c.total.tolist()) == (1, 1, [3.0, 3.0])
    a.hear("b", b.parcel("a"))
    for wave in found.values():
        wave.begin(2, np.full(2, 10.0))
    b.hear("c", early)  # of a sum that c has withdrawn from
    carry(network, found, np.random.default_rng(0))
    assert all(wave.total.tolist() == [30.0, 30.0] for wave in found.values())
    assert early.up != c.parcel("b").up


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("shape", SHAPES)
def test_all_have_the_same_totals_in_the_same_order_whoever_gives_up_a_sum(shape, seed):
    rng = np.random.default_rng(seed)
    network = shape(NAMES)
    found = waves(network)
    terms = {name: {} for name in NAMES}
    had = {name: {0: None} for name in NAMES}
    for turn in range(500):
        number = 1 + turn // 25 if turn < 400 else 99
        for name, wave in found.items():
            if number > max(wave.wanted, wave.done) and rng.random() < 0.2:
                terms[name][number] = rng.normal(size=3)
                wave.begin(number, terms[name][number])
            for other in network.neighbours(name):
                if rng.random() < 0.3:
                    found[other].hear(name, wave.parcel(other))
            for one, known in had.items():
                known.setdefault(found[one].done, found[one].total)
    assert len(had["a"]) > 3  # some were given up, not all
    for known in had.values():
        assert list(known) == list(had["a"])
        assert list(known)[-1] == 99
        for number in list(known)[1:]:
            right = sum(terms[name][number] for name in NAMES)
            np.testing.assert_allclose(known[number], right, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [2, 5, 64, 65, 100])
def test_masks_are_between_both_ends_of_a_pair(n):
    names = [f"n{i:03}" for i in range(n)]
    chosen = {name: pairs(name, names, ()) for name in names}
    assert all(name in chosen[other] for name in names for other in chosen[name])
    assert all(len(others) >= min(n - 1, 6) for others in chosen.values())


def test_a_total_handed_down_before_its_parts_were_passed_on_is_not_taken():
    """A liar at the root would have the node below go on, and leave the last one behind."""
    network = Network.line(["a", "b", "c", "d", "e"])
    found = waves(network)
    liar, middle, last = "c", found["b"], found["a"]
    for wave in (middle, last):
        wave.begin(1, np.ones(3))
    forged = np.zeros(6, "<u8").tobytes()
    middle.hear(liar, Parcel(1, 1, b"", forged))
    assert middle.done == 0  # node a has not added anything
    middle.hear("a", last.parcel("b"))
    assert middle.parcel(liar).up
    middle.hear(liar, Parcel(1, 1, b"", forged))
    assert middle.done == 1
    middle.begin(2, np.ones(3))
    middle.hear(liar, Parcel(2, 2, b"", forged))
    assert middle.done == 1  # node a has not even had the first total
    last.hear("b", middle.parcel("a"))
    assert last.done == 1
