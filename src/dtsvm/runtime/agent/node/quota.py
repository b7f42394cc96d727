"""How often somebody may do something: so many times at once, and so many a second after that."""

from __future__ import annotations

__all__ = ["Quota"]


class Quota:
    """Counts what is done, and forgets it as time goes by.

    Parameters
    ----------
    most : float
        How much may be done at once.
    pace : float
        How much more a second later.

    Examples
    --------
    >>> quota = Quota(2.0, 0.5)
    >>> [quota.allows(1.0, now) for now in (0.0, 0.0, 0.0, 2.0, 2.0)]
    [True, True, False, True, False]
    """

    def __init__(self, most: float, pace: float) -> None:
        self.most, self.pace = most, pace
        self._done = self._at = 0.0

    def done(self, now: float) -> float:
        """How much of what was done is not forgotten yet."""
        return max(self._done - self.pace * max(now - self._at, 0.0), 0.0)

    def count(self, weight: float, now: float) -> None:
        """Count what is done once more."""
        self._done, self._at = self.done(now) + weight, now

    def allows(self, weight: float, now: float) -> bool:
        """Count what is done once more; return whether that is little enough, else it is not."""
        is_little = self.done(now) + weight <= self.most
        if is_little:
            self.count(weight, now)
        return is_little
