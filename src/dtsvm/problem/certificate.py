"""How good an answer provably is."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Certificate"]


class Certificate(NamedTuple):
    """Objective, a lower bound on what any pooled training could reach, and their distance."""

    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """(objective − bound) / bound: never smaller than the relative suboptimality.

        Infinite while the bound is not yet above zero.
        """
        if self.objective <= self.bound:
            return 0.0
        return (self.objective - self.bound) / self.bound if self.bound > 0 else float("inf")
