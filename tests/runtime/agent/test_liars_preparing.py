"""A liar while columns are agreed on: the honest agree on the same, or say why they cannot."""

import contextlib
import dataclasses
import itertools
import json

import numpy as np
import pytest
from test_preparing import meet, table, talk

from dtsvm.problem import Network
from dtsvm.runtime.agent.node import statement
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.agreed import Labelled
from dtsvm.runtime.agent.node.preparing import PROTOCOL, WAVES
from dtsvm.runtime.agent.node.spoken import speak
from dtsvm.runtime.agent.process.agreement import Calls, _words, route
from dtsvm.runtime.agent.process.transport import Transport


def counts_of(change):
    """Another term of the sums of preparation."""

    def lie(node):
        true = node._agreeing

        def agreeing(*given):
            steps = true(*given)
            sent = None
            while True:
                try:
                    sent = yield change(steps.send(sent))
                except StopIteration as end:
                    return end.value

        node._agreeing = agreeing

    return lie


def says(**given):
    """Another word in every message."""

    def lie(node):
        true = node.message

        def message(neighbour):
            said = wire.Message.FromString(true(neighbour))
            words = json.loads(said.said_settings)
            said.said_settings = json.dumps({**words, **given})
            return said.SerializeToString()

        node.message = message

    return lie


def never_the_same(node):
    """Begin anew with every message."""
    true = node.message

    def message(neighbour):
        node.incarnation += 1
        node._begin_generation(node.generation)
        return true(neighbour)

    node.message = message


def counts_generations(node):
    """Call to a generation nine hundred later with every message."""
    says(generation=0)(node)
    true, n = node.message, itertools.count(900, 900)

    def message(neighbour):
        said = wire.Message.FromString(true(neighbour))
        words = json.loads(said.said_settings)
        said.said_settings = json.dumps({**words, "generation": next(n)})
        return said.SerializeToString()

    node.message = message


def names_nobody(node):
    node.neighbours = (*node.neighbours, "nobody")
    node._begin_generation(node.generation)


def faces(*changes):
    """Say one thing of itself to a neighbour and another to the next, in one incarnation."""

    def lie(node):
        true = node.message
        shown = [change(node._known[node.name]).to_dict() for change in changes]

        def message(neighbour):
            place = sorted(node.neighbours).index(neighbour)
            said = wire.Message.FromString(true(neighbour))
            words = json.loads(said.said_settings)
            rest = [one for one in words.get("statements", []) if one["name"] != node.name]
            words["statements"] = [*rest, shown[place % len(shown)]]
            said.said_settings = json.dumps(words)
            return said.SerializeToString()

        node.message = message

    return lie


def age(incarnation):
    """Another age."""
    return lambda mine: dataclasses.replace(mine, incarnation=incarnation)


def words(change):
    """Other words."""

    def changed(mine):
        found = json.loads(mine.said)
        change(found)
        return dataclasses.replace(mine, said=json.dumps(found, sort_keys=True))

    return changed


def column(name, **given):
    """Something else of one column."""
    return words(lambda found: next(c for c in found["columns"] if c["name"] == name).update(given))


def name_without_end(found):
    found["columns"] += [{**found["columns"][0], "name": f"z{i}"} for i in range(200)]


two_faces = faces(lambda mine: mine, words(lambda said: said["labels"]["flu"][1].append("perhaps")))


def too_long_to_pass_on(node):
    """Say as much as fits into one message, in letters that take twice the room when passed on."""
    true, mine = node.message, node._known[node.name]
    words = json.loads(mine.said)
    ward = next(column for column in words["columns"] if column["name"] == "ward")
    ward["levels"] += ["\u4e2d" * 190 + str(i) for i in range(5000)]
    said = json.dumps(words, sort_keys=True, ensure_ascii=False)
    node._known[node.name] = dataclasses.replace(mine, said=said)

    def message(neighbour):
        said = wire.Message.FromString(true(neighbour))
        words = json.loads(said.said_settings)
        said.said_settings = json.dumps(words, ensure_ascii=False)
        return said.SerializeToString()

    node.message = message


PREPARING_LIES = {
    "counts below zero": counts_of(lambda term: term - 1e6),
    "counts without end": counts_of(lambda term: term + 2.0**39),
    "counts of noise": counts_of(lambda term: term + np.sin(np.arange(len(term)))),
    "a term too short": counts_of(lambda term: term[1:]),
    "waves of garbage": says(waves={name: [1, 0, "AAAA", "AAAA"] for name in WAVES}),
    "a sum far ahead": says(waves={name: [2**60, 2**59, "", ""] for name in WAVES}),
    "another epoch": says(epoch=5),
    "an agreement of its own": says(has_plan=True, agreed={"plan": None, "classes": {},
                                    "by_label": [], "counts": {}, "generation": 0}),
    "a generation far ahead": says(generation=2**31 - 1),
    "an age that is nearly without end": faces(age(2**62 - 1)),
    "begins anew all the time": never_the_same,
    "a neighbour that is nobody": names_nobody,
    "two faces": two_faces,
    "more than can be passed on": too_long_to_pass_on,
    "labels without end": says(statements=[{"labels": ["x"] * 10**4}]),
    "two ages of two kinds": faces(age("zzz"), age(5)),
    "an age that is no number": faces(age(float("nan"))),
    "an age without end": faces(age(10**30)),
    "numbers larger than numbers are": faces(column("age", sizes=[4 * 10**10] * 3)),
    "a scale larger than numbers have": faces(column("age", exponent=10**6)),
    "a column twice": faces(words(lambda found: found["columns"].append(found["columns"][0]))),
    "half a key that is none": faces(lambda mine: dataclasses.replace(mine, agreement="")),
}  # fmt: skip


@pytest.mark.parametrize("shape", [Network.ring, Network.complete])
@pytest.mark.parametrize("lie", PREPARING_LIES)
def test_a_liar_in_preparation_ends_nobody_and_the_honest_agree_or_say_why_not(lie, shape):
    network = shape(list("abcde"))
    tables = {name: table(i) for i, name in enumerate(network.nodes)}
    labels = {"flu": Labelled(None, {"no": 3, "yes": 4})}
    nodes = meet(network, tables, min_count=3, labels=labels)
    PREPARING_LIES[lie](nodes["c"])
    for turn in range(40):
        for name, one in nodes.items():
            with contextlib.suppress(ValueError) if name == "c" else contextlib.nullcontext():
                one.step(is_late=turn > 25)
                for other in network.neighbours(name):
                    nodes[other].hear(name, one.message(other))
    honest = [nodes[name] for name in "abde"]
    plans = [one.plan for one in honest if one.plan is not None]
    found = [one.agreed for one in honest if one.agreed is not None]
    assert all(one == found[0] for one in found)
    for plan in plans:
        numbers = [[f.mean, f.scale] for f in plan.features]
        assert np.isfinite(numbers).all()
    print(f"{lie:28} {len(plans)} of 4 agreed; {honest[0].trouble}")
    said = [one.plan or one.trouble or one.absent or one.waits_for for one in honest]
    assert all(said)
    for one in honest:  # whatever the liar says, no honest node's words are lost
        assert set("abde") <= one._known.keys() or one.plan is not None


def test_what_no_node_can_say_of_its_age_parts_no_honest_neighbours():
    network = Network.ring(list("abcde"))
    nodes = meet(network, {name: table(i) for i, name in enumerate(network.nodes)}, min_count=3)
    faces(age("zzz"), age(5))(nodes["c"])
    talk(nodes, network, 10)
    assert not any(nodes[name].refused for name in "ae")  # they hear honest neighbours alone


def test_however_far_a_liar_counts_generations_the_others_and_newcomers_agree_once_it_is_gone():
    network = Network.line(list("cabde"))
    nodes = meet(network, {name: table(i) for i, name in enumerate(network.nodes)}, min_count=3)
    counts_generations(nodes["c"])
    for _ in range(20):
        nodes["a"].hear("c", nodes["c"].message("a"))
    talk(nodes, network, 5)
    late = nodes.pop("e")
    del nodes["c"]
    nodes["a"].neighbours, nodes["d"].neighbours = ("b",), ("b",)
    for one in nodes.values():
        one.incarnation = 2
        one._begin_generation(one.generation)
    talk(nodes, Network.line(list("abd")), 20)
    assert {one.generation for one in nodes.values()} == {nodes["a"].generation}
    assert nodes["a"].generation > 10_000
    assert all(one.plan is not None for one in nodes.values())
    nodes["e"], nodes["d"].neighbours = late, ("b", "e")
    talk(nodes, Network.line(list("abde")), 20)
    assert late.agreed == nodes["a"].agreed


def test_a_site_whose_words_were_too_young_by_a_lie_is_heard_again_with_its_own_certificate():
    network = Network.ring(list("abcde"))
    nodes = meet(network, {name: table(i) for i, name in enumerate(network.nodes)}, min_count=3)
    cleaned = nodes["c"]
    for far in (2**62 - 1, cleaned.identity.latest()):
        lie = dataclasses.replace(cleaned._known["c"], incarnation=far)
        said = json.loads(wire.Message.FromString(cleaned.message("b")).said_settings)
        said["statements"] = [lie.to_dict()]
        nodes["b"].hear("c", speak(PROTOCOL, 7, "c", said))
    assert nodes["b"]._known["c"].incarnation == far
    talk(nodes, network, 30)
    assert all(one._known["c"] == cleaned._known["c"] for one in nodes.values())
    assert all(one.plan is not None for one in nodes.values())


def test_who_names_columns_without_end_is_named_and_takes_nobodys_memory(monkeypatch):
    monkeypatch.setattr(statement, "MANY", 100)
    network = Network.ring(list("abcde"))
    tables = {name: table(i) for i, name in enumerate(network.nodes)}
    nodes = meet(network, tables, min_count=3, missing_columns="impute")
    faces(words(name_without_end))(nodes["c"])
    talk(nodes, network, 10)
    assert all("Node c names" in nodes[name].trouble for name in "abde")


def test_a_terminal_obeys_no_word_of_another_node():
    network = Network.line(list("abc"))
    nodes = meet(network, {name: table(i) for i, name in enumerate(network.nodes)}, min_count=3)
    odd = faces(column("age", kind="category", levels=["\x1b[2J", "b"]))
    odd(nodes["c"])
    talk(nodes, network, 10)
    assert "\x1b" in nodes["a"].trouble
    assert "\\x1b[2J" in _words(nodes["a"])
    assert _words(nodes["a"]).isprintable()


def test_words_that_are_too_long_for_one_message_come_one_after_another(monkeypatch):
    network = Network.ring(list("abcde"))
    nodes = meet(network, {name: table(i) for i, name in enumerate(network.nodes)}, min_count=3)
    longest = max(one._known[name].n_bytes for name, one in nodes.items())
    monkeypatch.setattr(statement, "FAIR_BYTES", longest)
    most = max(len(one.message(other)) for one in nodes.values() for other in one.neighbours)
    talk(nodes, network, 150, loss=0.4)
    assert len({json.dumps(one.agreed.to_dict()) for one in nodes.values()}) == 1
    assert most < 2 * longest


# Calling to agree anew


def test_a_neighbour_that_calls_again_and_again_does_not_use_up_what_the_others_may(caplog):
    calls = Calls()
    followed = [calls.is_allowed("liar", float(second)) for second in range(100)]
    assert sum(followed) == 6
    assert calls.is_allowed("a", 100.0)
    assert caplog.records[0].getMessage() == (
        "Node liar called to agree anew, after 6 calls of its own and 6 of all neighbours within "
        "the hour; this node goes on as it is. Tell it 'prepare' if you want it to follow."
    )
    assert len(caplog.records) == 2
    assert calls.is_allowed("liar", 3601.0)


def test_many_that_call_again_and_again_are_followed_so_often_in_all():
    calls = Calls()
    liars = [f"liar{i}" for i in range(10)]
    assert sum(calls.is_allowed(one, 0.0) for _ in range(10) for one in liars) == 24


def test_a_call_is_put_down_to_the_neighbour_that_made_it():
    network = Network.complete(["a", "b", "c"])
    nodes = meet(network, {name: table(i) for i, name in enumerate(network.nodes)})
    talk(nodes, network, 20)
    node, called = nodes["b"], []
    links = Transport("b", "127.0.0.1:0", {}, None)
    hear = route(node, (), links, lambda peer, generation: called.append((peer, generation)))
    call = wire.Message.FromString(nodes["a"].message("b"))
    said = json.loads(call.said_settings)
    call.said_settings = json.dumps({**said, "generation": 1})
    assert hear("a", call.SerializeToString())
    assert hear("c", nodes["c"].message("b"))
    assert called == [("a", 1)]
