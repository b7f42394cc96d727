"""Every message is checked before it is used; a bad one is refused with a reason, whole."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.ledger import Level, Tally
from dtsvm.runtime.agent.node.roster import Entry, Pair

__all__ = [
    "NODE_NAME",
    "PROTOCOL",
    "News",
    "Refused",
    "Told",
    "parse",
    "read_ledger",
    "read_roster",
    "read_values",
]

PROTOCOL = 4
NUMBER = np.dtype("<f8")
NODE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,61}[A-Za-z0-9])?")
MOST_NAME, MOST_MEMBERS, MOST_TASKS, MOST_COUPLES = 128, 4096, 256, 65536
MOST_COUNT = 2**62  # larger incarnations, sequences and rounds leave no room to answer
ROSTER_BYTES = 4_000_000
STEPS, N_PRODUCTS = (int(compiled.constants()[name]) for name in ("STEPS", "N_PRODUCTS"))
MOST_LEAP = compiled.constants()["MOST_LEAP"]


class Refused(Exception):
    """A message that changes nothing."""


class Told(NamedTuple):
    """What one end of a link was told by the other."""

    numbers: NDArray[np.float64]  # q, or x and z, which have one axis more
    penalty: bytes  # with which they were made
    check: int  # age at which penalties are balanced, if the numbers are x and z


class News(NamedTuple):
    """The values of one message, by (the sender's task, the receiver's task)."""

    round: int
    values: dict[Pair, Told]


def parse(data: bytes, most_values: int) -> Any:
    """Decode a message that is neither too long nor damaged."""
    if len(data) > ROSTER_BYTES + most_values:
        raise Refused(f"it is longer than {ROSTER_BYTES + most_values} bytes")
    try:
        message = wire.Message.FromString(data)
    except (DecodeError, ValueError, RecursionError):
        raise Refused("it cannot be decoded") from None
    if message.protocol != PROTOCOL:
        raise Refused(f"its protocol is {message.protocol} instead of {PROTOCOL}")
    if message.round >= MOST_COUNT or message.incarnation >= MOST_COUNT:
        raise Refused("it counts too far")
    return message


def read_values(message: Any, n_numbers: int) -> News:
    """Return a message's values if every one has the right length and is finite."""
    values: dict[Pair, Told] = {}
    for value in message.values:
        task, check, data = value.task, value.check, value.numbers
        pair = (task, value.to_task or task)
        rows = 2 if pair[0] == pair[1] else 1
        shape = (2, rows, n_numbers) if check else (rows, n_numbers)
        if len(data) != 8 * rows * n_numbers * (2 if check else 1):
            expected = 8 * rows * n_numbers * (2 if check else 1)
            raise Refused(f"task {task!r} has {len(data)} bytes instead of {expected}")
        flat = np.frombuffer(data, NUMBER)
        if b"\0" in np.isfinite(flat).tobytes():  # half the time of .all()
            raise Refused(f"task {task!r} has a number that is not finite")
        if len(value.penalty) != 8:
            raise Refused(f"task {task!r} does not say its two penalties")
        if pair in values:
            raise Refused(f"task {task!r} comes twice")
        values[pair] = Told(flat.reshape(shape), value.penalty, check)
    return News(message.round, values)


def read_roster(roster: Any) -> tuple[list[Entry], list[Pair]]:
    """Return a roster's entries and couples if every name and number is in its range."""
    if len(roster.members) > MOST_MEMBERS or len(roster.couples) > MOST_COUPLES:
        raise Refused("its roster is too long")
    couples = [(_task(pair.one), _task(pair.other)) for pair in roster.couples]
    if any(one >= other for one, other in couples):
        raise Refused("its roster couples tasks out of order")
    entries = [_entry(member) for member in roster.members]
    if len({entry.name for entry in entries}) != len(entries):
        raise Refused("its roster names a node twice")
    return entries, couples


def read_ledger(ledger: Any) -> tuple[dict[str, Level], list[Tally]]:
    """Return a ledger's levels and tallies if every name and number is in its range."""
    if len(ledger.levels) > MOST_TASKS or len(ledger.tallies) > MOST_MEMBERS * MOST_TASKS:
        raise Refused("its ledger is too long")
    levels = {_task(level.group): _level(level) for level in ledger.levels}
    return levels, [_tally(tally) for tally in ledger.tallies]


def _level(level: Any) -> Level:
    if not all(0 < value < 1e6 for value in (level.weights, level.bias, level.tail)):
        raise Refused(f"its ledger has a level out of all measure for {level.group[:80]!r}")
    if level.decided >= MOST_COUNT:
        raise Refused("its ledger counts too far")
    leap = tuple(level.leap)
    if len(leap) not in (0, STEPS) or not all(abs(value) < MOST_LEAP for value in leap):
        raise Refused(f"its ledger has a leap out of all measure for {level.group[:80]!r}")
    return Level(level.decided, level.weights, level.bias, level.tail, leap)


def _tally(tally: Any) -> Tally:
    found = tuple(tally.found)
    is_long = len(found) == 6 + N_PRODUCTS
    if not (is_long or len(found) == 6) or not all(map(isfinite, found)) or min(found[:6]) < 0:
        raise Refused("its ledger has a tally that is not of squares and products")
    if max(tally.incarnation, tally.round, tally.decided) >= MOST_COUNT:
        raise Refused("its ledger counts too far")
    return Tally(
        _task(tally.group),
        _node(tally.node),
        tally.incarnation,
        tally.round,
        tally.decided,
        tally.check,
        found,
    )


def _entry(member: Any) -> Entry:
    if len(member.tasks) > MOST_TASKS or len(member.links) > MOST_MEMBERS:
        raise Refused("its roster has a node with too many tasks or links")
    if max(member.incarnation, member.sequence, member.round) >= MOST_COUNT:
        raise Refused("its roster counts too far")
    tasks = tuple((_task(held.task), int(held.scale), held.labels) for held in member.tasks)
    links = tuple((_node(link.name), bool(link.is_heard)) for link in member.links)
    if any(abs(scale) > 200 for _, scale, _ in tasks):
        raise Refused("its roster has features out of all scale")
    if len({task for task, *_ in tasks}) != len(tasks) or len(dict(links)) != len(links):
        raise Refused("its roster names a task or a neighbour twice")
    return Entry(
        _node(member.name), member.incarnation, member.sequence, member.has_left, tasks, links,
        member.round,
    )  # fmt: skip


def _node(name: str) -> str:
    if not NODE_NAME.fullmatch(name):
        raise Refused(f"{name[:80]!r} cannot be the name of a node")
    return name


def _task(name: str) -> str:
    if not 0 < len(name) <= MOST_NAME:
        raise Refused(f"{name[:80]!r} cannot be the name of a task")
    return name
