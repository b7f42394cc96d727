"""Liars where the network chooses: nobody ends, and the honest choose what the honest would."""

import dataclasses

import numpy as np
import pytest
from choosers import Room, agents, memory
from liars_choosing import CHOOSING, only_tables, unchecked
from meetings import make_blocks
from test_choosing import assert_same

from dtsvm import Network
from dtsvm.runtime.agent.node import chooser as chooser_module
from dtsvm.runtime.agent.node import looks
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.timing import Timing

NAMES, TOL = list("abcd"), 1e-2
PLAN = {"families": [("task", 1.0), ("mixed", 0.6, True)], "prices": [0.3]}
LYING, GONE = 150, 1000  # steps of 0.05 s: with the liar, and at most after it
TIMING = Timing(evict_seconds=2.0, start_seconds=5.0)


@pytest.fixture(scope="module")
def honest():
    """Rows of four nodes, and what memory chooses without the liar."""
    blocks = make_blocks(NAMES, ["one"], p=2, n=10, seed=3)
    best = {}
    for liar in "ac":
        rest = {key: rows for key, rows in blocks.items() if key[0] != liar}
        nodes = [name for name in NAMES if name != liar]
        best[liar] = memory(Network.complete(nodes), rest, TOL, **PLAN)
    return blocks, best


@pytest.mark.parametrize("lie", CHOOSING)
def test_a_liar_in_choosing_ends_nobody_and_leaves_no_trace(lie, honest):
    blocks, best = honest
    choosers = agents(Network.ring(NAMES), blocks, 2, TOL, timing=TIMING, **PLAN)
    name = "c" if lie == "sums of garbage" else "a"  # the root of the tree passes nothing up
    liar = choosers[NAMES.index(name)]
    others = [one for one in choosers if one is not liar]
    room = Room(choosers, seconds=0.05)
    CHOOSING[lie](liar)
    for _ in range(LYING):
        room.tick()
    for one in others:  # while it lies: they go on, or say why not
        status = one.status()
        is_said = one.outcome or one.training or one.doubts.why or one.waits_for
        assert is_said, (one.node.name, status)
        if one.outcome:
            assert np.isfinite(one.outcome.chosen.classifiers).all()
    said = {one.node.name: one.doubts.why[:40] for one in others if one.doubts.why}
    begun, chosen = others[0].n_begun, sum(one.outcome is not None for one in others)
    del room.choosers[name]
    while any(one.node.status()["nodes"] > 3 for one in others):
        room.tick()
    ticks = room.run(GONE)
    refused = sum(one.refusals(room.now)["refused"] for one in others)
    print(f"{lie:38} chose {chosen} begun {begun:3} then {ticks:4} steps, refused {refused} {said}")
    assert all(one.node.status()["nodes"] == 3 for one in others)
    assert_same(others, best[name], atol=0.1)
    assert max(one.overdue.gap for one in others) <= TOL


def favour(parts, candidate):
    """Say that all of its rows are right by one candidate and wrong by all others."""
    for k, rows in enumerate(parts[:, 65].tolist()):
        parts[k, :65] = 0.0
        parts[k, 63 if k == candidate else 0] = rows
        parts[k, 64] = 0.0 if k == candidate else rows


def test_a_liar_inside_the_ranges_chooses_among_the_candidates_and_no_more(honest):
    """With a quarter of the rows; each candidate is certified, and the answer a mixture of them."""
    blocks, _ = honest
    plan = {"families": [("task", 1.0)], "prices": [0.03, 3.0]}
    found = []
    for candidate in (0, 1):
        choosers = agents(Network.ring(NAMES), blocks, 2, TOL, timing=TIMING, **plan)
        liar, *others = choosers
        only_tables(lambda parts, k=candidate: favour(parts, k))(liar)
        with pytest.MonkeyPatch.context() as patch:
            unchecked(liar, patch)
            Room(choosers, seconds=0.05).run(GONE)
        assert_same_everywhere(others)
        weights = others[0].outcome.chosen.found.weights[0]
        print(f"favours candidate {candidate}: weights {weights.round(3)}")
        assert (weights >= 0).all()
        np.testing.assert_allclose(weights.sum(), 1.0)
        assert not any(one.doubts.why for one in others)
        assert max(one.overdue.gap for one in others) <= TOL
        found.append(int(weights.argmax()))
    assert found[0] != found[1]


def lie_when_looked_at(chooser, forge):
    """Change what it adds to the averages of tracks: classifiers, and its rounds at the end."""
    true = chooser._open

    def opened(tracks):
        training = true(tracks)
        add = training.looks._add

        def forged(phase, parts):
            add(phase, forge(parts) if phase == "average" else parts)

        training.looks._add = forged
        return training

    chooser._open = opened


def test_a_liar_that_says_to_have_done_all_rounds_ends_no_candidate_before_its_time(honest):
    """All are taken as they are after so many; each is certified nevertheless."""
    blocks, _ = honest
    choosers = agents(Network.ring(NAMES), blocks, 2, TOL, timing=TIMING, **PLAN)
    liar, *others = choosers
    lie_when_looked_at(liar, lambda parts: [*parts[:-1], parts[-1] + 1e6])
    Room(choosers, seconds=0.05).run(GONE)
    assert_same_everywhere(others)
    assert max(one.overdue.gap for one in others) <= TOL


def test_what_a_liar_keeps_from_being_certified_says_nothing_and_that_is_said(honest, monkeypatch):
    """It moves averages of candidates, which would be anything in the end."""
    monkeypatch.setattr(looks, "MOST_ROUNDS", 60)
    blocks, _ = honest
    choosers = agents(Network.ring(NAMES), blocks, 2, TOL, timing=TIMING, **PLAN)
    liar, *others = choosers
    lie_when_looked_at(liar, lambda parts: [*(u - 40.0 for u in parts[:-1]), parts[-1]])
    Room(choosers, seconds=0.05).run(GONE)
    assert_same_everywhere(others)
    assert all("above the tolerance" in one.overdue.words for one in others)
    assert (others[0].outcome.chosen.classifiers[:, :-1] == 0.0).all()


def assert_same_everywhere(choosers):
    first = choosers[0].outcome.chosen.classifiers
    assert all(np.array_equal(one.outcome.chosen.classifiers, first) for one in choosers)


def test_parts_for_what_has_not_begun_take_no_more_room_than_a_neighbour_has(monkeypatch):
    """Parts that say next to nothing, or have a name without end, count as what they take."""
    monkeypatch.setattr(chooser_module, "MOST_WAITING", 400_000)
    blocks = make_blocks(NAMES, ["one"], p=2, n=10, seed=3)
    choosers = agents(Network.ring(NAMES), blocks, 2, TOL, timing=TIMING, **PLAN)
    room = Room(choosers, seconds=0.05)
    for _ in range(20):
        room.tick()
    victim = choosers[1]
    head = {"network": 7, "sender": "a", "roster_digest": victim.epoch}
    for name in ("40", "41 " + 10_000 * "x"):
        message = wire.Message(protocol=chooser_module.PROTOCOL, **head)
        message.round = victim._position
        message.sums.extend([wire.Sum(name=name)] * 100)
        for _ in range(100):
            victim._take("a", message.SerializeToString())
    parts = victim._early._parts
    taken = sum(part.ByteSize() + 200 for some in parts.values() for _, part in some)
    assert 100_000 < taken <= 200_000  # of two neighbours, half of what all may take
    assert len(parts[40]) < 1000


def test_who_hides_behind_another_makes_all_choose_anew_twice_as_often_as_a_neighbour_may():
    network = Network.line(list("abc"))
    choosers = agents(network, make_blocks("abc", ["one"], p=2, n=6), 2, 0.05)
    room, (a, b, c) = Room(choosers), choosers
    room.run()
    found = set()
    for n in range(200):
        b.node.roster.put(dataclasses.replace(c.node.roster.entries["c"], sequence=99 + n, told=n))
        message = wire.Message.FromString(b.node.hello(room.now)["a"])
        message.roster.CopyFrom(b.node.roster.to_wire())
        a.node.take("b", message.SerializeToString(), room.now)
        found.add(a.node.roster.entries["c"].sequence)
    assert 90 < len(found) <= 101
    assert not a.node.mail["b"].n_barred
