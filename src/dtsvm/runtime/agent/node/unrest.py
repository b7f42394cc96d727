"""How restless a node is: how often it may say something new of itself, the longer the less."""

from __future__ import annotations

from dtsvm.runtime.agent.node.quota import Quota

__all__ = ["CALMING", "MOST_RESTLESS", "Unrest"]

MOST_RESTLESS, CALMING = 100.0, 1.0  # changes of what a node says of itself: at once, and a second
SLOWER, MORE = 8.0, 0.2  # from one scale to the next: seconds for a change, and changes at once
SELDOM = 600.0  # seconds for a change at the last scale, or less
REST = 4.0  # changes that have to be forgotten before it is heard again
SHORTEST, LONGEST = 10.0, 3600.0  # seconds for that
PASSED_ON = 2.0  # times as many changes at once are borne of what neighbours pass on


class Unrest:
    """Counts how often one node says something new of itself, at several scales of time.

    Every change makes all begin their sums anew, so who changes for ever keeps all from settling.
    A hundred changes at once are nothing, and one a second for a while; of what goes on for minutes
    one in 8 s is borne, then one in 64 s, then one in 512 s: at most about one in a hundredth of
    the time that it has lasted. Links between routers that come and go are damped alike (RFC 2439).
    What comes while all are at rest has kept nobody from that: it counts at the first scale alone.

    Parameters
    ----------
    most, pace : float
        How many changes at once, and a second after that, at the first scale.

    Examples
    --------
    >>> unrest, n = Unrest(), 0
    >>> for second in range(3600):
    ...     n += unrest.allows(1.0, float(second))
    >>> n
    167
    """

    def __init__(self, most: float = MOST_RESTLESS, pace: float = CALMING) -> None:
        self._quotas = [Quota(most, pace)]
        while self._quotas[-1].pace * SELDOM >= SLOWER:
            more = most * (1.0 + MORE * len(self._quotas))
            self._quotas.append(Quota(more, self._quotas[-1].pace / SLOWER))

    def allows(self, weight: float, now: float, *, is_at_rest: bool = False) -> bool:
        """Count what it says; return whether it was little enough, else it is not counted."""
        counted = self._quotas[:1] if is_at_rest else self._quotas
        is_little = all(quota.done(now) + weight <= quota.most for quota in counted)
        if is_little:
            self._count(weight, now, counted)
        return is_little

    def bears(self, weight: float, now: float, *, is_at_rest: bool = False) -> bool:
        """Count what others pass on of it, of which more is borne; return whether it is taken."""
        counted = self._quotas[:1] if is_at_rest else self._quotas
        is_little = self._quotas[0].done(now) + weight <= PASSED_ON * self._quotas[0].most
        if is_little:
            self._count(weight, now, counted)
        return is_little

    def _count(self, weight: float, now: float, quotas: list[Quota]) -> None:
        for quota in quotas:
            quota.count(weight, now)

    def seconds(self, now: float) -> float:
        """Return how long it has to rest before a few changes more are borne."""
        rests = [(quota.done(now) - quota.most + REST) / quota.pace for quota in self._quotas]
        return min(max(SHORTEST, *rests), LONGEST)
