import numpy as np
import pytest
from meetings import FIXED, NAMES, SHAPES, Carrier, build, cold, distance, make_blocks, make_session

from dtsvm import Network


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tasks", [["one"], ["one", "two"]])
def test_agents_equal_memory_bit_for_bit(shape, tasks):
    network = SHAPES[shape](NAMES)
    blocks = make_blocks(NAMES, tasks)
    nodes = build(network, blocks)
    carrier = Carrier(nodes)
    carrier.meet()
    live = make_session(network, blocks, FIXED)
    for _ in range(4):
        live.run(rounds=10)
        for _ in range(10):
            carrier.tick()
        for node in nodes:
            for task in tasks:
                right = live.classifier(task, node=node.name)
                assert np.array_equal(node.decision(task)[:-1], right.coef_[0])
                assert node.decision(task)[-1] == right.intercept_[0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tasks", [["one"], ["one", "two"]])
def test_agents_that_balance_equal_memory_to_rounding(shape, tasks):
    network = SHAPES[shape](NAMES)
    # Of ±1 both know the mean square exactly; else agents round it to a power of two.
    blocks = {k: (np.sign(X), y) for k, (X, y) in make_blocks(NAMES, tasks).items()}
    settings = {"C": 0.1, "tol": 1e-300}
    nodes = build(network, blocks, settings)
    carrier = Carrier(nodes, patience=1000)
    carrier.meet()
    live = make_session(network, blocks, settings)
    for rounds in (9, 10, 11, 20, 40, 41, 90, 170):
        live.run(rounds=rounds - live.info.n_rounds if live.info else rounds)
        carrier.run_until_round(rounds)
        for node in nodes:
            for task in tasks:
                right = live.classifier(task, node=node.name)
                # Sums over the network are exact; memory rounds them.
                whole = np.append(right.coef_[0], right.intercept_[0])
                np.testing.assert_allclose(node.decision(task), whole, atol=1e-11, rtol=0)
    assert all(node.balancer._applied["one"] == 160 for node in nodes)
    assert len({tuple(node.balancer.levels()["one"]) for node in nodes}) == 1
    assert any(level != 1.0 for level in nodes[0].balancer.levels()["one"])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("settings", [{**FIXED, "tol": 1e-300}, {"C": 0.1, "tol": 1e-300}])
def test_loss_costs_time_but_no_round_of_who_waits(shape, settings):
    """Who waits says the last two rounds again, so that each is taken in once and in its turn."""
    network = SHAPES[shape](NAMES)
    blocks = {k: (np.sign(X), y) for k, (X, y) in make_blocks(NAMES, ["one"]).items()}
    nodes = build(network, blocks, settings)
    carrier = Carrier(nodes, 0.3, np.random.default_rng(0), seconds=1e-4, patience=10**6)
    carrier.meet()
    live = make_session(network, blocks, settings)
    for rounds in (9, 21, 45):
        live.run(rounds=rounds - live.info.n_rounds if live.info else rounds)
        carrier.run_until_round(rounds)
        for node in nodes:
            right = live.classifier("one", node=node.name)
            whole = np.append(right.coef_[0], right.intercept_[0])
            np.testing.assert_allclose(node.decision("one"), whole, atol=1e-11, rtol=0)


@pytest.mark.parametrize("pause", [8, 30])
@pytest.mark.parametrize("tasks", [["one"], ["one", "two"]])
def test_agents_that_go_on_after_a_change_equal_memory_to_rounding(tasks, pause):
    """Rows come every so many rounds; everybody hears of it before the next one begins."""
    network = Network.ring(NAMES)
    blocks = {k: (np.sign(X), y) for k, (X, y) in make_blocks(NAMES, tasks).items()}
    settings = {"C": 0.1, "tol": 1e-300}
    nodes = build(network, blocks, settings)
    carrier = Carrier(nodes, patience=1000)
    carrier.meet()
    live = make_session(network, blocks, settings)
    for k, rounds in enumerate((pause, pause, 45)):
        live.run(rounds=rounds)
        carrier.run_until_round(live.round)
        for node in nodes:
            for task in tasks:
                right = live.classifier(task, node=node.name)
                whole = np.append(right.coef_[0], right.intercept_[0])
                np.testing.assert_allclose(node.decision(task), whole, atol=1e-9, rtol=0)
        X, y = make_blocks(["c"], ["one"], n=4, seed=7 + k)["c", "one"]
        live.add_data("c", "one", np.sign(X), y)
        carrier.nodes["c"].add_rows("one", np.sign(X), y)
        carrier.last = live.round
        for _ in range(12):
            carrier.tick()
        carrier.last = np.inf
    assert all(node.state.is_warm == (pause > 8) for node in nodes if node.name != "c")


def test_nodes_may_hold_different_tasks_and_still_equal_memory():
    network = Network.ring(NAMES)
    blocks = make_blocks(NAMES, ["one", "two", "three"])
    for gone in [("a", "one"), ("f", "three"), ("c", "two")]:
        del blocks[gone]
    blocks["d", "one"] = (np.zeros((0, 4)), np.zeros(0))
    nodes = build(network, blocks)
    carrier = Carrier(nodes)
    carrier.meet()
    # The order of tasks decides the order of sums; a session ranks them as they enter.
    by_task = sorted(blocks, key=lambda pair: pair[::-1])
    live = make_session(network, {pair: blocks[pair] for pair in by_task}, FIXED)
    live.run(rounds=30)
    for _ in range(30):
        carrier.tick()
    for node in nodes:
        for task in node.holdings:
            right = live.classifier(task, node=node.name)
            assert np.array_equal(node.decision(task)[:-1], right.coef_[0])


def test_personal_tasks_are_linked_across_the_network():
    network = Network.ring(NAMES[:4])
    blocks = make_blocks(NAMES[:4], ["one", "two"])
    blocks = {k: v for k, v in blocks.items() if (k[0] in "ab") == (k[1] == "one")}
    nodes = build(network, blocks, personal=True)
    for node in nodes:
        node.couple(["one", "two"])
    carrier = Carrier(nodes)
    carrier.meet()
    live = make_session(network, blocks, FIXED, personal=True)
    live.run(rounds=2000)
    carrier.run_until_settled()
    assert distance(nodes, live) < 1e-4


def test_penalties_chosen_by_the_nodes_lead_to_the_same_optimum():
    network = Network.line(NAMES)
    blocks = make_blocks(NAMES, ["one", "two"])
    settings = {"C": 0.1, "tol": 1e-6}
    nodes = build(network, blocks, settings)
    carrier = Carrier(nodes)
    carrier.meet()
    carrier.run_until_settled()
    assert distance(nodes, cold(network, blocks, settings)) < 1e-4


def test_everybody_settles_and_sleeps_until_rows_come():
    network = Network.ring(NAMES)
    blocks = make_blocks(NAMES, ["one"])
    nodes = build(network, blocks)
    carrier = Carrier(nodes)
    carrier.meet()
    carrier.run_until_settled()
    rounds = [node.round for node in nodes]
    for _ in range(20):
        carrier.tick()
    assert [node.round for node in nodes] == rounds
    X, y = make_blocks(["a"], ["one"], n=20, seed=5)["a", "one"]
    nodes[0].add_rows("one", X, y)
    carrier.run_until_settled()
    assert min(node.round for node in nodes) > max(rounds)
    old = blocks["a", "one"]
    blocks["a", "one"] = (np.concatenate([old[0], X]), np.concatenate([old[1], y]))
    assert distance(nodes, cold(network, blocks)) < 1e-4


def test_a_settled_node_goes_on_for_a_neighbour_that_waits_at_a_new_level():
    network = Network.complete(["a", "b"])
    blocks = make_blocks(["a", "b"], ["one"])
    nodes = build(network, blocks)
    carrier = Carrier(nodes)
    carrier.meet()
    carrier.run_until_settled()
    nodes[1]._wake()
    nodes[1].ends.pull_anew()  # as for a level that came when the other had just settled
    assert not nodes[1].is_settled
    carrier.run_until_settled(most=500)
    assert distance(nodes, cold(network, blocks)) < 1e-4
