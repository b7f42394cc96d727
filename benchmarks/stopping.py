"""When a contestant is done: found beforehand, the same way for all, outside the clock."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtsvm import Session
from dtsvm.errors import NotConvergedWarning

__all__ = ["TOLERANCES", "loosest_tol", "rounds_until"]

TOLERANCES = tuple(float(f"{10.0 ** (-k / 4):.3g}") for k in range(2, 29))


class _Reached(Exception):
    pass


def rounds_until(
    live: Session,
    error: Callable[[Session], float],
    target: float,
    most: int,
    hold: int = 1,
    seconds: float | None = None,
) -> int | None:
    """Return after how many rounds the error is at most `target` for `hold` rounds on end.

    None if that takes more than `most` rounds or so many seconds.
    """
    calm = 0

    def look(_: Any) -> None:
        nonlocal calm
        calm = calm + 1 if error(live) <= target else 0
        if calm >= hold:
            raise _Reached

    try:
        live.run(rounds=most + hold - 1, seconds=seconds, on_round=look)
    except _Reached:
        return live.round - hold + 1
    return None


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
