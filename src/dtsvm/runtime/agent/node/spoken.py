"""Messages beside those of training: a protocol number of their own, and JSON where text stands.

Whatever a neighbour can make of such a message is counted, and changes nothing.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

from dtsvm.runtime.agent.node import wire_pb2 as wire

__all__ = ["first_bytes", "is_spoken", "said_by", "speak", "survives"]

MOST_BYTES = 4_000_000


@functools.cache
def first_bytes(protocol: int) -> bytes:
    """Return how messages of a protocol begin: its number is their first field."""
    return bytes(wire.Message(protocol=protocol).SerializeToString())


def is_spoken(protocol: int, data: bytes) -> bool:
    """Whether a message has this protocol: that is its first field.

    Examples
    --------
    >>> is_spoken(901, speak(901, 7, "a", {"hello": 1})), is_spoken(901, b"hello")
    (True, False)
    """
    return data.startswith(first_bytes(protocol))


def speak(protocol: int, network: int, sender: str, said: Mapping[str, Any]) -> bytes:
    """Return a message."""
    message = wire.Message(
        protocol=protocol, network=network, sender=sender, said_settings=json.dumps(said)
    )
    return bytes(message.SerializeToString())


def said_by(peer: str, network: int, data: bytes, most_bytes: int = MOST_BYTES) -> Any:
    """Return what a neighbour says, if it is the sender and means this network."""
    if len(data) > most_bytes:
        raise ValueError("too long")
    message = wire.Message.FromString(data)
    if message.sender != peer or message.network != network:
        raise ValueError("not for this node")
    return json.loads(message.said_settings)


def survives(work: Callable[[], Any]) -> bool:
    """Whether what a neighbour said could be taken without an error.

    Examples
    --------
    >>> survives(lambda: 1), survives(lambda: 1 / 0)
    (True, False)
    """
    try:
        work()
    except Exception:
        return False
    return True
