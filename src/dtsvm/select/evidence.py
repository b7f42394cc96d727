"""What margins say of each candidate: a slope that makes them comparable, then a loss a task."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from dtsvm.select.margins import GRID, Margins

__all__ = ["losses", "slopes"]

Floats = NDArray[np.float64]
RIDGE = 1e-3
STILL = 1e-6  # a step of this size is the last: Newton's next would be its square


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
        step = np.clip(slope / curvature, -1, 1)
        a = np.maximum(a - step, 1e-3)
        if np.abs(step).max(initial=0.0) < STILL:
            break
    return np.asarray(a / margins.scale)


def losses(margins: Margins, slope: Floats, tau: float = 1.0) -> Floats:
    """Logistic loss of each task and candidate, at a slope of the task's own.

    L = min over l of Σ log(1 + exp(−eˡ a z)) + l²/2τ²: the task's slope is log-normal around the
    candidate's a.
    """
    z = GRID * (margins.scale * slope)[:, None]
    n_tasks, m, n_points = margins.counts.shape
    counts = margins.counts.reshape(-1, n_points)
    log_slope = np.zeros(n_tasks * m)
    left = np.arange(n_tasks * m)  # tasks and candidates whose slope still moves
    for _ in range(20):
        own = log_slope[left]
        az = np.exp(own)[:, None] * z[left % m]
        q = _wrongness(az)
        pulls = counts[left] * q * az
        pull = -pulls.sum(axis=1) + own / tau**2
        curvature = (pulls * (1 - q) * az).sum(axis=1) + 1 / tau**2
        step = np.clip(pull / curvature, -0.7, 0.7)
        log_slope[left] = np.clip(own - step, -4, 4)
        left = left[np.abs(step) >= STILL]
        if not len(left):
            break
    log_slope = log_slope.reshape(n_tasks, m)
    az = np.exp(log_slope)[:, :, None] * z
    loss = -(margins.counts * log_expit(az)).sum(axis=2)
    return np.asarray(loss + log_slope**2 / (2 * tau**2))


def _wrongness(az: Floats) -> Floats:
    """1 / (1 + exp(az)): how wrong a logistic model thinks a row is."""
    return np.asarray(expit(-az))
