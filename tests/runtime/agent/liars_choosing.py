"""A neighbour that lies where the network chooses: what it does to its own part of that."""

import dataclasses

import numpy as np

from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.select.others import Others

WIDTH = 66  # of a table of margins: 64 points, rows wrong, rows


def terms(change):
    """Change what it adds to every sum; `change` knows how many it has added before."""

    def lie(chooser):
        true, n = chooser._ask, [0]

        def ask(asked):
            if not isinstance(asked, list):
                n[0] += 1
                asked = change(np.array(asked, float), n[0])
            true(asked)

        chooser._ask = ask

    return lie


def rows_claimed(factor):
    """More rows in the very first sum than its entry in the roster says."""
    return terms(lambda term, n: term * factor if n == 1 else term)


def only_tables(change):
    """Change tables of margins alone."""

    def forge(term, n):
        if len(term) % WIDTH or not len(term):
            return term
        parts = term.reshape(-1, WIDTH)
        change(parts)
        return parts.ravel()

    return terms(forge)


def below_zero(parts):
    parts[:, :64] -= 5.0
    parts[:, 0] += 64 * 5.0


def all_at_one_end(parts):
    parts[0, :64] = 1e4


def fewer_wrong_than_none(parts):
    parts[:, 64] = -3.0


def more_wrong_than_rows(parts):
    parts[:, 64] = parts[:, 65] + 1.0


def other_rows_for_each(parts):
    parts[::2, 65] += 2.0
    parts[::2, 63] += 2.0


def envelopes(change):
    """Change every envelope, knowing for whom it is."""

    def lie(chooser):
        true, n = chooser.step, [0]

        def step(now):
            n[0] += 1
            out = {}
            for name, some in true(now).items():
                said = [wire.Message.FromString(data) for data in some]
                kept = [m for m in (change(m, name, n[0]) for m in said) if m is not None]
                out[name] = [m if isinstance(m, bytes) else m.SerializeToString() for m in kept]
            return out

        chooser.step = step

    return lie


def parts_of(change):
    """Change the parts of envelopes: of tracks (with a name) and of sums (without)."""

    def forge(message, name, n):
        for part in message.sums:
            change(part, name, n)
        return message

    return envelopes(forge)


def forge_down(part, name, n):
    """As the root, another total for each child."""
    if part.down:
        words = np.frombuffer(part.down, "<u8").copy()
        words[1::2] += np.uint64((ord(name[0]) % 4) << 16)
        part.down = words.tobytes()


def garbage_up(part, name, n):
    if not part.name and part.up:
        part.up = np.random.default_rng(n).bytes(len(part.up))


def is_letter(part):
    return part.name.isdecimal()


def other_candidates(part, name, n):
    """What it says of one candidate is of another."""
    if is_letter(part):
        head = np.frombuffer(part.up, "<u4", 3)
        lanes = np.frombuffer(part.up, "<u4", head[2], 12)
        values = np.frombuffer(part.up[12 + 4 * head[2] :], "<f8")
        part.up = head.tobytes() + lanes.tobytes() + values[::-1].tobytes()


def candidates_that_are_none(part, name, n):
    if part.name:
        part.name = f"{10**9 + n} {n}"


def forged_tracks(part, name, n):
    """Values of tracks turned round and made large, in letters that are otherwise good."""
    if is_letter(part):
        head = 12 + 4 * int(np.frombuffer(part.up, "<u4", 3)[2])
        part.up = part.up[:head] + (-50.0 * np.frombuffer(part.up[head:], "<f8")).tobytes()


def cut_letters(part, name, n):
    """Letters that end before their numbers do."""
    if is_letter(part):
        part.up = part.up[:-8]


def no_certificates(part, name, n):
    """Says nothing of the sums of tracks: no candidate is ever certified."""
    if part.name and not is_letter(part):
        part.name = "999999 l"


def set_field(**given):
    def forge(message, name, n):
        for key, value in given.items():
            setattr(message, key, value(n) if callable(value) else value)
        return message

    return envelopes(forge)


def never_adds(message, name, n):
    """Takes part in everything, but no sum of choosing has its part."""
    kept = [part for part in message.sums if part.name]
    del message.sums[:]
    message.sums.extend(kept)
    return message


def begins_anew(chooser):
    """Says something new of itself with every step."""
    true = chooser.step

    def step(now):
        chooser.node.presence.told += 1
        chooser.node._announce(now, is_news=True)
        return true(now)

    chooser.step = step


def bogus_links(chooser):
    """Hears other nobodies all the time."""
    true, n = chooser.step, [0]

    def step(now):
        n[0] += 1
        node = chooser.node
        mine = node.roster.entries[node.name]
        links = (*mine.links, (f"nobody{n[0] % 2}", True))
        forged = dataclasses.replace(mine, links=links, sequence=mine.sequence + 1)
        node.presence._sequence = forged.sequence
        node.roster.put(forged.signed(node.network, node.identity))
        return true(now)

    chooser.step = step


def other_families(chooser):
    """Trains candidates of its own under the names of all."""
    true = chooser._open
    chooser._open = lambda tracks: true([one._replace(C=100.0 * one.C) for one in tracks])


CHOOSING = {
    "more rows than it says": rows_claimed(1e6),
    "fewer rows than none": rows_claimed(-3.0),
    "half a row": terms(lambda term, n: term + 0.5 if n == 1 else term),
    "terms of noise": terms(lambda term, n: term + np.sin(np.arange(len(term)) + n)),
    "terms without end": terms(lambda term, n: term + 2.0**39),
    "terms below zero": terms(lambda term, n: term - 100.0),
    "other lengths": terms(lambda term, n: term[1:] if n > 2 else term),
    "a lie in the tenth sum": terms(lambda term, n: term - 7.0 if n == 10 else term),
    "margins below zero": only_tables(below_zero),
    "margins out of nothing": only_tables(all_at_one_end),
    "fewer errors than none": only_tables(fewer_wrong_than_none),
    "more errors than rows": only_tables(more_wrong_than_rows),
    "other rows for each candidate": only_tables(other_rows_for_each),
    "another total for each child": parts_of(forge_down),
    "sums of garbage": parts_of(garbage_up),
    "candidates swapped": parts_of(other_candidates),
    "candidates that are none": parts_of(candidates_that_are_none),
    "candidates of its own": other_families,
    "values of candidates forged": parts_of(forged_tracks),
    "letters cut short": parts_of(cut_letters),
    "no candidate certified": parts_of(no_certificates),
    "other totals heard": set_field(settings=lambda n: n),
    "questions far ahead": set_field(round=2**62),
    "another epoch": set_field(roster_digest=5),
    "it never adds up": envelopes(never_adds),
    "it says nothing of choosing": envelopes(lambda message, name, n: None),
    "envelopes of garbage": envelopes(lambda m, name, n: np.random.default_rng(n).bytes(500)),
    "it begins anew all the time": begins_anew,
    "it hears other nobodies all the time": bogus_links,
}


def unchecked(chooser, monkeypatch):
    """Let it go on whatever the totals are, as a liar would that knows its own lie."""
    plan, true, is_its_turn = chooser.plan, Others.check, []

    def check(self, mine, total):
        if not is_its_turn:
            true(self, mine, total)

    def lying(mine):
        steps, sent = plan(mine), None
        while True:
            is_its_turn.append(True)
            try:
                asked = steps.send(sent)
            except StopIteration as end:
                return end.value
            finally:
                is_its_turn.clear()
            sent = yield asked

    monkeypatch.setattr(Others, "check", check)
    chooser.plan = lying
