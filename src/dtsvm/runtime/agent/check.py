"""Every message is checked before it is used; a bad one is refused with a reason, whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from dtsvm.runtime.agent import wire_pb2 as wire
from dtsvm.runtime.agent.roster import Entry, Pair

__all__ = ["NODE_NAME", "PROTOCOL", "News", "Refused", "parse", "read_roster", "read_values"]

PROTOCOL = 1
NODE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,61}[A-Za-z0-9])?")
MOST_NAME, MOST_MEMBERS, MOST_TASKS, MOST_COUPLES = 128, 4096, 256, 65536
MOST_COUNT = 2**62  # larger incarnations, sequences and rounds leave no room to answer
ROSTER_BYTES = 4_000_000


class Refused(Exception):
    """A message that changes nothing."""


@dataclass(frozen=True)
class News:
    """The values of one message: q by (the sender's task, the receiver's task)."""

    round: int
    values: dict[Pair, NDArray[np.float64]]


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
    values: dict[Pair, NDArray[np.float64]] = {}
    for value in message.values:
        pair = (value.task, value.to_task or value.task)
        rows = 2 if pair[0] == pair[1] else 1
        if len(value.numbers) != 8 * rows * n_numbers:
            raise Refused(
                f"task {pair[0]!r} has {len(value.numbers)} bytes instead of {8 * rows * n_numbers}"
            )
        numbers = np.frombuffer(value.numbers, "<f8").reshape(rows, n_numbers)
        if not np.isfinite(numbers).all():
            raise Refused(f"task {pair[0]!r} has a number that is not finite")
        if pair in values:
            raise Refused(f"task {pair[0]!r} comes twice")
        values[pair] = numbers
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


def _entry(member: Any) -> Entry:
    if len(member.tasks) > MOST_TASKS or len(member.links) > MOST_MEMBERS:
        raise Refused("its roster has a node with too many tasks or links")
    if member.incarnation >= MOST_COUNT or member.sequence >= MOST_COUNT:
        raise Refused("its roster counts too far")
    tasks = tuple((_task(holding.task), int(holding.scale)) for holding in member.tasks)
    links = tuple((_node(link.name), bool(link.is_heard)) for link in member.links)
    if any(abs(scale) > 200 for _, scale in tasks):
        raise Refused("its roster has features out of all scale")
    if len(dict(tasks)) != len(tasks) or len(dict(links)) != len(links):
        raise Refused("its roster names a task or a neighbour twice")
    return Entry(
        _node(member.name), member.incarnation, member.sequence, member.has_left, tasks, links
    )


def _node(name: str) -> str:
    if not NODE_NAME.fullmatch(name):
        raise Refused(f"{name[:80]!r} cannot be the name of a node")
    return name


def _task(name: str) -> str:
    if not 0 < len(name) <= MOST_NAME:
        raise Refused(f"{name[:80]!r} cannot be the name of a task")
    return name
