"""A node as a process: rounds against the clock, checkpoints, and a socket to be told things.

Nothing ends it but its owner: an error in a message, a round or a file is logged, counted and
survived. What its owner is told to have been done is on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from dtsvm.errors import DtsvmError
from dtsvm.runtime.agent.node.names import shown
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.sharing import share_nothing
from dtsvm.runtime.agent.process import metrics
from dtsvm.runtime.agent.process.control import ask, listen
from dtsvm.runtime.agent.process.credentials import Credentials
from dtsvm.runtime.agent.process.orders import Change, Command, Orders
from dtsvm.runtime.agent.process.transport import Transport
from dtsvm.runtime.agent.process.trouble import Trouble, have_descriptors
from dtsvm.runtime.agent.process.turns import Turns

__all__ = ["Process", "ask"]

log = logging.getLogger(__name__)
LOG_SECONDS, QUIET_SECONDS = 1.0, 600.0  # between lines, in training and when settled
RENEW_SECONDS = 10.0  # between looks at the certificates' files
MOST_WRITES, WRITES_SECONDS = 30, 60.0  # of models; whoever wakes others up again and again


@dataclass
class Process(Turns):
    """Runs a node until it is told to leave.

    Parameters
    ----------
    node : Node
        The node, its tasks entered.
    transport : Transport
        Its links; their messages must come to `hear`.
    folder : Path
        Where the control socket is.
    keep : callable
        Puts the node on disk, with a change that is about to be made; raises NetworkError if it
        cannot.
    write_model : callable
        Called with the node whenever it has settled.
    commands : dict
        What may be told beside `status`, `leave`, `couple`, `decouple`, `link` and `unlink`.
    max_rounds : int, optional
        Compute no further; keep answering.
    metrics : str, optional
        Loopback address at which monitoring asks.
    credentials : callable, optional
        Returns the certificates as they are on disk now.
    """

    node: Node
    transport: Transport
    folder: Path
    keep: Callable[[Change], None]
    write_model: Callable[[Node], None]
    commands: dict[str, Command] = field(default_factory=dict)
    max_rounds: int | None = None
    metrics: str | None = None
    credentials: Callable[[], Credentials | None] = lambda: None

    def __post_init__(self) -> None:
        self._greeted: tuple[float, int, int] = (0.0, 0, 0)  # when, with which roster and sums
        self.is_paused = False
        self._begin_turns()
        self._was_settled = False
        self._written_at: deque[float] = deque(maxlen=MOST_WRITES)
        self._logged_at = 0.0
        self._rounds_at: tuple[float, int] = (time.monotonic(), 0)
        self.trouble = Trouble(self.node)
        self.notes: Callable[[], list[str]] = list  # what else its owner should know
        self.commands = {
            "status": lambda _: self.status(),
            **Orders(self.node, self.transport, self.keep, self.stop).commands,
            **self.commands,
        }

    def stop(self) -> None:
        """Leave after this round."""
        self._is_leaving, self._quiet_until = True, -inf
        self._news.set()

    def pause(self) -> None:
        """End after this round without leaving: the node will be back."""
        self.is_paused = True
        self.stop()

    async def run(self) -> None:
        """Meet, train, settle, serve; leave politely when told."""
        have_descriptors()
        self._keep()  # from now on a restored old checkpoint can be told from the newest
        self._keep_seconds = 0.0  # the first takes longer than any other
        await self.transport.start()
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self.transport.stop)
            await self._open(stack)
            log.info("Node %s listens at port %d.", self.node.name, self.transport.port)
            await self._meet()
            while not self._is_leaving:
                await self._go_on()
            if not self.is_paused:
                self._leave()
            await self.transport.flush(1.0)

    async def _open(self, stack: contextlib.AsyncExitStack) -> None:
        """Open what is beside the links: the socket, monitoring, watches."""
        path = self.folder / "control.sock"
        stack.callback((await listen(path, self._answer)).close)
        stack.callback(path.unlink, missing_ok=True)
        if self.metrics:
            monitor = await metrics.serve(self.metrics, self.status, self.trouble.words)
            stack.callback(monitor.close)
        for watch in (self._watch(), self._watch_certificates()):
            stack.callback(asyncio.create_task(watch).cancel)

    async def _go_on(self) -> None:
        """Do a round, or rest; survive whatever happens in it."""
        try:
            if self._is_done:
                await self._rest()
            else:
                await self._round()
        except Exception as error:
            self._is_in_round = self._is_waiting = False
            self.trouble.survive("a round", error)
            await asyncio.sleep(self.node.timing.heartbeat_seconds)

    async def _meet(self) -> None:
        self._is_waiting = True
        while not self._is_leaving and not self.node.may_begin(time.monotonic()):
            if self._greet(self.node.timing.heartbeat_seconds):
                self._begun_at = time.monotonic()
            self._report()
            await self._wait(self.node.timing.heartbeat_seconds)
        self._is_waiting, self._rested_at = False, time.monotonic()

    async def _balance(self) -> None:
        """Wait for all to know the next penalties, if that is a matter of moments."""
        self._begun_at, self._is_waiting = time.monotonic(), True
        while not self._is_leaving and self.node.is_balancing(time.monotonic()):
            self._greet(self.node.timing.heartbeat_seconds)
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.node.timing.heartbeat_seconds / 10):
                    await self._news.wait()
        self._is_waiting = False

    async def _rest(self) -> None:
        """Give signs of life until something changes."""
        self._rested_at = time.monotonic()
        due = self._kept_at + self.node.timing.checkpoint_seconds
        if not self._is_written and time.monotonic() > due:
            self._write()
        self.trouble.watch(time.monotonic())
        seconds = self._until_next_sign
        self._greet(seconds)
        self._report()
        await self._wait(seconds)

    @property
    def _until_next_sign(self) -> float:
        """Seconds between signs of life: few after a round, as the news may be lost, then more."""
        timing, (greeted_at, *_) = self.node.timing, self._greeted
        soonest = min(timing.round_seconds / 10, timing.heartbeat_seconds)
        return min(max(greeted_at - self._begun_at, soonest), timing.heartbeat_seconds)

    async def _wait(self, seconds: float) -> None:
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        await asyncio.sleep(0.01)  # several messages often come at once

    def _greet(self, seconds: float) -> bool:
        """Give a sign of life, so long after the last or if there is news; return whether."""
        now = time.monotonic()
        then, *known = self._greeted
        is_due = now - then >= seconds
        has_changed = known != [self.node.roster.digest, self.node.sums.version]
        if not (is_due or has_changed or self.node.outbox.has_news_for_somebody(then)):
            return False
        self._send(self.node.hello(now))
        self._greeted = (now, self.node.roster.digest, self.node.sums.version)
        return True

    def _send(self, messages: dict[str, bytes]) -> None:
        send, n_bytes = self.transport.send, 0
        for name, data in messages.items():
            send(name, data)
            n_bytes += len(data)
        self.node.bytes_sent += n_bytes
        self.node.messages_sent += len(messages)

    def _charge(self, peer: str, seconds: float) -> None:
        self.transport.charge(peer, seconds)

    def _leave(self) -> None:
        self._write()
        self._send(self.node.leave())
        log.info("Node %s leaves after round %d.", self.node.name, self.node.round)

    def _write(self) -> None:
        """Write the models and a checkpoint; what fails, or comes too often, is tried again."""
        now = time.monotonic()
        is_often = len(self._written_at) == MOST_WRITES
        if is_often and now - self._written_at[0] < WRITES_SECONDS and not self._is_leaving:
            return
        self._written_at.append(now)
        self._keep()
        if not self._has_model:
            return
        try:
            self.write_model(self.node)
            self._is_written = True
        except Exception as error:
            self.trouble.survive("writing the model", error)

    @property
    def _has_model(self) -> bool:
        """Whether there is something to write."""
        return self.node.round > 0

    def _keep(self) -> None:
        begun = time.monotonic()
        try:
            self.keep({})
        except Exception as error:
            self.trouble.survive("writing the checkpoint", error)
        self._kept_at = time.monotonic()
        self._keep_seconds = self._kept_at - begun

    def _report(self) -> None:
        """Log a line a second in training, and one in ten minutes while nothing happens."""
        now = time.monotonic()
        is_quiet = self.node.is_settled and self._was_settled
        if now - self._logged_at < (QUIET_SECONDS if is_quiet else LOG_SECONDS):
            return
        self._logged_at, self._was_settled = now, self.node.is_settled
        status = self.status()
        log.info(
            "round %6d  residual %.1e  heard %d of %d  nodes %d  %s",
            status["round"], status["residual"], len(status["heard"]), len(status["neighbours"]),
            status["nodes"], "settled" if status["is_settled"] else f"calm {status['calm']}",
            extra={"status": status},
        )  # fmt: skip

    async def _watch_certificates(self) -> None:
        """Go on with new certificates, and without nodes whose own are good no more."""
        known = self.transport.credentials
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                found = self.credentials()
                if found is None:
                    continue
                self.transport.renew(found)
                if found == known:
                    self.node.drop_bad()
                    continue
                self.node.renew(found.ca, found.certificate, found.key, found.revoked)
                known = found
                log.info("Node %s has read its certificates anew.", self.node.name)
            except Exception as error:
                self.trouble.survive("reading the certificates anew", error)

    # Being told

    def status(self) -> dict[str, Any]:
        """Return the node's status, with its speed since it was last asked."""
        now = time.monotonic()
        then, before = self._rounds_at
        speed = (self.node.round - before) / max(now - then, 1e-9)
        share = self._busy / max(now - then, 1e-9)
        self._rounds_at, self._busy = (now, self.node.round), 0.0
        return {
            **self.told(),
            "rounds_per_second": speed,
            "arithmetic": share,
            "messages_sent": self.node.messages_sent,
            "bytes_sent": self.node.bytes_sent,
            "connections_refused": self.transport.refused,
        }

    def told(self) -> dict[str, Any]:
        """Return what others may be told of the status, too."""
        return {
            **self.node.status(),
            "barred": self.node.barred(time.monotonic()),
            "apart": [
                *share_nothing(self.node.roster, self.node.tasks),
                *self.notes(),
                *self._refusals(),
                *self.node.inbox.hearsay.words(time.monotonic()),
            ],
            "failures": self.trouble.failures,
            "trouble": self.trouble.words(),
        }

    def _refusals(self) -> list[str]:
        """Say why others refuse this node, where that can be known here."""
        identity = self.node.identity
        why = identity.objection(self.node.name, identity.certificate)
        return [f"others refuse this node: {why}. Put a new one into its folder."] if why else []

    async def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        command = self.commands.get(str(asked.get("command")))
        if command is None:
            return {"error": f"Unknown command {shown(asked.get('command'))}."}
        try:
            async with self._lock:
                answer = command(asked)
        except DtsvmError as error:
            return {"error": str(error)}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
        self._news.set()
        return answer
