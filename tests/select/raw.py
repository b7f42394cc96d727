"""The same on raw margins, written straight from the formulas with loops."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit


def softplus(z):
    return np.logaddexp(0.0, -z)


def raw_slope(z):
    """argmin over a of Σ log(1 + exp(−a u)) + ½·1e-3 a², u = z / mean |z|; back in units of z."""
    unit = np.abs(z).mean()
    found = minimize_scalar(
        lambda a: softplus(a * z / unit).sum() + 0.5e-3 * a**2, bounds=(1e-3, 1e3),
        method="bounded", options={"xatol": 1e-10},
    )  # fmt: skip
    return found.x / unit


def raw_loss(z):
    """Σ log(1 + exp(−eˡ z)) + l²/2 after 20 damped Newton steps in l, from l = 0."""
    log_slope = 0.0
    for _ in range(20):
        az = np.exp(log_slope) * z
        q = expit(-az)
        step = (log_slope - q @ az) / (1 + (q * (1 - q)) @ az**2)
        log_slope = np.clip(log_slope - np.clip(step, -0.7, 0.7), -4, 4)
    return softplus(np.exp(log_slope) * z).sum() + log_slope**2 / 2


def raw_losses(decisions, y, task, n_tasks):
    z = y[:, None] * decisions
    slopes = np.array([raw_slope(z[:, m]) for m in range(z.shape[1])])
    return np.array(
        [[raw_loss(slopes[m] * z[task == t, m]) for m in range(z.shape[1])] for t in range(n_tasks)]
    ), slopes


def raw_weights(loss, is_alone, rounds=200):
    """EM from an even prior; alone keeps a tenth of it."""
    n_tasks, m = loss.shape
    prior = np.full(m, 1 / m)
    for _ in range(rounds):
        share = np.array([prior * np.exp(-(row - row.min())) for row in loss])
        share /= share.sum(axis=1, keepdims=True)
        new = (share.sum(axis=0) + 1 / m) / (n_tasks + 1)
        together = new[is_alone].sum()
        if together < 0.1:
            new[is_alone] *= 0.1 / together
            new[~is_alone] *= 0.9 / (1 - together)
        is_done = np.abs(new - prior).max() < 1e-6
        if is_done:
            break
        prior = new
    return share
