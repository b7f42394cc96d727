"""Asking all nodes how they are, over a node's own links, while it trains."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

from dtsvm.runtime.agent.node.asking import Asking
from dtsvm.runtime.agent.process.transport import Transport

__all__ = ["AskLinks", "Beside"]


class Beside(Protocol):
    """What takes messages of its own beside those of training."""

    def is_mine(self, data: bytes) -> bool:
        """Whether a message belongs here."""

    def hear(self, peer: str, data: bytes) -> None:
        """Take a neighbour's message."""


@dataclass
class AskLinks:
    """Carries questions and answers.

    Parameters
    ----------
    asking : Asking
        The node's part.
    transport : Transport
        Its links.
    """

    asking: Asking
    transport: Transport

    def is_mine(self, data: bytes) -> bool:
        """Whether a message belongs here."""
        return self.asking.is_mine(data)

    def hear(self, peer: str, data: bytes) -> None:
        """Take a neighbour's message, and send what follows from it."""
        self._send(self.asking.hear(peer, data, time.monotonic()))

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Answer the owner, who asks until all nodes have answered or it has waited enough."""
        if asked.get("is_first"):
            self._send(self.asking.ask(time.time_ns() // 1_000_000))
        else:
            self._send(self.asking.ask_again())
        return {"answers": self.asking.answers, "silent": self.asking.silent}

    def _send(self, messages: list[tuple[str, bytes]]) -> None:
        for neighbour, data in messages:
            self.transport.send(neighbour, data)
