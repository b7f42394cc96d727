"""When training is done: agents agree, and the certificate says that the answer is good."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from dtsvm.problem.certificate import Certificate

__all__ = ["Stopping"]

SHARE = 0.75  # of `tol`, for the average of all nodes


@dataclass
class Stopping:
    """The rule: certified gap at most ¾ `tol`, linked agents alike and at rest to 0.4 √tol.

    The certificate is of the agents' average; the last quarter is for how much worse a node may be.
    The objective is flat at its minimum, so a node that is √tol away from it loses about `tol`;
    with 0.4 nine in ten of the worst nodes are within `tol` of the optimum (`python -m benchmarks
    nodes`).

    Certifying costs up to a sweep over the rows: it is done when the residuals are small, then less
    and less often, and at rounds 64, 128, 256, … so that a long run shows where it stands.
    """

    tol: float | None  # None: never done
    n_rounds: int  # when it began
    next_look: int = 0

    @property
    def residual_tol(self) -> float:
        """Residual at which a look at the certificate is worth while."""
        return -1.0 if self.tol is None else 0.4 * float(np.sqrt(self.tol))

    def is_calm(self, primal: float, dual: float) -> bool:
        """Whether agents agree and rest."""
        return primal <= self.residual_tol and dual <= self.residual_tol

    def is_milestone(self, n_rounds: int) -> bool:
        """Whether a certificate is due just to show progress."""
        done = n_rounds - self.n_rounds
        return self.tol is not None and done >= 64 and done & (done - 1) == 0

    def rounds_to_milestone(self, n_rounds: int) -> int:
        """Return how many rounds are left to the next milestone."""
        done = n_rounds - self.n_rounds
        return sys.maxsize if self.tol is None else max(64, 1 << done.bit_length()) - done

    def looked(self, n_rounds: int, each: list[tuple[Certificate, int]], C: float) -> bool:
        """Return whether every group's gap is small; if not, wait the longer the larger it is.

        A gap is small against its bound or, if all rows of the group fit, against C·n.
        """
        allowed = SHARE * (self.tol or 0.0)
        shares = (
            (c.objective - c.bound) / (allowed * max(c.bound, 1e-6 * C * max(n, 1)))
            for c, n in each
        )
        worst = max(shares, default=0.0)
        share = 0.05 + 0.15 * float(np.log10(np.clip(worst, 1.0, 100.0)))
        self.next_look = n_rounds + max(2, int(share * (n_rounds - self.n_rounds)))
        return bool(worst <= 1.0)
