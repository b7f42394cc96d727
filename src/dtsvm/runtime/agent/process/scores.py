"""Sums beside training over a node's links: scores when asked, a choice, sigmoids once settled."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dtsvm.runtime.agent.node.calibrating import Calibrating
from dtsvm.runtime.agent.node.collective import Collective
from dtsvm.runtime.agent.node.electing import Electing
from dtsvm.runtime.agent.node.names import shown
from dtsvm.runtime.agent.node.scoring import Scoring
from dtsvm.runtime.agent.node.seldom import Seldom
from dtsvm.runtime.agent.process.transport import Transport

__all__ = ["CalibrationLinks", "ElectionLinks", "Links", "ScoreLinks"]

log = logging.getLogger(__name__)
GAP_SECONDS = 0.02  # between two messages to a neighbour
REST_SECONDS = 0.25  # between looks when there is nothing to do
TROUBLE_SECONDS = 5.0  # after an error


@dataclass
class Links:
    """Carries a node's part in a collective sum.

    Parameters
    ----------
    collective : Collective
        The node's part.
    transport : Transport
        Its links.
    """

    collective: Collective
    transport: Transport
    _said_at: float = 0.0

    def is_mine(self, data: bytes) -> bool:
        """Whether a message belongs here."""
        return self.collective.is_mine(data)

    def hear(self, peer: str, data: bytes) -> None:
        """Take a neighbour's message, and pass on what follows from it."""
        self.collective.hear(peer, data)
        self.pass_on()

    def pass_on(self) -> None:
        """Tell the neighbours what they lack, if that was not just done."""
        now = time.monotonic()
        if now - self._said_at < GAP_SECONDS:
            return
        for neighbour, message in self.collective.owed().items():
            self.transport.send(neighbour, message)
            self._said_at = now


@dataclass
class ScoreLinks(Links):
    """Carries a node's part in scoring."""

    collective: Scoring

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Answer the owner, who asks until the counts of all nodes are there."""
        if asked.get("is_first"):
            self.collective.ask()
        self.pass_on()
        found = self.collective.result()
        if found is None:
            return {"counts": None}
        return {"counts": {task: counts.tolist() for task, counts in found.items()}}


@dataclass
class LastingLinks(Links):
    """Carries a node's part in a sum that begins by itself, as long as the node is there."""

    collective: Calibrating | Electing
    _failures: Seldom = field(default_factory=Seldom)

    async def run(self) -> None:
        """Take part whenever there is something to do; survive whatever happens in it."""
        while True:
            try:
                self.collective.step()
                self.pass_on()
                self._follow()
                is_busy = self.collective.is_busy
                await asyncio.sleep(GAP_SECONDS if is_busy else REST_SECONDS)
            except Exception as error:
                if self._failures.is_worth_a_line(time.monotonic()):
                    words = "Adding up %s goes on after %s (%d errors so far)."
                    log.warning(words, self.collective.title, shown(error), self._failures.n)
                await asyncio.sleep(TROUBLE_SECONDS)

    def _follow(self) -> None:
        """Use what was found."""
        raise NotImplementedError


@dataclass
class CalibrationLinks(LastingLinks):
    """Carries a node's part in fitting sigmoids.

    Parameters
    ----------
    collective, transport
        As in `Links`.
    take : callable
        Called with the sigmoids when they are found, and with None when they hold no more.
    """

    collective: Calibrating
    take: Callable[[dict[str, Any] | None], None] = lambda found: None
    _taken: bool = False

    def _follow(self) -> None:
        found = self.collective.sigmoids
        if (found is not None) != self._taken:
            self.take(found)
            self._taken = found is not None


@dataclass
class ElectionLinks(LastingLinks):
    """Carries a node's part in choosing one of several candidates, once; then it helps others to.

    Parameters
    ----------
    collective, transport
        As in `Links`.
    take : callable
        Called with the candidate that was chosen; raises NetworkError if it cannot be kept.
    """

    collective: Electing
    take: Callable[[int], None] = lambda candidate: None

    def _follow(self) -> None:
        choice = self.collective.choice
        if choice is not None and self.collective.chosen() is None:
            self.take(choice)
