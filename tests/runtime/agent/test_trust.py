"""What a newcomer believes, and whose words hold when their speaker is gone."""

import dataclasses
import json

import pytest
from cryptography import x509
from meetings import Carrier, build, make_blocks
from test_preparing import meet, table, talk

from dtsvm.data import frame_records
from dtsvm.problem import Network
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.agreed import Labelled
from dtsvm.runtime.agent.node.identity import Nameless, Signer
from dtsvm.runtime.agent.node.preparing import Preparing
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.agent.site.certificates import make_authority, make_certificate

NETWORK = Network.complete(["a", "b", "c"])


def agreed(**wishes):
    """Nodes that have agreed and of which none has signed that: what neighbours say is all."""
    nodes = meet(NETWORK, {name: table(i) for i, name in enumerate(NETWORK.nodes)}, **wishes)
    talk(nodes, NETWORK, 20)
    for one in nodes.values():
        one.vouching._known.clear()
    return nodes


def newcomer(neighbours, rows=None, **wishes):
    records = [frame_records(table(4) if rows is None else rows)]
    return Preparing("z", 7, tuple(neighbours), records, Nameless(), incarnation=1, **wishes)


def greet(late, nodes, liar=None, times=3):
    for _ in range(times):
        for name in late.neighbours:
            nodes[name].hear("z", late.message(name))
            if name == liar:
                features = nodes[name].agreed.plan.features
                forged = tuple(dataclasses.replace(f, scale=1e6 * f.scale) for f in features)
                plan = dataclasses.replace(nodes[name].agreed.plan, features=forged)
                kept = nodes[name].agreed
                nodes[name].agreed = dataclasses.replace(kept, plan=plan)
                late.hear(name, nodes[name].message("z"))
                nodes[name].agreed = kept
            else:
                late.hear(name, nodes[name].message("z"))


def test_a_newcomer_with_two_neighbours_asks_both():
    nodes, late = agreed(), newcomer("ab")
    nodes["a"].hear("z", late.message("a"))
    late.hear("a", nodes["a"].message("z"))
    assert late.agreed is None
    greet(late, nodes)
    assert late.plan == nodes["a"].plan


def test_a_second_neighbour_that_is_away_is_not_waited_for_without_end():
    nodes, late = agreed(), newcomer(["a", "away"])
    nodes["a"].hear("z", late.message("a"))
    late.hear("a", nodes["a"].message("z"))
    late.step()
    assert late.agreed is None
    late.step(is_late=True)
    assert late.plan == nodes["a"].plan


def test_neighbours_that_say_two_things_are_named_and_neither_is_believed():
    nodes, late = agreed(), newcomer("ab")
    greet(late, nodes, liar="b")
    assert late.agreed is None
    assert "Nodes a, b do not say the same. Ask their owners who is right" in late.trouble
    late.step(is_late=True)
    assert late.agreed is None


def test_one_liar_among_three_neighbours_is_outvoted():
    nodes, late = agreed(), newcomer("abc")
    greet(late, nodes, liar="a")
    assert late.plan == nodes["b"].plan
    assert not late.trouble


@pytest.fixture(scope="module")
def signers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    make_authority(folder, "trust")
    found = {}
    for name in "abcz":
        (folder / name).mkdir()
        make_certificate(folder, folder / name, name)
        files = (folder / name / file for file in ("ca.pem", "node.pem", "node.key"))
        found[name] = Signer(*(file.read_bytes() for file in files))
    return found


def signed(signers):
    """Three nodes with certificates that have agreed, and vouch for it."""
    nodes = {
        name: Preparing(
            name, 7, tuple(NETWORK.neighbours(name)), [frame_records(table(i))], signers[name],
            incarnation=1,
        )
        for i, name in enumerate(NETWORK.nodes)
    }  # fmt: skip
    talk(nodes, NETWORK, 20)
    return nodes


def alone_with(liar, signers, **wishes):
    """A newcomer that this node alone has told what was agreed."""
    rows = [frame_records(wishes.pop("rows", table(4)))]
    late = Preparing("z", 7, (liar.name,), rows, signers["z"], incarnation=1, **wishes)
    for _ in range(3):
        liar.hear("z", late.message(liar.name))
        late.hear(liar.name, liar.message("z"))
        late.step()
    return late


def forged(node, change, **more):
    """Let a node hand over a plan of its own making, which it signs."""
    features = tuple(dataclasses.replace(f, **change(f)) for f in node.agreed.plan.features)
    plan = dataclasses.replace(node.agreed.plan, features=features, **more)
    node.agreed = dataclasses.replace(node.agreed, plan=plan)
    node.vouching.sign(node.agreed)
    return node


def test_a_sole_neighbour_hands_over_what_the_others_have_signed(signers):
    nodes = signed(signers)
    late = alone_with(nodes["b"], signers, least=3)
    assert late.plan == nodes["a"].plan
    assert late.vouching.who(late.agreed) == frozenset("abc")
    assert late.notes == []
    assert late.vouching.to_dict(late.agreed).keys() == set("abc")  # z only passes them on


def test_what_a_sole_neighbour_makes_up_is_vouched_for_by_nobody_else(signers):
    nodes = signed(signers)
    liar = forged(nodes["b"], lambda f: {"scale": 3.0 * f.scale})
    liar.vouching.hear(liar.vouching.digest(liar.agreed), nodes["a"].vouching.to_dict(
        nodes["a"].agreed))  # fmt: skip
    late = alone_with(liar, signers)
    assert late.vouching.who(late.agreed) == {"b"}
    assert late.notes[0].startswith("only node b vouches for the columns, scales and labels")
    waits = alone_with(liar, signers, least=2)
    waits.step(is_late=True)
    assert waits.agreed is None
    assert "Only b vouches for what the network agreed on; vouchers = 2" in waits.trouble


def test_signatures_of_what_nobody_agreed_on_push_out_none_of_what_was(signers):
    nodes = signed(signers)
    victim, liar = nodes["b"], nodes["c"]
    for k in range(40):
        message = wire.Message.FromString(liar.message("b"))
        said = json.loads(message.said_settings)
        said["vouched_for"] = digest = f"{k:064x}"
        mine = signers["c"].sign(liar.vouching._content(digest)).hex()
        said["vouched"] = {"c": [signers["c"].certificate.hex(), mine]}
        message.said_settings = json.dumps(said)
        victim.hear("c", message.SerializeToString())
    assert victim.refused == 0
    assert len(victim.vouching._known) <= 16
    assert victim.vouching.who(victim.agreed) == frozenset("abc")
    late = alone_with(victim, signers, least=3)
    assert late.plan == nodes["a"].plan


def test_who_is_revoked_vouches_for_nothing(signers):
    nodes = signed(signers)
    serial = x509.load_der_x509_certificate(signers["a"].certificate).serial_number
    files = (signers["z"].revoked, signers["z"])
    files[1].revoked = frozenset({serial})
    try:
        late = alone_with(nodes["b"], signers)
        assert late.vouching.who(late.agreed) == frozenset("bc")
    finally:
        files[1].revoked = files[0]


@pytest.mark.parametrize(
    ("change", "more", "words"),
    [
        (lambda f: {"scale": 1e8 * f.scale}, {}, "scales are more than 10000 times those"),
        (lambda f: {"scale": 1e-4 * f.scale}, {}, "standard deviations away from the network's"),
        (lambda f: {"mean": f.mean + 300 * f.scale}, {}, "standard deviations away"),
    ],
)
def test_what_a_newcomers_own_rows_contradict_is_not_taken_over(change, more, words, signers):
    late = alone_with(forged(signed(signers)["b"], change, **more), signers)
    assert late.agreed is None
    assert words in late.trouble


def test_categories_of_which_it_has_none_are_not_taken_over(signers):
    late = alone_with(signed(signers)["b"], signers, rows=table(4).assign(ward="elsewhere"))
    assert late.agreed is None
    assert "No category of 'ward' here is one of the network's" in late.trouble


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"sparse": True}, "sparse is true here, and not there"),
        ({"is_raw": True}, "[prepare] must stand in every node.toml, or in none"),
    ],
)
def test_what_does_not_fit_the_newcomers_own_file_is_not_taken_over(wishes, words):
    nodes, late = agreed(), newcomer("a", **wishes)
    greet(late, nodes)
    assert late.agreed is None
    assert words in late.trouble


def test_columns_of_another_kind_are_not_taken_over():
    rows = table(4).assign(dose="often")
    nodes, late = agreed(), newcomer("a", rows)
    greet(late, nodes)
    assert late.agreed is None
    assert "'dose' as" in late.trouble


def test_labels_the_other_way_round_are_not_taken_over():
    nodes = agreed(labels={"flu": Labelled(("no", "yes"))})
    late = newcomer("a", labels={"flu": Labelled(("yes", "no"))})
    greet(late, nodes)
    assert late.agreed is None
    assert "['no', 'yes'] there, and ['yes', 'no'] in node.toml here" in late.trouble


def test_what_a_node_said_of_tasks_goes_with_it_and_comes_back_with_it():
    names = ["a", "b", "c"]
    blocks = make_blocks(names, ["one", "two"])
    timing = Timing(evict_seconds=1.0)
    nodes = build(Network.complete(names), blocks, couple=False, timing=timing)
    carrier = Carrier(nodes)
    carrier.meet()
    nodes[2].presence.said = {("one", "two"): (2**31 - 1, True)}  # nobody could outbid that
    nodes[2].say(nodes[2].presence.said)

    def groups(*some):
        for _ in range(30):
            carrier.tick()
        return [node.groups() for node in some]

    together, apart = [["one", "two"]], [["one"], ["two"]]
    assert groups(*nodes) == [together] * 3
    del carrier.nodes["c"]
    assert groups(*nodes[:2]) == [apart] * 2
    carrier.nodes["c"] = nodes[2]
    assert groups(*nodes) == [together] * 3


def test_a_third_label_is_refused_where_the_network_chooses():
    """Or a site, or a liar, would end every agent of a network with C = "auto"."""
    labels = {"a": ["no", "yes"], "b": ["no", "maybe"], "c": ["yes"]}
    nodes = {
        name: Preparing(
            name, 7, tuple(NETWORK.neighbours(name)), [frame_records(table(i))], Nameless(),
            incarnation=1, labels={"flu": Labelled(None, dict.fromkeys(labels[name], 3))},
            most_labels=2,
        )
        for i, name in enumerate(NETWORK.nodes)
    }  # fmt: skip
    talk(nodes, NETWORK, 20)
    assert all(one.agreed is None for one in nodes.values())
    assert "3 labels in the whole network, and may have 2" in nodes["c"].trouble
    assert "b has ['no', 'maybe']" in nodes["c"].trouble
