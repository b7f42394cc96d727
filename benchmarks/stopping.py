"""When a contestant is done: found beforehand, the same way for all, outside the clock."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from dtsvm import Session
from dtsvm.errors import NotConvergedWarning

__all__ = ["TOLERANCES", "Chase", "loosest_tol"]

TOLERANCES = tuple(float(f"{10.0 ** (-k / 4):.3g}") for k in range(2, 29))


class Chase:
    """A session on its way to a target, looked at now and then.

    It is looked at after every round at first, then whenever the rounds have grown by `resolution`;
    it is there at the first of `hold` looks on end that find the error at most `target`.
    """

    def __init__(
        self,
        live: Session,
        error: Callable[[Session], float],
        target: float,
        *,
        hold: int = 1,
        resolution: float = 0.0,
    ) -> None:
        self.live, self.error, self.target = live, error, target
        self.hold, self.resolution = hold, resolution
        self._calm: list[int] = []

    def run(self, most: int, seconds: float = np.inf) -> int | None:
        """Go on to round `most`; return the round that was there first, or None."""
        live, started = self.live, time.perf_counter()
        while len(self._calm) < self.hold:
            left = most - live.round
            if left <= 0 or time.perf_counter() - started > seconds:
                return None
            live.run(rounds=min(left, max(1, int(self.resolution * live.round))))
            is_there = self.error(live) <= self.target
            self._calm = [*self._calm, live.round] if is_there else []
        return self._calm[0]


def loosest_tol(
    worst: Callable[[float], float],
    target: float,
    tolerances: Sequence[float] = TOLERANCES,
    patience_seconds: float = 600.0,
) -> float | None:
    """Return the largest tolerance whose answer is within `target`; None if it takes too long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        for tol in tolerances:
            started = time.perf_counter()
            reached = worst(tol)
            if np.isfinite(reached) and reached <= target:
                return tol
            if time.perf_counter() - started > patience_seconds:
                return None
    return None
