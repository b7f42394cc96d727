"""How hard a link pulls: the penalties η, chosen from the network and the data unless given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["spectral_penalty"]


def spectral_penalty(n: int, ends: NDArray[np.int64], C: float) -> float:
    """η = 16 C^0.15 / √(λ₂ λ_max), from the Laplacian's eigenvalues."""
    laplacian = np.zeros((n, n))
    np.add.at(laplacian, (ends[:, 0], ends[:, 1]), -1.0)
    laplacian -= np.diag(laplacian.sum(1))
    values = np.linalg.eigvalsh(laplacian)
    positive = values[values > 1e-9]
    if not len(positive):
        return 1.0
    return float(16 * C**0.15 / np.sqrt(positive[0] * positive[-1]))
