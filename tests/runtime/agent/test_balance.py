import numpy as np
import pytest
from liars import LIES
from meetings import Carrier, build, cold, distance, make_blocks, make_session
from test_faults import revive
from test_liars import Meeting

from dtsvm import Network
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.apart import FORGIVEN_SECONDS, Apart
from dtsvm.runtime.agent.node.balance import N_LEVEL
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.agent.site.checkpoint import dump, restore
from worlds import seeds

EIGHT = [f"n{i}" for i in range(8)]
AUTO = {"C": 1.0, "tol": 1e-4}


def levels(carrier, group="one"):
    return {tuple(node.balancer.levels()[group]) for node in carrier.nodes.values()}


def last_checks(carrier, group="one"):
    return {node.balancer._applied[group] for node in carrier.nodes.values()}


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
    assert min(last_checks(carrier)) >= 40
    assert level != (1.0, 1.0, 1.0)
    assert all(np.array_equal(*ends) for ends in pulls(carrier))
    assert distance(carrier.nodes.values(), cold(network, blocks, AUTO)) < 1e-2


def test_agents_that_balance_settle_in_about_as_many_rounds_as_a_session():
    network, blocks = Network.ring(EIGHT), make_blocks(EIGHT, ["one"], n=20)
    carrier = Carrier(build(network, blocks, AUTO), patience=1000)
    carrier.meet()
    carrier.run_until_settled()
    live = make_session(network, blocks, AUTO)
    live.run()
    assert max(node.round for node in carrier.nodes.values()) <= 1.2 * live.info.n_rounds


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
    assert last_checks(carrier) == {20}
    wave = carrier.nodes["n0"].sums.waves["bone"]
    assert wave.total[N_LEVEL] == 8  # all had their snapshots


@pytest.mark.parametrize("seed", seeds(4))
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
            kept.update({n: dump(v) for n, v in carrier.nodes.items()})
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
    content = dump(carrier.nodes["n1"])
    (again,) = [n for n in build(network, blocks, AUTO, incarnation=2) if n.name == "n1"]
    restore(again, content)
    again.open(0.0)
    assert {tuple(again.balancer.levels()["one"])} == levels(carrier)


def test_no_check_is_summed_before_all_have_one_level():
    """Its sum would take the place of that of the levels, which would stay apart for long."""
    network, blocks = Network.line(EIGHT[:2]), make_blocks(EIGHT[:2], ["one"])
    nodes = build(network, blocks, AUTO)
    carrier = Carrier(nodes, patience=1000)
    carrier.meet()
    node = nodes[0]
    node.begin(carrier.now)
    balancer, wave = node.balancer, node.sums.waves["bone"]
    assert (wave.wanted, wave.done) == (1, 0)
    for check in (10, 20):
        balancer.open(check, np.inf)
        balancer.note([half for team in balancer.teams for half in team.halves], check)
        balancer.tally()
        assert wave.wanted == 1
    carrier.run_until_round(2)
    assert (wave.wanted, wave.done) == (20, 1)  # and then it is


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
    epoch = carrier.nodes["n3"].sums.epoch
    carrier.nodes["n0"].add_rows("one", *make_blocks(["n0"], ["one"], seed=9)["n0", "one"])
    carrier.run_until_settled()
    assert min(last_checks(carrier)) >= 20
    assert carrier.nodes["n3"].sums.epoch != epoch


def test_a_total_that_no_honest_nodes_could_have_is_not_used():
    network, blocks = Network.line(EIGHT[:2]), make_blocks(EIGHT[:2], ["one"])
    nodes = build(network, blocks, AUTO)
    carrier = Carrier(nodes, patience=1000)
    carrier.meet()
    carrier.run_until_round(9)
    balancer = nodes[0].balancer
    (team,) = balancer.teams
    good, mine = nodes[0].sums.waves["bone"].total, balancer._mine["one", 1]
    assert balancer._is_possible(good, mine, team)
    for place, value in [
        (0, -1.0),
        (0, 3.0),
        (0, 0.5),
        (1, 1e3),
        (N_LEVEL, 9.0),
        (5, -1.0),
        (5, 1e13),
        (-1, 2.0),
        (12, 1e3),
    ]:
        bad = good.copy()
        bad[place] = value
        assert not balancer._is_possible(bad, mine, team), (place, value)


def test_a_total_that_comes_when_the_next_check_has_begun_is_used_by_all(monkeypatch):
    """A leaf told the root all it knew and went on; then who had been slow let the root decide."""
    monkeypatch.setattr(Node, "_agree_anew", lambda node, present, now: None)
    names = list("abc")
    network, blocks = Network.line(names), make_blocks(names, ["one"], n=20)
    settings = {"C": 1.0, "tol": 1e-8}
    nodes = build(network, blocks, settings)
    carrier = Carrier(nodes)
    carrier.meet()
    carrier.run_until_round(10)
    waves = {node.name: node.sums.waves["bone"] for node in nodes}
    assert {wave.wanted for wave in waves.values()} == {10}
    slow = carrier.nodes.pop("a")
    while waves["c"].wanted < 20:
        carrier.tick()
    assert (waves["b"].wanted, waves["b"].done, waves["c"].done) == (10, 1, 1)
    carrier.nodes["a"] = slow
    carrier.deliver("a", slow.hello(carrier.now))
    assert waves["b"].done == 10
    carrier.tick()
    carrier.tick()
    assert last_checks(carrier) == {10}
    assert len(levels(carrier)) == 1
    carrier.run_until_settled(most=2_000)
    assert min(last_checks(carrier)) >= 40
    assert distance(nodes, cold(network, blocks, settings)) < 1e-3


def test_a_node_at_another_level_than_all_others_makes_them_agree_anew():
    names = list("abcde")
    network, blocks = Network.ring(names), make_blocks(names, ["one"])
    settings = {"C": 0.1, "tol": 1e-8}
    nodes = build(network, blocks, settings)
    carrier = Carrier(nodes)
    carrier.meet()
    carrier.run_until_round(30)
    carrier.run_until_settled()
    lost = nodes[2]
    (team,) = lost.balancer.teams
    lost.balancer._set(team, np.array([1.0, 1.3, 1.0]))  # it used another total than all others
    lost.ends.pull_anew()
    for node in nodes:
        node._wake()
    carrier.run_until_settled(most=2_000)
    assert len(levels(carrier)) == 1
    reasons = {node.name: node.status()["reasons"] for node in nodes if node.status()["reasons"]}
    why = "its penalties were others for 73 rounds; all agree on them anew"
    assert reasons == {"c": {"b": why, "d": why}}
    assert distance(nodes, cold(network, blocks, settings)) < 1e-3


def test_a_liar_that_always_has_other_penalties_makes_all_agree_anew_ever_more_rarely():
    names = list("abcde")
    nodes = build(Network.ring(names), make_blocks(names, ["one"]), {"C": 0.1, "tol": 1e-8})
    carrier = Meeting(nodes, nodes[2], LIES["values of another penalty"])
    carrier.meet()
    carrier.is_lying = True
    before, rounds = 0, []
    for _ in range(2_500):
        carrier.tick()
        n_said = sum(nodes[k].presence._sequence for k in (0, 1, 3, 4))
        rounds += [nodes[0].round] * (n_said > before)
        before = n_said
    gaps = np.diff(rounds[1:])
    assert 3 <= len(gaps) <= 6
    assert (gaps[1:] >= 1.5 * gaps[:-1]).all(), gaps
    assert "its penalties were others for" in nodes[1].status()["reasons"]["c"]


def test_waiting_twice_as_long_to_agree_anew_is_forgiven_in_time():
    apart = Apart()

    def rounds_until(now):
        return next(n for n in range(1, 10_000) if apart.lasts_too_long(0, now))

    assert [rounds_until(0.0) for _ in range(4)] == [65, 129, 257, 513]
    assert rounds_until(2 * FORGIVEN_SECONDS) == 257
    assert rounds_until(20 * FORGIVEN_SECONDS) == 65
