"""Who withholds its part of a sum: waited for the longer the more links its part may have to come.

Every node that waits for a part, or for a total, measures from when it began the sum itself. Whose
own part is late because of somebody farther away is waited for one patience longer than that one
is by its own neighbour: so the neighbour of whoever really withholds finds out first, bars it, and
the roster changes before anybody else has waited long enough. For that a patience must be longer
than an honest node takes to begin a sum after its neighbour, and to pass on what has come. All that
counts is what came over a node's own link; nobody is barred for what another says of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dtsvm.runtime.agent.node.mail import MOST_BAR_SECONDS, Mail
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.agent.node.wave import Wave

__all__ = ["Late", "Withheld"]

N_SOLVES, N_ROUNDS = 3.0, 30.0  # a patience: times the longest silence, and times `round_seconds`
GRACE = 10.0  # times `round_seconds`, for which who is overdue must go on talking
FORGIVEN_SECONDS = 3600.0  # after which a neighbour is barred half as long again


class Late(NamedTuple):
    """A neighbour that withholds its part of a sum."""

    name: str
    wave: str
    seconds: float  # for which it was waited


@dataclass
class Withheld:
    """Watches the sums of one node.

    Parameters
    ----------
    timing : Timing
        How long the node waits for what.
    """

    timing: Timing
    _looked_at: float = 0.0
    _begun: dict[int, tuple[Wave, int, float]] = field(default_factory=dict)  # sums that are open
    _overdue: dict[tuple[int, str], float] = field(default_factory=dict)  # since when
    _barred: dict[str, tuple[float, float]] = field(default_factory=dict)  # how often, and when

    def look(self, waves: Iterable[Wave], mail: Mapping[str, Mail], now: float) -> list[Late]:
        """Return who has withheld its part for too long, and goes on talking."""
        if now - self._looked_at > self.timing.evict_seconds:
            self._begun, self._overdue = {}, {}  # it was suspended itself, and missed what was said
        self._looked_at = now
        self._begun = {id(wave): self._clock(wave, now) for wave in waves if wave.is_open}
        overdue, found = {}, []
        for key, (wave, _, begun) in self._begun.items():
            for name in (one for one in wave.lacks() if one in mail):
                if now - begun < self.patience * wave.tree.links_to(name):
                    continue
                overdue[key, name] = since = self._overdue.get((key, name), now)
                heard_at, least = mail[name].heard_at, since + GRACE * self.timing.round_seconds
                if heard_at is not None and heard_at >= least:
                    found.append(Late(name, wave.name, now - begun))
        self._overdue = overdue
        return found

    def _clock(self, wave: Wave, now: float) -> tuple[Wave, int, float]:
        known = self._begun.get(id(wave))
        is_same = known is not None and known[0] is wave and known[1] == wave.wanted
        return known if known is not None and is_same else (wave, wave.wanted, now)

    @property
    def patience(self) -> float:
        """For how many seconds a neighbour may let others wait, for each link.

        Who is silent is gone after `evict_seconds`, and who has just come may wait `start_seconds`
        for others; so long a solve may take. A called node first ends one, and tells after the
        next; then its neighbour may be in the middle of one.
        """
        longest = max(self.timing.start_seconds, self.timing.evict_seconds)
        return N_SOLVES * longest + N_ROUNDS * self.timing.round_seconds

    def bar(self, late: Late, mail: Mail, n_around: int, now: float) -> float:
        """Bar a neighbour until all around it can have found out, and settled; longer each time."""
        n, then = self._barred.get(late.name, (0.0, now))
        n = max(n - (now - then) / FORGIVEN_SECONDS, 0.0)
        seconds = min(late.seconds * (1 + n_around) * 2.0**n, MOST_BAR_SECONDS)
        self._barred[late.name] = n + 1.0, now + seconds
        return mail.bar(now, seconds)
