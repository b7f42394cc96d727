"""A node that goes on without a neighbour that withholds its part of a sum."""

from __future__ import annotations

from collections.abc import Iterable

from dtsvm.runtime.agent.node.summing import BALANCE
from dtsvm.runtime.agent.node.waking import Waking
from dtsvm.runtime.agent.node.wave import Wave
from dtsvm.runtime.agent.node.withheld import Withheld

__all__ = ["Guarding"]

LOOKS = 4.0  # in `round_seconds`


class Guarding(Waking):
    """A node that watches its sums over the network."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.withheld = Withheld(self.timing)
        self._watched_at = 0.0

    def _look_around(self, now: float) -> None:
        """See who is here, and bar who has withheld its part of a sum for too long."""
        if not self.presence.is_announced(now):
            self._announce(now)
        if now < self._watched_at + self.timing.round_seconds / LOOKS:
            return
        self._watched_at = now
        for late in self.withheld.look(self._owed_sums(), self.mail, now):
            mail = self.mail[late.name]
            if now < mail.barred_until:
                continue
            seconds = self.withheld.bar(late, mail, len(self.roster.neighbours(late.name)), now)
            words = f"it withheld its part of a sum for {late.seconds:.0f} s"
            self.inbox.complain(late.name, f"{words}; it is barred for {seconds:.0f} s", now)
            self._announce(now)

    def _owed_sums(self) -> Iterable[Wave]:
        """Sums to which everybody adds when it is called, whatever others tell it.

        Not those at checks: who has not heard all x and z, whoever withholds them, adds nothing,
        and who has heard them goes on to the next without the total. Nor those under differential
        privacy, which wait until every budget is spent.
        """
        if self.veil.is_noisy or self.sums.epoch != self.roster.digest:
            return []
        return [wave for wave in self.sums.waves.values() if wave.name[0] != BALANCE]
