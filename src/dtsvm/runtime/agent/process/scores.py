"""Scoring over a node's links: its owner asks again and again, and each time word goes round."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from dtsvm.runtime.agent.node.scoring import Scoring
from dtsvm.runtime.agent.process.transport import Transport

__all__ = ["ScoreLinks"]

GAP_SECONDS = 0.02  # between two messages to a neighbour


@dataclass
class ScoreLinks:
    """Carries a node's part in scoring.

    Parameters
    ----------
    scoring : Scoring
        The node's part.
    transport : Transport
        Its links.
    """

    scoring: Scoring
    transport: Transport
    _said_at: float = 0.0

    def hear(self, peer: str, data: bytes) -> None:
        """Take a neighbour's message, and pass on what follows from it."""
        self.scoring.hear(peer, data)
        self._pass_on()

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Answer the owner, who asks until the counts of all nodes are there."""
        if asked.get("is_first"):
            self.scoring.ask()
        self._pass_on()
        found = self.scoring.result()
        if found is None:
            return {"counts": None}
        return {"counts": {task: counts.tolist() for task, counts in found.items()}}

    def _pass_on(self) -> None:
        now = time.monotonic()
        if now - self._said_at < GAP_SECONDS:
            return
        for neighbour, message in self.scoring.owed().items():
            self.transport.send(neighbour, message)
            self._said_at = now
