"""When two levels have parted: a neighbour is heard for long, but at another one than here."""

from __future__ import annotations

__all__ = ["Apart"]

MOST_APART, A_LINK = 64, 4  # rounds, and so many more a link: a total has to come that far
MOST_AGREED = 20  # times that this may double
FORGIVEN_SECONDS = 600.0  # after which one doubling is


class Apart:
    """Counts rounds in which nothing of a neighbour's could be used, and says when to act.

    Nothing that is told between two levels is taken in, and no check can be measured there, so what
    has parted stays so until all agree anew. Honest nodes never part: all use the same totals in
    the same order (`wave`). A liar in the middle can hand each child another total, or say that its
    penalties are others. All that helps is to agree anew, and a liar must not have all do that
    again and again: so each time it takes twice as long, which is forgiven slowly.

    n_rounds : in a row; 0 where all neighbours have been heard, or all agree anew already.
    """

    def __init__(self) -> None:
        self.n_rounds = 0
        self._n_agreed, self._agreed_at = 0.0, 0.0

    def lasts_too_long(self, width: int, now: float) -> int:
        """Count a round; return how many it has been if all should agree anew, else 0."""
        self.n_rounds += 1
        forgiven = (now - self._agreed_at) / FORGIVEN_SECONDS
        n = max(self._n_agreed - forgiven, 0.0)
        if self.n_rounds <= (MOST_APART + A_LINK * width) * 2.0**n:
            return 0
        found, self.n_rounds = self.n_rounds, 0
        self._n_agreed, self._agreed_at = min(n + 1.0, MOST_AGREED), now
        return found
