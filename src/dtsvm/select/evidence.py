"""What margins say of each candidate: a slope that makes them comparable, then a loss a task."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dtsvm.select.margins import GRID, Margins

__all__ = ["losses", "slopes"]

Floats = NDArray[np.float64]
RIDGE = 1e-3


def slopes(margins: Margins) -> Floats:
    """One logistic slope a candidate, over all rows: a = argmin Σ log(1 + exp(−a z)) + ½ρa².

    By Newton's method on z in units of the candidate's mean |z|, steps of at most 1; ρ = 1e-3.
    """
    counts = margins.counts.sum(axis=0)
    a = np.ones(len(counts))
    for _ in range(30):
        q = _wrongness(a[:, None] * GRID)
        slope = RIDGE * a - (counts * q * GRID).sum(axis=1)
        curvature = (counts * q * (1 - q) * GRID**2).sum(axis=1) + RIDGE
        a = np.maximum(a - np.clip(slope / curvature, -1, 1), 1e-3)
    return np.asarray(a / margins.scale)


def losses(margins: Margins, slope: Floats, tau: float = 1.0) -> Floats:
    """Logistic loss of each task and candidate, at a slope of the task's own.

    L = min over l of Σ log(1 + exp(−eˡ a z)) + l²/2τ²: the task's slope is log-normal around the
    candidate's a.
    """
    z = GRID * (margins.scale * slope)[:, None]
    counts = margins.counts
    log_slope = np.zeros(counts.shape[:2])
    for _ in range(20):
        az = np.exp(log_slope)[:, :, None] * z
        q = _wrongness(az)
        pull = -(counts * q * az).sum(axis=2) + log_slope / tau**2
        curvature = (counts * q * (1 - q) * az**2).sum(axis=2) + 1 / tau**2
        step = np.clip(pull / curvature, -0.7, 0.7)
        log_slope = np.clip(log_slope - step, -4, 4)
        if np.abs(step).max(initial=0.0) < 1e-9:
            break
    az = np.exp(log_slope)[:, :, None] * z
    loss = (counts * np.logaddexp(0, -az)).sum(axis=2)
    return np.asarray(loss + log_slope**2 / (2 * tau**2))


def _wrongness(az: Floats) -> Floats:
    """1 / (1 + exp(az)): how wrong a logistic model thinks a row is."""
    return np.asarray(1 / (1 + np.exp(np.clip(az, -40, 40))))
