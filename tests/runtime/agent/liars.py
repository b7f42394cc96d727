"""A neighbour with a valid certificate that lies: what it sends instead of what it should."""

import dataclasses

import numpy as np

from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.entry import Entry
from dtsvm.runtime.agent.node.identity import Nameless
from dtsvm.runtime.agent.node.roster import Roster


class Liar:
    """Changes what a node says, message by message."""

    def __init__(self, node, rng):
        self.node, self.rng, self.n = node, rng, 0
        self.first = {}

    def said(self, messages, how):
        """Return the messages to send instead."""
        self.n += 1
        out = {}
        for name, data in messages.items():
            self.first.setdefault(name, data)
            changed = how(self, name, wire.Message.FromString(data))
            if changed is not None:
                out[name] = changed if isinstance(changed, bytes) else changed.SerializeToString()
        return out

    def entry(self, **change):
        """The node's own entry, changed and signed."""
        mine = self.node.roster.entries[self.node.name]
        return dataclasses.replace(mine, **change).signed(self.node.network, self.node.identity)

    def with_entries(self, message, *entries):
        whole = {**self.node.roster.entries, **{entry.name: entry for entry in entries}}
        message.roster.CopyFrom(Roster(whole).to_wire())
        return message


def numbers(change):
    """Change the numbers of all values."""

    def lie(liar, name, message):
        for value in message.values:
            old = np.frombuffer(value.numbers, "<f8")
            value.numbers = np.asarray(change(liar, old), "<f8").tobytes()
        return message

    return lie


def field(**given):
    """Change fields of the message."""

    def lie(liar, name, message):
        for key, value in given.items():
            setattr(message, key, value(message) if callable(value) else value)
        return message

    return lie


def of_itself(**change):
    """Say something else of itself, signed."""

    def lie(liar, name, message):
        given = {k: v(liar) if callable(v) else v for k, v in change.items()}
        given.setdefault("sequence", liar.node.presence._sequence + 10 * liar.n)
        return liar.with_entries(message, liar.entry(**given))

    return lie


def of_another(**change):
    """Say something of another node, which did not sign it."""

    def lie(liar, name, message):
        others = [n for n in liar.node.roster.entries if n not in (name, liar.node.name)]
        if not others:
            return message
        old = liar.node.roster.entries[others[0]]
        return liar.with_entries(message, dataclasses.replace(old, **change))

    return lie


def sums(change):
    """Change every sum."""

    def lie(liar, name, message):
        for said in message.sums:
            change(liar, said)
        return message

    return lie


def set_on(said, **given):
    for key, value in given.items():
        setattr(said, key, value)


def forge_newcomers(liar, name, message):
    fakes = [Entry(f"fake{i}", 1, 1, agreement=bytes(32)) for i in range(500)]
    return liar.with_entries(message, *fakes)


def two_faces(liar, name, message):
    """Entries of one age that differ by whom they are told to."""
    links = ((name, True),)
    return liar.with_entries(message, liar.entry(sequence=1000 + liar.n, links=links))


def replay(liar, name, message):
    return liar.first[name]


def garbage(liar, name, message):
    return liar.rng.bytes(200)


def noise(size):
    return numbers(lambda liar, x: x + size * liar.rng.normal(size=len(x)))


def with_values(**given):
    def lie(liar, name, message):
        for value in message.values:
            set_on(value, **given)
        return message

    return lie


def by_neighbour(change):
    """Change the numbers of all values, otherwise for each neighbour."""

    def lie(liar, name, message):
        place = sorted(liar.node.mail).index(name)
        return numbers(lambda liar, x: change(liar, x, place))(liar, name, message)

    return lie


def storm(liar, name, message):
    """Begin anew with every message, with another half of the key agreement."""
    message.incarnation = 2 + liar.n
    changed = liar.entry(incarnation=2 + liar.n, sequence=1)
    return liar.with_entries(message, changed)


def old_news(liar, name, message):
    """What all others once said, again and again, in place of what they say now."""
    if not hasattr(liar, "old"):
        liar.old = dict(liar.node.roster.entries)
    mine = liar.node.roster.entries[liar.node.name]
    message.roster.CopyFrom(Roster({**liar.old, liar.node.name: mine}).to_wire())
    message.roster_digest = 1
    return message


def in_certificates(liar, name, message):
    """Honest but while something is certified."""
    if any(said.name[0] == "c" and said.wanted > said.done for said in message.sums):
        return numbers(lambda liar, x: x + 5.0)(liar, name, message)
    return message


def in_checks(x_by, z_by):
    """Forge x and z where they are told for a check: q, which follows from them, stays small."""

    def lie(liar, name, message):
        for value in message.values:
            if value.check:
                x, z = np.frombuffer(value.numbers, "<f8").reshape(2, -1).copy()
                rho = np.frombuffer(value.penalty, "<f4")[0]
                x += x_by
                z += z_by + 2.0 * rho * x_by
                value.numbers = np.stack([x, z]).tobytes()
        return message

    return lie


def many_tasks(liar, name, message):
    held = tuple((f"t{i}", 0, 0, 0) for i in range(200))
    couples = tuple(("one", f"t{i}", 1, True) for i in range(200))
    mine = liar.node.roster.entries[liar.node.name].tasks
    return liar.with_entries(
        message, liar.entry(sequence=1000, tasks=tuple(sorted((*mine, *held))), couples=couples)
    )


def as_much_as_allowed(liar, name, message):
    """An entry as long as is legal: tasks, links and couples with the longest names."""
    mine = liar.node.roster.entries[liar.node.name]
    held = tuple((f"t{i:03}".ljust(128, "x"), 0, 0, 0) for i in range(1000))
    couples = tuple((held[i][0], held[i + 1][0], 1, True) for i in range(500))
    links = (*mine.links, *((f"n{i:03}".ljust(60, "x"), True) for i in range(500)))
    entry = liar.entry(
        sequence=1000 + liar.n // 20, tasks=tuple(sorted((*mine.tasks, *held))), couples=couples,
        links=links,
    )  # fmt: skip
    return liar.with_entries(message, entry)


def as_large_as_allowed(liar, name, message):
    bounds = liar.node._bounds.get("one")
    if bounds is None:
        return message
    direction = liar.rng.normal(size=5)
    return numbers(lambda liar, x: _at_bound(x, direction, bounds))(liar, name, message)


def _at_bound(x, direction, bounds):
    out = np.tile(direction / np.linalg.norm(direction[:-1]), len(x) // 5)
    return 0.9 * bounds.pull * out


def drip(liar, name, message):
    return message if liar.n % 10 == 0 else None


def flapping(liar, name, message):
    message.is_settled, message.calm = liar.n % 2 == 0, 2**31 * (liar.n % 2)
    return message


def ratchet(liar, name, message):
    """Always as far ahead as is believed."""
    liar.ahead = getattr(liar, "ahead", message.round) + 2**31
    message.round = liar.ahead
    return message


def comes_and_goes(liar, name, message):
    """Leaves politely what is as large as allowed, and comes back, again and again."""
    as_large_as_allowed(liar, name, message)
    step = liar.n // 5
    entry = liar.entry(has_left=step % 2 == 1, told=1 + step, sequence=1000 + liar.n)
    return liar.with_entries(message, entry)


def comes_back_in_words(liar, name, message):
    """Says that it has left, and comes back without saying so: its neighbours have news twice."""
    begun = 1000 + liar.n // 2
    message.incarnation = begun + liar.n % 2
    return liar.with_entries(message, liar.entry(has_left=True, incarnation=begun, sequence=1))


def parts_with_its_task(liar, name, message):
    """Holds the task, and then not, and hands over each time."""
    as_large_as_allowed(liar, name, message)
    mine = liar.node.roster.entries[liar.node.name].tasks
    step = liar.n // 5
    tasks = mine if step % 2 else ()
    return liar.with_entries(
        message, liar.entry(tasks=tasks, told=1 + step, sequence=1000 + liar.n)
    )


def restless(change, pace=1.0):
    """Says something new of itself so often a second, for ever."""

    def lie(liar, name, message):
        if not hasattr(liar, "base"):
            liar.base = liar.entry()
        step = int(liar.node.now * pace)
        if getattr(liar, "step", None) != step:  # and nothing else that is new
            said = {**change(liar.base, step), "sequence": 10_000 + step}
            one = dataclasses.replace(liar.base, **said)
            liar.step, liar.last = step, one.signed(liar.node.network, liar.node.identity)
        message.incarnation = liar.base.incarnation
        return liar.with_entries(message, liar.last)

    return lie


def _misses_in_turns(base, step):
    links = ((n, i != step % len(base.links)) for i, (n, _) in enumerate(base.links))
    return {"links": tuple(links)}


RESTLESS = {
    "something new every second": restless(lambda base, step: {"told": step}),
    "misses its neighbours in turns, ten times a second": restless(_misses_in_turns, 10.0),
}

LIES = {
    "round 2^62-1": field(round=2**62 - 1),
    "round 2^64-1": field(round=2**64 - 1),
    "round a million ahead": field(round=lambda m: m.round + 10**6),
    "round that jumps": field(round=lambda m: 3 * m.round + 7),
    "incarnation far ahead": field(incarnation=2**61),
    "other settings": field(settings=5, said_settings='{"C": [[[["\\u001b[2J"]]]]}'),
    "another sender": field(sender="somebody"),
    "always settled": field(is_settled=True),
    "always calm": field(calm=2**31, is_settled=False),
    "never calm": field(calm=0),
    "another roster's digest": field(roster_digest=12345),
    "its entry's round far ahead": of_itself(round=2**61),
    "its entry's sequence far ahead": of_itself(sequence=2**61),
    "its entry's incarnation far ahead": of_itself(incarnation=2**61),
    "it has left, again and again": of_itself(has_left=lambda liar: liar.n % 2 == 0),
    "it hears nobody": of_itself(links=()),
    "it hears everybody": of_itself(links=tuple((n, True) for n in "abcdefgh")),
    "other tasks every time": of_itself(tasks=lambda liar: ((f"t{liar.n}", 0, 0, 0),)),
    "rows out of all scale": of_itself(tasks=(("one", 100, 0, 40),)),
    "it couples what it likes": of_itself(couples=(("one", "zzz", 2**31 - 1, True),)),
    "a key that is none": of_itself(agreement=bytes(32)),
    "two faces": two_faces,
    "rounds as far as the clock allows": field(round=lambda m: Nameless().latest() - 1000),
    "its entry as far as the clock allows": of_itself(
        incarnation=lambda liar: Nameless().latest() - 1000 + liar.n,
        told=lambda liar: Nameless().latest() - 1000,
        round=Nameless().latest() - 10**6,
    ),
    "the last word as far as the clock allows": of_itself(
        couples=(("one", "two", Nameless().latest(), False),)
    ),
    "another node has left": of_another(has_left=True, sequence=2**40),
    "another node begins anew": of_another(incarnation=2**61, sequence=1),
    "another node holds nothing": of_another(tasks=(), sequence=2**40),
    "five hundred newcomers": forge_newcomers,
    "values of 1e300": numbers(lambda liar, x: np.full(len(x), 1e300)),
    "values of 1e11": numbers(lambda liar, x: np.full(len(x), 1e11)),
    "values that are no numbers": numbers(lambda liar, x: np.full(len(x), np.nan)),
    "values of zero": numbers(lambda liar, x: 0 * x),
    "values turned round": numbers(lambda liar, x: -x),
    "values ten times as large": numbers(lambda liar, x: 10 * x),
    "noise": noise(1.0),
    "loud noise": noise(1e4),
    "too few values": numbers(lambda liar, x: x[1:]),
    "values of another penalty": with_values(penalty=np.array([1e30, 1e-30], "<f4").tobytes()),
    "values for a check that is not": with_values(check=10),
    "values of another task": with_values(task="three"),
    "sums of garbage": sums(lambda liar, s: set_on(s, up=liar.rng.bytes(len(s.up)))),
    "totals of garbage": sums(lambda liar, s: set_on(s, down=liar.rng.bytes(len(s.down)))),
    "totals of zero": sums(lambda liar, s: set_on(s, down=bytes(len(s.down)), done=s.wanted)),
    "sums too long": sums(lambda liar, s: set_on(s, up=bytes(10_000))),
    "sums never begun": sums(lambda liar, s: set_on(s, wanted=0, done=0, up=b"", down=b"")),
    "sums far ahead": sums(lambda liar, s: set_on(s, wanted=2**63, done=2**63 - 1)),
    "what it said first, for ever": replay,
    "garbage": garbage,
    "nothing more": lambda liar, name, message: None,
    "other values for each": by_neighbour(lambda liar, x, k: x + (-1.0) ** k * 3.0),
    "values round a circle": by_neighbour(lambda liar, x, k: x + 30.0 * (k - 1.5)),
    "values that drift": numbers(lambda liar, x: x + 0.1 * liar.n),
    "values that swing": numbers(lambda liar, x: x + 5.0 * np.sin(liar.n / 3)),
    "values as large as allowed": as_large_as_allowed,
    "values of another, passed on": numbers(lambda liar, x: x[::-1]),
    "begins anew all the time": storm,
    "what the others once said": old_news,
    "other keys every time": of_itself(agreement=lambda liar: bytes([liar.n % 250 + 1] * 32)),
    "two hundred tasks in one group": many_tasks,
    "five hundred links": of_itself(links=tuple((f"n{i}", True) for i in range(500))),
    "the last word on tasks": of_itself(couples=(("one", "two", 2**31 - 1, False),)),
    "features out of all scale": of_itself(tasks=(("one", -100, 0, 2),)),
    "other labels": of_itself(tasks=(("one", 0, 12345, 2),)),
    "lies in certificates alone": in_certificates,
    "x and z that cancel at checks": in_checks(1e6, 0.0),
    "z of its own at checks": in_checks(0.0, 1e3),
    "a word in ten": drip,
    "settled and not, in turns": flapping,
    "always far ahead": ratchet,
    "settings without end": field(said_settings="x" * 1_000_000),
    "comes and goes with much to hand over": comes_and_goes,
    "has left, and goes on talking": comes_back_in_words,
    "parts with its task again and again": parts_with_its_task,
    "it was told all the time": of_itself(told=lambda liar: liar.n),
    "a roster's digest of every kind": field(roster_digest=lambda m: m.round * 7919 + 1),
}

# Too slow to be tried in memory: every message is as long as is legal.
HEAVY = {"as much of itself as may be said": as_much_as_allowed}
