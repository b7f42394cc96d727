"""How good the network is on rows that nobody trained on: each node counts its own, sums travel.

Whoever is asked begins a masked sum; who hears of it adds its own counts. Of every task that is
what was taken for what, and how decision values are spread, from which the ROC curve follows.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.identity import Identity
from dtsvm.runtime.agent.node.masks import pairs
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.node.wave import Parcel, Tree, Wave

__all__ = ["BINS", "Scoring", "count_answers", "is_scoring"]

# As in `preparing`: a protocol number of its own.
PROTOCOL = 901
_FIRST = wire.Message(protocol=PROTOCOL).SerializeToString()
BINS = 128  # of decision values, half of them above 0
MOST_BYTES = 4_000_000
Floats = NDArray[np.float64]


def is_scoring(data: bytes) -> bool:
    """Whether a message belongs to scoring: its first field is the protocol."""
    return data.startswith(_FIRST)


def count_answers(values: Floats, codes: NDArray[np.int64], n_labels: int) -> Floats:
    """Count what decision values say of rows whose label is the `codes`-th of their task's.

    Of two labels, values v by v/(1 + |v|) in equal bins: first of negative rows, then of positive
    ones. Of more, the confusion table, line by line.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_lanes)
        Decision values, of one lane or one for each label.
    codes : ndarray of int
        Labels.
    n_labels : int
        How many labels there are.

    Examples
    --------
    >>> import numpy as np
    >>> found = count_answers(np.array([[-1.0], [2.0], [3.0]]), np.array([0, 0, 1]), 2)
    >>> [float(part.sum()) for part in (found[:BINS], found[BINS:], found[BINS // 2 : BINS])]
    [2.0, 1.0, 1.0]
    >>> count_answers(np.eye(3), np.array([0, 1, 1]), 3).reshape(3, 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    """
    if n_labels > 2:
        cell = codes * n_labels + values.argmax(axis=1) if len(codes) else codes
        return np.bincount(cell, minlength=n_labels**2).astype(float)
    values = values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0]
    place = np.clip((values / (1 + np.abs(values)) + 1) / 2 * BINS, 0, BINS - 1).astype(int)
    place = np.where(values > 0, np.maximum(place, BINS // 2), np.minimum(place, BINS // 2 - 1))
    return np.concatenate(
        [np.bincount(place[codes == k], minlength=BINS).astype(float) for k in (0, 1)]
    )


@dataclass
class Scoring:
    """One node's part in scoring. It has no clock and no sockets.

    Parameters
    ----------
    name : str
        The node.
    network : int
        The network's id.
    roster : Roster
        Who is there, and who holds which task.
    identity : Identity
        With whom secrets are shared.
    count : callable
        Returns this node's counts of a task that has so many lanes, as `count_answers` does.
    """

    name: str
    network: int
    roster: Roster
    identity: Identity
    count: Callable[[str, int], Floats]
    refused: int = 0
    _wave: Wave | None = None
    _tasks: dict[str, int] = field(default_factory=dict)  # and their lanes
    _heard_of: set[str] = field(default_factory=set)

    def ask(self) -> None:
        """Begin a sum, unless one is under way."""
        wave = self._fresh()
        if not wave.is_open:
            self._add(wave, max(wave.wanted, wave.done) + 1)

    def result(self) -> dict[str, Floats] | None:
        """Return the counts of every task, if the sum that was asked for is there."""
        wave = self._fresh()
        if wave.is_open or wave.total is None:
            return None
        lengths = [2 * BINS if n < 3 else n * n for n in self._tasks.values()]
        parts = np.split(wave.total, np.cumsum(lengths)[:-1]) if lengths else []
        return dict(zip(self._tasks, parts, strict=True))

    def _fresh(self) -> Wave:
        """The wave of the network as it is now."""
        if self._wave is None or self._wave.epoch != self.roster.digest:
            names, links = self.roster.map(self.name)
            tree = Tree.of(self.name, links)
            lanes = self.roster.main_lanes(names)
            self._tasks = {task: len(some) for task, some in sorted(lanes.items())}
            was_open = self._wave is not None and self._wave.is_open
            self._wave = Wave("scores", tree, self.roster.digest, lambda: self._secrets(names))
            if was_open:
                self._add(self._wave, 1)
        return self._wave

    def _secrets(self, names: list[str]) -> list[tuple[bytes, bool]]:
        others = pairs(self.name, names, self.roster.neighbours(self.name))
        halves = [(other, self.roster.entries[other].agreement) for other in others]
        return [(self.identity.shared(half), self.name < other) for other, half in halves]

    def _add(self, wave: Wave, number: int) -> None:
        counts = [self.count(task, n) for task, n in self._tasks.items()]
        wave.begin(number, np.concatenate([np.zeros(0), *counts]))

    # Saying and being told

    def owed(self) -> dict[str, bytes]:
        """Return what neighbours lack, by neighbour."""
        wave = self._wave
        if wave is None:
            return {}
        around = self.roster.neighbours(self.name)
        found = {n for n in around if wave.is_open or wave.has_something_for(n)} | self._heard_of
        self._heard_of = set()
        return {name: self._message(name, wave) for name in found if name in around}

    def _message(self, neighbour: str, wave: Wave) -> bytes:
        parcel = wave.parcel(neighbour)
        up, down = (base64.b64encode(part).decode() for part in (parcel.up, parcel.down))
        said = {"epoch": wave.epoch, "parcel": [parcel.wanted, parcel.done, up, down]}
        return bytes(
            wire.Message(
                protocol=PROTOCOL, network=self.network, sender=self.name,
                said_settings=json.dumps(said),
            ).SerializeToString()
        )  # fmt: skip

    def hear(self, peer: str, data: bytes) -> None:
        """Take a neighbour's message; a bad one is counted and changes nothing."""
        try:
            self._hear(peer, data)
        except Exception:  # whatever a neighbour can make of a message
            self.refused += 1

    def _hear(self, peer: str, data: bytes) -> None:
        message = wire.Message.FromString(data[:MOST_BYTES])
        if message.sender != peer or message.network != self.network:
            raise ValueError("not for this node")
        said = json.loads(message.said_settings)
        wanted, done, up, down = said["parcel"]
        wave = self._fresh()
        if said["epoch"] != wave.epoch:
            return
        parcel = Parcel(int(wanted), int(done), base64.b64decode(up), base64.b64decode(down))
        if not 0 <= parcel.wanted <= max(wave.wanted, wave.done) + 1:
            raise ValueError("a number out of turn")
        wave.hear(peer, parcel)
        if parcel.wanted > max(wave.wanted, wave.done):
            self._add(wave, parcel.wanted)
        if parcel.down:
            self._heard_of.add(peer)  # it waits to hear that this has come
