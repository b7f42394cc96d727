"""Sums that a neighbour withholds: it is found and barred, and the others settle without it."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from liars import Liar
from liars_withheld import WITHHELD, just_in_time, withhold
from meetings import Carrier, build, cold, distance, make_blocks

from dtsvm import Network
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.agent.node.wave import Tree

FIVE = list("abcde")
SETTINGS = {"C": 0.1, "tol": 1e-6}
TIMING = Timing(round_seconds=0.2, evict_seconds=1.0, start_seconds=2.0)
MOST = 6000  # ticks of a tenth of a second
CASES = [
    ("parts", "line", "a"), ("parts", "ring", "a"), ("parts", "ring", "d"), ("parts", "star", "c"),
    ("totals", "line", "c"), ("totals", "ring", "a"), ("totals", "star", "a"),
    ("totals", "star", "c"), ("parts and totals", "line", "b"), ("parts and totals", "line", "c"),
    ("parts and totals", "ring", "a"), ("parts and totals", "complete", "a"),
    ("parts and totals", "complete", "c"), ("parts and totals", "star", "c"),
    ("that it began", "line", "b"), ("that it began", "ring", "d"),
    ("certificates alone", "ring", "d"), ("certificates alone", "star", "a"),
    ("its roster", "line", "c"), ("its roster", "ring", "d"), ("its roster", "star", "a"),
]  # fmt: skip


class Meeting(Carrier):
    """A carrier of which one node lies."""

    def __init__(self, nodes, liar, how):
        super().__init__(nodes, seconds=0.1, patience=2)
        self.liar, self.how = Liar(self.nodes[liar], np.random.default_rng(5)), how
        self.is_lying = False
        self.liar.node._owed_sums = list  # it bars nobody for what it brought about

    def deliver(self, sender, messages):
        if self.is_lying and sender == self.liar.node.name:
            messages = self.liar.said(messages, self.how)
        for name, data in messages.items():
            if name in self.nodes:
                self.nodes[name].take(sender, data, self.now)

    @property
    def honest(self):
        return [node for node in self.nodes.values() if node is not self.liar.node]


def barred(node):
    """Neighbours that a node has ever barred."""
    return {name for name, mail in node.mail.items() if mail.n_barred}


def settle_beside(network, liar, lie, blocks, most=MOST, **more):
    """Have a node lie from the start, and the honest settle all the same."""
    given = {**SETTINGS, **more}
    carrier = Meeting(build(network, blocks, given, timing=TIMING), liar, lie)
    carrier.meet()
    carrier.is_lying = True
    for _ in range(most):
        carrier.tick()
        if all(node.is_settled for node in carrier.honest):
            break
    print(f"{carrier.now:6.1f} s until all honest have settled")
    for node in carrier.honest:
        status = node.status()
        assert status["is_settled"]
        assert status["gap"] <= given["tol"]
        assert barred(node) <= {liar}
        there = node.roster.distances(node.name)
        rest = {key: rows for key, rows in blocks.items() if key[0] in there}
        best = cold(Network.complete(sorted(there)), rest, {**given, "tol": 1e-9})
        assert distance([node], best) < 1e-2
    return carrier


def has_to_be_barred(network, liar, lie):
    """Whether a liar has something to withhold, being where it is."""
    links = [(node, other) for node in network.nodes for other in network.neighbours(node)]
    tree = Tree.of(liar, links)
    return bool(lie != "totals" or tree.children) and bool(lie != "parts" or tree.parent)


@pytest.mark.parametrize(("lie", "shape", "liar"), CASES)
def test_who_withholds_sums_is_barred_and_the_others_settle_at_their_own_optimum(lie, shape, liar):
    network = getattr(Network, shape)(FIVE)
    carrier = settle_beside(network, liar, WITHHELD[lie], make_blocks(FIVE, ["one"]))
    is_found = any(liar in barred(node) for node in carrier.honest)
    assert is_found == has_to_be_barred(network, liar, lie)
    around = [node for node in carrier.honest if liar in barred(node)]
    assert all("withheld its part of a sum" in node.inbox.reasons[liar] for node in around)
    if lie in ("parts and totals", "its roster"):
        assert {node.name for node in around} == set(network.neighbours(liar))
        assert not any(liar in node.roster.distances(node.name) for node in carrier.honest)


@pytest.mark.parametrize("liar", "ad")
def test_who_withholds_the_scale_of_features_alone_is_barred(liar):
    blocks = make_blocks(FIVE, ["one"])
    carrier = settle_beside(Network.ring(FIVE), liar, withhold(kinds="s"), blocks, bias="mixed")
    assert any(liar in barred(node) for node in carrier.honest)


@pytest.mark.parametrize("liar", "ad")
def test_who_withholds_what_was_handed_over_is_barred(liar):
    blocks, network = make_blocks(FIVE, ["one"]), Network.ring(FIVE)
    carrier = Meeting(build(network, blocks, SETTINGS, timing=TIMING), liar, withhold(kinds="h"))
    carrier.meet()
    carrier.run_until_settled(MOST)
    carrier.is_lying = True
    carrier.deliver("b", carrier.nodes["b"].leave())
    del carrier.nodes["b"]
    carrier.tick()
    for _ in range(MOST):
        carrier.tick()
        if all(node.is_settled for node in carrier.honest):
            break
    assert all(node.is_settled for node in carrier.honest)
    assert all(barred(node) <= {liar} for node in carrier.honest)
    assert any(liar in barred(node) for node in carrier.honest)


@pytest.mark.parametrize("liar", "ad")
def test_who_withholds_checks_alone_costs_time_and_no_more(liar):
    lie = withhold(kinds="b")
    settle_beside(Network.ring(FIVE), liar, lie, make_blocks(FIVE, ["one"]))


@pytest.mark.parametrize(
    ("shape", "liar"), [("line", "b"), ("ring", "a"), ("ring", "d"), ("star", "c")]
)
def test_who_says_all_just_before_patience_ends_is_heard_and_all_settle(shape, liar):
    network = getattr(Network, shape)(FIVE)
    carrier = settle_beside(network, liar, just_in_time(0.8), make_blocks(FIVE, ["one"]))
    assert not any(barred(node) for node in carrier.honest)


def test_who_is_barred_comes_back_and_is_barred_twice_as_long_if_it_goes_on():
    lie, blocks = WITHHELD["parts"], make_blocks(FIVE, ["one"])
    carrier = settle_beside(Network.star(FIVE), "c", lie, blocks)
    centre, waits = carrier.nodes["a"], []
    for _ in range(10 * MOST):
        before = centre.mail["c"].n_barred
        carrier.tick()
        if centre.mail["c"].n_barred > before:
            waits.append(centre.mail["c"].barred_until - carrier.now)
        if len(waits) == 2:
            break
    assert waits[1] > 1.8 * waits[0]
    carrier.is_lying = False
    for _ in range(10 * MOST):
        carrier.tick()
        if all(n.is_settled and n.status()["nodes"] == 5 for n in carrier.nodes.values()):
            return
    raise AssertionError("not all five have settled again")


def test_who_is_called_adds_its_part_in_time_though_nothing_is_due():
    blocks, network = make_blocks(FIVE, ["one"]), Network.ring(FIVE)
    carrier = Carrier(build(network, blocks, {"C": 0.1, "tol": 1e-12}, timing=TIMING), seconds=0.1)
    carrier.meet()
    carrier.run_until_round(70)
    called = carrier.nodes["d"]
    look, wave = called.certifier._looks["one"], called.sums.waves["cone"]
    look.next_look = look.milestone = look.begun = 10**9
    before = wave.done
    for _ in range(1200):
        carrier.tick()
    assert wave.done >= before + 6


# Who is merely slow

PATIENT = Timing(round_seconds=0.2, evict_seconds=4.0, start_seconds=2.0)
LONG = 34  # ticks of a solve that is nearly as long as a silent node is waited for


class Slow(Carrier):
    """A carrier of nodes whose solves take so many ticks, and that are suspended now and then."""

    def __init__(self, nodes, rng, loss, solves, pauses):
        super().__init__(nodes, loss, rng, seconds=0.1, patience=2)
        self.solves, self.pauses, self.n = solves, pauses, 0
        self.queues = {node.name: [] for node in nodes}
        self.told = {}
        self.liar, self.how = None, None

    def deliver(self, sender, messages):
        if self.liar is not None and sender == self.liar.node.name:
            messages = self.liar.said(messages, self.how)
        for name, data in messages.items():
            if not (self.loss and self.rng.random() < self.loss):
                self.queues[name].append((sender, data))

    def is_paused(self, name):
        return any(who == name and t <= self.n < t + long for who, t, long in self.pauses)

    def tick(self):
        self.now += self.seconds
        self.n += 1
        for name, node in self.nodes.items():
            if self.is_paused(name):
                continue
            for sender, data in self.queues[name]:
                node.take(sender, data, self.now)
            self.queues[name].clear()
            self.go_on(name, node)

    def go_on(self, name, node):
        if name not in self.working:
            if name not in self.begun or node.is_settled or node.is_balancing(self.now):
                if node.may_begin(self.now):
                    self.begun.add(name)
                self.deliver(name, node.outbox.earlier(node.present))
                self.deliver(name, node.hello(self.now))
                return
            self.told[name], self.working[name] = node.begin(self.now), 0
        self.working[name] += 1
        over = self.working[name] - self.solves.get(name, 0)
        if over < 0:
            return  # it solves, and says nothing
        self.deliver(name, self.told.pop(name, None) or node.again(self.now))
        if node.is_complete() or over >= self.patience:
            node.finish(self.now)
            del self.working[name]


@strategies.composite
def networks(draw):
    """A tree of some nodes, and some links more."""
    n = draw(strategies.integers(2, 7))
    nodes = list("abcdefg"[:n])
    links = {(nodes[draw(strategies.integers(0, i - 1))], nodes[i]) for i in range(1, n)}
    for _ in range(draw(strategies.integers(0, 4))):
        one, other = sorted(draw(strategies.permutations(nodes))[:2])
        links.add((one, other))
    return Network(nodes, sorted(links))


def calls(liar, name, message):
    """Say that a sum was begun that nobody has begun."""
    for said in message.sums:
        said.wanted += 1
    return message


MEAN = {**WITHHELD, "calls": calls, "half": just_in_time(0.5), "nearly": just_in_time(0.95)}


@settings(max_examples=8, deadline=None)
@given(networks(), strategies.data())
def test_who_is_merely_slow_is_never_barred_whatever_a_liar_withholds(network, data):
    names = list(network.nodes)
    slow = strategies.dictionaries(strategies.sampled_from(names), strategies.integers(0, LONG))
    pause = strategies.tuples(
        strategies.sampled_from(names), strategies.integers(1, 900), strategies.integers(1, 60)
    )
    solves, pauses = data.draw(slow), data.draw(strategies.lists(pause, max_size=3))
    loss = data.draw(strategies.sampled_from([0.0, 0.1, 0.3]))
    liar = data.draw(strategies.none() | strategies.sampled_from(names))
    nodes = build(network, make_blocks(names, ["one"]), {"C": 0.1, "tol": 1e-4}, timing=PATIENT)
    carrier = Slow(nodes, np.random.default_rng(7), loss, solves, pauses)
    if liar is not None:
        carrier.liar = Liar(carrier.nodes[liar], np.random.default_rng(5))
        carrier.liar.node._owed_sums = list
        carrier.how = MEAN[data.draw(strategies.sampled_from(sorted(MEAN)))]
    for _ in range(1500):
        carrier.tick()
        assert all(barred(node) <= {liar} for node in nodes if node.name != liar)
