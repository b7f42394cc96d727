import numpy as np
import pytest
from damage import mutations
from hypothesis import given
from hypothesis import strategies as st
from meetings import Carrier, build, make_blocks

from dtsvm import Network
from dtsvm.problem import Settings
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.node import Node
from worlds import EXAMPLES, examples

NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def pair():
    """Node a in the middle of training, and a good next message from b."""
    nodes = build(Network.complete(NAMES), make_blocks(NAMES, ["one", "two"]))
    carrier = Carrier(nodes)
    carrier.meet()
    for _ in range(5):
        carrier.tick()
    return nodes[0], nodes[1].begin(carrier.now)["a"]


def fingerprint(node):
    state = node.state
    arrays = [
        state.tables.agents["estimate"],
        state.tables.ends["state"],
        state.tables.rows["dual"],
    ]
    return (node.round, node.roster.digest, repr(node.mail), [a.tobytes() for a in arrays])


def changed(good, **fields):
    message = wire.Message.FromString(good)
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def refused(node, data, caplog):
    before = fingerprint(node)
    node.inbox.logged_at.clear()
    caplog.clear()
    assert not node.take("b", data, node.now)
    assert fingerprint(node) == before
    return caplog.messages[0].partition("so far): ")[2]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"protocol": 1}, "its protocol is 1 instead of 6."),
        ({"network": 8}, "it belongs to another network."),
        ({"settings": 8}, "the sender has other settings."),
        ({"sender": "c"}, "it says that it comes from 'c'."),
        ({"incarnation": 0}, "it comes from before the sender's last start."),
        ({"round": 3}, "its round 3 is past; round 5 was heard."),
        ({"round": 2**63}, "it counts too far."),
        ({"round": 2**61}, "its round 2305843009213693952 is more than anybody can have counted."),
        ({"incarnation": 2**61}, "it began too far in the future, or a clock is wrong."),
    ],
)
def test_a_message_is_refused_with_its_reason(pair, fields, reason, caplog):
    node, good = pair
    assert refused(node, changed(good, **fields).SerializeToString(), caplog) == reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"numbers": bytes(8)}, "task 'one' has 8 bytes instead of 80."),
        ({"numbers": np.full(10, np.nan).tobytes()},
         "task 'one' has a number that is not finite."),
        ({"task": "three"}, "the sender does not hold task 'three'."),
        ({"to_task": "four", "numbers": bytes(40)}, "task 'four' is not held here."),
        ({"group": "two"}, "task 'one' is not in group 'two'."),
        ({"task": "two"}, "task 'two' comes twice."),
    ],
)  # fmt: skip
def test_a_value_is_refused_with_its_reason(pair, change, reason, caplog):
    node, good = pair
    message = wire.Message.FromString(good)
    for name, value in change.items():
        setattr(message.values[0], name, value)
    assert refused(node, message.SerializeToString(), caplog) == reason


def test_a_roster_is_refused_whole(pair, caplog):
    node, good = pair
    message = wire.Message.FromString(good)
    for name in ("new", "no such/name"):
        message.roster.members.add(name=name, incarnation=1, sequence=1, agreement=bytes(32))
    reason = refused(node, message.SerializeToString(), caplog)
    assert reason == "'no such/name' cannot be the name of a node."


@pytest.mark.parametrize(
    ("theirs", "is_heard"), [((0.0, "1"), True), ((1, 0), False), (None, True)]
)
def test_a_neighbour_with_the_other_label_positive_is_refused(theirs, is_heard, caplog):
    one, other = (Node(name, ["a", "b"], 4, Settings(), 7, 1) for name in "ab")
    one.enter("one", labels=(0, 1))
    other.enter("one", labels=theirs)
    assert one.take("b", other.hello(0.0)["a"], 0.0) == is_heard
    assert ("b" in one.roster.entries) == is_heard
    if not is_heard:
        assert "it has other labels for task 'one', or the other one is positive" in caplog.text


def test_a_stranger_and_an_endless_message_are_refused(pair, caplog):
    node, good = pair
    assert not node.take("z", good, node.now)
    assert refused(node, bytes(10_000_000), caplog).startswith("it is longer than")


def test_refusals_are_counted_and_logged_once_a_minute(pair, caplog):
    node, _ = pair
    node.inbox.logged_at.clear()
    before = node.refused["b"]
    for second in range(0, 121, 10):
        node.take("b", b"\xff\xff", node.now + second)
    assert node.refused["b"] == before + 13
    assert len(caplog.messages) == 3


def test_ten_thousand_malformed_messages_change_nothing(pair):
    node, good = pair
    head = changed(good, round=5).SerializeToString()
    arrays = fingerprint(node)[3]
    counted = [0]

    @examples(700)
    @given(st.lists(st.one_of(st.binary(max_size=300), mutations(head)), min_size=15, max_size=15))
    def attack(batch):
        for data in batch:
            before = fingerprint(node)
            counted[0] += 1
            if not node.take("b", data, node.now):
                assert fingerprint(node) == before
        assert fingerprint(node)[3] == arrays

    attack()
    assert counted[0] >= 10_000 * min(EXAMPLES, 1)
    assert node.refused["b"] > counted[0] / 2
