"""A node as a process: rounds against the clock, checkpoints, and a socket to be told things."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dtsvm.data.files import write_atomically
from dtsvm.errors import DtsvmError, NetworkError
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.process.transport import Transport
from dtsvm.runtime.agent.site.checkpoint import dump
from dtsvm.runtime.agent.site.config import check_address, check_name

__all__ = ["Process", "ask"]

log = logging.getLogger(__name__)
Command = Callable[[dict[str, Any]], dict[str, Any]]
LOG_SECONDS = 1.0
HEAVY_WORK = 2_000_000  # numbers in a solve above which it runs beside the event loop


@dataclass
class Process:
    """Runs a node until it is told to leave.

    Parameters
    ----------
    node : Node
        The node, its tasks entered.
    transport : Transport
        Its links; their messages must come to `hear`.
    folder : Path
        Where the checkpoint and the control socket are.
    n_first : dict
        How many rows of each task the configuration gives.
    write_model : callable
        Called with the node whenever it has settled.
    commands : dict
        What may be told beside `status`, `leave`, `couple` and `link`.
    max_rounds : int, optional
        Compute no further; keep answering.
    """

    node: Node
    transport: Transport
    folder: Path
    n_first: dict[str, int]
    write_model: Callable[[Node], None]
    commands: dict[str, Command] = field(default_factory=dict)
    max_rounds: int | None = None

    def __post_init__(self) -> None:
        self._news = asyncio.Event()
        self._lock = asyncio.Lock()  # nothing is told while a solve runs beside the event loop
        self._greeted: tuple[float, int, int] = (0.0, 0, 0)  # when, with which roster and ledger
        self._is_leaving = False
        self._deadline = 0.0
        self._is_in_round = False  # only a complete round is then worth waking up for
        self._is_written = False
        self._logged_at = self._kept_at = 0.0
        self._busy = 0.0  # seconds of arithmetic
        self._rounds_at: tuple[float, int] = (time.monotonic(), 0)
        self.commands = {
            "status": lambda _: self.status(),
            "leave": self._tell_leave,
            "couple": self._tell_couple,
            "link": self._tell_link,
            **self.commands,
        }

    def hear(self, peer: str, data: bytes) -> None:
        """Take a message from the transport."""
        self.node.take(peer, data, time.monotonic())
        if not self._is_in_round or self.node.is_complete():
            self._news.set()

    def stop(self) -> None:
        """Leave after this round."""
        self._is_leaving = True
        self._news.set()

    async def run(self) -> None:
        """Meet, train, settle, serve; leave politely when told."""
        await self.transport.start()
        control = await _listen(self.folder / "control.sock", self._answer)
        watch = asyncio.create_task(self._watch())
        log.info("Node %s listens at port %d.", self.node.name, self.transport.port)
        try:
            await self._meet()
            while not self._is_leaving:
                if self.node.is_settled or self._is_at_limit:
                    await self._rest()
                else:
                    await self._round()
            self._leave()
            await self.transport.flush(1.0)
        finally:
            watch.cancel()
            control.close()
            with contextlib.suppress(FileNotFoundError):
                (self.folder / "control.sock").unlink()
            await self.transport.stop()

    @property
    def _is_at_limit(self) -> bool:
        return self.max_rounds is not None and self.node.round >= self.max_rounds

    async def _meet(self) -> None:
        while not self._is_leaving and not self.node.may_begin(time.monotonic()):
            self._greet()
            self._report()
            await self._wait(self.node.timing.heartbeat_seconds)

    async def _round(self) -> None:
        now = started = time.monotonic()
        work = self.node.n_features * len(self.node.state.tables.rows)
        async with self._lock:
            self.node.open(now)
            if work > HEAVY_WORK:
                await asyncio.to_thread(self.node.solve)
            else:
                self.node.solve()
            messages = self.node.tell()
        self._busy += time.monotonic() - started
        self._send(messages)
        await self._hear_all()
        started = time.monotonic()
        self.node.finish(started)
        self._busy += time.monotonic() - started
        self._is_written = False
        self._report()
        if self.node.is_settled or self._is_at_limit:
            self._write()
            return
        if started - self._kept_at > self.node.timing.checkpoint_seconds:
            self._keep()
        await self._balance()

    async def _balance(self) -> None:
        """Wait for all to know the next penalties, if that is a matter of moments."""
        while not self._is_leaving and self.node.is_balancing(time.monotonic()):
            self._greet()
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), self.node.timing.heartbeat_seconds / 10)

    async def _hear_all(self) -> None:
        """Wait until all are heard or the deadline has passed."""
        if self.node.is_complete():
            await asyncio.sleep(0)  # nothing to wait for: let messages out before the next solve
            return
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + self.node.timing.round_seconds
        self._is_in_round = True
        while not self.node.is_complete() and not self._is_leaving:
            self._news.clear()
            await self._news.wait()
            if loop.time() >= self._deadline:
                break
        self._is_in_round = False

    async def _watch(self) -> None:
        """Wake up a round whose deadline has passed; one watch is cheaper than a timer a round."""
        while True:
            await asyncio.sleep(self.node.timing.round_seconds / 10)
            if self._is_in_round and asyncio.get_running_loop().time() >= self._deadline:
                self._news.set()

    async def _rest(self) -> None:
        """Give signs of life until something changes."""
        if not self._is_written:
            self._write()
        self._greet()
        self._report()
        await self._wait(self.node.timing.heartbeat_seconds)

    async def _wait(self, seconds: float) -> None:
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), seconds)
        await asyncio.sleep(0.01)  # several messages often come at once

    def _greet(self) -> None:
        """Give a sign of life when it is time for one, or there is news."""
        now = time.monotonic()
        then, *known = self._greeted
        is_due = now - then >= self.node.timing.heartbeat_seconds
        has_changed = known != [self.node.roster.digest, self.node.ledger.digest]
        if is_due or has_changed or self.node.has_news_for_somebody(then):
            self._send(self.node.hello(now))
            self._greeted = (now, self.node.roster.digest, self.node.ledger.digest)

    def _send(self, messages: dict[str, bytes]) -> None:
        for name, data in messages.items():
            self.transport.send(name, data)
            self.node.bytes_sent += len(data)
        self.node.messages_sent += len(messages)

    def _leave(self) -> None:
        self._keep()
        if self.node.round > 0:
            self.write_model(self.node)
        self._send(self.node.leave())
        log.info("Node %s leaves after round %d.", self.node.name, self.node.round)

    def _write(self) -> None:
        """Write the models and a checkpoint."""
        self._is_written = True
        self._keep()
        self.write_model(self.node)

    def _keep(self) -> None:
        self._kept_at = time.monotonic()
        content = dump(self.node, self.n_first)
        write_atomically(self.folder / "checkpoint.npz", content, is_private=True)

    def _report(self) -> None:
        now = time.monotonic()
        if now - self._logged_at < LOG_SECONDS:
            return
        self._logged_at = now
        status = self.status()
        log.info(
            "round %6d  residual %.1e  heard %d of %d  nodes %d  %s",
            status["round"], status["residual"], len(status["heard"]), len(status["neighbours"]),
            status["nodes"], "settled" if status["is_settled"] else f"calm {status['calm']}",
            extra={"status": status},
        )  # fmt: skip

    # Being told

    def status(self) -> dict[str, Any]:
        """Return the node's status, with its speed since it was last asked."""
        now = time.monotonic()
        then, before = self._rounds_at
        speed = (self.node.round - before) / max(now - then, 1e-9)
        share = self._busy / max(now - then, 1e-9)
        self._rounds_at, self._busy = (now, self.node.round), 0.0
        return {**self.node.status(), "rounds_per_second": speed, "arithmetic": share}

    async def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        command = self.commands.get(str(asked.get("command")))
        if command is None:
            return {"error": f"Unknown command {asked.get('command')!r}."}
        try:
            async with self._lock:
                answer = command(asked)
        except DtsvmError as error:
            return {"error": str(error)}
        except (KeyError, TypeError, ValueError) as error:
            return {"error": f"{type(error).__name__}: {error}"}
        self._news.set()
        return answer

    def _tell_leave(self, asked: dict[str, Any]) -> dict[str, Any]:
        task = asked.get("task")
        if task is None:
            self.stop()
            return {"said": f"Node {self.node.name!r} leaves."}
        self.node.leave_task(task)
        return {"said": f"Task {task!r} has left node {self.node.name!r}."}

    def _tell_couple(self, asked: dict[str, Any]) -> dict[str, Any]:
        tasks = [str(task) for task in asked["tasks"]]
        known = {t for name in self.node.roster.entries for t in self.node.roster.tasks_at(name)}
        unknown = [task for task in tasks if task not in known]
        if unknown or len(set(tasks)) < 2:
            raise NetworkError(f"couple needs two or more of the tasks {', '.join(sorted(known))}.")
        self.node.couple(tasks)
        return {"said": f"Tasks {', '.join(tasks)} train together."}

    def _tell_link(self, asked: dict[str, Any]) -> dict[str, Any]:
        name, address = check_name(asked["name"]), check_address(str(asked["address"]))
        self.node.link(name)
        self.transport.link(name, address)
        return {"said": f"Node {self.node.name!r} is linked to node {name!r}."}


def _short_socket(path: Path) -> str:
    """Return a spelling of the socket's path that fits into the kernel's 107 bytes."""
    relative = os.path.relpath(path)
    return min((str(path), relative), key=len)


async def _listen(
    path: Path, answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
) -> asyncio.Server:
    """Answer JSON lines at a socket that only its owner can open."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = json.loads(await reader.readline())
            answered = (
                await answer(asked) if isinstance(asked, dict) else {"error": "Not an object."}
            )
        except ValueError:
            answered = {"error": "That is not JSON."}
        writer.write(json.dumps(answered).encode() + b"\n")
        with contextlib.suppress(OSError):
            await writer.drain()
        writer.close()

    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    before = os.umask(0o177)
    try:
        return await asyncio.start_unix_server(serve, _short_socket(path))
    finally:
        os.umask(before)


async def ask(folder: Path, **asked: Any) -> dict[str, Any]:
    """Ask a running agent, through the socket in its folder."""
    path = folder / "control.sock"
    try:
        reader, writer = await asyncio.open_unix_connection(_short_socket(path))
    except (FileNotFoundError, ConnectionRefusedError):
        raise NetworkError(f"No agent is running in {folder}. Start it first.") from None
    try:
        writer.write(json.dumps(asked).encode() + b"\n")
        await writer.drain()
        line = await asyncio.wait_for(reader.readline(), 30)
    finally:
        writer.close()
    if not line:
        raise NetworkError(f"The agent in {folder} did not answer.")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise NetworkError(str(answer["error"]))
    return answer
