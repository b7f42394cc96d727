"""Differential privacy over a network: what is told, what is agreed on at the end, and no more."""

import json
import os
import random
import signal
import time

import numpy as np
import pytest
from meetings import Carrier, make_blocks, make_node
from sites import Agents, make_site, status, weights
from sklearn.datasets import load_digits

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


def test_three_processes_killed_again_and_again_spend_no_more_than_their_budget(tmp_path):
    """DTSVM_KILLS=50 kills as often; the rows are digits, rows of length 1."""
    n_kills = int(os.environ.get("DTSVM_KILLS", "2"))
    rounds = max(40, 20 * n_kills)
    digits = load_digits()
    mine = np.isin(digits.target, (3, 6))
    X = digits.data[mine] / np.linalg.norm(digits.data[mine], axis=1, keepdims=True)
    y = np.where(digits.target[mine] == 6, 1.0, -1.0)
    test = np.arange(len(y)) % 4 == 0
    parts = zip(RING.nodes, np.array_split(np.flatnonzero(~test), 3), strict=True)
    blocks = {(name, "t"): (X[some], y[some]) for name, some in parts}
    folder = tmp_path / "site"
    settings = {"C": 0.2, "local": "exact", "bias": "mixed", "task_penalty": 10.0,
                "node_penalty": 10.0}  # fmt: skip
    make_site(folder, RING, blocks, settings, round_seconds=0.2, start_seconds=5.0)
    for name in RING.nodes:
        with (folder / name / "node.toml").open("a") as file:
            file.write(f'\n[privacy]\nlevel = "dp"\nepsilon = 8.0\nrounds = {rounds}\n')
    chance = random.Random(0)
    with Agents(folder) as agents:
        for name in RING.nodes:
            agents.start(name)
        for _ in range(n_kills):
            time.sleep(chance.uniform(0.5, 2.0))
            name = chance.choice(list(RING.nodes))
            agents.running[name].send_signal(signal.SIGKILL)
            agents.running[name].wait()
            agents.start(name)
            for kept in folder.glob("*/budget.json"):
                assert json.loads(kept.read_bytes())["spent"] <= rounds
        agents.settle(list(RING.nodes))
        told = [status(folder, name)["privacy"] for name in RING.nodes]
    assert [one["spent"] for one in told] == [rounds] * 3
    found = [weights(folder, name, "t") for name in RING.nodes]
    error = [float((y[test] * (X[test] @ u[:-1] + u[-1]) <= 0).mean()) for u in found]
    print(f"errors after {n_kills} kills: {error}")
    assert max(error) < 0.45
