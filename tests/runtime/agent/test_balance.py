import numpy as np
import pytest
from meetings import Carrier, build, cold, distance, make_blocks, make_session
from test_faults import revive

from dtsvm import Network
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.ledger import Ledger, Level, Tally
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.agent.site.checkpoint import dump, restore

EIGHT = [f"n{i}" for i in range(8)]
AUTO = {"C": 1.0, "tol": 1e-4}


def levels(carrier, group="one"):
    return {node.ledger.level(group) for node in carrier.nodes.values()}


def pulls(carrier):
    """Of every link the penalties of its two ends."""
    found = {}
    for node in carrier.nodes.values():
        for (task, other, to), (penalty, _) in node.ends.edge_states().items():
            found.setdefault(frozenset([(node.name, task), (other, to)]), []).append(penalty)
    return list(found.values())


@pytest.mark.parametrize("loss", [0.0, 0.3])
@pytest.mark.parametrize("network", [Network.ring(EIGHT), Network.random(EIGHT, degree=0.5)])
def test_agents_balance_to_the_same_level_everywhere(network, loss, rng):
    blocks = make_blocks(EIGHT, ["one", "two"], n=20)
    carrier = Carrier(build(network, blocks, AUTO), loss=loss, rng=rng)
    if not loss:
        carrier.meet()
    carrier.run_until_settled()
    (level,) = levels(carrier)
    assert level.decided >= 3
    assert level[1:] != (1.0, 1.0)
    assert all(np.array_equal(*ends) for ends in pulls(carrier))
    assert distance(carrier.nodes.values(), cold(network, blocks, AUTO)) < 1e-2


def test_agents_that_balance_settle_in_about_as_many_rounds_as_a_session():
    network, blocks = Network.ring(EIGHT), make_blocks(EIGHT, ["one"], n=20)
    carrier = Carrier(build(network, blocks, AUTO), patience=1000)
    carrier.meet()
    carrier.run_until_settled()
    live = make_session(network, blocks, AUTO)
    live.run()
    assert max(node.round for node in carrier.nodes.values()) < 3 * live.info.n_rounds


def test_agents_at_work_leap_at_the_first_check_after_a_change_and_it_comes_at_20():
    settings = {"C": 1.0, "tol": 1e-300}
    network, blocks = Network.ring(EIGHT), make_blocks(EIGHT, ["one"], n=20)
    carrier = Carrier(build(network, blocks, settings), patience=1000)
    carrier.meet()
    carrier.run_until_round(100)
    (before,) = levels(carrier)
    carrier.nodes["n3"].add_rows("one", *make_blocks(["n3"], ["one"], n=5, seed=7)["n3", "one"])
    carrier.run_until_round(115)
    assert levels(carrier) == {before}
    carrier.run_until_round(130)
    (after,) = levels(carrier)
    assert after.decided == before.decided + 1
    assert len(after.leap) == 6


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(s, marks=pytest.mark.slow) for s in range(3, 8))]
)
def test_loss_and_deaths_while_balancing_still_end_at_the_pooled_optimum(seed):
    rng = np.random.default_rng(seed)
    network = Network.random(EIGHT, degree=0.5, seed=seed)
    blocks = make_blocks(EIGHT, ["one"], n=10, seed=seed)
    carrier = Carrier(build(network, blocks, AUTO), loss=0.3, rng=rng)
    dead, kept = {}, {}
    for tick in range(150):
        if tick % 12 == 9 and len(carrier.nodes) == 8:  # around the first checks
            name = EIGHT[int(rng.integers(8))]
            dead[name] = tick + int(rng.integers(1, 20))
            del carrier.nodes[name]
        for name in [n for n, back in dead.items() if back == tick]:
            checkpoint = kept.get(name) if rng.random() < 0.5 else None
            revive(carrier, network, blocks, name, checkpoint, tick + 2, AUTO)
        carrier.tick()
        if tick % 5 == 0:
            kept.update({n: dump(v, {"one": 10}) for n, v in carrier.nodes.items()})
    for name in set(EIGHT) - set(carrier.nodes):
        revive(carrier, network, blocks, name, kept.get(name), 1000, AUTO)
    carrier.run_until_settled()
    assert len(levels(carrier)) == 1
    assert all(np.array_equal(*ends) for ends in pulls(carrier))
    assert distance(carrier.nodes.values(), cold(network, blocks, AUTO)) < 1e-2


def test_two_halves_that_balanced_apart_agree_when_they_meet_again():
    network, blocks = Network.ring(EIGHT[:6]), make_blocks(EIGHT[:6], ["one"], n=20)
    timing = Timing(evict_seconds=2.0)
    carrier = Carrier(build(network, blocks, AUTO, timing=timing), patience=20)
    carrier.meet()
    carrier.cut = {frozenset(("n0", "n5")), frozenset(("n2", "n3"))}
    for _ in range(300):
        carrier.tick()
    assert len(levels(carrier)) == 2
    carrier.cut = set()
    carrier.tick()
    carrier.run_until_settled()
    assert len(levels(carrier)) == 1
    assert distance(carrier.nodes.values(), cold(network, blocks, AUTO)) < 1e-2


def test_a_checkpoint_carries_the_level():
    network, blocks = Network.ring(EIGHT[:4]), make_blocks(EIGHT[:4], ["one"], n=20)
    carrier = Carrier(build(network, blocks, AUTO))
    carrier.meet()
    carrier.run_until_settled()
    content = dump(carrier.nodes["n1"], {"one": 20})
    (again,) = [n for n in build(network, blocks, AUTO, incarnation=2) if n.name == "n1"]
    restore(again, content)
    assert {again.ledger.level("one")} == levels(carrier)


def test_what_was_made_with_another_penalty_is_not_used():
    network, blocks = Network.line(EIGHT[:2]), make_blocks(EIGHT[:2], ["one"])
    nodes = build(network, blocks, AUTO)
    carrier = Carrier(nodes)
    carrier.meet()
    carrier.tick()
    one, other = nodes
    message = wire.Message.FromString(other.begin(carrier.now)["n0"])
    one.begin(carrier.now)
    before = one.state.tables.ends["state"].copy()
    message.values[0].penalty = np.array([1.0, 2.0], "<f4").tobytes()
    assert one.take("n1", message.SerializeToString(), carrier.now)
    one.finish(carrier.now)
    assert one.heard == ["n1"]
    assert np.array_equal(one.state.tables.ends["state"], before)


def test_rows_that_come_begin_the_checks_anew_everywhere():
    network, blocks = Network.line(EIGHT[:4]), make_blocks(EIGHT[:4], ["one"], n=20)
    carrier = Carrier(build(network, blocks, AUTO), patience=1000)
    carrier.meet()
    carrier.run_until_settled()
    (before,) = levels(carrier)
    carrier.nodes["n0"].add_rows("one", *make_blocks(["n0"], ["one"], seed=9)["n0", "one"])
    carrier.run_until_settled()
    (after,) = levels(carrier)
    assert after.decided > before.decided


def test_a_ledger_is_the_same_in_whatever_order_it_hears():
    tallies = [
        Tally("one", node, 1, round_, decided, round_, (1.0, 2.0, 3.0, float(round_)))
        for node in "abc"
        for round_, decided in ((10, 0), (20, 0), (40, 1))
    ]
    new = {"one": Level(1, 2.0, 1.0)}
    rng = np.random.default_rng(0)
    digests = set()
    for _ in range(20):
        ledger = Ledger()
        news = [(new, []), *(({}, [tally]) for tally in tallies)]
        for k in rng.permutation(2 * len(news)) % len(news):
            ledger.merge(*news[k])
        ledger.merge(new, tallies)
        digests.add(ledger.digest)
    assert len(digests) == 1
    assert {tally.decided for tally in ledger.tallies.values()} == {1}


def test_all_who_have_every_tally_decide_alike():
    residual = {node: tuple(np.random.default_rng(i).random(6)) for i, node in enumerate("abc")}
    tallies = [Tally("one", node, 1, 10, 0, 10, r) for node, r in residual.items()]
    one, other = Ledger(), Ledger()
    one.merge({}, tallies)
    other.merge({}, tallies[::-1][:2])
    assert not other.decide("one", "abc", 10, 1.0)
    assert one.decide("one", "abc", 10, 1.0)
    other.merge({}, tallies)
    assert other.decide("one", "cba", 10, 1.0)
    assert one.digest == other.digest
