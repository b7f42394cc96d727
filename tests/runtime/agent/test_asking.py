import asyncio
import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner
from forks import ForkedAgents
from meetings import Carrier, build, make_blocks
from sites import make_site

from dtsvm import Network
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.asking import GAP_SECONDS, MOST_BYTES, Asking, readable
from dtsvm.runtime.agent.node.identity import Nameless
from dtsvm.runtime.agent.process.control import ask
from dtsvm.ui.status import status as status_command

NAMES = list("abcd")


class Party:
    """Nodes on a line that have met, and what carries their questions."""

    def __init__(self, network=None, **may_ask):
        nodes = build(network or Network.line(NAMES), make_blocks(NAMES, ["one"]), {"C": 0.1})
        self.carrier = Carrier(nodes)
        self.carrier.meet()
        self.now = 0.0
        self.heard = []
        self.asking = {
            node.name: Asking(
                node.name, 7, node.roster, node.identity,
                lambda node=node: {**node.status(), "trouble": ""},
                may_ask.get(node.name, lambda name: True),
            )
            for node in nodes
        }  # fmt: skip

    def carry(self, sender, messages):
        edge = [(sender, to, data) for to, data in messages]
        while edge:
            sender, to, data = edge.pop(0)
            self.heard.append((sender, to, data))
            assert len(self.heard) < 500
            edge += [(to, *more) for more in self.asking[to].hear(sender, data, self.now)]

    def ask(self, name, number=5):
        self.now += 1.0
        self.carry(name, self.asking[name].ask(number))
        return self.asking[name]


def test_everybody_who_may_be_asked_answers_whoever_is_in_between():
    party = Party(c=lambda name: name != "a")
    found = party.ask("a")
    assert found.silent == []
    assert found.answers["c"]["is_silent"]
    assert found.answers["d"]["neighbours"] == ["c"]
    assert found.answers["b"]["tasks"] == ["one"]
    assert "rows" not in json.dumps(found.answers)
    assert not party.ask("b", 6).answers["c"]["is_silent"]


@pytest.mark.parametrize("network", [Network.ring, Network.complete])
def test_a_question_ends_whatever_circles_there_are(network):
    party = Party(network(NAMES))
    assert party.ask("b").silent == []
    assert len(party.heard) < 40


def test_only_the_one_that_asked_can_read_an_answer():
    party = Party()
    party.ask("a")
    seen = [data for sender, to, data in party.heard if (sender, to) == ("c", "b")]
    boxes = [json.loads(wire.Message.FromString(data).said_settings)["answer"] for data in seen]
    assert {box["node"] for box in boxes} == {"c", "d"}
    assert all("round" not in box["box"] for box in boxes)
    b = party.asking["b"]
    b._mark = tuple(boxes[0]["mark"])
    b._read(boxes[0]["node"], b._mark, boxes[0]["box"])
    assert b.answers == {}
    assert b.refused == 1


def test_a_repeated_question_brings_what_was_lost():
    party = Party()
    a = party.asking["a"]
    a.ask(5)
    party.now += 1.0
    party.carry("a", a.ask_again())
    assert a.silent == []


def message(sender="b", **said):
    return wire.Message(
        protocol=904, network=7, sender=sender, said_settings=json.dumps(said)
    ).SerializeToString()


def question(asker="b", mark=(9, 1), signature=""):
    return {"asker": asker, "mark": list(mark), "signature": signature}


@pytest.mark.parametrize(
    "data",
    [
        b"", b"x" * 30, message(question={}), message(question=question(mark=(2**63, 1))),
        message(question=question(mark=(9, 10**9))), message(question=question(mark=("x", 1))),
        message(answer={}), message(answer=[]), message(question=5), message(nothing=1),
        message("c", question=question()), message(question=question(signature="zz")),
        message(said=["["] * 1000), message(question=question("\x1b[2J")),
        wire.Message(protocol=904, network=7, sender="b", said_settings="x" * MOST_BYTES)
        .SerializeToString(),
        message(answer={"asker": "a", "mark": [1, 1], "node": "b", "box": "AAAA"}),
        message(answer={"asker": "d", "mark": [1, 1], "node": "c", "box": "AAAA"}),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_answered_by_nothing(data):
    party = Party()
    assert party.asking["a"].hear("b", data, 1.0) == []


def test_a_neighbour_that_asks_without_end_is_answered_a_few_times_a_second():
    party = Party()
    b, n = party.asking["b"], 0
    for k in range(2000):
        party.now = 1.0 + k / 1000
        messages = b.ask(100 + k)
        n += sum(len(party.asking["a"].hear("b", data, party.now)) for to, data in messages
                 if to == "a")  # fmt: skip
    assert n <= 2.0 / GAP_SECONDS + 1
    assert len(party.asking["a"]._last) == 1


def test_who_counted_its_questions_to_the_end_is_answered_after_its_next_start():
    party = Party()
    old = party.asking["a"]
    assert party.ask("a", 2**62 - 1).silent == []
    again = Asking("a", 7, old.roster, Nameless())
    mine = dataclasses.replace(old.roster.entries["a"], sequence=99)
    mine = mine.signed(7, again.identity)
    for one in party.asking.values():
        one.roster.merge([mine])
    party.asking["a"] = again
    assert party.ask("a", 5).silent == []


def test_what_a_liar_answers_is_shown_escaped_and_bounded():
    said = {
        "round": 10**400, "gap": "0", "residual": [1], "tasks": {"x": 1}, "neighbours": "abc",
        "reasons": {"b\x1b[2J": "c" * 10_000}, "trouble": "\x1b]0;x\x07", "is_settled": "yes",
        "choosing": {"tracks": "many"}, "present": ["\n" * 500] * 9999,
    }  # fmt: skip
    with pytest.raises(OverflowError):
        readable("b", said)
    found = readable("b", {**said, "round": 7})
    assert found["round"] == 7
    assert found["gap"] is None
    assert not found["is_settled"]
    assert json.dumps(found, ensure_ascii=False).isprintable()
    assert len(json.dumps(found)) < 100_000
    assert readable("b", [1])["tasks"] == []


def test_a_site_sees_all_processes_of_its_network(tmp_path):
    site = tmp_path / "site"
    make_site(site, Network.line(NAMES), make_blocks(NAMES, ["one"]), {"C": 0.1, "tol": 1e-4})
    shy = site / "c" / "node.toml"
    shy.write_text('status = ["b"]\n' + shy.read_text())
    with ForkedAgents(site) as agents:
        for name in NAMES:
            agents.start(name)
        agents.settle(NAMES)
        words = [str(site / "a" / "node.toml"), "--network", "--seconds", "200"]
        shown = CliRunner().invoke(status_command, words, env={"COLUMNS": "80"})
        assert shown.exit_code == 0, shown.output
        lines = {line.split()[0]: line for line in shown.output.splitlines()[1:] if line.split()}
        assert [name for name in NAMES if "settled" in lines[name]] == ["a", "b", "d"]
        assert "does not say" in lines["c"]
        assert max(map(len, shown.output.splitlines())) <= 80
        gone = agents.running.pop("d")
        gone.kill()
        gone.wait()
        answer = asyncio.run(ask(site / "a", 200.0, command="ask", is_first=True))
        assert answer["silent"] or np.isfinite(answer["answers"]["d"]["round"])
