"""What a node that chooses tells a neighbour at a time: parts of sums and letters, in envelopes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.wave import Parcel

__all__ = ["Early", "Waiting", "pack", "read", "written"]

FAIR_BYTES = 2_000_000  # after which another one is begun
PART_BYTES = 200  # that a part takes in memory beside what it says


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


class Waiting:
    """Envelopes that have not been opened, and how long each neighbour's took to be.

    Examples
    --------
    >>> waiting = Waiting()
    >>> waiting.put("b", b"first", 8), waiting.put("b", b"more", 8), waiting.put("c", b"c's", 8)
    (True, False, True)
    >>> list(waiting.take()), waiting.n_bytes
    ([('b', b'first'), ('c', b"c's")], 0)
    """

    def __init__(self) -> None:
        self._some: deque[tuple[str, bytes]] = deque()
        self._bytes: Counter[str] = Counter()  # by neighbour
        self._seconds: dict[str, float] = {}

    @property
    def n_bytes(self) -> int:
        """How much waits."""
        return self._bytes.total()

    def put(self, peer: str, data: bytes, most: float) -> bool:
        """Keep an envelope if its sender has room left; return whether."""
        if self._bytes[peer] + len(data) > most:
            return False
        self._bytes[peer] += len(data)
        self._some.append((peer, data))
        return True

    def take(self) -> Iterator[tuple[str, bytes]]:
        """Return all, the oldest first; they wait no more."""
        while self._some:
            peer, data = self._some.popleft()
            self._bytes[peer] -= len(data)
            yield peer, data

    def spend(self, peer: str, seconds: float) -> None:
        """Count how long it took to open what a neighbour said."""
        self._seconds[peer] = self._seconds.get(peer, 0.0) + seconds

    def spent(self) -> dict[str, float]:
        """Return the seconds that were counted since this was asked, by neighbour."""
        found, self._seconds = self._seconds, {}
        return found


class Early:
    """Parts for what has not begun here yet; no neighbour takes the others' room.

    Examples
    --------
    >>> early = Early()
    >>> early.put(3, "b", wire.Sum(name="3", up=b"letter"), 1e6)
    >>> [(peer, part.up) for peer, part in early.pop(3)], early.pop(3)
    ([('b', b'letter')], [])
    """

    def __init__(self) -> None:
        self._parts: dict[int, list[tuple[str, Any]]] = {}  # by question
        self._used: Counter[str] = Counter()  # bytes, by neighbour

    def put(self, question: int, peer: str, part: Any, most: float) -> None:
        """Keep a part, without the envelope that it came in, if the neighbour has room left."""
        n = part.ByteSize() + PART_BYTES
        if self._used[peer] + n <= most:
            self._used[peer] += n
            kept = wire.Sum.FromString(part.SerializeToString())
            self._parts.setdefault(question, []).append((peer, kept))

    def pop(self, question: int) -> list[tuple[str, Any]]:
        """Return what waited for this question."""
        found = self._parts.pop(question, [])
        for peer, part in found:
            self._used[peer] -= part.ByteSize() + PART_BYTES
        return found
