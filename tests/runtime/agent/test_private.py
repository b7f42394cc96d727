"""Differential privacy over a network: what is told, what is agreed on at the end, and no more."""

import numpy as np
import pytest
from meetings import Carrier, make_blocks, make_node

from dtsvm.problem import Network, Privacy
from dtsvm.runtime.agent.node.certifier import Certifier
from dtsvm.runtime.privacy.veil import make_veil

pytest.importorskip("dp_accounting")
SETTINGS = {"C": 0.1, "task_penalty": 2.0, "node_penalty": 3.0, "local": "exact", "bias": "mixed"}
RING = Network.ring(["a", "b", "c"])


def trained(privacy):
    """Three nodes that have spent what they may."""
    blocks = make_blocks(RING.nodes, ["t"])
    nodes = [
        make_node(name, RING.neighbours(name), blocks, SETTINGS, veil=make_veil(privacy))
        for name in RING.nodes
    ]
    carrier = Carrier(nodes)
    carrier.meet()
    for _ in range(200):
        carrier.tick()
    return nodes


def test_when_all_is_spent_every_node_settles_at_the_same_mean_without_a_certificate():
    nodes = trained(Privacy("dp", rounds=8))
    assert all(node.is_settled for node in nodes)
    assert {node.veil.budget.left for node in nodes} == {0}
    assert [node.certifier.gap for node in nodes] == [None] * 3
    answers = [node.certified("t") for node in nodes]
    np.testing.assert_array_equal(answers[0], answers[1])
    own = [node.veil.told(node.state, node.holding("t").slot) for node in nodes]
    np.testing.assert_allclose(answers[0], np.mean(own, axis=0), rtol=1e-9, atol=1e-12)


def test_no_sum_without_noise_is_made_of_rows(monkeypatch):
    def never(*_):
        raise AssertionError("the loss of the rows was added up")

    monkeypatch.setattr(Certifier, "_tally", never)
    monkeypatch.setattr(Certifier, "_classes", never)
    assert all(node.is_settled for node in trained(Privacy("dp", rounds=8)))
