"""Every agent knows how good its answer is, and says settled only when it does."""

import math
from itertools import pairwise

import numpy as np
import pytest
from meetings import FIXED, NAMES, SHAPES, Carrier, build, cold, make_blocks, make_session

from dtsvm import Network
from dtsvm.rounds.certify import Tally, certify
from dtsvm.runtime.agent.node.model import node_model
from dtsvm.runtime.agent.node.wave import Parcel
from reference import objective

AUTO = {"C": 1.0, "tol": 1e-4}


def settled(network, blocks, settings=AUTO, **more):
    carrier = Carrier(build(network, blocks, settings), **more)
    if not more.get("loss"):
        carrier.meet()
    carrier.run_until_settled()
    return carrier


def true_objective(node, blocks, settings):
    """The objective of a node's model on everybody's rows."""
    tasks = sorted(node.holdings)
    X = np.concatenate([x for x, _ in blocks.values()])
    y = np.concatenate([y for _, y in blocks.values()])
    task = np.concatenate([np.full(len(y), tasks.index(t)) for (_, t), (_, y) in blocks.items()])
    parts = np.array([node.certified(t) for t in tasks])
    share = np.full(len(tasks), 1 / len(tasks))
    return objective(
        X, y, task, parts[0, 0], parts[:, 1], share, C=settings["C"], common_reg=1.0,
        specific_reg=1.0,
    )  # fmt: skip


@pytest.mark.parametrize("shape", ["ring", "complete", "line"])
@pytest.mark.parametrize("tasks", [["one"], ["one", "two"]])
def test_six_agents_know_one_gap_and_it_is_true(shape, tasks):
    network, blocks = SHAPES[shape](NAMES), make_blocks(NAMES, tasks, n=20)
    carrier = settled(network, blocks, patience=1000)
    nodes = list(carrier.nodes.values())
    best = cold(network, blocks, {**AUTO, "tol": 1e-9})
    (gap,) = {node.status()["gap"] for node in nodes}
    (found,) = {node.certifier.objective for node in nodes}
    assert 0 <= gap <= 1e-4
    assert np.isclose(found, true_objective(nodes[0], blocks, AUTO), rtol=1e-12)
    assert best.info.objective * (1 - 1e-9) <= found <= best.info.objective * (1 + 1e-4)
    assert all(np.array_equal(n.certified(t), nodes[0].certified(t)) for n in nodes for t in tasks)


@pytest.mark.parametrize("shape", ["ring", "complete", "line"])
@pytest.mark.parametrize("C", [1.0, 0.01])
def test_agents_settle_in_about_as_many_rounds_as_a_session(shape, C):
    network, blocks = SHAPES[shape](NAMES), make_blocks(NAMES, ["one"], n=20)
    settings = {**AUTO, "C": C}
    carrier = settled(network, blocks, settings, patience=1000)
    live = make_session(network, blocks, settings)
    live.run()
    rounds = max(node.round for node in carrier.nodes.values())
    print(shape, C, rounds, live.info.n_rounds)
    assert rounds <= 1.2 * live.info.n_rounds


@pytest.mark.parametrize("seed", range(4))
def test_agents_are_certified_though_messages_are_lost(seed):
    rng = np.random.default_rng(seed)
    network, blocks = SHAPES["ring"](NAMES), make_blocks(NAMES, ["one"], n=20, seed=seed)
    carrier = settled(network, blocks, loss=0.3, rng=rng)
    assert all(node.status()["gap"] <= 1e-4 for node in carrier.nodes.values())


def test_a_model_carries_what_is_certified():
    network, blocks = Network.line(["a", "b"]), make_blocks(["a", "b"], ["one"])
    carrier = settled(network, blocks, FIXED)
    node = carrier.nodes["b"]
    model = node_model(node, {"one": (-1, 1)})
    assert model.info.gap == node.status()["gap"] <= FIXED["tol"]
    assert model.info.objective == node.certifier.objective
    assert list(model.network.nodes) == ["a", "b"]
    fresh = build(network, blocks, FIXED)[0]
    assert fresh.status()["gap"] is None
    assert math.isnan(node_model(fresh, {"one": (-1, 1)}).info.gap)


def test_one_class_somewhere_is_certified_by_scaling_classes():
    names = ["a", "b", "c"]
    blocks = make_blocks(names, ["one"], n=15)
    blocks = {(v, t): (X, np.where(v == "a", 1.0, y)) for (v, t), (X, y) in blocks.items()}
    carrier = settled(Network.ring(names), blocks, {"C": 1e-3, "tol": 1e-6})
    assert all(node.status()["gap"] <= 1e-6 for node in carrier.nodes.values())


def test_nothing_is_settled_without_a_certificate():
    network, blocks = Network.line(["a", "b"]), make_blocks(["a", "b"], ["one"])
    carrier = Carrier(build(network, blocks, FIXED))
    carrier.meet()
    for node in carrier.nodes.values():
        node.sums.parcels = lambda name: b""  # no sum ever comes back
    for _ in range(600):
        carrier.tick()
    assert all(node.residual < 1e-10 for node in carrier.nodes.values())
    assert not any(node.is_settled for node in carrier.nodes.values())


def test_a_node_that_hides_its_loss_certifies_nothing():
    """The objective would be below a bound on it, which all can see."""
    network, blocks = SHAPES["ring"](NAMES[:5]), make_blocks(NAMES[:5], ["one"], n=20)
    nodes = build(network, blocks, AUTO)
    true = nodes[2].certifier._tally

    def lie(team, look):
        term = true(team, look)
        term[0] = 0.0  # its loss
        return term

    nodes[2].certifier._tally = lie
    carrier = Carrier(nodes, patience=1000)
    carrier.meet()
    for _ in range(600):
        carrier.tick()
    assert not any(node.is_settled for node in nodes)
    assert all(node.status()["lies"] > 0 for node in nodes)


@pytest.mark.parametrize("shape", ["ring", "complete"])
def test_a_liar_that_forges_the_gap_bends_the_answer_no_further_than_calm_agents_differ(shape):
    """It knows all sums, makes the gap 0 and moves the average as far as it is believed."""
    tol = 1e-4
    network, blocks = SHAPES[shape](NAMES[:5]), make_blocks(NAMES[:5], ["one"], n=20)
    nodes = build(network, blocks, {"C": 1.0, "tol": tol})
    liar, honest = nodes[2], [node for node in nodes if node.name != "c"]
    tally, found = liar.certifier._tally, liar.certifier._found

    def everybodys(team, look):
        terms = [n.certifier._tally(n.certifier.teams[0], look) for n in honest]
        return liar.certifier._apart(team, sum([tally(team, look), *terms]))

    def lie(team, look):
        sums = everybodys(team, look)
        zeros = {name: np.zeros((1, 5)) for name in ("positive", "negative")}
        sums = {name: sums[name] for name in Tally._fields if name in sums} | zeros
        true = certify(Tally(**sums), look.common, look.specific, np.ones(1), (1.0, 1.0, 0.0))
        term = tally(team, look)
        term[0] -= true.objective - true.bound  # of its loss
        return term

    liar.certifier._tally = lie
    liar.certifier._found = lambda team: found(team) * (1.0 + 4 * 5 * 0.4 * tol**0.5)
    carrier = Carrier(nodes, patience=1000)
    carrier.meet()
    for _ in range(2000):
        carrier.tick()
        if all(node.is_settled for node in honest):
            break
    assert all(node.is_settled and node.certifier.gap < 0.1 * tol for node in honest)  # it seems
    best = cold(network, blocks, {"C": 1.0, "tol": 1e-10}).classifier("one")
    right = np.append(best.coef_[0], best.intercept_)
    for node in honest:
        bent = np.linalg.norm(node.certified("one").sum(axis=0) - right) / np.linalg.norm(right)
        print(shape, node.name, f"bent by {bent:.1e}")
        assert bent <= 2 * 4 * 5 * 0.4 * tol**0.5


@pytest.mark.parametrize("size", [1e3, 1e12, -1e12])
def test_a_sum_out_of_range_certifies_nothing(size):
    network, blocks = SHAPES["ring"](NAMES[:5]), make_blocks(NAMES[:5], ["one"], n=20)
    nodes = build(network, blocks, AUTO)
    liar = nodes[2]
    liar.certifier._tally = lambda team, look: np.full(15, size)
    carrier = Carrier(nodes, patience=50)
    carrier.meet()
    for _ in range(600):
        carrier.tick()
    assert not any(node.is_settled for node in nodes)
    assert all(node.status()["lies"] > 0 for node in nodes if node is not liar)


def test_a_forged_total_is_heard_by_children_alone():
    network, blocks = SHAPES["line"](NAMES[:3]), make_blocks(NAMES[:3], ["one"])
    nodes = {node.name: node for node in build(network, blocks, FIXED)}
    carrier = Carrier(list(nodes.values()))
    carrier.meet()
    carrier.tick()
    wave = nodes["b"].sums.waves["cone"]
    assert wave.tree.parent is None  # it is in the middle
    wave.begin(1, nodes["b"].certifier._found(nodes["b"].certifier.teams[0]))
    forged = Parcel(1, 1, b"", bytes(len(wave.parcel("a").up) or 16))
    assert not wave.hear("a", forged)
    assert wave.is_open


def counted(nodes, rounds, patience=50):
    """Let nodes do so many rounds; return when the first looked and would again, and the ticks."""
    looks, judge = [], nodes[0].certifier._judge

    def note(team, look):
        judge(team, look)
        looks.append((look.begun, look.next_look))

    nodes[0].certifier._judge = note
    carrier = Carrier(nodes, patience=patience)
    carrier.meet()
    n_ticks = 0
    while nodes[0].round < rounds and n_ticks < 20 * rounds:
        carrier.tick()
        n_ticks += 1
    return looks, n_ticks


@pytest.mark.parametrize("shape", ["ring", "complete"])
def test_a_neighbour_that_always_calls_for_certificates_is_followed_at_half_the_time(shape):
    network, blocks = SHAPES[shape](NAMES[:5]), make_blocks(NAMES[:5], ["one"], n=20)
    settings = {**AUTO, "tol": 1e-300}
    honest, _ = counted(build(network, blocks, settings), 300)
    nodes = build(network, blocks, settings)
    caller = nodes[2].certifier
    look = caller.look

    def always(is_calm, until):
        for one in caller._looks.values():
            one.begun = one.next_look = 0
        caller._next_if_calm = 0.0
        look(True, until)

    caller.look = always
    called, _ = counted(nodes, 300)
    assert len(called) > len(honest)
    for (last, due), (begun, _) in pairwise(called):
        is_milestone = any(last < n <= begun for n in (64, 128, 256))  # at which all look anyway
        assert is_milestone or begun >= (last + due) / 2
    assert not any(node.certifier.n_lies for node in nodes)


def test_a_neighbour_that_withholds_its_part_of_a_certificate_stops_no_round():
    """It is waited for once, for `round_seconds`; without it there is no other certificate."""
    network, blocks = SHAPES["ring"](NAMES[:5]), make_blocks(NAMES[:5], ["one"], n=20)
    _, n_honest = counted(build(network, blocks, {**AUTO, "tol": 1e-300}), 300)
    nodes = build(network, blocks, AUTO)
    wave_of = nodes[2].sums.wave

    def silent(kind, team):
        wave = wave_of(kind, team)
        if kind == "c":
            wave.parcel = lambda neighbour: Parcel(wave.wanted, wave.done)
        return wave

    nodes[2].sums.wave = silent
    looks, n_ticks = counted(nodes, 300)
    assert looks == []
    assert nodes[0].round >= 300
    assert not any(node.is_settled for node in nodes)
    assert n_ticks <= n_honest + 2 * nodes[0].timing.round_seconds / 0.05
