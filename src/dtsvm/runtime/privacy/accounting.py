"""How much noise a budget asks for: Rényi accounting of Gaussian noise, by `dp-accounting`."""

from __future__ import annotations

from functools import cache
from math import sqrt
from typing import Any

from dtsvm.errors import MissingExtraError

__all__ = ["noise_multiplier", "shared_multiplier", "spent_epsilon"]


@cache
def noise_multiplier(epsilon: float, delta: float, rounds: int) -> float:
    """Return σ / sensitivity such that so many messages with fresh noise are (ε, δ)-private.

    Examples
    --------
    >>> round(noise_multiplier(3.0, 1e-5, 1), 2)
    1.49
    >>> round(noise_multiplier(3.0, 1e-5, 4), 2)
    2.99
    """
    # n Gaussians with multiplier m √n compose, in every Rényi order, to one with multiplier m.
    low = high = 0.05
    while spent_epsilon(high, delta, 1) > epsilon:
        low, high = high, 2.0 * high
    while high - low > 1e-6 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if spent_epsilon(middle, delta, 1) > epsilon else (low, middle)
    return high * sqrt(rounds)


def shared_multiplier(epsilon: float, delta: float, share: float, n: int) -> float:
    """Return σ / sensitivity of each of n sums that together have this share of the budget.

    In every Rényi order a Gaussian with multiplier m costs in proportion to 1/m², and costs add
    up: shares of ε's whole 1/m² that come to 1 come to ε.

    Examples
    --------
    >>> round(shared_multiplier(3.0, 1e-5, 0.25, 1) / noise_multiplier(3.0, 1e-5, 1), 6)
    2.0
    """
    return noise_multiplier(epsilon, delta, n) / sqrt(share)


def spent_epsilon(multiplier: float, delta: float, rounds: int) -> float:
    """Return ε after so many messages, each with fresh noise of `multiplier` sensitivities."""
    if rounds == 0:
        return 0.0
    accounting = _accounting()
    accountant = accounting.rdp.RdpAccountant()
    accountant.compose(accounting.GaussianDpEvent(multiplier), rounds)
    return float(accountant.get_epsilon(delta))


def _accounting() -> Any:
    try:
        import dp_accounting
        import dp_accounting.rdp
    except ImportError:
        raise MissingExtraError(
            "Differential privacy needs dp-accounting, which is not installed. "
            'Install it with: pip install "dtsvm[privacy]"'
        ) from None
    return dp_accounting
