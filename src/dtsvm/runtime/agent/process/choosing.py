"""A node that chooses, as a process: the same links, socket and files, other rounds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from dtsvm.errors import NetworkError
from dtsvm.runtime.agent.node.chooser import Chooser, is_choosing
from dtsvm.runtime.agent.node.refuse import PROTOCOL
from dtsvm.runtime.agent.node.spoken import is_spoken
from dtsvm.runtime.agent.process.process import Process
from dtsvm.runtime.agent.process.turns import HEAVY_WORK

__all__ = ["ChoosingProcess"]

log = logging.getLogger(__name__)


@dataclass
class ChoosingProcess(Process):
    """Runs a node that chooses until it is told to leave.

    Parameters
    ----------
    chooser : Chooser
        The node's part in choosing; the node itself keeps rows, links and the roster, and trains
        nothing.
    """

    chooser: Chooser | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._is_stepping = False
        self._chooser.clock = time.thread_time
        self._late: dict[str, deque[bytes]] = {}  # the two newest messages of each neighbour
        self._first_round = self.node.round
        self._done = 0  # how often a choice was made
        for name in ("couple", "decouple"):
            self.commands[name] = _refuse

    @property
    def _chooser(self) -> Chooser:
        assert self.chooser is not None
        return self.chooser

    def hear(self, peer: str, data: bytes) -> None:
        """Take a message from the transport; while a step runs beside the loop it waits."""
        if is_choosing(data):
            self._chooser.hear(peer, data)
            self._news.set()
        elif not self._is_stepping:
            super().hear(peer, data)
        elif is_spoken(PROTOCOL, data) or not self._is_for_others(peer, data):
            self._late.setdefault(peer, deque(maxlen=2)).append(data)

    async def _go_on(self) -> None:
        """Do a step, and wait for what it needs; survive whatever happens in it."""
        try:
            self._greet(self.node.timing.heartbeat_seconds)
            await self._step()
            self._follow()
            await self._wait_for_news()
        except Exception as error:
            self.trouble.survive("a step of choosing", error)
            await asyncio.sleep(self.node.timing.heartbeat_seconds)

    async def _step(self) -> None:
        chooser, started = self._chooser, time.monotonic()
        async with self._lock:
            self._is_stepping = True
            try:
                if chooser.work > HEAVY_WORK:
                    envelopes = await asyncio.to_thread(chooser.step, started)
                else:
                    envelopes = chooser.step(started)
            finally:
                self._is_stepping = False
                late, self._late = self._late, {}
                for peer, newest in late.items():
                    for data in newest:
                        self.hear(peer, data)
        self._busy += time.monotonic() - started
        for name, seconds in chooser.waiting.spent().items():
            self._charge(name, seconds)
        for name, some in envelopes.items():
            for data in some:
                self._send({name: data})

    def _follow(self) -> None:
        """Let the node show how far choosing is, and have on disk what was chosen."""
        chooser, node, now = self._chooser, self.node, time.monotonic()
        was_settled = node.is_settled
        node.round, node.residual = self._first_round + chooser.rounds, chooser.residual
        node.is_settled = chooser.outcome is not None
        self.trouble.watch(now)
        self._report()
        if node.is_settled and not was_settled:
            self._is_written = False
            self._done += 1
            for choice in chooser.outcome.choices:
                log.info("%s", choice.sentence)
            if chooser.overdue.words:
                log.warning("Node %s: %s", node.name, chooser.overdue.words)
        if node.is_settled and not self._is_written:
            self._write()
        elif now > self._keep_due and not node.is_settled:
            self._keep()

    @property
    def _has_model(self) -> bool:
        """Whether all is chosen; where all rows are of one label that takes no round."""
        return self._chooser.outcome is not None

    async def _wait_for_news(self) -> None:
        if not self.node.is_settled and not self.node.present and self._chooser.n_begun:
            await asyncio.sleep(0)  # alone: nobody to wait for
            return
        heartbeat = self.node.timing.heartbeat_seconds
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(heartbeat if self.node.is_settled else heartbeat / 10):
                await self._news.wait()
        await asyncio.sleep(0)

    def told(self) -> dict[str, Any]:
        """Return what others may be told of the status, too, and how far choosing is."""
        chooser = self._chooser
        found = super().told()
        gap = chooser.overdue.gap if chooser.outcome is not None else None
        theirs = chooser.refusals(time.monotonic())
        theirs["refused"] += found["refused"]
        theirs["reasons"] |= found["reasons"]
        why, waits_for = chooser.doubts.why, chooser.waits_for
        if found["trouble"] and waits_for:
            found["trouble"] += f"; choosing waits for {', '.join(waits_for)}"
        theirs["trouble"] = f"in doubt. {why}" if why else found["trouble"]
        theirs["lies"], theirs["waits_for"] = found["lies"] + chooser.doubts.n_lies, waits_for
        if chooser.outcome is not None and chooser.overdue.words:
            found["apart"].append(chooser.overdue.words)
        return {**found, **theirs, "gap": gap, "choosing": chooser.status()}


def _refuse(_: dict[str, Any]) -> dict[str, Any]:
    raise NetworkError(
        'With C = "auto" the network chooses which tasks train together. Write a number for C '
        "into every node.toml to say that yourself."
    )
