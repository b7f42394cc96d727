"""Clocks: contestants take turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["race", "spread"]

Prepare = Callable[[], Callable[[], Any]]
TURN_SECONDS, MOST_A_TURN = 0.05, 15


def race(
    contestants: dict[str, Prepare], repeats: int, budget_seconds: float = 600.0
) -> dict[str, list[float]]:
    """Time each contestant `repeats` times, in turn; return the seconds of every repeat.

    A contestant prepares outside the clock and returns what is to be timed. What takes thousandths
    of a second is done again and again in its turn, until `TURN_SECONDS` are over, and the median
    counts: the first time it meets caches that others have filled, which those who take long feel
    for a moment only. Past the budget the turn under way is finished and no other one begun.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    started = time.perf_counter()
    for _ in range(repeats):
        for name, prepare in contestants.items():
            gc.collect()
            gc.disable()
            turn = [_timed(prepare)]
            while sum(turn) < TURN_SECONDS and len(turn) < MOST_A_TURN:
                turn.append(_timed(prepare))
            gc.enable()
            seconds[name].append(float(np.median(turn)))
        if time.perf_counter() - started > budget_seconds:
            break
    return seconds


def _timed(prepare: Prepare) -> float:
    action = prepare()
    before = time.perf_counter()
    action()
    return time.perf_counter() - before


def spread(seconds: list[float]) -> dict[str, float]:
    """Sum repeats up for the record."""
    return {
        "median": float(np.median(seconds)),
        "least": min(seconds),
        "most": max(seconds),
        "repeats": len(seconds),
    }
