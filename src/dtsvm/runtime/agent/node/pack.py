"""What a node tells each neighbour, as bytes: nearly all of a message is the same every round."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from dtsvm.rounds import State
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.ends import End, Ends

__all__ = ["Packer", "Pieces"]

Group = Callable[[str], str]
Pieces = list[bytes | memoryview]
IS_TURNED = sys.byteorder != "little"  # numbers here have their highest byte first


class Packer:
    """Packs the numbers of every link end; protobuf fields may be put one after another."""

    def __init__(self, ends: Ends, group: Group) -> None:
        self.ends, self.group = ends, group
        self._state: State = ends.state
        self._made_for: list[End] | None = None
        self._wire = ends.told  # the numbers as they are sent
        self._places: dict[str, list[int]] = {}  # ends, by neighbour
        self._pieces: dict[str, Pieces] = {}  # all that neighbours are told

    def pack(self) -> dict[str, Pieces]:
        """Return q of every end, by neighbour.

        Pieces of a message are put one after another; numbers stay where the ends have them.
        """
        if self._made_for is not self.ends.ends:
            self._frame()
        if IS_TURNED:
            self._wire[:] = self.ends.told
        return self._pieces

    def measured(
        self, check: int, age: int, wants: Callable[[str, int], bool]
    ) -> dict[str, Pieces]:
        """Return what was packed last, but x and z to those who want them for a check."""
        return {
            name: [self._measured(i, check) for i in self._places[name]]
            if wants(name, age)
            else pieces
            for name, pieces in self._pieces.items()
        }

    def _frame(self) -> None:
        """Write every end's value once, and keep what comes before its numbers."""
        length = 8 * (self._state.n_features + 1)
        self._made_for = self.ends.ends
        self._wire = self.ends.told.astype("<f8", copy=False)
        self._places, self._pieces = {}, {}
        for i, end in enumerate(self._made_for):
            parts = _parts(end)
            whole = self._value(end, 0, bytes(parts * length))
            numbers = self._wire[i, :parts].data.cast("B")
            self._places.setdefault(end.key[1], []).append(i)
            self._pieces.setdefault(end.key[1], []).extend((whole[: -parts * length], numbers))

    def _measured(self, i: int, check: int) -> bytes:
        """Return x and z of an end instead of q, so that the other can see both residuals."""
        end = self.ends.ends[i]
        parts = _parts(end)
        halves, agents = self._state.tables.ends, self._state.tables.agents
        x = agents["estimate"][halves["owner"][end.half], :parts]
        z = halves["state"][end.half, :parts]
        return self._value(end, check, np.stack([x, z]).astype("<f8", copy=False).tobytes())

    def _value(self, end: End, check: int, numbers: bytes) -> bytes:
        task, _, other = end.key
        group = self.group(task)
        value = wire.Value(
            task=task,
            to_task="" if other == task else other,
            group="" if group == task else group,
            penalty=end.penalty,
            check=check,
            numbers=numbers,
        )
        return bytes(wire.Message(values=[value]).SerializeToString())


def _parts(end: End) -> int:
    """Two parts, common and specific, between agents of one task; else the common one."""
    return 2 if end.key[0] == end.key[2] else 1
