"""Lying neighbours: nobody ends, and once the liar is gone the honest end where they should."""

import numpy as np
import pytest
from liars import LIES, RESTLESS, Liar
from liars_inside import INSIDE
from meetings import Carrier, build, cold, distance, make_blocks

from dtsvm import Network
from dtsvm.runtime.agent.node.identity import Signer
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.agent.site.certificates import make_authority, make_certificate

FIVE = list("abcde")
SETTINGS = {"C": 0.1, "tol": 1e-6}
SHAPES = {"ring": Network.ring, "complete": Network.complete}
WITH, GONE, WITHOUT = 100, 30, 600  # rounds: lying, until it is given up, and at most after it
FOREVER = 10_000  # rounds of lying, at most, until the others have settled in spite of it
TO_SETTLE = 150  # rounds of lying in sums: some of the others have settled by then


class Meeting(Carrier):
    """A carrier of which one node lies from some tick on, and is not believed in everything."""

    def __init__(self, nodes, liar, how):
        super().__init__(nodes)
        self.liar, self.how, self.is_lying = Liar(liar, np.random.default_rng(5)), how, False

    def deliver(self, sender, messages):
        if self.is_lying and sender == self.liar.node.name:
            messages = self.liar.said(messages, self.how)
        for name, data in messages.items():
            if name in self.nodes:
                self.nodes[name].take(sender, data, self.now)


@pytest.fixture(scope="module")
def identities(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    make_authority(folder, "liars")
    found = {}
    for name in FIVE:
        (folder / name).mkdir()
        make_certificate(folder, folder / name, name)
        files = (folder / name / file for file in ("ca.pem", "node.pem", "node.key"))
        found[name] = Signer(*(file.read_bytes() for file in files))
    return found


@pytest.fixture(scope="module")
def honest():
    """Everybody's rows, and the optimum of all but the liar: c, or a, the root of all trees."""
    blocks = make_blocks(FIVE, ["one"])
    best = {}
    for liar in "ac":
        rest = {key: rows for key, rows in blocks.items() if key[0] != liar}
        nodes = [name for name in FIVE if name != liar]
        best[liar] = cold(Network.complete(nodes), rest, {**SETTINGS, "tol": 1e-9})
    return blocks, best


def meeting(network, blocks, identities, liar, lie):
    nodes = build(network, blocks, SETTINGS, timing=Timing(evict_seconds=1.0, start_seconds=5.0))
    for node in nodes:
        node.identity = node.inbox.identity = identities[node.name]
        node.presence.identity = node.sums.identity = identities[node.name]
        node.roster.entries.clear()
        node.presence.announce(0.0, 0, is_news=True)
    return Meeting(nodes, next(node for node in nodes if node.name == liar), lie)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("lie", LIES)
def test_a_liar_ends_nobody_and_leaves_no_trace(lie, shape, identities, honest):
    blocks, best = honest
    carrier = meeting(SHAPES[shape](FIVE), blocks, identities, "c", LIES[lie])
    live_through(carrier, lambda liar: None)
    leave_no_trace(carrier, best["c"], f"{lie:35} {shape:9}")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("liar", "a")  # the root of all trees; c is a leaf
@pytest.mark.parametrize("lie", INSIDE)
def test_a_liar_in_sums_ends_nobody_and_leaves_no_trace(lie, liar, shape, identities, honest):
    blocks, best = honest
    carrier = meeting(SHAPES[shape](FIVE), blocks, identities, liar, lambda liar, name, m: m)
    settled = live_through(carrier, INSIDE[lie], TO_SETTLE)
    for node in settled:  # with the liar: the answer may be bent as far as calm agents differ
        own, answer = node.decision("one"), node.certified("one").sum(axis=0)
        assert np.linalg.norm(answer - own) <= 4 * 5 * 0.4 * 1e-3 * 2 * np.linalg.norm(own)
    leave_no_trace(carrier, best[liar], f"{lie:35} {shape:9} {len(settled)} settled")


@pytest.mark.parametrize("lie", ["has left, and goes on talking", "it has left, again and again"])
def test_nobody_is_barred_for_a_neighbour_that_comes_and_goes(lie, identities, honest):
    carrier = meeting(Network.ring(FIVE), honest[0], identities, "c", LIES[lie])
    carrier.meet()
    carrier.is_lying = True
    for _ in range(2 * WITH):
        carrier.tick()
    assert all(carrier.nodes[name].mail["c"].n_barred for name in "bd")
    assert not any(blamed(carrier.nodes[name], "c") for name in "abde")


def settle_beside(carrier, lie):
    """Have the honest settle without the liar while it goes on."""
    carrier.meet()
    carrier.seconds, carrier.is_lying = 0.1, True
    others = [node for node in carrier.nodes.values() if node.name != "c"]
    for _ in range(FOREVER):
        carrier.tick()
        if all(node.is_settled and node.status()["nodes"] == 4 for node in others):
            break
    print(f"{lie:50} {carrier.now:5.0f} s")
    assert all(node.is_settled and node.status()["gap"] <= SETTINGS["tol"] for node in others)
    assert not any(blamed(node, "c") for node in others)
    return others


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("lie", RESTLESS)
def test_the_others_settle_at_their_own_optimum_beside_one_that_never_rests(
    lie, shape, identities, honest
):
    blocks, best = honest
    carrier = meeting(SHAPES[shape](FIVE), blocks, identities, "c", RESTLESS[lie])
    others = settle_beside(carrier, f"{lie} {shape}")
    assert distance(others, best["c"]) < 1e-2
    around = [node for node in others if "c" in node.mail]
    assert all("something new of itself too often" in n.inbox.reasons["c"] for n in around)


def test_what_a_liar_makes_happen_in_every_round_is_logged_once_in_a_while(
    identities, honest, caplog
):
    lie = LIES["values as large as allowed"]
    carrier = meeting(Network.ring(FIVE), honest[0], identities, "c", lie)
    carrier.meet()
    carrier.is_lying = True
    for _ in range(2 * WITH):
        carrier.tick()
    lines = [one.getMessage() for one in caplog.records if "begins anew" in one.getMessage()]
    assert max(node._anew.n for node in carrier.nodes.values()) > 1
    assert 0 < len(lines) <= len(FIVE)


def blamed(node, liar):
    """Neighbours that a node has barred for what the liar did."""
    return [name for name, mail in node.mail.items() if name != liar and mail.n_barred]


def live_through(carrier, begin, rounds=WITH):
    """Let the liar lie for a while; return who has settled in spite of it."""
    carrier.meet()
    for _ in range(20):
        carrier.tick()
    carrier.is_lying = True
    begin(carrier.liar.node)
    for _ in range(rounds):
        carrier.tick()
    others = [node for node in carrier.nodes.values() if node is not carrier.liar.node]
    for node in others:
        assert node.round < 2**61
        assert np.isfinite(node.decision("one")).all()
        assert len(node.roster.entries) <= 5
        assert not blamed(node, carrier.liar.node.name)
    return [node for node in others if node.is_settled]


def leave_no_trace(carrier, best, what):
    """See the honest certified at their own optimum once the liar is gone."""
    liar = carrier.liar.node.name
    del carrier.nodes[liar]
    others = list(carrier.nodes.values())
    for _ in range(GONE):
        carrier.tick()
    ticks = carrier.run_until_settled(WITHOUT)
    far = distance(others, best)
    refused = {node.name: node.refused[liar] for node in others}
    print(f"{what} {ticks:5} ticks  {far:.1e}  refused {refused}")
    assert all(node.status()["gap"] <= SETTINGS["tol"] for node in others)
    assert all(node.status()["nodes"] == 4 for node in others)
    assert far < 1e-2
