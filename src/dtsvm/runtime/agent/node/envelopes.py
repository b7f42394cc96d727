"""What a node that chooses tells a neighbour at a time: parts of sums and letters, in envelopes."""

from __future__ import annotations

from typing import Any

from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.wave import Parcel

__all__ = ["pack", "read", "written"]

FAIR_BYTES = 2_000_000  # after which another one is begun


def written(name: str, parcel: Parcel) -> Any:
    """Return a parcel as part of an envelope."""
    wanted, done, up, down = parcel.wanted, parcel.done, parcel.up, parcel.down
    return wire.Sum(name=name, wanted=wanted, done=done, up=up, down=down)


def read(part: Any) -> Parcel:
    """Return a part of an envelope as a parcel."""
    return Parcel(part.wanted, part.done, part.up, part.down)


def pack(head: Any, parts: list[Any]) -> list[bytes]:
    """Put parts into as few envelopes as are of a fair length, each with this head."""
    out: list[Any] = []
    size = 0
    for part in parts:
        n = len(part.up) + len(part.down)
        if not out or size + n > FAIR_BYTES:
            out.append(wire.Message())
            out[-1].CopyFrom(head)
            size = 0
        out[-1].sums.append(part)
        size += n
    return [bytes(message.SerializeToString()) for message in out]
