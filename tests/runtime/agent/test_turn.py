"""Ending a round and beginning the next in one go is the same as in four steps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meetings import FIXED, Carrier, build, cold, distance, make_blocks

from dtsvm import Network
from dtsvm.runtime.agent.node import wire_pb2 as wire

FREE = {"C": 0.1, "tol": 1e-6}
LONG = {"C": 0.1, "tol": 1e-9}
NEVER = {"C": 0.1, "tol": 1e-300}


class Hasty(Carrier):
    """Has every node go on as soon as it can: in one go where it may, and counts how often."""

    def __init__(self, nodes, *, may_hurry=True, **more):
        super().__init__(nodes, patience=1000, **more)
        self.may_hurry, self.n_quiet = may_hurry, 0
        self.n_calm = 0  # of them, those of nodes that know all to be calm

    def tick(self):
        self.now += self.seconds
        for name, node in list(self.nodes.items()):
            if name not in self.begun:
                continue
            if name in self.working and not node.is_complete():
                self.deliver(name, node.outbox.earlier(node.present))
                self.deliver(name, node.again(self.now))
                self.working[name] += 1
                if self.working[name] <= self.patience:
                    continue
            self.go_on(name, node)

    def go_on(self, name, node):
        if name in self.working:
            may_turn = self.may_hurry and node.round < self.last
            messages = node.turn(self.now) if may_turn else None
            if messages is not None:
                self.n_quiet += 1
                self.n_calm += node.calm == node.post.most_calm
                self.deliver(name, messages)
                return
            node.finish(self.now)
            del self.working[name]
        if node.round >= self.last or node.is_balancing(self.now) or node.is_settled:
            self.deliver(name, node.hello(self.now))
        else:
            self.working[name] = 0
            self.deliver(name, node.begin(self.now))


def estimates(carrier):
    found = carrier.nodes.items()
    return {(name, task): node.estimate(task) for name, node in found for task in node.tasks}


def strip(messages):
    """Leave sums out, which have their own masks at every start."""
    out = {name: wire.Message.FromString(data) for name, data in messages.items()}
    for message in out.values():
        message.ClearField("sums")
        message.ClearField("roster_digest")
    return out


def run_both(network, blocks, given_settings, last):
    nodes = [build(network, blocks, given_settings) for _ in range(2)]
    carriers = [Hasty(some, may_hurry=i == 1) for i, some in enumerate(nodes)]
    for carrier in carriers:
        carrier.meet()
        carrier.run_until_round(last)
    return carriers


@pytest.mark.parametrize("tasks", [["flu"], ["flu", "cold"]])
@pytest.mark.parametrize("given_settings", [FIXED, NEVER])
@pytest.mark.parametrize("shape", ["ring", "complete", "line"])
def test_a_round_in_one_go_has_the_bits_of_four_steps(shape, given_settings, tasks):
    network = Network.named(shape, ["a", "b", "c", "d"])
    plain, hasty = run_both(network, make_blocks(network.nodes, tasks), given_settings, 60)
    assert hasty.n_quiet > 60
    right = estimates(plain)
    for key, found in estimates(hasty).items():
        np.testing.assert_array_equal(found, right[key])
    for name, node in hasty.nodes.items():
        assert node.state.age == plain.nodes[name].state.age
        assert node.residual == plain.nodes[name].residual
        assert node.certifier.n_rounds + node._quick.quiet.n == plain.nodes[name].certifier.n_rounds


@pytest.mark.parametrize("shape", ["ring", "complete", "line"])
def test_rounds_of_calm_nodes_are_in_one_go_too_and_all_settle_in_the_same_round(shape):
    network = Network.named(shape, ["a", "b", "c", "d", "e"])
    blocks = make_blocks(network.nodes, ["flu"])
    nodes = [build(network, blocks, LONG) for _ in range(2)]
    plain, hasty = (Hasty(some, may_hurry=i == 1) for i, some in enumerate(nodes))
    for carrier in (plain, hasty):
        carrier.meet()
        carrier.run_until_settled()
    assert hasty.n_calm > 20
    assert plain.n_calm == 0
    right = estimates(plain)
    for key, found in estimates(hasty).items():
        np.testing.assert_array_equal(found, right[key])
    for name, node in hasty.nodes.items():
        assert node.round == plain.nodes[name].round
        assert node.certifier.gap == plain.nodes[name].certifier.gap <= LONG["tol"]


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(2, 130))
def test_whenever_rounds_stop_their_messages_are_those_of_four_steps(seed, last):
    network = Network.ring(["a", "b", "c"])
    blocks = make_blocks(network.nodes, ["flu"], seed=seed)
    plain, hasty = run_both(network, blocks, NEVER, last)
    for name, node in plain.nodes.items():
        assert node.post.said[0] == last
        assert strip(node.post.said[2]) == strip(hasty.nodes[name].post.said[2])
        assert node.post.said_before[0] == hasty.nodes[name].post.said_before[0]


def test_nodes_that_hurry_settle_at_the_pooled_optimum_though_messages_are_lost():
    network, rng = Network.ring(["a", "b", "c", "d"]), np.random.default_rng(3)
    blocks = make_blocks(network.nodes, ["flu", "cold"])
    carrier = Hasty(build(network, blocks, FREE))
    carrier.patience = 3
    carrier.meet()
    carrier.loss, carrier.rng = 0.2, rng
    carrier.run_until_settled()
    assert carrier.n_quiet > 20
    assert all(node.certifier.gap <= FREE["tol"] for node in carrier.nodes.values())
    assert distance(carrier.nodes.values(), cold(network, blocks, FREE)) < 1e-2


def changes():
    rng = np.random.default_rng(5)
    return {
        "rows": lambda node: node.add_rows("flu", rng.normal(size=(3, 4)), np.array([1, -1, 1.0])),
        "an order": lambda node: node.tell_owner(),
        "a task": lambda node: node.enter("cold", rng.normal(size=(3, 4)), np.array([1, -1, 1.0])),
        "a link": lambda node: node.link("z"),
    }


@pytest.mark.parametrize("what", changes())
def test_whatever_happens_beside_rounds_ends_the_hurry(what):
    network = Network.ring(["a", "b", "c"])
    carrier = Hasty(build(network, make_blocks(network.nodes, ["flu"]), FIXED))
    carrier.meet()
    carrier.run_until_round(8)
    node = carrier.nodes["a"]
    for _ in range(3):
        carrier.tick()
    assert node._quick.quiet.n > 0
    changes()[what](node)
    assert node.turn(carrier.now) is None
