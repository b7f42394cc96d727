"""Sums beside training over a node's links: scores when the owner asks, sigmoids once settled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dtsvm.runtime.agent.node.calibrating import Calibrating
from dtsvm.runtime.agent.node.collective import Collective
from dtsvm.runtime.agent.node.scoring import Scoring
from dtsvm.runtime.agent.process.transport import Transport

__all__ = ["CalibrationLinks", "Links", "ScoreLinks"]

GAP_SECONDS = 0.02  # between two messages to a neighbour
REST_SECONDS = 0.25  # between looks when there is nothing to do


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
class CalibrationLinks(Links):
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

    async def run(self) -> None:
        """Fit whenever the network has settled."""
        while True:
            self.collective.step()
            self.pass_on()
            found = self.collective.sigmoids
            if (found is not None) != self._taken:
                self._taken = found is not None
                self.take(found)
            await asyncio.sleep(GAP_SECONDS if self.collective.is_busy else REST_SECONDS)
