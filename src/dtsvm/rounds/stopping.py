"""When training is done: agents agree, and the certificate says that the answer is good.

The certificate is of the agents' average; it must be within ¾ `tol`, and the last quarter is for
how much worse a node may be. The objective is flat at its minimum, so a node that is √tol away from
it loses about `tol`; with linked agents alike and at rest to 0.4 √tol nine in ten of the worst
nodes are within `tol` of the optimum (`python -m benchmarks nodes`).

Certifying costs up to a sweep over the rows: it is done when the residuals are small, then less and
less often, and at rounds 64, 128, 256, … so that a long run shows where it stands. The compiled
loop carries this out (`kernel.look`).
"""

from __future__ import annotations

from math import sqrt

__all__ = ["SHARE", "residual_tol"]

SHARE = 0.75  # of `tol`, for the average of all nodes


def residual_tol(tol: float | None) -> float:
    """Residual at which a look at the certificate is worth while; none is without `tol`."""
    return -1.0 if tol is None else 0.4 * sqrt(tol)
