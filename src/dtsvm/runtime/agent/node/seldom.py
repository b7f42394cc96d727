"""What may happen in every round is logged once in a while: a neighbour may make it happen."""

from __future__ import annotations

from math import inf

__all__ = ["Seldom"]

SECONDS = 60.0


class Seldom:
    """Counts how often something happened, and says when that is worth a line.

    Examples
    --------
    >>> often = Seldom()
    >>> [often.is_worth_a_line(now) for now in (0.0, 0.1, 61.0)], often.n
    ([True, False, True], 3)
    """

    def __init__(self) -> None:
        self.n = 0
        self._said_at = -inf

    def is_worth_a_line(self, now: float) -> bool:
        """Count one more; return whether the last line about it is old enough."""
        self.n += 1
        if now - self._said_at < SECONDS:
            return False
        self._said_at = now
        return True
