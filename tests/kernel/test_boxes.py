"""Mailboxes in C and as plain Python, beside the plainest way to say what they do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtsvm.kernel import load
from dtsvm.runtime.agent.node import wire_pb2 as wire

BUILDS = [load(variant, "boxes")[0] for variant in ("", "python")]
builds = pytest.mark.parametrize("boxes", BUILDS, ids=["compiled", "python"])
NOW = 7.0


class Plain:
    """A mailbox with a dict of rounds."""

    def __init__(self):
        self.newest = self.applied = self.empty = -1
        self.letters = {}

    def keep(self, news, has_values):
        self.newest = max(self.newest, news.round)
        if not has_values:
            self.empty = news.round
        elif news.round > self.applied:
            self.letters[news.round] = news
            if len(self.letters) > 2:
                del self.letters[min(self.letters)]

    def lacks(self, round_):
        if self.newest != round_ + 1 or self.newest not in self.letters:
            return self.newest < round_
        return round_ not in self.letters and self.applied < round_ and self.empty != round_

    def take(self, round_):
        if not self.letters:
            return None
        found = round_ if round_ in self.letters else max(self.letters)
        news = self.letters[found]
        self.applied = found
        self.letters = {k: kept for k, kept in self.letters.items() if k > found}
        return news


def words(boxes, round_):
    return boxes.Numbers(round_, [], b"", boxes.Like((0, 0), b"", (0, 0), np.zeros((0, 2), int)))


steps = st.lists(
    st.tuples(st.sampled_from(["keep", "keep", "empty", "take"]), st.integers(0, 9)), max_size=40
)


@builds
@given(steps=steps)
def test_a_mailbox_holds_the_two_newest_rounds_that_were_not_used(boxes, steps):
    box, plain = boxes.Box(), Plain()
    for what, round_ in steps:
        if what == "take":
            assert box.take(round_) is plain.take(round_)
        else:
            news = words(boxes, round_)
            box.keep(news, NOW, what == "keep")
            plain.keep(news, what == "keep")
            assert box.heard_at == NOW
        assert box.letters == plain.letters
        counts = (box.newest, box.applied, box.empty)
        assert counts == (plain.newest, plain.applied, plain.empty)
        assert [box.lacks(k) for k in range(11)] == [plain.lacks(k) for k in range(11)]


def message():
    """A message with two holes for numbers, the numbers, and where the round and the holes are."""
    numbers = np.random.default_rng(4).normal(size=(2, 2, 3))
    first, second = (part.astype("<f8").tobytes() for part in numbers)
    data = b"\x30\x85\x01head" + first + b"mid" + second + b"end"
    return data, numbers, (1, 3), np.array([[7, 55], [58, 106]], np.int64)


@builds
def test_a_message_is_like_another_but_for_its_round_and_numbers(boxes):
    data, numbers, round_at, places = message()
    like = boxes.Like((1, 2), data, round_at, places)
    later = b"\x30\xac\x02" + data[3:]
    found = boxes.read_like(later, like)
    assert found.round == 300
    assert (found.data, found.pattern) == (later, like)
    np.testing.assert_allclose(found.squares, (numbers**2).sum(axis=(1, 2)))
    nan = np.array([np.nan]).astype("<f8").tobytes()
    for bad in (later.replace(b"mid", b"mad"), later[:-1], later[:7] + nan + later[15:]):
        assert boxes.read_like(bad, like) is None


@builds
@pytest.mark.parametrize(
    ("changed", "is_kept"),
    [
        ({}, True),
        ({"newest": 301}, True),
        ({"newest": 302}, False),  # it comes from the past
        ({"most": 299}, False),  # or from too far ahead
        ({"known": (1, 3)}, False),  # it was checked for another roster
        ({"heard_at": None}, False),
        ({"barred_until": NOW + 1}, False),
        ({"pattern": None}, False),
    ],
)
def test_what_is_like_the_last_is_kept_only_where_that_was_checked(boxes, changed, is_kept):
    data, _, round_at, places = message()
    box = boxes.Box()
    box.pattern = boxes.Like((1, 2), data, round_at, places)
    box.heard_at = 0.0
    post = boxes.Post({"a": box}, changed.get("most", 300), 1000)
    post.digest, post.begun = changed.get("known", (1, 2))
    for name in changed.keys() & {"newest", "heard_at", "barred_until", "pattern"}:
        setattr(box, name, changed[name])
    later = b"\x30\xac\x02" + data[3:]
    assert (post.take_numbers("a", later, NOW) != boxes.UNLIKE) == is_kept
    assert post.take_numbers("b", later, NOW) == boxes.UNLIKE
    assert (300 in box.letters) == is_kept


def around(boxes, **known):
    """The post of a node with these neighbours present, each with these attributes."""
    out = {}
    for name, values in known.items():
        out[name] = boxes.Box()
        for key, value in values.items():
            setattr(out[name], key, value)
    post = boxes.Post(out, 1000, 1000)
    post.present = list(known)
    return post


@builds
def test_a_round_is_complete_when_all_are_heard_that_are_waited_for(boxes):
    def is_complete(is_settled=False, **known):
        post = around(boxes, **known)
        post.round, post.is_settled = 5, is_settled
        return post.is_complete()

    here, behind = {"newest": 5}, {"newest": 4}
    assert is_complete()
    assert is_complete(a=here, b=here)
    assert not is_complete(a=here, b=behind)
    assert is_complete(a=here, b={**behind, "is_late": True})
    assert is_complete(a=here, b={**behind, "is_settled": True})
    assert not is_complete(a={**behind, "is_settled": True})  # a word of anybody is waited for
    assert is_complete(a={**behind, "is_settled": True}, is_settled=True)


@builds
def test_calm_is_counted_when_all_have_been_heard_since(boxes):
    heard = {"is_heard": True}
    post = around(boxes, a={**heard, "calm": 4}, b={**heard, "calm": 2}, c={"is_settled": True})
    post.calm = 3
    post.count_calm()
    assert post.calm == 3
    assert not any(box.is_heard for box in post.boxes.values())
    post.count_calm()
    assert post.calm == 3  # a and b have to be heard anew
    post.present = ["c"]
    post.count_calm()
    assert post.calm == 4
    post.most_calm = 4
    post.count_calm()
    assert post.calm == 4  # nobody asks for more, and messages stay alike


@builds
def test_the_message_that_completes_a_round_says_so(boxes):
    data, _, round_at, places = message()
    post = around(boxes, a={"heard_at": 0.0}, b={"newest": 3})
    post.boxes["a"].pattern = boxes.Like((0, 0), data, round_at, places)
    post.round = 300
    later = b"\x30\xac\x02" + data[3:]
    assert post.take_numbers("a", later, NOW) == boxes.KEPT  # b is behind
    post.boxes["b"].is_late = True
    assert post.take_numbers("a", later, NOW) == boxes.COMPLETE


@builds
def test_a_node_goes_on_where_the_farthest_is_and_no_farther_than_there_are_rounds(boxes):
    post = around(boxes, a={"newest": 7}, b={"newest": 3})
    assert [post.go_on(), post.go_on()] == [7, 8]
    post.boxes["b"].newest = 2000
    assert post.go_on() == post.round == 1000


@builds
@given(round_=st.integers(0, 2**62))
def test_a_round_is_written_as_protobuf_writes_it(boxes, round_):
    assert boxes.counted(0x30, round_) == wire.Message(round=round_).SerializeToString()
