"""A message read by the pattern of the one before is taken as if it had been checked whole."""

from copy import copy

import numpy as np
import pytest
from meetings import Carrier, build, make_blocks

from dtsvm import Network
from dtsvm.kernel import boxes
from dtsvm.runtime.agent.node import inbox as inbox_module
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.pattern import read_varint

SETTINGS = {"C": 0.1, "tol": 1e-300}


def trained(tasks=("one",)):
    """Two nodes some rounds on, and the newest message from the other to the first."""
    nodes = build(Network.line(["a", "b"]), make_blocks(["a", "b"], list(tasks)), SETTINGS)
    carrier = Carrier(nodes)
    carrier.meet()
    carrier.run_until_round(50)
    carrier.now += 0.05
    return nodes[0], nodes[1].begin(carrier.now)["a"], carrier.now


def outcome(node, data, now, *, by_pattern):
    """What taking a message does to a mailbox; the mailbox is as before afterwards."""
    mail = node.mail["b"]
    before = copy(mail)
    if not by_pattern:
        mail.pattern = None
    node.inbox.reasons.clear()
    was_taken = node.take("b", data, now)
    found = (
        was_taken, mail.newest, mail.calm, mail.is_settled, mail.roster_digest, mail.incarnation,
        {
            k: {pair: (told.numbers.tobytes(), *told[1:3]) for pair, told in news.values.items()}
            for k, news in mail.letters.items()
        },
    )  # fmt: skip
    node.mail["b"] = before
    return found


@pytest.mark.parametrize("tasks", [("one",), ("one", "two")])
def test_a_damaged_message_is_taken_or_refused_as_without_a_pattern(tasks):
    node, data, now = trained(tasks)
    assert node.take("b", data, now)
    assert node.mail["b"].pattern is not None
    rng = np.random.default_rng(3)
    n_taken = 0
    for at in range(len(data)):
        for _ in range(4):
            bad = bytearray(data)
            bad[at] ^= int(rng.integers(1, 256))
            found = outcome(node, bytes(bad), now, by_pattern=True)
            assert found == outcome(node, bytes(bad), now, by_pattern=False), at
            n_taken += found[0]
    assert n_taken > len(data)  # numbers may be any


def test_patterns_change_no_bit(monkeypatch):
    def iterates(has_patterns):
        if not has_patterns:
            monkeypatch.setattr(inbox_module.Pattern, "of", lambda *_: None)
        names = list("abcd")
        nodes = build(Network.ring(names), make_blocks(names, ["one", "two"]), SETTINGS)
        carrier = Carrier(nodes, rng=np.random.default_rng(5))
        carrier.meet()
        carrier.loss = 0.2
        carrier.run_until_round(150)
        return [node.estimate(task).tobytes() for node in nodes for task in ("one", "two")]

    assert iterates(has_patterns=True) == iterates(has_patterns=False)


def test_what_counts_on_is_read_by_pattern_and_what_is_new_is_not():
    node, data, now = trained()
    again = wire.Message.FromString(data)
    assert node.take("b", again.SerializeToString(), now)  # its fields are in another order
    pattern = node.mail["b"].pattern
    again.round += 1
    assert node.take("b", again.SerializeToString(), now)
    assert node.mail["b"].newest == again.round
    assert node.mail["b"].pattern is pattern
    again.calm += 1
    assert node.take("b", again.SerializeToString(), now)
    assert node.mail["b"].pattern is not pattern
    assert node.mail["b"].calm == again.calm


def test_a_number_that_never_ends_is_no_round():
    node, data, now = trained()
    assert node.take("b", data, now)
    pattern = node.mail["b"].pattern
    endless = bytes([255]) * (pattern.end - pattern.begin)
    assert boxes.read_like(data, pattern) is not None
    assert boxes.read_like(data[: pattern.begin] + endless + data[pattern.end :], pattern) is None
    with pytest.raises(IndexError):
        read_varint(bytes([255]), 0)
