"""Mailboxes: what each neighbour said last, and whether it is waited for.

Most messages differ from the one before in their round and numbers alone. One that was checked
whole is what others may be like, but for holes where its round and its numbers are; what a later
one has there is checked anew. All that a round asks of its messages is done so,

    take_numbers   keep a message that is like the one before
    is_complete    whether all have been heard that are waited for
    open_letters   hand over what came
    count_calm     how far around all are calm
    write          what each neighbour is told

by `Post`, which has all mailboxes of a node. While nothing else is due, `Quiet` ends a round and
begins the next in one go.

`boxes.pxd` beside it gives the C types; without a compiler this file runs as it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import cython
except ImportError:  # nothing is compiled, and nothing can be
    from dtsvm.kernel import shadow as cython

if cython.compiled:
    from cython.cimports.libc.math import fabs
    from cython.cimports.libc.string import memcmp, memcpy
else:
    from math import fabs

__all__ = [
    "COMPLETE",
    "KEPT",
    "UNLIKE",
    "Box",
    "Like",
    "Numbers",
    "Post",
    "Quiet",
    "counted",
    "is_lacking",
    "read_like",
]

Ints = NDArray[np.int64]
INF = float("inf")
MOST_CALM = 2**31  # turns that are counted, where nothing is known of how far they must tell
Said = tuple[int, Any, dict[str, bytes], dict[str, slice]]
UNLIKE, KEPT, COMPLETE = range(3)  # what became of a message: see `Post.take_numbers`


class Like:
    """Messages that are like one but for their round and their numbers.

    digest, begun : what else its checks depended on, as in `Post`. like : that message. begin,
    end : of its round, a number of seven bits a byte, the lowest first. places : begin and end of
    its numbers, in the order of the message, as (n, 2); doubles, the lowest byte first.
    """

    def __init__(
        self, known: tuple[int, int], like: bytes, round_at: tuple[int, int], places: Ints
    ) -> None:
        (self.digest, self.begun), self.like, self.places = known, like, places
        self.begin, self.end = round_at

    def told(self, numbers: Numbers) -> Any:
        """Return the values in a message that is like this one."""
        raise NotImplementedError


class Numbers:
    """A message that is like another: its numbers stay where they came until they are used.

    squares : Σ v² of the numbers in every hole.
    """

    def __init__(self, round_: int, squares: list[float], data: bytes, pattern: Like) -> None:
        self.round, self.squares, self.data, self.pattern = round_, squares, data, pattern

    @property
    def values(self) -> Any:
        """The values, as of a message that was read whole."""
        return self.pattern.told(self)


class Box:
    """What is kept of one neighbour; of its values the two newest rounds and never more.

    Two, because in lock-step a neighbour may be one round ahead while another is waited for.

    newest, seen : round of the newest message, now and when a round last ended here. applied,
    empty : the last round whose values were used, and that had none. calm, is_settled,
    roster_digest : as it says itself. is_late : it missed a deadline and is not waited for until it
    is back. is_heard : since calm was last counted. heard_at : None before the first time.
    barred_until : it said what no honest neighbour says. n_odd : messages in a row with values that
    the data do not allow. pattern : of the last message that said nothing but numbers.
    """

    heard_at: float | None
    roster_digest: int | None
    pattern: Like | None

    def __init__(self) -> None:
        self.newest = self.seen = self.applied = self.empty = -1
        self.calm = self.n_odd = 0
        self.is_settled = self.is_late = self.is_heard = False
        self.heard_at = self.roster_digest = self.pattern = None
        self.barred_until = -1.0
        self.clear()

    def clear(self) -> None:
        """Keep no values."""
        self.one_round = self.other_round = -1
        self.one = self.other = None

    @property
    def letters(self) -> dict[int, Any]:
        """What was told and not used yet, by round."""
        kept = [(self.one_round, self.one), (self.other_round, self.other)]
        return dict(sorted((round_, news) for round_, news in kept if round_ >= 0))

    def keep(self, news: Any, now: float, has_values: bool) -> None:
        """Keep what was told, the two newest rounds of it."""
        put_in(self, news.round, news, now, has_values)

    def lacks(self, round_: int) -> bool:
        """Whether values of this round are yet to come."""
        return is_lacking(self, round_)

    def take(self, round_: int) -> Any:
        """Return this round's message, or else the newest that has not been used."""
        return take_out(self, round_)


def put_in(box: Box, round_: int, news: Any, now: float, has_values: bool) -> None:
    """Keep what was told, the two newest rounds of it."""
    box.newest, box.heard_at = max(box.newest, round_), now
    if not has_values:
        box.empty = round_
    elif round_ > box.applied:
        if box.one_round in (round_, -1) and box.other_round != round_:
            box.one_round, box.one = round_, news
        elif box.other_round in (round_, -1):
            box.other_round, box.other = round_, news
        elif box.one_round < box.other_round:
            if round_ > box.one_round:
                box.one_round, box.one = round_, news
        elif round_ > box.other_round:
            box.other_round, box.other = round_, news


def is_lacking(box: Box, round_: int) -> bool:
    """Whether values of this round are yet to come.

    Who is a round ahead has said them, waits for this node, and says both rounds again; or, where
    it went on from farther behind, that there are none.
    """
    newest = box.newest
    if newest != round_ + 1 or newest not in (box.one_round, box.other_round):
        return newest < round_
    is_here = round_ in (box.one_round, box.other_round)
    return not is_here and box.applied < round_ and box.empty != round_


def take_out(box: Box, round_: int) -> Any:
    """Return this round's message, or else the newest that has not been used."""
    is_one = box.one_round == round_ or (
        box.other_round != round_ and box.one_round > box.other_round
    )
    news, found = (box.one, box.one_round) if is_one else (box.other, box.other_round)
    if found < 0:
        return None
    box.applied = found
    if box.one_round <= found:
        box.one_round, box.one = -1, None
    if box.other_round <= found:
        box.other_round, box.other = -1, None
    return news


# A message that is like another


def read_like(data: bytes, like: Like) -> Numbers | None:
    """Read a message that is another one but for its round and its numbers.

    None if it says anything else, or a number that is not finite. The round ends where the other's
    does.
    """
    begin, end, n = like.begin, like.end, len(data)
    if n != len(like.like) or end - begin > 9:
        return None
    text, known = data, like.like
    if not is_like(text, known, n, like):
        return None
    round_ = shift = 0
    for at in range(begin, end):
        byte = text[at]
        if (byte < 128) != (at == end - 1):
            return None
        round_ += (byte & 127) << shift
        shift += 7
    squares: list[float] = []
    for i in range(like.places.shape[0]):
        total = sum_of_squares(text, like.places[i, 0], like.places[i, 1])
        if not total < INF and not are_finite(text, like.places[i, 0], like.places[i, 1]):
            return None
        squares.append(total)
    return Numbers(round_, squares, data, like)


def is_like(data: bytes, known: bytes, n: int, like: Like) -> bool:
    """Whether two messages of n bytes are the same outside of a round's place and of holes."""
    at, i = 0, 0
    is_round_due = True
    while True:
        is_hole = i < like.places.shape[0] and (not is_round_due or like.places[i, 0] < like.begin)
        stop = like.places[i, 0] if is_hole else (like.begin if is_round_due else n)
        if cython.compiled:
            if stop > at and memcmp(cython.address(data[at]), cython.address(known[at]), stop - at):
                return False
        elif data[at:stop] != known[at:stop]:
            return False
        if is_hole:
            at = like.places[i, 1]
            i += 1
        elif is_round_due:
            at = like.end
            is_round_due = False
        else:
            return True


def number_at(data: bytes, at: int) -> float:
    value = 0.0
    if cython.compiled:
        memcpy(cython.address(value), cython.address(data[at]), 8)
    else:
        value = float(np.frombuffer(data, np.float64, 1, at)[0])
    return value


def sum_of_squares(data: bytes, begin: int, end: int) -> float:
    """Σ v², in four lanes."""
    s = [0.0] * 4
    whole = begin + (end - begin) // 32 * 32
    for at in range(begin, whole, 32):
        for k in range(4):
            value = number_at(data, at + 8 * k)
            s[k] += value * value
    for at in range(whole, end, 8):
        value = number_at(data, at)
        s[0] += value * value
    return (s[0] + s[1]) + (s[2] + s[3])


def are_finite(data: bytes, begin: int, end: int) -> bool:
    is_so = True
    for at in range(begin, end, 8):
        is_so = is_so and fabs(number_at(data, at)) < INF
    return is_so


# All mailboxes of a node


class Post:
    """All mailboxes of a node, and how far it is itself.

    boxes : by neighbour. present : who is heard and hears. round, calm, is_settled : of this node.
    most_calm : how far calm is counted: no farther than anybody asks, so that messages of calm
    nodes, too, differ in their round and numbers alone. digest, begun : what a message's checks
    depend on beside itself, the roster and the sums. most, last : a round that nobody can be beyond
    by now, and the last one there can be. residual, heard : of the last round, and who was heard in
    it. said, said_before : what was told in the last two rounds: round, roster, messages, and where
    in each the values are. is_quiet : nothing but numbers is due, as far as this node itself knows.
    """

    def __init__(self, boxes: dict[str, Any], most: int, last: int) -> None:
        self.boxes, self.most, self.last = boxes, most, last
        self.present: list[str] = []
        self.heard: list[str] = []
        self.round = self.calm = self.digest = self.begun = 0
        self.most_calm = MOST_CALM
        self.is_settled = self.is_quiet = False
        self.residual = INF
        self.said: Said = (-1, -1, {}, {})
        self.said_before: Said = self.said

    def take_numbers(self, name: str, data: bytes, now: float) -> int:
        """Keep a message that differs from the sender's last in its round and numbers alone.

        Returns UNLIKE if it is no such message, COMPLETE if all have been heard now that are waited
        for, else KEPT. Its round may be neither beyond `most` nor more than one behind the newest.
        """
        box = self.boxes.get(name)
        if box is None or box.pattern is None or box.heard_at is None or now < box.barred_until:
            return UNLIKE
        pattern = box.pattern
        if pattern.digest != self.digest or pattern.begun != self.begun:
            return UNLIKE
        news = read_like(data, pattern)
        if news is None or news.round > self.most or news.round < box.newest - 1:
            return UNLIKE
        put_in(box, news.round, news, now, len(news.squares) > 0)
        return COMPLETE if self.is_complete() else KEPT

    def is_complete(self) -> bool:
        """Whether all have been heard that are waited for; who is late or settled is not.

        Where nobody is waited for, a node that has not settled waits for a word of any.
        """
        is_waited, has_letters = False, False
        for name in self.present:
            box = self.boxes[name]
            if not (box.is_late or box.is_settled):
                if is_lacking(box, self.round):
                    return False
                is_waited = True
            if box.one_round >= 0 or box.other_round >= 0:
                has_letters = True
        return is_waited or has_letters or self.is_settled or len(self.present) == 0

    def go_on(self) -> int:
        """Begin the next round, or that of who is farther; return it."""
        newest = self.round + 1
        for name in self.present:
            box = self.boxes[name]
            newest = max(newest, box.newest)
        self.round = min(newest, self.last)
        return self.round

    def are_heard(self, heard: list[bool], latest: float) -> bool:
        """Whether those and no others of all neighbours have been heard since then."""
        if len(heard) != len(self.boxes):
            return False
        for i, box in enumerate(self.boxes.values()):
            is_so = box.heard_at is not None and box.heard_at >= latest
            if is_so != heard[i]:
                return False
        return True

    def open_letters(
        self, ways: dict[str, tuple[Any, ...]], bounds: Any, hear: Callable[..., bool]
    ) -> tuple[list[str], list[tuple[str, Any]]]:
        """End a round's waiting; return whose numbers were heard, and what is left to be looked at.

        `ways` has, by neighbour with which something is shared, a pattern, bounds, and the way for
        `hear` of messages for which both are the same.
        """
        heard: list[str] = []
        rest: list[tuple[str, Any]] = []
        for name in self.present:
            box = self.boxes[name]
            is_in_time, has_moved = not is_lacking(box, self.round), box.newest > box.seen
            news = take_out(box, self.round)
            box.seen, box.is_late = box.newest, not (is_in_time or box.is_settled)
            way = ways.get(name)
            # A neighbour with which no task is shared says nothing but how far it is.
            if is_in_time or (has_moved and way is None):
                box.is_heard = True
            if news is None:
                continue
            if way is not None and isinstance(news, Numbers):
                numbers: Numbers = news
                is_known = way[0] is numbers.pattern and way[1] is bounds
                if is_known and hear(numbers.data, numbers.squares, way[2]):
                    box.n_odd, box.is_heard = 0, True
                    heard.append(name)
                    continue
            rest.append((name, news))
        return heard, rest

    def count_calm(self) -> None:
        """Make calm 1 + the least here and around, if all have been heard since it was counted.

        Lost messages slow this down and do not break it; c turns of calm tell of c links around. A
        settled neighbour has counted far enough and counts no further, so it is left out.
        """
        least = self.calm
        for name in self.present:
            box = self.boxes[name]
            if not box.is_settled:
                if not box.is_heard:
                    return
                least = min(least, box.calm)
        for box in self.boxes.values():
            box.is_heard = False
        self.calm = min(1 + least, self.most_calm)

    def write(
        self, frames: dict[str, list[Any]], count: bytes
    ) -> tuple[dict[str, bytes], list[str]]:
        """Return a message for every neighbour, and who has yet to be told of the roster, or all.

        A frame has the pieces of a message; its second is for the round.
        """
        out = {}
        behind: list[str] = []
        for name, pieces in frames.items():
            pieces[1] = count
            out[name] = b"".join(pieces)
            box = self.boxes[name]
            if box.heard_at is None or box.roster_digest != self.digest:
                behind.append(name)
        return out, behind


class Quiet:
    """Ends a round and begins the next in one go, where nothing is due but numbers.

    `Node` does the same in four steps, `finish`, `open`, `solve` and `tell`, with all that may be
    due in between; it says in `expect` for how long nothing is.

    post : the mailboxes. state, sums : of the node; `is_stale` of the one and `changes` of the
    other tell of what happens beside rounds. tell : returns the messages of a round where frames do
    not fit. hear, take_in, step : of `rounds`. n : rounds since somebody asked.
    """

    hear: Callable[..., bool]
    take_in: Callable[..., float]
    step: Callable[..., None]

    def __init__(
        self, post: Post, state: Any, sums: Any, tell: Callable[[], dict[str, bytes]]
    ) -> None:
        self.post, self.state, self.sums, self.tell = post, state, sums, tell
        self.n = 0

    def expect(
        self,
        when: tuple[int, float],
        calm: tuple[int, int, float],
        known: tuple[int, list[bool]],
        ways: tuple[dict[str, Any], Any],
        steps: tuple[Any, ...],
        frames: tuple[int, int, dict[str, list[Any]], dict[str, slice]],
    ) -> None:
        """Say what rounds depend on; they are quiet while it stays so.

        when : the round that ends no more so, and the seconds after which a silent neighbour is
        gone. calm : how far all may be calm, at least and at most, and the residual of calm.
        known : age less round, and who is heard. ways : of numbers, with their bounds. steps :
        `hear`, `take_in` and `step` of `rounds`, `across`, and what the latter two take beside it.
        frames : for which calm and how long a count, and the messages' pieces with the places of
        values.
        """
        post = self.post
        self.end, self.evict_seconds = when
        self.least, self.most, self.residual_tol = calm
        self.offset, self.heard = known
        self.ways, self.bounds = ways
        self.hear, self.take_in, self.step, self.across, self.taken, self.stepped = steps
        self.framed, self.n_count, self.frames, self.places = frames
        self.digest, self.changes = post.digest, self.sums.changes
        post.is_quiet = True

    def turn(self, now: float, tag: int) -> dict[str, bytes] | None:
        """End a round and begin the next; return what is told in it, None if more is due."""
        post = self.post
        if not self.is_possible(now) or not self.is_all_heard():
            return None
        for name in post.present:
            box = post.boxes[name]
            take_out(box, post.round)
            box.seen, box.is_late, box.is_heard, box.n_odd = box.newest, False, True, 0
        post.heard = post.present
        post.residual = self.take_in(self.across, *self.taken)
        if post.residual > self.residual_tol:
            post.calm = 0
        else:
            post.count_calm()
        age = max(post.round + self.offset, 0)
        self.state.age = age
        self.n += 1
        post.round += 1
        self.step(self.across, *self.stepped, age)
        return self.messages(counted(tag, post.round))

    def is_possible(self, now: float) -> bool:
        """Whether all is as expected."""
        post = self.post
        if not post.is_quiet or post.is_settled or not post.residual < INF:
            return False
        if post.round >= self.end or not self.least <= post.calm <= self.most:
            return False
        if self.changes != self.sums.changes or self.digest != post.digest or self.state.is_stale:
            return False
        return self.across.are_short and post.are_heard(self.heard, now - self.evict_seconds)

    def is_all_heard(self) -> bool:
        """Whether everybody told numbers of this round that can be taken in; they are, then."""
        post = self.post
        for name in post.present:
            box = post.boxes[name]
            if box.is_late or box.is_settled or box.newest > post.round + 1:
                return False
            news = box.one if box.one_round == post.round else box.other
            found = box.one_round == post.round or box.other_round == post.round
            way = self.ways.get(name)
            if way is None:  # no task is shared, so there is nothing but how far it is
                if found or is_lacking(box, post.round):
                    return False
                continue
            if not found or not isinstance(news, Numbers):
                return False
            numbers: Numbers = news
            if way[0] is not numbers.pattern or way[1] is not self.bounds:
                return False
            if not self.hear(numbers.data, numbers.squares, way[2]):
                return False
        return True

    def messages(self, count: bytes) -> dict[str, bytes]:
        """Return what is told, in frames if these are still the right ones."""
        post = self.post
        if post.calm != self.framed or len(count) != self.n_count:
            return self.tell()
        out, behind = post.write(self.frames, count)
        if behind:
            return self.tell()
        post.said_before, post.said = post.said, (post.round, post.digest, out, self.places)
        return out


def counted(tag: int, value: int) -> bytes:
    """Return a number after its tag as protobuf writes it, seven bits a byte; nothing for zero."""
    out = bytearray()
    if value:
        out.append(tag)
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return bytes(out)
