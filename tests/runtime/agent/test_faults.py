import numpy as np
import pytest
from meetings import FIXED, Carrier, build, cold, distance, make_blocks, make_node

from dtsvm import Network
from dtsvm.errors import ModelFileError
from dtsvm.runtime.agent.node.node import MOST_LEAD, Timing
from dtsvm.runtime.agent.site.checkpoint import dump, restore
from worlds import seeds

TEN = [f"n{i}" for i in range(10)]
LOSSY = {**FIXED, "tol": 1e-6}


def revive(carrier, network, blocks, name, checkpoint, incarnation, settings=FIXED):
    node = make_node(
        name,
        network.neighbours(name),
        blocks,
        settings,
        incarnation=incarnation,
        now=carrier.now,
    )
    if checkpoint:
        restore(node, checkpoint)
    carrier.nodes[name] = node
    carrier.begun.discard(name)
    return node


@pytest.mark.parametrize("seed", seeds(8))
def test_loss_and_every_agent_killed_once_still_end_at_the_pooled_optimum(seed):
    rng = np.random.default_rng(seed)
    network = Network.random(TEN, degree=0.4, seed=seed)
    blocks = make_blocks(TEN, ["one"], n=8, seed=seed)
    carrier = Carrier(build(network, blocks, LOSSY), loss=0.3, rng=rng)
    kills = dict(zip(rng.permutation(np.arange(20, 200, 15)).tolist(), TEN, strict=False))
    dead, kept = {}, {}
    for tick in range(260):
        if tick in kills:
            name = kills[tick]
            dead[name] = tick + int(rng.integers(1, 25))
            del carrier.nodes[name]
        for name in [n for n, back in dead.items() if back == tick]:
            revive(carrier, network, blocks, name, kept.get(name), tick + 2, LOSSY)
        carrier.tick()
        if tick % 10 == 0:
            kept.update({n: dump(v) for n, v in carrier.nodes.items()})
    assert set(dead) == set(TEN) == set(carrier.nodes)
    carrier.run_until_settled()
    assert distance(carrier.nodes.values(), cold(network, blocks)) < 1e-3


def test_a_revived_node_goes_on_where_its_checkpoint_was():
    network = Network.ring(TEN[:4])
    blocks = make_blocks(TEN[:4], ["one", "two"])
    carrier = Carrier(build(network, blocks))
    carrier.meet()
    carrier.run_until_settled()
    before = carrier.nodes["n1"].decision("one")
    content = dump(carrier.nodes.pop("n1"))
    node = revive(carrier, network, blocks, "n1", content, 2)
    assert np.array_equal(node.decision("one"), before)
    assert carrier.run_until_settled() < 400
    assert np.allclose(node.decision("one"), before, atol=1e-5)


def test_who_comes_back_keeps_what_it_agreed_on_with_its_neighbours():
    network, blocks = Network.ring(TEN[:4]), make_blocks(TEN[:4], ["one"])
    carrier = Carrier(build(network, blocks))
    carrier.meet()
    for _ in range(20):
        carrier.tick()
    other = carrier.nodes["n0"]
    agreed = other.ends.edge_states()["one", "n1", "one"]
    node = revive(carrier, network, blocks, "n1", dump(carrier.nodes["n1"]), 2)
    assert other.take("n1", node.hello(carrier.now)["n0"], carrier.now)
    other.open(carrier.now)
    assert "n1" in other.present
    assert all(map(np.array_equal, agreed, other.ends.edge_states()["one", "n1", "one"]))


def test_who_comes_back_and_hears_nobody_says_so_after_a_while():
    network, blocks = Network.line(TEN[:2]), make_blocks(TEN[:2], ["one"])
    carrier = Carrier(build(network, blocks))
    carrier.meet()
    carrier.tick()
    node = revive(carrier, network, blocks, "n1", dump(carrier.nodes["n1"]), 2)
    for late, is_heard in [(0.0, True), (1.0, False)]:
        node.hello(carrier.now + late * (node.timing.evict_seconds + 1.0))
        assert node.roster.entries["n1"].links == (("n0", is_heard),)


def test_the_network_is_as_old_as_its_last_restart():
    """So that all balance and leap anew, although nobody missed who was away for a moment."""
    network, blocks = Network.ring(TEN), make_blocks(TEN, ["one"])
    carrier = Carrier(build(network, blocks))
    carrier.meet()
    kept = dump(carrier.nodes["n2"])
    for _ in range(30):
        carrier.tick()
    before = carrier.nodes["n7"].round
    revive(carrier, network, blocks, "n2", kept, 2)
    for _ in range(8):
        carrier.tick()
    changed = {node._changed_in for node in carrier.nodes.values()}
    assert len(changed) == 1
    assert changed.pop() >= before


def test_the_network_is_as_old_as_a_restart_from_a_checkpoint_thousands_of_rounds_old():
    """Else its checks would be others than all others': nobody could balance or leap."""
    settings = {"C": 0.1, "tol": 1e-300}
    network, blocks = Network.ring(TEN[:3]), make_blocks(TEN[:3], ["one"], p=2, n=4)
    carrier = Carrier(build(network, blocks, settings), patience=1000)
    carrier.meet()
    kept = dump(carrier.nodes["n2"])
    carrier.run_until_round(2 * MOST_LEAD)
    revive(carrier, network, blocks, "n2", kept, 2, settings)
    carrier.run_until_round(2 * MOST_LEAD + 50)
    (changed,) = {node._changed_in for node in carrier.nodes.values()}
    assert changed >= 2 * MOST_LEAD
    assert {node.balancer._applied["one"] for node in carrier.nodes.values()} == {40}


def test_a_change_that_is_said_to_be_far_ahead_leaves_all_others_of_one_age():
    network, blocks = Network.ring(TEN[:4]), make_blocks(TEN[:4], ["one"])
    carrier = Carrier(build(network, blocks))
    carrier.meet()
    nodes = list(carrier.nodes.values())
    before = nodes[0].roster.digest
    for turn in range(30):
        if turn == 15:
            nodes[3].presence.announce(carrier.now, 2**40, is_news=True)
        carrier.nodes = {node.name: node for node in nodes[: 4 if turn % 3 else 2]}  # at odds
        carrier.tick()
    assert nodes[0].roster.digest != before
    (changed,) = {node._changed_in for node in nodes}
    assert changed < MOST_LEAD


def test_a_revived_node_does_not_wait_for_a_neighbour_that_is_dead_too():
    network = Network.ring(TEN[:4])
    blocks = make_blocks(TEN[:4], ["one"])
    carrier = Carrier(build(network, blocks, timing=Timing(start_seconds=1e9, evict_seconds=5.0)))
    carrier.meet()
    for _ in range(20):
        carrier.tick()
    content = dump(carrier.nodes.pop("n1"))
    del carrier.nodes["n2"]
    revive(carrier, network, blocks, "n1", content, 2)
    for _ in range(5):
        carrier.tick()
    assert "n1" in carrier.begun


def test_a_damaged_checkpoint_is_refused():
    node = make_node("a", ["b"], make_blocks(["a"], ["one"]))
    content = dump(node)
    with pytest.raises(ModelFileError, match="is damaged; take it away to begin anew"):
        restore(node, content[:-200] + bytes(200))


def test_rows_that_the_checkpoint_does_not_know_yet_leave_the_multipliers_of_others():
    blocks = make_blocks(["a"], ["one"])
    node = make_node("a", [], blocks)
    carrier = Carrier([node])
    carrier.meet()
    carrier.tick()
    content = dump(node)
    again = make_node("a", [], blocks, incarnation=2)
    X, y = make_blocks(["a"], ["one"], seed=3)["a", "one"]
    again.add_rows("one", X, y)
    restore(again, content)
    before, after = (n.state.tables.rows["dual"][: n.n_rows("one")] for n in (node, again))
    assert before.any()
    assert np.array_equal(after, np.append(before, np.zeros(12)))


def test_a_node_that_leaves_politely_leaves_no_trace():
    network = Network.complete(TEN[:5])
    blocks = make_blocks(TEN[:5], ["one"])
    carrier = Carrier(build(network, blocks))
    carrier.meet()
    carrier.run_until_settled()
    carrier.deliver("n2", carrier.nodes["n2"].leave())
    del carrier.nodes["n2"]
    carrier.run_until_settled()
    rest = [n for n in TEN[:5] if n != "n2"]
    left = {k: v for k, v in blocks.items() if k[0] != "n2"}
    assert distance(carrier.nodes.values(), cold(Network.complete(rest), left)) < 1e-4


def test_a_newcomer_joins_a_settled_network():
    network = Network.line(TEN[:5])
    blocks = make_blocks(TEN[:5], ["one", "two"])
    *old, new = build(network, blocks)
    old[-1].mail.pop("n4")
    carrier = Carrier(old)
    carrier.meet()
    carrier.run_until_settled()
    new.presence.incarnation = 9
    carrier.nodes["n4"] = new
    old[-1].link("n4")
    carrier.tick()
    carrier.run_until_settled()
    assert all(node.status()["nodes"] == 5 for node in carrier.nodes.values())
    assert distance(carrier.nodes.values(), cold(network, blocks)) < 1e-4


@pytest.mark.parametrize("evict", [5.0, 1e9])
def test_a_partition_heals(evict):
    network = Network.ring(TEN[:6])
    blocks = make_blocks(TEN[:6], ["one"])
    carrier = Carrier(build(network, blocks, timing=Timing(evict_seconds=evict)))
    carrier.meet()
    carrier.run_until_settled()
    whole = cold(network, blocks)
    carrier.cut = {frozenset(("n0", "n5")), frozenset(("n2", "n3"))}
    for _ in range(800):
        carrier.tick()
    if evict < 10:
        for side in (TEN[:3], TEN[3:6]):
            mine = {k: v for k, v in blocks.items() if k[0] in side}
            nodes = [carrier.nodes[n] for n in side]
            assert all(node.is_settled for node in nodes)
            assert distance(nodes, cold(Network.line(side), mine)) < 1e-4
    else:
        assert distance(carrier.nodes.values(), whole) < 1e-4
    carrier.cut = set()
    carrier.tick()
    carrier.run_until_settled()
    assert distance(carrier.nodes.values(), whole) < 1e-4


def test_what_one_side_learned_while_cut_off_reaches_the_other_after_healing():
    network = Network.ring(TEN[:6])
    blocks = make_blocks(TEN[:6], ["one"])
    carrier = Carrier(build(network, blocks, timing=Timing(evict_seconds=1e9)))
    carrier.meet()
    carrier.run_until_settled()
    carrier.tick()  # now everybody knows that everybody has settled
    carrier.cut = {frozenset(("n0", "n5")), frozenset(("n2", "n3"))}
    X, y = make_blocks(["n0"], ["one"], n=30, seed=8)["n0", "one"]
    carrier.nodes["n0"].add_rows("one", X, y)
    for _ in range(400):
        carrier.tick()
    # The other half knows nothing of the rows; this one has nobody to certify with.
    is_settled = {name: node.is_settled for name, node in carrier.nodes.items()}
    assert is_settled == dict.fromkeys(TEN[:3], False) | dict.fromkeys(TEN[3:6], True)
    carrier.cut = set()
    carrier.tick()
    assert not all(node.is_settled for node in carrier.nodes.values())
    carrier.run_until_settled()
    old = blocks["n0", "one"]
    blocks["n0", "one"] = (np.concatenate([old[0], X]), np.concatenate([old[1], y]))
    assert distance(carrier.nodes.values(), cold(network, blocks)) < 1e-4


def test_tasks_are_coupled_from_one_node_and_leave_again():
    network = Network.ring(TEN[:4])
    blocks = make_blocks(TEN[:4], ["one", "two"])
    carrier = Carrier(build(network, blocks, couple=False))
    carrier.meet()
    carrier.run_until_settled()
    carrier.nodes["n3"].couple(["one", "two"])
    carrier.tick()
    carrier.run_until_settled()
    assert all(node.groups() == [["one", "two"]] for node in carrier.nodes.values())
    assert distance(carrier.nodes.values(), cold(network, blocks)) < 1e-4
    for node in carrier.nodes.values():
        node.leave_task("two")
    carrier.tick()
    carrier.run_until_settled()
    alone = {k: v for k, v in blocks.items() if k[1] == "one"}
    assert distance(carrier.nodes.values(), cold(network, alone)) < 1e-4


def test_a_silent_neighbour_is_not_waited_for_twice():
    network = Network.ring(TEN[:3])
    nodes = build(network, make_blocks(TEN[:3], ["one"]))
    carrier = Carrier(nodes)
    carrier.meet()
    one = nodes[0]
    one.begin(0.0)
    assert not one.is_complete()
    one.finish(0.0)  # the deadline passed
    carrier.deliver("n1", nodes[1].begin(0.0))
    nodes[1].finish(0.0)
    carrier.deliver("n1", nodes[1].begin(0.0))
    one.begin(0.0)
    assert one.is_complete()
    assert FIXED["tol"] < one.residual


def test_the_last_of_two_goes_on_alone_after_eviction():
    blocks = make_blocks(["a", "b"], ["one"])
    network = Network.line(["a", "b"])
    carrier = Carrier(build(network, blocks, timing=Timing(evict_seconds=5.0)))
    carrier.meet()
    carrier.run_until_settled()
    del carrier.nodes["b"]
    for _ in range(120):
        carrier.tick()
    carrier.run_until_settled()
    alone = {("a", "one"): blocks["a", "one"]}
    assert carrier.nodes["a"].status()["nodes"] == 1
    assert distance(carrier.nodes.values(), cold(Network(["a"], []), alone)) < 1e-4


def test_a_node_that_left_may_come_back():
    blocks = make_blocks(TEN[:3], ["one"])
    network = Network.ring(TEN[:3])
    carrier = Carrier(build(network, blocks))
    carrier.meet()
    carrier.run_until_settled()
    carrier.deliver("n1", carrier.nodes["n1"].leave())
    content = dump(carrier.nodes.pop("n1"))
    carrier.run_until_settled()
    revive(carrier, network, blocks, "n1", content, 2)
    carrier.tick()
    carrier.run_until_settled()
    assert distance(carrier.nodes.values(), cold(network, blocks)) < 1e-4


def test_a_node_whose_last_task_left_stays_and_the_others_forget_its_rows():
    network = Network.ring(TEN[:3])
    blocks = make_blocks(TEN[:3], ["one"])
    carrier = Carrier(build(network, blocks))
    carrier.meet()
    carrier.run_until_settled()
    carrier.nodes["n0"].leave_task("one")
    carrier.tick()
    carrier.run_until_settled()
    others = [carrier.nodes["n1"], carrier.nodes["n2"]]
    rest = {key: block for key, block in blocks.items() if key[0] != "n0"}
    assert distance(others, cold(Network.line(TEN[1:3]), rest)) < 1e-4
    assert carrier.nodes["n0"].status()["nodes"] == 3
    dump(carrier.nodes["n0"])
