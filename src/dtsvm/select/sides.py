"""Which tasks to turn round before they share, from inner products of their own classifiers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["sides"]

Floats = NDArray[np.float64]
PASSES = 20
NOTHING = 1e-3  # of the longest classifier: a task whose best weights are 0 has no direction


def sides(own: Floats, n_rows: NDArray[np.int64] | Floats) -> Floats:
    """Return ±1 a task: −1 where a task looks the other way than most of what it resembles.

    With v_t = √n_t w_t/‖w_t‖ and G = V Vᵀ, it looks for signs s that make sᵀGs large: those of the
    leading eigenvector, then one task at a time as long as turning it gains. All signs reversed is
    the same; the side with more rows, or that of the first task that says something, is kept as it
    is.

    Parameters
    ----------
    own : ndarray of shape (n_tasks, n_features)
        Every task's weights when trained alone. They are what the network agrees on anyway; nothing
        else travels for this.
    n_rows : ndarray of shape (n_tasks,)
        Rows a task; one with 0 is not turned and turns no other.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.select import sides
    >>> sides(np.array([[1.0, 0.2], [-1.0, 0.1], [0.9, 0.0]]), np.array([20, 20, 20])).tolist()
    [1.0, -1.0, 1.0]
    """
    length = np.linalg.norm(own, axis=1, keepdims=True)
    speaks = length > NOTHING * length.max(initial=0.0)
    unit = np.where(speaks, own, 0.0) / np.where(speaks, length, 1.0)
    v = unit * np.sqrt(np.asarray(n_rows, float))[:, None]
    G = v @ v.T
    s = np.where(np.linalg.eigh(G)[1][:, -1] >= 0, 1.0, -1.0)
    np.fill_diagonal(G, 0.0)
    for _ in range(PASSES):
        if not _turn_each(G, s):
            break
    says = v.any(axis=1)
    s[~says] = 1.0  # nothing of itself: as it is
    kept = s[says] @ np.asarray(n_rows)[says]
    is_kept = kept > 0 or (kept == 0 and s[says.argmax()] > 0)
    s[says] *= 1.0 if is_kept else -1.0
    return s


def _turn_each(G: Floats, s: Floats) -> bool:
    """Turn every task that gains by it, in order; say whether one did."""
    has_turned = False
    for t in range(len(s)):
        if (G[t] @ s) * s[t] < 0:
            s[t], has_turned = -s[t], True
    return has_turned
