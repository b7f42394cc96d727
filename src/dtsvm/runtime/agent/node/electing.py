"""Choosing C under differential privacy: one noisy sum of errors, and all take the same candidate.

Every candidate has trained for some rounds, all on the same rows and with noise; the network has
agreed on what each of them says. Every node counts the errors of each on its own rows, with noise,
once. All are sent the same total, so all choose the same. Who has chosen never chooses again: when
the network changes and the sum is made anew, it adds its voice, and voices count before errors. So
newcomers, and who was away, choose as the others did.

Nobody goes by a total before all its neighbours have named the same one. Who hears of another, or
that somebody has, takes the candidate with least noise instead.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import NetworkError
from dtsvm.runtime.agent.node.collective import Collective
from dtsvm.runtime.agent.node.wave import Wave

__all__ = ["Electing", "decide"]

Floats = NDArray[np.float64]


def decide(total: Floats) -> int:
    """Return the candidate with most voices, if there are any, or else with fewest errors.

    Candidates are in the order of falling C; of equals the last is taken, which has least noise.

    Examples
    --------
    >>> decide(np.array([20.4, 3.1, 7.0, 0, 0, 0])), decide(np.array([20.4, 3.1, 7.0, 1, 0, 0]))
    (1, 0)
    """
    errors, voices = np.split(total, 2)
    best = voices if voices.max(initial=0.0) >= 0.5 else -errors
    return int(len(best) - 1 - np.argmax(best[::-1]))


@dataclass
class Electing(Collective):
    """One node's part in choosing.

    Parameters
    ----------
    name, network, roster, identity
        As in `Collective`.
    n_candidates : int
        How many there are.
    counted : callable
        Returns the errors of each candidate on the rows here, with noise; None before all have
        trained long enough.
    chosen : callable
        Returns what was chosen here before, or None.
    """

    n_candidates: int = 0
    counted: Callable[[], Floats | None] = lambda: None
    chosen: Callable[[], int | None] = lambda: None
    _found: int | None = None
    _have_chosen: set[str] = field(default_factory=set)  # neighbours that said so
    _agree: set[str] = field(default_factory=set)  # neighbours that named the same total

    protocol = 903
    title = "candidates"

    def step(self) -> None:
        """Go as far as what is known allows."""
        wave = self._fresh()
        if wave.total is not None and self._found is None:
            self._found = decide(wave.total)
        elif not wave.is_open:
            self._called(wave, 1)
        if self._found is not None:
            self._heard_of |= set(self.roster.neighbours(self.name)) - self._agree

    @property
    def choice(self) -> int | None:
        """What the network chose; None before it is known."""
        self._fresh()
        if self._is_in_doubt:
            return self.n_candidates - 1
        return self._found if self._agree >= set(self.roster.neighbours(self.name)) else None

    @property
    def is_busy(self) -> bool:
        """Whether errors are being added up just now."""
        wave = self._wave
        return self.choice is None and wave is not None and max(wave.wanted, wave.done) > 0

    def _called(self, wave: Wave, number: int) -> None:
        if number != 1 or wave.total is not None:
            return
        before = self.chosen()
        voices, errors = np.zeros(self.n_candidates), None
        if before is not None:
            voices[before] = 1.0
        with suppress(NetworkError):  # the budget cannot be written: tried again
            errors = self.counted()
            if errors is not None or before is not None or self._have_chosen:
                mine = np.zeros(self.n_candidates) if errors is None else errors
                wave.begin(1, np.concatenate([mine, voices]))

    def _said(self, neighbour: str) -> dict[str, Any]:
        return {"chosen": self.chosen() is not None, "agrees": neighbour in self._agree}

    def _heard(self, peer: str, said: Any) -> None:
        if said["chosen"]:
            self._have_chosen.add(peer)  # it counts no more: whoever has not counted need not wait
        if self._found is not None and said["total"]:  # another total is a matter of `_hear`
            self._agree.add(peer)
            if not said["agrees"]:
                self._heard_of.add(peer)

    def _changed(self, wave: Wave, was_open: bool) -> None:
        self._found, self._agree = None, set()
