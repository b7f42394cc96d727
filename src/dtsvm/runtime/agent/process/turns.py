"""Rounds against the clock: one begins with the message that completed the one before.

A process waits in `_round` for all neighbours to be heard. While there is nothing else to do, the
last message itself ends the round and begins the next, without a way through the event loop; where
there is, such as a checkpoint or a sum that all wait for, it wakes `_round` up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from math import inf

from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.refuse import PROTOCOL
from dtsvm.runtime.agent.node.spoken import is_spoken
from dtsvm.runtime.agent.process.patience import Patience
from dtsvm.runtime.agent.process.trouble import Trouble

__all__ = ["HEAVY_WORK", "Turns"]

HEAVY_WORK = 2_000_000  # numbers in a solve above which it runs beside the event loop
MOST_TICKS = 2  # between words that are said again
QUICK_SECONDS = 1e-4  # several times what honest words take: so little is not charged
LOST_SHARE = 0.1  # of the work since a node last rested that a crash may undo
KEEP_TIMES = 20.0  # as long as a checkpoint took, at least, until the next
WATCH_SECONDS = 0.1  # between looks at how a node does while it trains


class Turns:
    """The rounds of a `Process`."""

    node: Node
    trouble: Trouble
    max_rounds: int | None

    def _begin_turns(self) -> None:
        # Takes what is not about training; returns whether it was for it.
        self.hear_other: Callable[[str, bytes], bool] = lambda peer, data: False
        self._news = asyncio.Event()
        self._lock = asyncio.Lock()  # nothing is told while a solve runs beside the event loop
        self._is_leaving = self._is_written = False
        self._is_tried = False  # to write it, since a round last ended
        self._kept_at = self._begun_at = self._watched_at = 0.0
        self._rested_at = self._keep_seconds = 0.0  # the last checkpoint took so long
        self._busy = 0.0  # seconds of arithmetic
        self._at_once_until = -inf  # a round may begin with the message that ended the last
        self._is_in_round = False  # only a complete round is then worth waking up for
        self._is_waiting = False  # for others to meet, or for a sum
        self._patience = Patience(self.node)
        self._quiet_until = -inf  # nothing is due before that, but for the node itself
        self._is_over = False  # the round was ended by the message that completed it
        self._failure: Exception | None = None  # in doing so

    # What a process does with it

    def _send(self, messages: dict[str, bytes]) -> None:
        raise NotImplementedError

    def _charge(self, peer: str, seconds: float) -> None:
        raise NotImplementedError

    def _report(self) -> None:
        raise NotImplementedError

    def _keep(self) -> None:
        raise NotImplementedError

    def _write(self) -> None:
        raise NotImplementedError

    async def _balance(self) -> None:
        raise NotImplementedError

    # A round

    @property
    def _is_done(self) -> bool:
        """Whether there is nothing to compute."""
        is_at_limit = self.max_rounds is not None and self.node.round >= self.max_rounds
        return self.node.is_settled or is_at_limit

    @property
    def _keep_due(self) -> float:
        """When the next checkpoint is: soon after a rest, later by and by.

        So a crash costs little of the work done, however little that is.
        """
        share = LOST_SHARE * (self._kept_at - self._rested_at)
        wait = max(share, KEEP_TIMES * self._keep_seconds)
        return self._kept_at + min(wait, self.node.timing.checkpoint_seconds)

    def hear(self, peer: str, data: bytes) -> None:
        """Take a message from the transport; the one that completes a round begins the next."""
        now, is_complete = time.monotonic(), None
        try:
            is_complete = self.node.take_numbers(peer, data, now)
        except Exception as error:
            self.trouble.survive(f"numbers from node {peer}", error)
        if is_complete is None:
            if not is_spoken(PROTOCOL, data) and self._is_for_others(peer, data):
                return
            is_complete = self._take(peer, data, now)
        elif self.node.is_settled and not self._is_in_round:
            return  # a sign of life, and no news
        if not self._is_in_round:
            self._news.set()
        elif is_complete:
            try:
                self._turn(now)
            except Exception as error:
                self._failure, self._is_over = error, True
                self._news.set()

    def _is_for_others(self, peer: str, data: bytes) -> bool:
        try:
            return self.hear_other(peer, data)
        except Exception as error:
            self.trouble.survive(f"a message from node {peer}", error)
            return True

    def _take(self, peer: str, data: bytes, now: float) -> bool:
        """Take a message that says more than numbers; return whether all have been heard."""
        began = time.thread_time()  # what a busy machine does meanwhile is not the neighbour's
        try:
            self.node.take_whole(peer, data, now)
        except Exception as error:
            self.trouble.survive(f"a message from node {peer}", error)
        spent = time.thread_time() - began
        if spent > QUICK_SECONDS:
            self._charge(peer, spent)
        return self.node.is_complete()

    async def _round(self) -> None:
        """Do a round; those that follow are begun in `_turn` until there is more to do."""
        started = time.monotonic()
        rows = self.node.state.tables.rows
        is_heavy = self.node.n_features * len(rows) > HEAVY_WORK
        is_kept = self.node.veil.is_noisy  # every round: what a budget was spent on is not lost
        due = self._keep_due
        self._at_once_until = -inf if is_heavy or is_kept else due
        async with self._lock:
            self.node.open(started)
            if is_heavy:
                await asyncio.to_thread(self.node.solve)
            else:
                self.node.solve()
            messages = self.node.tell()
        self._tell(messages, started)
        await self._hear_all()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if not self._is_over:
            self._end(ended := time.monotonic())
            self._busy += time.monotonic() - ended
        if not self._rests():
            if is_kept or time.monotonic() > due:
                self._keep()
            await self._balance()
            self._rests()

    def _rests(self) -> bool:
        """Whether there is nothing to compute; then the model is written before anything else."""
        is_done, self._quiet_until = self._is_done, -inf
        if is_done and not self._is_tried:
            self._is_tried = True
            self._write()
        return is_done

    def _tell(self, messages: dict[str, bytes], started: float) -> None:
        """Send a round's messages; from now on the others' are waited for."""
        self._begun_at, self._is_over = time.monotonic(), False
        self._busy += self._begun_at - started
        self._send(messages)

    def _end(self, now: float) -> None:
        """End a round."""
        self._patience.earn(now - self._begun_at)
        self.node.finish(now)
        self._is_over, self._is_written, self._is_tried = True, False, False
        if now >= self._watched_at + WATCH_SECONDS or self.node.is_settled:
            self._watched_at = now
            self.trouble.watch(now)
            self._report()

    def _turn(self, now: float) -> None:
        """End a round and begin the next, one at a time; wake `_round` where that is not all."""
        node = self.node
        if self._is_over:
            return
        is_last = self.max_rounds is not None and node.round >= self.max_rounds
        messages = node.turn(now) if now < self._quiet_until and not is_last else None
        if messages is not None:
            self._patience.earn(now - self._begun_at)
            self._go_on_with(messages, now)
            return
        self._end(now)
        is_over = self._is_leaving or node.is_settled or is_last
        if is_over or now > self._at_once_until or node.state.is_stale or node.is_balancing(now):
            self._busy += time.monotonic() - now
            self._rests()
            self._news.set()
            return
        self._quiet_until = min(self._at_once_until, self._watched_at + WATCH_SECONDS)
        self._go_on_with(node.begin(now), now)

    def _go_on_with(self, messages: dict[str, bytes], now: float) -> None:
        self._tell(messages, now)
        if self.node.is_complete():  # the others are ahead
            self._news.set()

    async def _hear_all(self) -> None:
        """Wait until all are heard or the deadline has passed."""
        if self.node.is_complete():
            await asyncio.sleep(0)  # nothing to wait for: let messages out before the next solve
            return
        self._is_in_round = True
        while not (self._is_over or self.node.is_complete() or self._is_leaving):
            self._news.clear()
            await self._news.wait()
            if self._patience.is_over(self._begun_at, time.monotonic()):
                break
        self._is_in_round = False

    async def _watch(self) -> None:
        """Wake up a round whose deadline has passed; one watch is cheaper than a timer a round.

        Before that it says again what it said: who waits may have missed it, or think it gone.
        """
        gap = due = begun_at = 0.0
        while True:
            timing = self.node.timing
            tick = min(timing.round_seconds / 10, timing.heartbeat_seconds)
            await asyncio.sleep(timing.heartbeat_seconds if self.node.is_settled else tick)
            is_in_round = self._is_in_round and not self._is_over
            if not (is_in_round or self._is_waiting):
                continue
            now = time.monotonic()
            if self._begun_at != begun_at:
                gap, begun_at = tick, self._begun_at
                due = begun_at + gap
            if is_in_round and self._patience.is_over(begun_at, now):
                self._news.set()
            elif now >= due and (is_in_round or now < begun_at + timing.round_seconds):
                self._say_again()
                gap = min(2 * gap, MOST_TICKS * tick)
                due += gap

    def _say_again(self) -> None:
        try:
            self._send(self.node.outbox.earlier(self.node.present))
            self._send(self.node.again(time.monotonic()))
        except Exception as error:
            self.trouble.survive("saying something again", error)
