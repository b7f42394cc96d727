"""Agents choose what `DTSVMCV` chooses on the same rows and folds, whoever comes, goes or dies."""

import itertools

import numpy as np
import pytest
from choosers import FAMILIES, PRICES, Room, agents, make_chooser, memory
from hypothesis import given
from hypothesis import strategies as st
from meetings import make_blocks

from dtsvm import DTSVMCV, Network
from dtsvm.runtime.agent.node import looks
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.bench import Bench, Kept
from dtsvm.runtime.agent.node.chooser import PROTOCOL, know
from dtsvm.runtime.agent.node.lanes import lane_names, make_lanes
from dtsvm.runtime.agent.node.lasting import FEW, TIMES, Lasting
from dtsvm.runtime.agent.site.standing import dump_lanes, read_lanes
from dtsvm.select import best_bias, finding_bias
from worlds import examples

TOL = 1e-5  # the choice moves by less than what is asked for below


def assert_same(choosers, clf, atol=0.02):
    """All nodes have the same bits; they are memory's to the tolerance."""
    first = choosers[0].outcome
    for one in choosers[1:]:
        assert np.array_equal(one.outcome.chosen.classifiers, first.chosen.classifiers)
        assert [str(c) for c in one.outcome.choices] == [str(c) for c in first.choices]
    assert list(first.tasks) == list(clf.tasks_)
    assert [c.is_turned for c in first.choices] == [c.is_turned for c in clf.choices_]
    np.testing.assert_allclose(first.chosen.found.weights, clf.weights_, atol=atol)
    whole = np.column_stack([clf.coef_, clf.intercept_])
    np.testing.assert_allclose(first.chosen.classifiers, whole, atol=atol * np.abs(whole).max())


def test_three_nodes_choose_what_memory_chooses():
    network = Network.line(list("abc"))
    blocks = make_blocks("abc", ["one", "two"], p=3, n=10, seed=1)
    choosers = agents(network, blocks, 3, TOL)
    Room(choosers).run()
    assert_same(choosers, memory(network, blocks, TOL))
    for choice in choosers[0].outcome.choices:  # what sigmoids are fitted to: held-out rows
        unseen = [one.unseen()[choice.task] for one in choosers]
        wrong = sum(((one.values > 0) != one.is_positive).sum() for one in unseen)
        assert wrong == round(choice.chosen.value * choice.n_rows)
        assert sum(len(one.values) for one in unseen) == choice.n_rows


@given(seed=st.integers(0, 10**6))
@examples(3)
def test_random_worlds_choose_what_memory_chooses(seed):
    """Networks, tasks that are not everywhere, one class at a node, few rows."""
    rng = np.random.default_rng(seed)
    names = list("abcde")[: rng.integers(2, 5)]
    network = [Network.ring, Network.line, Network.complete][rng.integers(3)](names)
    tasks = ["one", "two", "three"][: rng.integers(1, 4)]
    blocks = make_blocks(names, tasks, p=3, n=int(rng.integers(5, 12)), seed=seed)
    for key in list(blocks):
        if rng.random() < 0.2 and sum(task == key[1] for _, task in blocks) > 1:
            del blocks[key]
    choosers = agents(network, blocks, 3, TOL)
    Room(choosers).run()
    assert_same(choosers, memory(network, blocks, TOL), atol=0.05)


def test_lost_messages_only_delay():
    network = Network.ring(list("abc"))
    blocks = make_blocks("abc", ["one"], p=2, n=8, seed=2)
    choosers = agents(network, blocks, 2, TOL)
    Room(choosers, loss=0.1, seed=3, seconds=0.3).run()
    assert_same(choosers, memory(network, blocks, TOL))


def test_who_comes_late_counts_and_who_leaves_does_not():
    network = Network.complete(list("abc"))
    blocks = make_blocks("abc", ["one", "two"], p=2, n=8, seed=4)
    choosers = {one.node.name: one for one in agents(network, blocks, 2, TOL)}
    here = [choosers[name] for name in "ab"]
    room = Room(here)
    room.now = 31.0  # nobody waits for c any longer
    for _ in range(40):
        room.tick()
    assert here[0].n_begun
    assert here[0].outcome is None
    room.choosers["c"] = choosers["c"]
    room.run()
    assert_same(list(choosers.values()), memory(network, blocks, TOL))
    begun = here[0].n_begun
    room.say(choosers["c"].node.name, choosers["c"].node.leave())
    del room.choosers["c"]
    room.run()
    left = {key: block for key, block in blocks.items() if key[0] != "c"}
    assert here[0].n_begun > begun
    assert_same(here, memory(Network.complete(list("ab")), left, TOL))


def test_new_rows_and_changes_go_on_from_where_the_choice_is():
    network = Network.ring(list("abc"))
    blocks = make_blocks("abc", ["one"], p=2, n=20, seed=5)
    choosers = agents(network, blocks, 2, TOL)
    room = Room(choosers)
    room.run()
    cold = choosers[0].rounds
    X, y = make_blocks("a", ["one"], p=2, n=2, seed=6)["a", "one"]
    choosers[0].node.add_rows("one", X, y)
    room.run()
    old_X, old_y = blocks["a", "one"]
    blocks["a", "one"] = np.concatenate([old_X, X]), np.concatenate([old_y, y])
    assert_same(choosers, memory(network, blocks, TOL))
    warm = choosers[0].rounds
    choosers[2].node.tell_owner()  # all begin anew, with the same rows
    room.run()
    assert choosers[0].rounds - warm < 0.5 * cold
    assert_same(choosers, memory(network, blocks, TOL))


def test_a_larger_C_begins_where_a_smaller_one_ended(monkeypatch):
    network, prices = Network.line(list("abc")), [0.1, 1.0, 10.0, 100.0]
    blocks = make_blocks("abc", ["one", "two"], p=3, n=10, seed=4)
    begun, go_on = [], Bench.go_on

    def spy(self, kept):
        go_on(self, kept)
        for lane in self.mine:
            smaller = kept.get(f"{lane.track.after}; {lane.place}")
            begun.append((lane.track.C, self.state.estimate(lane.slot), smaller))

    monkeypatch.setattr(Bench, "go_on", spy)
    choosers = agents(network, blocks, 3, 0.01, prices=prices)
    Room(choosers).run()
    after = [(C, x, smaller) for C, x, smaller in begun if smaller is not None and smaller.C < C]
    assert all(np.array_equal(x, smaller.estimate) for _, x, smaller in after)
    assert {smaller.C for C, _, smaller in after if prices[-1] == C} == {prices[-2]}
    assert not any(x.any() for C, x, _ in begun if prices[0] == C)


def test_a_node_killed_in_the_middle_and_revived_is_no_loss():
    network = Network.ring(list("abc"))
    blocks = make_blocks("abc", ["one", "two"], p=2, n=8, seed=17)
    choosers = agents(network, blocks, 2, TOL)
    room = Room(choosers)
    while choosers[1].status()["certified"] < 3:
        room.tick()
    revived = make_chooser(
        "b", network.neighbours("b"), blocks, 2, TOL, incarnation=2, now=room.now
    )
    revived.kept = choosers[1].keep_all() or choosers[1].kept
    room.choosers["b"] = choosers[1] = revived
    room.run()
    assert choosers[0].n_begun > 1
    assert_same(choosers, memory(network, blocks, TOL))


def test_one_node_alone_chooses_too():
    blocks = make_blocks("a", ["one", "two"], p=2, n=12, seed=8)
    choosers = agents(Network(["a"], []), blocks, 2, TOL)
    Room(choosers).run()
    assert_same(choosers, memory(Network(["a"], []), blocks, TOL))


def test_a_task_whose_holders_are_apart_goes_through_others():
    network = Network.line(list("abc"))
    blocks = make_blocks("abc", ["one", "two"], p=2, n=6, seed=9)
    del blocks["b", "one"]
    choosers = agents(network, blocks, 2, TOL)
    room = Room(choosers)
    for _ in range(5):
        room.tick()
    assert know(choosers[1].node).through == {"one", "two"}
    room.run()
    assert_same(choosers, memory(network, blocks, TOL))


@pytest.mark.parametrize(
    "parts",
    [
        [{"name": "x y", "up": b"1"}],
        [{"name": "1 99999999", "up": b"1"}],
        [{"name": "1 -1", "up": b"1"}],
        [{"name": "99 0", "up": b"1"}],
        [{"name": "1 0", "up": b"\xff" * 1000}],
        [{"wanted": 2**63, "done": 2**63, "up": b"3", "down": b"4"}],
        [{"name": "1 0", "up": b""}] * 5000,
    ],
)
def test_a_neighbour_that_writes_nonsense_is_refused_and_the_rest_choose_on(parts):
    network = Network.ring(list("abc"))
    blocks = make_blocks("abc", ["one"], p=2, n=6, seed=10)
    choosers = agents(network, blocks, 2, 0.05)
    room = Room(choosers)
    for _ in range(12):
        room.tick()
    a = choosers[0]
    message = wire.Message(protocol=PROTOCOL, network=7, sender="b", roster_digest=a.epoch,
                           sums=[wire.Sum(**part) for part in parts])  # fmt: skip
    a.hear("b", message.SerializeToString())
    a.hear("b", b"\xff")
    a.hear("c", message.SerializeToString())  # that is not c's
    room.run()
    assert a.refused >= 2
    assert_same(choosers, memory(network, blocks, 0.05), atol=0.5)


def test_more_than_can_be_read_is_not_kept():
    network = Network.line(list("ab"))
    (a, _) = agents(network, make_blocks("ab", ["one"], p=2, n=6), 2, 0.05)
    for _ in range(80):
        a.hear("b", bytes(1_000_000))
    assert a.refused > 0
    assert 0 < a.waiting.n_bytes <= 64_000_000


def test_opening_what_a_neighbour_says_is_counted_as_its_own():
    network = Network.line(list("abc"))
    choosers = agents(network, make_blocks("abc", ["one"], p=2, n=6), 2, 0.05)
    room, (a, b, c) = Room(choosers), choosers
    ticks = itertools.count()
    for one in choosers:
        one.clock = lambda: float(next(ticks))
    room.run()
    assert a.waiting.spent().keys() == c.waiting.spent().keys() == {"b"}
    assert b.waiting.spent().keys() == {"a", "c"}
    assert not b.waiting.spent()
    for _ in range(7):
        b.hear("a", b"no envelope")
    b.step(room.now)
    assert b.waiting.spent() == {"a": 7.0}


@given(seed=st.integers(0, 10**6))
@examples(50)
def test_the_bias_found_by_counting_is_the_best(seed):
    rng = np.random.default_rng(seed)
    n, n_groups, n_nodes = rng.integers(1, 40), rng.integers(1, 6), rng.integers(1, 4)
    scores = rng.normal(size=n) * 10 ** rng.uniform(-4, 4) + 3 * rng.normal()
    scores = np.round(scores) if rng.random() < 0.2 else scores
    y, group = rng.choice([-1.0, 1.0], n), rng.integers(0, n_groups, n)
    node = rng.integers(0, n_nodes, n)
    parts = [(scores[node == v], y[node == v], group[node == v]) for v in range(n_nodes)]
    steps = [finding_bias(*part, int(n_groups)) for part in parts]
    asked = [next(one) for one in steps]
    while True:
        total = np.sum(asked, axis=0)
        try:
            asked = [one.send(total) for one in steps]
        except StopIteration as end:
            found = end.value
            break
    np.testing.assert_allclose(found, best_bias(scores, y, group, int(n_groups)), rtol=2e-7)


def test_a_task_held_everywhere_is_kept_where_others_are_told():
    """Nodes that do not take part in a task are told its classifier; that of others stays."""
    network = Network.line(list("abc"))
    blocks = make_blocks("abc", ["one", "two"], p=2, n=8, seed=11)
    del blocks["c", "one"]
    choosers = agents(network, blocks, 2, TOL)
    Room(choosers).run()
    assert all(np.abs(one.outcome.chosen.classifiers).max(axis=1).min() > 0.1 for one in choosers)
    assert_same(choosers, memory(network, blocks, TOL))


def test_weighted_rows_choose_what_memory_chooses():
    """Also where some rows weigh nothing, and one node's all the same."""
    rng = np.random.default_rng(12)
    network = Network.line(list("abc"))
    blocks = make_blocks("abc", ["one", "two"], p=3, n=12, seed=12)
    for (v, task), (X, y) in list(blocks.items()):
        weight = np.ones(len(y)) if v == "b" else rng.choice([0.0, 0.3, 1.0, 2.5], len(y))
        blocks[v, task] = X, y, weight
    choosers = agents(network, blocks, 3, TOL)
    Room(choosers).run()
    assert_same(choosers, memory(network, blocks, TOL))


def labelled(rng, nodes, tasks, n=40):
    """Three labels a task, more or less the same for all; rows, text labels, task and node."""
    centres = {"low": [1.0, 0.0, 0.3], "mid": [-0.5, 1.0, 0.0], "top": [0.0, -1.0, -0.5]}
    rows = []
    for task in tasks:
        for i in range(n):
            label = ["low", "mid", "top"][rng.integers(3)]
            rows.append((np.array(centres[label]) + 0.6 * rng.normal(size=3), label, task, i))
    X, y, task, i = (np.array(column) for column in zip(*rows, strict=True))
    return X, y, task, np.array(nodes)[i % len(nodes)]


def test_several_labels_choose_what_memory_chooses():
    nodes, classes = list("abc"), ("low", "mid", "top")
    X, y, task, node = labelled(np.random.default_rng(3), nodes, ["one", "two"])
    choosers = []
    for v in nodes:
        one = make_chooser(v, Network.ring(nodes).neighbours(v), {}, 3, TOL)
        for t in ("one", "two"):
            mine = (node == v) & (task == t)
            lanes = make_lanes(lane_names(t, classes), classes, y[mine])
            one.node.enter(t, X[mine], lanes, classes)
        choosers.append(one)
    Room(choosers).run()
    clf = DTSVMCV(Network.ring(nodes), candidates=FAMILIES, C=PRICES, tol=TOL, max_rounds=200_000)
    clf.fit(X, y, task=task, node=node)
    first = choosers[0].outcome
    assert [part.about for part in first.parts] == list(classes)
    for other in choosers[1:]:
        for part, theirs in zip(first.parts, other.outcome.parts, strict=True):
            assert np.array_equal(part.chosen.classifiers, theirs.chosen.classifiers)
    assert [str(c) for c in first.choices] == [str(c) for c in clf.choices_]
    shares = np.concatenate([part.chosen.found.weights for part in first.parts])
    np.testing.assert_allclose(shares, clf.weights_, atol=0.02)
    for t, name in enumerate(clf.tasks_):
        mine = clf.model_.tasks[t]
        whole = np.column_stack([mine.coef, mine.intercept])
        found = [choosers[2].decision(f"{name}›{label}") for label in classes]
        np.testing.assert_allclose(found, whole, atol=0.02 * np.abs(whole).max())


def three_labels(nodes, labels, classes, tasks):
    """Nodes with rows of these labels each, of every task."""
    rng, choosers = np.random.default_rng(4), []
    for v in nodes:
        one = make_chooser(v, Network.ring(nodes).neighbours(v), {}, 3, 0.05)
        y = np.repeat(labels[v], 8)
        for task in tasks:
            X = rng.normal(size=(len(y), 3)) + (y == classes[1])[:, None]
            one.node.enter(task, X, make_lanes(lane_names(task, classes), classes, y), classes)
        choosers.append(one)
    return choosers


@pytest.mark.parametrize("tasks", [["one"], ["one", "two"]])
def test_a_label_that_goes_with_its_node_keeps_nobody_from_choosing(tasks):
    """Also the first of the labels, about which nothing is left to train."""
    classes = ("low", "mid", "top")
    labels = {"a": classes[1:], "b": classes[1:], "c": classes}
    choosers = three_labels(list("abc"), labels, classes, tasks)
    room = Room(choosers)
    room.run()
    room.say("c", choosers[2].node.leave())
    del room.choosers["c"]
    room.run()
    first = choosers[0].outcome
    assert not choosers[0].doubts.why
    assert "32 rows of one label only" in str(first.choices[0])
    for part, theirs in zip(first.parts, choosers[1].outcome.parts, strict=True):
        assert np.array_equal(part.chosen.classifiers, theirs.chosen.classifiers)


@pytest.mark.parametrize(("n", "tasks"), [(0, ["one"]), (6, ["one"]), (6, ["one", "two"])])
def test_where_all_rows_are_of_one_label_or_there_are_none_no_round_is_needed(n, tasks):
    rng = np.random.default_rng(5)
    blocks = {(v, t): (rng.normal(size=(n, 3)), np.ones(n)) for v in "abc" for t in tasks}
    choosers = agents(Network.ring(list("abc")), blocks, 3, TOL)
    Room(choosers).run()
    assert all(one.rounds == 0 and not one.doubts.n_lies for one in choosers)
    assert np.sign(choosers[1].decision("one")).tolist() == [0.0, 0.0, 0.0, float(n > 0)]


def test_a_node_whose_rows_are_far_larger_than_all_others_is_no_liar():
    """It wrote grams for tonnes: its squares are more than a term of a sum can hold."""
    blocks = make_blocks("abc", ["one", "two"], p=3, n=20, seed=1)
    for task in ("one", "two"):
        X, y = blocks["c", task]
        blocks["c", task] = 1e7 * X, y
    choosers = agents(Network.ring(list("abc")), blocks, 3, 0.05, prices=None)
    Room(choosers).run()
    assert not any(one.doubts.n_lies or one.overdue.words for one in choosers)


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
def test_the_unit_of_all_rows_together_changes_nothing_but_weights(unit):
    network = Network.ring(list("abc"))
    blocks = make_blocks("abc", ["one", "two"], p=3, n=20, seed=1)
    others = {agent: (unit * X, y) for agent, (X, y) in blocks.items()}
    plain, scaled = (agents(network, some, 3, 0.05, prices=None) for some in (blocks, others))
    for choosers in (plain, scaled):
        Room(choosers).run()
    one, other = (choosers[0].outcome.parts[0] for choosers in (plain, scaled))
    np.testing.assert_allclose(other.chosen.found.weights, one.chosen.found.weights, atol=1e-9)
    found = other.chosen.classifiers * [unit, unit, unit, 1.0]
    np.testing.assert_allclose(found, one.chosen.classifiers, rtol=1e-9, atol=1e-12)
    assert [c.C * unit**2 for c in other.choices] == pytest.approx([c.C for c in one.choices])
    assert scaled[0].n_rounds == plain[0].n_rounds


def test_after_rows_that_are_far_larger_nobody_is_refused_for_where_it_stood(monkeypatch):
    monkeypatch.setattr(looks, "MOST_ROUNDS", 60)
    blocks = make_blocks("abc", ["one", "two"], p=3, n=20, seed=1)
    choosers = agents(Network.ring(list("abc")), blocks, 3, 0.05, prices=None)
    room = Room(choosers)
    room.run()
    X, y = make_blocks("a", ["one"], p=3, n=2, seed=2)["a", "one"]
    choosers[0].node.add_rows("one", 1e7 * X, y)
    room.tick()
    room.run()
    assert all(one.n_begun == 2 and not one.refused for one in choosers)


def test_personal_tasks_choose_what_memory_chooses():
    """MOCHA's setting: every node has a task of its own."""
    network = Network.ring(list("abcd"))
    blocks = make_blocks("abcd", ["t"], p=3, n=24, seed=13)
    blocks = {(v, f"own-{v}"): rows for (v, _), rows in blocks.items()}
    choosers = agents(network, blocks, 3, TOL, personal=True)
    Room(choosers).run()
    assert_same(choosers, memory(network, blocks, TOL))


def test_lanes_on_disk_are_a_head_start():
    network = Network.ring(list("abc"))
    blocks = make_blocks("abc", ["one", "two"], p=2, n=20, seed=14)
    choosers = agents(network, blocks, 2, TOL)
    Room(choosers).run()
    again = agents(network, blocks, 2, TOL)
    for old, new in zip(choosers, again, strict=True):
        old.keep_all()
        content = dump_lanes(old.kept, 7, 0)
        new.kept = read_lanes(content, 7, 0)
        assert read_lanes(content, 8, 0) == read_lanes(content[:-9], 7, 0) == {}
        assert new.kept.keys() == old.kept.keys()
    Room(again).run()
    assert again[0].rounds < 0.6 * choosers[0].rounds
    assert_same(again, memory(network, blocks, TOL))


def test_lanes_that_no_choice_has_had_for_long_are_forgotten():
    one = Kept(1.0, np.zeros((2, 3)), np.zeros(0, np.int64), np.zeros(0), {})
    lasting = Lasting()
    for time in range(300):  # a liar asks about another label each time
        lasting.put({f"own {k}": one for k in range(50)})
        lasting.put({f"label {time}, {k}": one for k in range(50)})
        lasting.begin()
        assert {f"own {k}" for k in range(50)} <= lasting.keys()
    assert len(lasting) <= FEW + TIMES * 100
