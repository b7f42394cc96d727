"""Noise of differential privacy: how far a row moves what is told, and what covers that."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dtsvm.errors import NetworkError

__all__ = ["SLACK", "Draw", "check_weights", "clip", "noised", "sensitivity", "true_normal"]

Floats = NDArray[np.float64]
Draw = Callable[[int], Floats]
SLACK = 0.01  # by how much more noise is added than exact local solves ask for
GRAIN = 2.0**-10  # of the noise, to which what is told is rounded
ROUNDING = 1e-9


def true_normal(n: int) -> Floats:
    """Draw standard normal numbers from the operating system's own entropy."""
    words = np.frombuffer(os.urandom(8 * n), "<u8") >> np.uint64(11)
    return np.asarray(ndtri((words + 0.5) / 2.0**53))


def noised(exact: Floats, size: Floats, draw: Draw = true_normal) -> Floats:
    """Return numbers with normal noise of these sizes, rounded to about a thousandth of it.

    A sum of two floating-point numbers has low digits that tell its terms apart (Mironov, 2012).
    Rounded so coarsely, every value that can be told stands for thousands of millions of draws,
    whatever was exact: how likely it is differs by less than 1e-9 of itself from what real numbers
    would give, but for noise beyond seven of its sizes.

    Examples
    --------
    >>> noised(np.array([1.00001, 5.0]), np.array([1.0, 0.0]), np.zeros).tolist()
    [1.0, 5.0]
    """
    grain = GRAIN * 2.0 ** np.floor(np.log2(np.where(size > 0.0, size, 1.0)))
    told = np.rint((exact + size * draw(len(exact))) / grain) * grain
    return np.asarray(np.where(size > 0.0, told, exact))


def check_weights(weight: Floats | None, heaviest: float) -> None:
    """Refuse rows that weigh more than noise is made for."""
    most = 0.0 if weight is None else float(np.max(weight, initial=0.0))
    if most > heaviest * (1.0 + ROUNDING):
        raise NetworkError(
            f"A row weighs {most:g}, but under differential privacy none may weigh more than "
            f"{heaviest:g}: noise is in proportion. Write the most that a row may weigh, known "
            "without a look at any row, as weight under [privacy]."
        )


def clip(X: Any, norm: float) -> Any:
    """Return rows, those longer than `norm` shortened to it; CSR rows stay CSR.

    Examples
    --------
    >>> clip([[3.0, 4.0], [0.3, 0.4]], 1.0).round(9).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    if hasattr(X, "tocsr"):
        found = X.tocsr()
        length = np.sqrt(np.asarray(found.multiply(found).sum(axis=1)).ravel())
        share = np.minimum(1.0, norm / np.maximum(length, 1e-300))
        return found.multiply(share[:, None]).tocsr()
    rows = np.asarray(X, float)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.where(length > norm, rows * (norm / np.maximum(length, 1e-300)), rows))


def sensitivity(C: float, norm: float, d_weights: float, d_bias: float) -> float:
    """Return how far g = X̃ᵀYλ of a local problem can move, in ‖D^½ ·‖, if one row is replaced.

    An agent's x is the minimiser of

        F(x) = ½ xᵀUx − zᵀx + C Σ_i ℓ_i(u),    u = x₀ + x₁,    ℓ_i(u) = max(0, 1 − y_i x̃_iᵀu)

    with U > 0 diagonal, and x = U⁻¹(g + z) for both parts: all that its messages tell beyond what
    the neighbours sent is g, and u = D g + m with D = U₀⁻¹ + U₁⁻¹. In u alone the problem is
    ½ ‖u − m‖² in the norm of D⁻¹ plus the losses, so strongly convex with modulus 1 in that norm.
    Let F' have row k in place of row i, and u, u' be the minimisers. Adding the two inequalities
    of strong convexity,

        ‖u − u'‖²_{D⁻¹} ≤ C |(ℓ_k − ℓ_i)(u) − (ℓ_k − ℓ_i)(u')|
                        ≤ C (‖x̃_i‖_D + ‖x̃_k‖_D) ‖u − u'‖_{D⁻¹}

    for ℓ is Lipschitz with constant ‖x̃‖_D in that norm. So, with ‖x‖ ≤ R and g = D⁻¹(u − m),

        ‖g − g'‖_D = ‖u − u'‖_{D⁻¹} ≤ 2 C √(R² d_w + d_b).

    With a weight c_i a row, C c_i stands for C in the losses: rows that weigh at most c move g by
    at most c times as much. A row that several agents of a node train on, one for each of K
    labels, moves the K vectors g together by at most √K times as much: noise √K times as large
    on each is noise for the K messages of a round as one.

    Neither the number of rows nor z, which neighbours may choose as they like, occurs in it. But g
    is found in floating point, to a violation v of 1e-13, or what the rounding of u leaves. Then
    ‖g̃ − g‖²_D ≤ n C v √Q, Q = R² d_w + d_b, for n rows: for that noise is larger by `SLACK`, and
    z so large that more would be left are not taken in (`Noisy.allows`).

    Examples
    --------
    >>> sensitivity(0.1, 1.0, 2.0, 2.0)
    0.4
    """
    return 2.0 * C * float(np.sqrt(norm * norm * d_weights + d_bias))
