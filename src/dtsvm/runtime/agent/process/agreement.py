"""Agreeing on a preparation against the clock, over a node's own links, before it trains."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dtsvm.errors import DtsvmError
from dtsvm.runtime.agent.node.agreed import Agreed
from dtsvm.runtime.agent.node.names import plain
from dtsvm.runtime.agent.node.preparing import Preparing, is_preparing
from dtsvm.runtime.agent.node.seldom import Seldom
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.agent.process.asking import Beside
from dtsvm.runtime.agent.process.control import listen
from dtsvm.runtime.agent.process.orders import EarlyOrders
from dtsvm.runtime.agent.process.transport import Transport

__all__ = ["Calls", "agree", "ask_generations", "route"]

log = logging.getLogger(__name__)
GAP_SECONDS = 0.05  # between messages while there is something to do
LOG_SECONDS, AGAIN_SECONDS = 5.0, 60.0  # between lines about new things, and the same one
MOST_WORDS = 1000
ASK_SECONDS = 2.0
MOST_CALLS, MOST_IN_ALL, CALL_SECONDS = 6, 24, 3600.0  # of a neighbour to agree anew, and of all


async def agree(
    preparing: Preparing,
    make_transport: Callable[[Callable[[str, bytes], object]], Transport],
    folder: Path,
    timing: Timing,
    orders: EarlyOrders,
) -> Agreed | None:
    """Talk to the neighbours until all have agreed; None if the owner ends or changes it before.

    Parameters
    ----------
    preparing : Preparing
        The node's part.
    make_transport : callable
        Returns the node's links, given what takes their messages.
    folder : Path
        Where the control socket is.
    timing : Timing
        How long it waits for others to be there.
    orders : EarlyOrders
        What its owner tells it.
    """
    news = asyncio.Event()

    def hear(peer: str, data: bytes) -> None:
        if is_preparing(data):
            began = time.thread_time()
            preparing.hear(peer, data)
            transport.charge(peer, time.thread_time() - began)
            news.set()

    transport = make_transport(hear)
    await transport.start()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(transport.stop)
        path = folder / "control.sock"
        server = await listen(path, lambda asked: _answer(preparing, orders, asked))
        stack.callback(path.unlink, missing_ok=True)
        stack.callback(server.close)
        await _talk(preparing, transport, timing, orders, news)
        await transport.flush(1.0)
    return preparing.agreed


async def _talk(
    preparing: Preparing,
    transport: Transport,
    timing: Timing,
    orders: EarlyOrders,
    news: asyncio.Event,
) -> None:
    born, said_at, said = time.monotonic(), float("-inf"), ""
    while preparing.agreed is None and not orders.are_over:
        now = time.monotonic()
        preparing.step(is_late=now - born > timing.start_seconds)
        words = _words(preparing)
        gap = AGAIN_SECONDS if words == said else LOG_SECONDS  # a neighbour may change its mind
        if words and now - said_at > gap and now - born > LOG_SECONDS / 5:
            log.info("Node %s: %s", preparing.name, words)
            said, said_at = words, now
        for neighbour in preparing.neighbours:
            transport.send(neighbour, preparing.message(neighbour))
        news.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), timing.heartbeat_seconds)
        await asyncio.sleep(GAP_SECONDS)
    for neighbour in preparing.neighbours:
        transport.send(neighbour, preparing.message(neighbour))


def _words(preparing: Preparing) -> str:
    if preparing.trouble:
        return plain(preparing.trouble[:MOST_WORDS])
    if preparing.absent:
        return f"waits for the columns of {', '.join(preparing.absent[:12])}."
    if preparing.waits_for:
        return f"waits for {', '.join(preparing.waits_for)} to add up columns."
    return ""


def route(
    preparing: Preparing | None,
    beside: Sequence[Beside],
    transport: Transport,
    anew: Callable[[str, int], object],
) -> Callable[[str, bytes], bool]:
    """Return what takes messages while a node trains that are not about that; whether it did.

    Latecomers are told what is agreed; `anew` is called when a neighbour calls to agree anew, with
    its name and the generation.
    """

    def hear(peer: str, data: bytes) -> bool:
        began = time.thread_time()
        is_mine = hear_beside(peer, data)
        transport.charge(peer, time.thread_time() - began)
        return is_mine

    def hear_beside(peer: str, data: bytes) -> bool:
        for links in beside:
            if links.is_mine(data):
                links.hear(peer, data)
                return True
        if preparing is None or not is_preparing(data):
            return False
        preparing.called = 0  # what another called for is not this one's doing
        preparing.hear(peer, data)
        if preparing.called > preparing.generation:
            anew(peer, preparing.called)
        elif preparing.owes(peer):
            transport.send(peer, preparing.message(peer))
        return True

    return hear


async def ask_generations(preparing: Preparing, transport: Transport) -> None:
    """Ask neighbours which generation they have agreed on, and to vouch for it."""
    while True:
        for neighbour in preparing.unmet:
            transport.send(neighbour, preparing.message(neighbour))
        preparing.count_asked()
        await asyncio.sleep(ASK_SECONDS)


class Calls:
    """Counts how often neighbours call a node to agree anew: more than so often is refused.

    Each has its own share, so that one of them does not use up what the others may.
    """

    def __init__(self) -> None:
        self._at: list[tuple[float, str]] = []
        self._often = Seldom()

    def is_allowed(self, peer: str, now: float) -> bool:
        """Whether one more call is followed; that it is not is said once in a while."""
        self._at = [one for one in self._at if now - one[0] < CALL_SECONDS]
        n_mine = sum(who == peer for _, who in self._at)
        if n_mine < MOST_CALLS and len(self._at) < MOST_IN_ALL:
            self._at.append((now, peer))
            return True
        if self._often.is_worth_a_line(now):
            log.warning(
                "Node %s called to agree anew, after %d calls of its own and %d of all neighbours "
                "within the hour; this node goes on as it is. Tell it 'prepare' if you want it to "
                "follow.",
                peer, n_mine, len(self._at),
            )  # fmt: skip
        return False


async def _answer(
    preparing: Preparing, orders: EarlyOrders, asked: dict[str, Any]
) -> dict[str, Any]:
    if asked.get("command") != "status":
        try:
            return orders.follow(asked)
        except DtsvmError as error:
            return {"error": str(error)}
    words = _words(preparing)
    return {
        "node": preparing.name,
        "round": 0,
        "residual": float("inf"),
        "neighbours": sorted(preparing.neighbours),
        "present": [],
        "heard": [],
        "nodes": 0,
        "tasks": {},
        "groups": [],
        "levels": {},
        "gap": None,
        "privacy": {"level": "–"},
        "calm": 0,
        "is_settled": False,
        "refused": preparing.refused,
        "reasons": {},
        "trouble": f"agreeing on columns. {words}" if words else "agreeing on columns.",
    }
