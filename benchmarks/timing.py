"""Clocks: contestants take turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["race", "spread"]

Prepare = Callable[[], Callable[[], Any]]


def race(
    contestants: dict[str, Prepare], repeats: int, budget_seconds: float = 600.0
) -> dict[str, list[float]]:
    """Time each contestant `repeats` times, in turn; return the seconds of every repeat.

    A contestant prepares outside the clock and returns what is to be timed. Past the budget the
    turn under way is finished and no other one begun.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    started = time.perf_counter()
    for _ in range(repeats):
        for name, prepare in contestants.items():
            action = prepare()
            gc.collect()
            gc.disable()
            try:
                before = time.perf_counter()
                action()
                seconds[name].append(time.perf_counter() - before)
            finally:
                gc.enable()
        if time.perf_counter() - started > budget_seconds:
            break
    return seconds


def spread(seconds: list[float]) -> dict[str, float]:
    """Sum repeats up for the record."""
    return {
        "median": float(np.median(seconds)),
        "least": min(seconds),
        "most": max(seconds),
        "repeats": len(seconds),
    }
