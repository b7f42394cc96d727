"""Candidates that were not certified in time: how many, how far off, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dtsvm.runtime.agent.node.looks import MOST_ROUNDS, WORST

__all__ = ["Overdue"]


@dataclass
class Overdue:
    """Counts trainings of a choice, and those above the tolerance.

    Examples
    --------
    >>> overdue = Overdue(0.05)
    >>> overdue.note([0.01, 0.4]), overdue.note([0.02])
    (None, None)
    >>> overdue.words
    '1 of 3 trainings of the choice stopped after 3,000 rounds above the tolerance 0.05; the worst
    has a certified gap of 4.0e-01 (above 1 they say nothing). Have columns standardised ([prepare]
    in every node.toml) or raise tol.'
    """

    tol: float
    n: int = 0
    n_late: int = 0
    gap: float = 0.0  # the worst of all

    def note(self, gaps: Iterable[float]) -> None:
        """Take the worst gap of each track that was trained."""
        for gap in gaps:
            self.n += 1
            self.n_late += gap > self.tol
            self.gap = max(self.gap, gap)

    @property
    def words(self) -> str:
        """Say how many were late; nothing if none was."""
        if not self.n_late:
            return ""
        return (
            f"{self.n_late} of {self.n} trainings of the choice stopped after {MOST_ROUNDS:,} "
            f"rounds above the tolerance {self.tol:g}; the worst has a certified gap of "
            f"{self.gap:.1e} (above {WORST:g} they say nothing). Have columns standardised "
            "([prepare] in every node.toml) or raise tol."
        )
