"""How much of each candidate a task gets: a posterior whose prior is learnt from all tasks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp

__all__ = ["chance_of_company", "given_prior", "likelihoods", "weights"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def weights(
    loss: Floats,
    is_alone: Mask,
    *,
    votes: Mask | None = None,
    strength: float = 1.0,
    floor: float = 0.1,
) -> tuple[Floats, Floats]:
    """Return every task's weights over candidates, and the prior, by expectation maximisation.

        R[t, m] ∝ prior[m] exp(−L[t, m]),    prior[m] ← (Σ_t R[t, m] + α/M) / (T + α)

    Parameters
    ----------
    loss : ndarray of shape (n_tasks, n_candidates)
        Out-of-fold logistic loss.
    is_alone : ndarray of shape (n_candidates,)
        The candidates that train a task alone.
    votes : ndarray of shape (n_tasks,), optional
        From which tasks the prior is learnt; all by default.
    strength : float
        α, how many tasks an even prior counts for.
    floor : float
        What candidates that train alone keep of the prior together, at least.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import weights
    >>> R, prior = weights(np.array([[9.0, 4.0], [8.0, 5.0], [3.0, 9.0]]), np.array([True, False]))
    >>> R.round(2).tolist()
    [[0.0, 1.0], [0.03, 0.97], [1.0, 0.0]]
    """
    heard = loss if votes is None else loss[votes]
    n_tasks, m = heard.shape
    likelihood = np.exp(heard.min(axis=1, keepdims=True, initial=np.inf) - heard)
    prior, add = np.full(m, 1 / m), np.add.reduce  # as `sum`, less on the way
    for _ in range(200):
        R = prior * likelihood
        R /= add(R, axis=1, keepdims=True)
        new = _floored((add(R) + strength / m) / (n_tasks + strength), is_alone, floor)
        if np.abs(new - prior).max() < 1e-6:
            break
        prior = new
    return given_prior(loss, prior), prior


def given_prior(loss: Floats, prior: Floats) -> Floats:
    """R[t, m] ∝ prior[m] exp(−L[t, m])."""
    R = np.log(prior + 1e-300) - loss
    R = np.exp(R - R.max(axis=1, keepdims=True))
    return np.asarray(R / R.sum(axis=1, keepdims=True))


def likelihoods(loss: Floats, prior: Floats, some: Mask) -> Floats:
    """Return log Σ_m p[m] exp(−L[t, m]) over some candidates, p their share of the prior.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select.posterior import likelihoods
    >>> likelihoods(np.array([[2.0, 1.0, 1.0]]), np.full(3, 1 / 3), np.array([False, True, True]))
    array([-1.])
    """
    if not some.any():
        return np.full(len(loss), -np.inf)
    share = np.log(prior[some] + 1e-300)
    return np.asarray(logsumexp(share - loss[:, some], axis=1) - logsumexp(share))


def chance_of_company(log_ratio: Floats, votes: Mask | None = None) -> Floats:
    """Return how likely every task is one that company serves better than training alone.

        c_t = π_t K_t / (π_t K_t + 1 − π_t),   π_t = (Σ_{s ≠ t} c_s + 1) / (T + 1)

    What a task may expect is what the others have found, by Laplace's rule of succession: of two
    others it learns little, of forty much.

    Parameters
    ----------
    log_ratio : ndarray of shape (n_tasks,)
        log K, how much likelier company makes a task's held-out margins than alone does.
    votes : ndarray of shape (n_tasks,), optional
        From which tasks others learn; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select.posterior import chance_of_company
    >>> chance_of_company(np.log([1.0, 9.0, 9.0])).round(2).tolist()
    [0.72, 0.95, 0.95]
    >>> chance_of_company(np.log([1.0] + [9.0] * 30)).round(2)[0].item()
    0.96
    """
    heard = np.ones(len(log_ratio)) if votes is None else votes.astype(np.float64)
    chance = np.full(len(log_ratio), 0.5)
    for _ in range(200):
        told = chance * heard
        expected = (told.sum() - told + 1.0) / (heard.sum() - heard + 2.0)
        new = expit(logit(expected) + log_ratio)
        is_done = np.abs(new - chance).max(initial=0.0) < 1e-9
        chance = new
        if is_done:
            break
    return np.asarray(chance)


def _floored(prior: Floats, is_alone: Mask, floor: float) -> Floats:
    alone = float(np.add.reduce(prior[is_alone]))
    if alone >= floor or is_alone.all():
        return prior
    inside = prior / alone if alone > 1e-12 else 1 / is_alone.sum()
    return np.asarray(np.where(is_alone, floor * inside, prior * (1 - floor) / (1 - alone)))
