"""How good the network is on rows that nobody trained on: each node counts its own, sums travel.

Whoever is asked begins a masked sum; who hears of it adds its own counts. Of every task that is
what was taken for what, and how decision values are spread, from which the ROC curve follows. Who
has rows of a task knows its labels: nothing is counted where another node names others. What the
others counted, all but this node's own, cannot be less than nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import NetworkError
from dtsvm.runtime.agent.node.collective import Collective
from dtsvm.runtime.agent.node.wave import Wave

__all__ = ["BINS", "Scoring", "count_answers"]

BINS = 128  # of decision values, half of them above 0
Floats = NDArray[np.float64]


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
class Scoring(Collective):
    """One node's part in scoring.

    Parameters
    ----------
    name, network, roster, identity
        As in `Collective`.
    count : callable
        Returns this node's counts of a task that has so many lanes, as `count_answers` does.
    """

    count: Callable[[str, int], Floats] = lambda task, n: np.zeros(0)
    _mine: Floats = field(default_factory=lambda: np.zeros(0))  # what was added
    _added: int = 0  # to the sum with this number

    protocol = 901
    title = "scores"

    def ask(self) -> None:
        """Begin a sum, unless one is under way."""
        wave = self._fresh()
        if not wave.is_open:
            self._called(wave, max(wave.wanted, wave.done) + 1)

    def result(self) -> dict[str, Floats] | None:
        """Return the counts of every task, if the sum that was asked for is there."""
        wave = self._fresh()
        if self._is_in_doubt:
            raise NetworkError(
                "Nodes were told different counts: some node lies. Find it, and revoke or unlink "
                "it."
            )
        if wave.is_open or wave.total is None:
            return None
        if not self._is_possible(wave.done, wave.total):
            raise NetworkError(
                "The others together counted less than nothing: some node lies. Find it, and "
                "revoke or unlink it."
            )
        lengths = [2 * BINS if len(some) < 3 else len(some) ** 2 for some in self._lanes.values()]
        total = np.maximum(np.round(wave.total), 0.0)  # noise makes counts of anything
        parts = np.split(total, np.cumsum(lengths)[:-1]) if lengths else []
        return dict(zip(self._lanes, parts, strict=True))

    def _is_possible(self, number: int, total: Floats) -> bool:
        """Whether others can have counted what is not this node's own; noise may be anything."""
        if number != self._added or (self._mine != np.round(self._mine)).any():
            return True
        return bool((total - self._mine > -0.5).all())

    def _called(self, wave: Wave, number: int) -> None:
        self._check_lanes()
        counts = [self.count(task, len(some)) for task, some in self._lanes.items()]
        self._mine, self._added = np.concatenate([np.zeros(0), *counts]), number
        wave.begin(number, self._mine)

    def _check_lanes(self) -> None:
        """Refuse by name who has other labels for a task that is held here."""
        mine = self.roster.main_lanes([self.name])
        for task, lanes in mine.items():
            for node in self.roster.distances(self.name):
                theirs = self.roster.main_lanes([node]).get(task, lanes)
                if theirs != lanes:
                    raise NetworkError(
                        f"Node {node} names other labels of task {task!r} than this node, so "
                        "nothing was counted. Mend that there, or revoke or unlink it."
                    )

    def _changed(self, wave: Wave, was_open: bool) -> None:
        if was_open:
            with suppress(NetworkError):  # whoever asks anew is told
                self._called(wave, 1)
