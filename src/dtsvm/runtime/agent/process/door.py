"""The door: whoever dials in waits here until it has shown who it is, and costs little until then.

Who says nothing costs a descriptor: no stream, no timer, no handshake. Who has begun to speak is
asked for its certificate, which takes a millisecond or more: so many a second and no more, in turns
by address, so that whoever comes again and again keeps out those alone that come from where it
does; and fewer from where somebody was not let in of late. Where too many wait, one gives way: the
oldest that said nothing, or else one of the address of which most wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from math import inf
from typing import Any

from dtsvm.errors import NetworkError
from dtsvm.runtime.agent.process.stream import Allowance

__all__ = ["MOST_PENDING", "Door"]

MOST_PENDING = 64  # connections that have not shown a certificate yet
PACE = 50.0  # that are asked for it in a second, after twice as many at once
REFUSED_PACE, REFUSED_SECONDS = 20.0, 10.0  # in a second, so long after one was not let in
BACKLOG, AT_ONCE = 128, 16  # connections that the system keeps, and that are taken in a turn
PAUSE_SECONDS = 1.0  # where the system has no descriptor left
MOST_ADDRESSES = 256  # that are remembered
FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Door:
    """Takes connections from the system, and hands over those that speak.

    Parameters
    ----------
    welcome : callable
        Given a connection, finds out who it is, and whether it is let in; raises where that is
        nobody.
    refuse : callable
        Told why a connection is closed.
    seconds : float
        How long one may say nothing.
    first : bytes
        The byte that a connection begins with, or empty: any other is noise, and no more is read.
    """

    def __init__(
        self,
        welcome: Callable[[socket.socket], Coroutine[Any, Any, bool]],
        refuse: Callable[[str], None],
        seconds: float,
        first: bytes = b"",
    ) -> None:
        self._welcome, self._refuse, self._seconds = welcome, refuse, seconds
        self._first = first
        self._listening: list[socket.socket] = []
        self._silent: dict[socket.socket, tuple[float, str]] = {}  # since when, and from where
        self._spoken: dict[socket.socket, str] = {}
        self._asked: dict[asyncio.Task[None], None] = {}
        self._served: dict[str, float] = {}  # when each address last was
        self._refused: dict[str, float] = {}  # when one of an address last was
        self._is_sweeping = False
        self._open_at = 0.0
        self._timer: asyncio.TimerHandle | None = None  # of who is asked next

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listening[0].getsockname()[1])

    @property
    def pending(self) -> list[object]:
        """All that have not shown who they are, the least promising first."""
        return [*self._silent, *self._spoken, *self._asked]

    async def open(self, host: str, port: int) -> None:
        """Listen at every address that a host has."""
        self._loop = asyncio.get_running_loop()
        self._allowance = Allowance(self._loop.time())
        found = await self._loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, *_, address in dict.fromkeys(found):
                self._listening.append(
                    socket.create_server(address, family=family, backlog=BACKLOG)
                )
                self._listening[-1].setblocking(False)
        except OSError:
            self._stop_listening()
            raise
        self._resume()

    def _resume(self) -> None:
        for one in self._listening:
            self._loop.add_reader(one, self._take, one)

    def _stop_listening(self) -> None:
        for one in self._listening:
            with contextlib.suppress(RuntimeError, AttributeError):
                self._loop.remove_reader(one)
            one.close()
        self._listening = []

    async def close(self) -> None:
        """Take nobody any more."""
        self._stop_listening()
        for one in [*self._silent, *self._spoken]:
            self._drop(one)
        tasks = list(self._asked)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Who says nothing

    def _take(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                found, (address, *_) = listening.accept()
            except OSError as error:
                if error.errno in FULL:
                    self._pause()
                break
            if len(self.pending) >= MOST_PENDING:
                self._make_room()
            found.setblocking(False)
            self._silent[found] = (self._loop.time(), address)
            self._loop.add_reader(found, self._hear, found)
        if self._silent and not self._is_sweeping:
            self._is_sweeping = True
            self._loop.call_later(self._seconds, self._sweep)

    def _pause(self) -> None:
        """Take nobody for a while, rather than fail again and again."""
        for one in self._listening:
            self._loop.remove_reader(one)
        self._loop.call_later(PAUSE_SECONDS, self._resume)
        self._refuse("the system has no descriptor left")

    def _make_room(self) -> None:
        if not (self._silent or self._spoken):
            next(iter(self._asked)).cancel()
            return
        crowd = Counter(self._spoken.values()).most_common(1)
        most = crowd[0][0] if crowd else ""
        spoken = (one for one, address in self._spoken.items() if address == most)
        self._drop(next(iter(self._silent), None) or next(spoken))
        self._refuse("too many connections wait to show a certificate")

    def _drop(self, one: socket.socket) -> None:
        if self._silent.pop(one, None):
            self._loop.remove_reader(one)
        self._spoken.pop(one, None)
        one.close()

    def _sweep(self) -> None:
        """Give up who has said nothing for too long; the oldest come first."""
        now, old = self._loop.time(), []
        for one, (since, _) in self._silent.items():
            if now - since < self._seconds:
                break
            old.append(one)
        for one in old:
            self._drop(one)
            self._refuse("it said nothing")
        self._is_sweeping = bool(self._silent)
        if self._silent:
            since, _ = next(iter(self._silent.values()))
            self._loop.call_later(max(since + self._seconds - now, 0.01), self._sweep)

    # Who speaks

    def _hear(self, one: socket.socket) -> None:
        _, address = self._silent[one]
        said = b""
        with contextlib.suppress(OSError):
            said = one.recv(1, socket.MSG_PEEK)
        if not said or said != (self._first or said):
            self._drop(one)
            self._refuse("it sent noise" if said else "it said nothing")
            return
        self._loop.remove_reader(one)
        del self._silent[one]
        self._spoken[one] = address
        self._go_on()

    def _go_on(self) -> None:
        """Ask those who have spoken for their certificates, as fast as is fair."""
        while self._spoken:
            now = self._loop.time()
            one = min(self._spoken, key=lambda one: self._turn(self._spoken[one], now))
            due, _ = self._turn(self._spoken[one], now)
            if now < max(due, self._open_at):
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = self._loop.call_at(max(due, self._open_at), self._go_on)
                return
            self._open_at = now + self._allowance.spend(1.0 / PACE, now)
            address = self._spoken.pop(one)
            _remember(self._served, address, now)
            task = self._loop.create_task(self._ask(one, address))
            self._asked[task] = None
            task.add_done_callback(functools.partial(self._end, one))

    def _turn(self, address: str, now: float) -> tuple[float, float]:
        """Return when an address may be served, and when it last was."""
        served = self._served.get(address, -inf)
        is_suspect = now - self._refused.get(address, -inf) < REFUSED_SECONDS
        return max(served + 1.0 / REFUSED_PACE if is_suspect else now, now), served

    async def _ask(self, one: socket.socket, address: str) -> None:
        is_let_in = False
        try:
            is_let_in = await self._welcome(one)
        except (OSError, NetworkError, TimeoutError, asyncio.CancelledError) as error:
            self._refuse(f"no good certificate ({type(error).__name__})")
        if not is_let_in:
            _remember(self._refused, address, self._loop.time())

    def _end(self, one: socket.socket, task: asyncio.Task[None]) -> None:
        self._asked.pop(task, None)
        if task.cancelled():  # before it had begun: nobody else closes it
            one.close()


def _remember(when: dict[str, float], address: str, now: float) -> None:
    """Note when something last happened; of many addresses the oldest is forgotten."""
    when.pop(address, None)
    when[address] = now
    if len(when) > MOST_ADDRESSES:
        del when[next(iter(when))]
