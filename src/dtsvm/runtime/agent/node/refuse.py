"""Every message is checked before it is used; a bad one is refused with a reason, whole."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.entry import Entry, Statement
from dtsvm.runtime.agent.node.frugal import is_frugal
from dtsvm.runtime.agent.node.identity import Identity
from dtsvm.runtime.agent.node.names import NODE_NAME, is_lane, shown
from dtsvm.runtime.agent.node.roster import ROSTER_BYTES, Pair

__all__ = [
    "MOST_COUNT",
    "MOST_TASKS",
    "NUMBER",
    "PROTOCOL",
    "ROSTER_BYTES",
    "News",
    "Refused",
    "Told",
    "parse",
    "read_roster",
    "read_values",
]

PROTOCOL = 6
NUMBER = np.dtype("<f8")
MOST_MEMBERS, MOST_TASKS, MOST_LINKS, MOST_COUPLES = 2048, 1024, 512, 512
MOST_FIELDS = 20_000  # of a message
# Field 12 is the roster, of which field 1 are members, with fields of their own.
INSIDE = ((12, MOST_MEMBERS), (1, MOST_TASKS + MOST_LINKS + MOST_COUPLES + 20))
MOST_COUNT = 2**62  # whatever is counted stays below
MOST_CERTIFICATE, MOST_SIGNATURE, AGREEMENT = 4096, 256, 32  # bytes
ENTRY_BYTES = 500_000  # or two nodes could make rosters too long for any message


class Refused(Exception):
    """A message that changes nothing."""


class Told(NamedTuple):
    """What one end of a link was told by the other."""

    numbers: NDArray[np.float64]  # q, or x and z, which have one axis more
    penalty: bytes  # with which they were made
    check: int  # age at which penalties are balanced, if the numbers are x and z
    square: float  # Σ of their squares; infinite where that is too large for a number


class News(NamedTuple):
    """The values of one message, by (the sender's task, the receiver's task)."""

    round: int
    values: dict[Pair, Told]


def parse(data: bytes, most_bytes: int) -> Any:
    """Decode a message that is neither too long nor damaged."""
    if len(data) > most_bytes:
        raise Refused(f"it is longer than {most_bytes} bytes")
    if not is_frugal(data, MOST_FIELDS, INSIDE):
        raise Refused("it has too many parts")
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
            raise Refused(f"task {shown(task)} has {len(data)} bytes instead of {expected}")
        flat, square = _finite(task, data)
        if len(value.penalty) != 8:
            raise Refused(f"task {shown(task)} does not say its two penalties")
        if pair in values:
            raise Refused(f"task {shown(task)} comes twice")
        values[pair] = Told(flat.reshape(shape), value.penalty, check, square)
    return News(message.round, values)


def _finite(task: str, data: bytes) -> tuple[NDArray[np.float64], float]:
    """Return finite numbers and the sum of their squares."""
    flat = np.frombuffer(data, NUMBER)
    square = float(np.vdot(flat, flat))
    if not square < np.inf and not np.isfinite(flat).all():
        raise Refused(f"task {shown(task)} has a number that is not finite")
    return flat, square


def read_roster(
    roster: Any, network: int, identity: Identity
) -> tuple[list[Entry], dict[str, str]]:
    """Return a roster's entries if every name and number is in its range and its owner signed it.

    Entries whose certificate is good no more are left out, for the sender may not know that yet;
    and so are those that have counted too far by the clock here. Second, why each was.
    """
    if len(roster.members) > MOST_MEMBERS:
        raise Refused("its roster is too long")
    entries = [_entry(member) for member in roster.members]
    if len({entry.name.casefold() for entry in entries}) != len(entries):
        raise Refused("its roster names a node twice, or two nodes alike but for case")
    good: list[Entry] = []
    left_out: dict[str, str] = {}
    latest = identity.latest()
    for entry in entries:
        objection = identity.objection(entry.name, entry.certificate)
        if "revoked" in objection or "expired" in objection:
            left_out[entry.name] = objection
            continue
        if objection:
            raise Refused(f"its roster has an entry of node {entry.name}: {objection}")
        if not identity.is_signed(entry.certificate, entry.content(network), entry.signature):
            raise Refused(f"node {entry.name} did not sign what its roster says of it")
        if entry.count > latest:
            left_out[entry.name] = "it has counted too far for the clock here"
            continue
        good.append(entry)
    return good, left_out


def _entry(member: Any) -> Entry:
    _check_sizes(member)
    tasks = tuple(
        (_task(held.task), int(held.scale), held.labels, int(held.weight)) for held in member.tasks
    )
    links = tuple((_node(link.name), bool(link.is_heard)) for link in member.links)
    if any(abs(scale) > 100 or not -100 <= weight <= 40 for _, scale, _, weight in tasks):
        raise Refused("its roster has features or rows out of all scale")
    if len({task for task, *_ in tasks}) != len(tasks) or len(dict(links)) != len(links):
        raise Refused("its roster names a task or a neighbour twice")
    return Entry(
        _node(member.name), member.incarnation, member.sequence, member.has_left, tasks, links,
        member.round, member.told, _couples(member.couples), member.agreement, member.certificate,
        member.signature,
    )  # fmt: skip


def _check_sizes(member: Any) -> None:
    lists = (member.tasks, MOST_TASKS), (member.links, MOST_LINKS), (member.couples, MOST_COUPLES)
    if any(len(some) > most for some, most in lists):
        raise Refused("its roster has a node with too many tasks, links or couples")
    if member.ByteSize() > ENTRY_BYTES:
        raise Refused(f"its roster has an entry of more than {ENTRY_BYTES} bytes")
    if max(member.incarnation, member.sequence, member.round, member.told) >= MOST_COUNT:
        raise Refused("its roster counts too far")
    if len(member.certificate) > MOST_CERTIFICATE or len(member.signature) > MOST_SIGNATURE:
        raise Refused("its roster has a certificate or a signature that is too long")
    if len(member.agreement) != AGREEMENT:
        raise Refused("its roster has a node without its half of the key agreement")


def _couples(couples: Any) -> tuple[Statement, ...]:
    said = tuple((_task(c.one), _task(c.other), int(c.stamp), bool(c.is_coupled)) for c in couples)
    if any(one >= other for one, other, *_ in said):
        raise Refused("its roster couples tasks out of order")
    if any(stamp >= MOST_COUNT for _, _, stamp, _ in said):
        raise Refused("its roster counts too far")
    if len({pair[:2] for pair in said}) != len(said):
        raise Refused("its roster couples two tasks twice")
    return said


def _node(name: str) -> str:
    if not NODE_NAME.fullmatch(name):
        raise Refused(f"{shown(name)} cannot be the name of a node")
    return name


def _task(name: str) -> str:
    if not is_lane(name):
        raise Refused(f"{shown(name)} cannot be the name of a task")
    return name
