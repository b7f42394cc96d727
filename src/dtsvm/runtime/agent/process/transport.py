"""The links: connections between neighbours, mutual TLS, the newest message and no queue.

One connection a link; the lower name dials. Whose connection it is comes from the certificate at
its other end, so a node can speak for nobody but itself. Until then connections wait at the `Door`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509

from dtsvm.errors import NetworkError
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.identity import named_in
from dtsvm.runtime.agent.node.names import plain, shown
from dtsvm.runtime.agent.node.seldom import Seldom
from dtsvm.runtime.agent.process.credentials import Credentials
from dtsvm.runtime.agent.process.door import Door
from dtsvm.runtime.agent.process.stream import SHARE, Allowance, Limits, Stream

__all__ = ["Transport", "is_loopback"]

log = logging.getLogger(__name__)
REDIAL_SECONDS = (0.1, 1.0)
HANDSHAKE_SECONDS = 5.0
FIRST_BYTE = b"\x16"  # of a TLS handshake, in every version
LIVELY = 0.5  # of a lease: a connection that was heard since then is not replaced
WAIT_SECONDS = 0.02  # between looks whether somebody said who it is
CHARGE_SECONDS = 0.25  # between looks at what else comes than messages
CONNECT_SECONDS = SHARE * CHARGE_SECONDS  # what it may have taken over the last connection unseen
WRITE_AHEAD = 1_000_000  # bytes written to a connection before messages wait


@dataclass
class _Line:
    """What is to be written to one neighbour: at most the two newest messages."""

    waiting: deque[bytes] = field(default_factory=lambda: deque(maxlen=2))
    last: bytes | None = None
    stream: Stream | None = None
    heard_at: float = 0.0
    dialler: asyncio.Task[None] | None = None
    allowance: Allowance | None = None  # of the neighbour, not of a connection


def is_loopback(address: str) -> bool:
    """Whether an address cannot be reached from another machine."""
    host = address.rpartition(":")[0].strip("[]")
    return host in ("localhost", "::1") or host.startswith("127.")


class Transport:
    """A node's end of all its links.

    Parameters
    ----------
    name : str
        The node.
    listen : str
        host:port to listen at; port 0 takes any free one.
    neighbours : dict of str to str
        Their names and addresses.
    credentials : Credentials or None
        None only on loopback: nothing is encrypted and names are believed.
    on_message : callable, optional
        Takes the neighbour's name and the bytes; it may be set until `start`.
    lease_seconds : float
        A connection that is silent this long is given up and dialled anew.
    limits : Limits, optional
        How much a neighbour may say.
    """

    def __init__(
        self,
        name: str,
        listen: str,
        neighbours: dict[str, str],
        credentials: Credentials | None,
        on_message: Callable[[str, bytes], object] | None = None,
        lease_seconds: float = 3.0,
        limits: Limits | None = None,
    ) -> None:
        self.name, self.listen, self.neighbours = name, listen, dict(neighbours)
        self.credentials, self.on_message = credentials, on_message or (lambda peer, data: None)
        self.lease_seconds, self.limits = lease_seconds, limits or Limits()
        for address in [listen, *neighbours.values()]:
            self._check_address(address)
        self.port = 0
        self._refusals = Seldom()  # of connections
        self._lines = {neighbour: _Line() for neighbour in neighbours}
        self._door: Door | None = None
        self._is_stopped = False
        self._charging: asyncio.Task[None] | None = None

    def _check_address(self, address: str) -> None:
        if self.credentials is None and not is_loopback(address):
            raise NetworkError(
                f"Without certificates a node talks on loopback only, not to {address}. "
                "Use the certificates of 'dtsvm network new'."
            )

    async def start(self) -> None:
        """Listen, and dial the neighbours with higher names."""
        host, _, port = self.listen.rpartition(":")
        first = b"" if self.credentials is None else FIRST_BYTE
        self._door = Door(self._welcome, self._count_refused, HANDSHAKE_SECONDS, first)
        try:
            await self._door.open(host.strip("[]"), int(port))
        except OSError as error:
            raise NetworkError(
                f"Node {self.name!r} cannot listen at {self.listen}: {error.strerror}. "
                "Is another agent running?"
            ) from error
        self.port = self._door.port
        self._charging = asyncio.create_task(self._charge_records())
        for neighbour in self.neighbours:
            self._dial_if_lower(neighbour)

    def link(self, neighbour: str, address: str) -> None:
        """Talk to one more neighbour; of one that is known, note the address for the next call."""
        self._check_address(address)
        is_new = neighbour not in self.neighbours
        self.neighbours[neighbour] = address
        if is_new:
            self._lines[neighbour] = _Line()
            self._dial_if_lower(neighbour)

    def unlink(self, neighbour: str) -> None:
        """Talk to a neighbour no more, after what waits for it has been written."""
        self.neighbours.pop(neighbour, None)
        line = self._lines.pop(neighbour, None)
        if line and line.dialler:
            line.dialler.cancel()
        if line and line.stream:
            line.stream.transport.close()

    def _dial_if_lower(self, neighbour: str) -> None:
        if self.name < neighbour:
            task = asyncio.create_task(self._dial(neighbour))
            self._lines[neighbour].dialler = task

    async def stop(self) -> None:
        """Close every connection."""
        self._is_stopped = True  # a cancellation can get lost in `wait_for` (Python 3.11)
        tasks = [line.dialler for line in self._lines.values() if line.dialler]
        tasks += [self._charging] if self._charging else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for line in self._lines.values():
            if line.stream:
                line.stream.transport.close()
        if self._door is not None:
            await self._door.close()
        await asyncio.sleep(0)

    def renew(self, credentials: Credentials) -> None:
        """Go on with other certificates; close connections to nodes that are good no more."""
        self.credentials = credentials
        for line in self._lines.values():
            stream = line.stream
            if stream and credentials.objection(stream.peer, stream.certificate):
                stream.close("its certificate is good no more")

    # Saying

    def send(self, neighbour: str, data: bytes) -> None:
        """Write a message, or let it wait; of those that wait only the two newest stay."""
        line = self._lines.get(neighbour)
        if line is None:
            return
        line.last = data
        line.waiting.append(data)
        self._write(line)

    def _write(self, line: _Line) -> None:
        stream = line.stream
        while stream and stream.is_open and stream.is_writable and line.waiting:
            stream.write(line.waiting.popleft())

    async def flush(self, seconds: float) -> None:
        """Give waiting messages a moment to be written."""
        until = time.monotonic() + seconds
        while any(line.waiting for line in self._lines.values()) and time.monotonic() < until:
            await asyncio.sleep(0.01)

    def _take_over(self, stream: Stream, peer: str) -> None:
        """Use a connection from now on, beginning with what was said last."""
        line = self._lines[peer]
        old, line.stream, stream.peer = line.stream, stream, peer
        line.allowance = stream.allowance = line.allowance or stream.allowance
        stream.spend(CONNECT_SECONDS)
        if old is not None and old is not stream:
            old.close("there is a newer connection")
        stream.on_writable = lambda: self._write(line)
        stream.transport.set_write_buffer_limits(high=WRITE_AHEAD)
        line.heard_at = time.monotonic()
        if line.last is not None and not line.waiting:
            line.waiting.append(line.last)
        self._write(line)
        if not stream.is_admitted:
            stream.admit()

    # Being heard

    def _heard(self, stream: Stream, data: bytes) -> None:
        if not stream.peer and not self._believe(stream, data):
            return
        line = self._lines.get(stream.peer)
        if line is None or line.stream is not stream:
            stream.close("it is no neighbour any more")
            return
        line.heard_at = time.monotonic()
        self.on_message(stream.peer, data)

    def charge(self, peer: str, seconds: float) -> None:
        """Count time that was spent on a neighbour's message: it is read later for that."""
        line = self._lines.get(peer)
        if line is not None and line.stream is not None:
            line.stream.work += seconds

    async def _charge_records(self) -> None:
        """Look now and then what neighbours make TLS do that no message shows."""
        while not self._is_stopped:
            for line in list(self._lines.values()):
                if line.stream is not None:
                    with contextlib.suppress(OSError):
                        line.stream.charge_records()
            await asyncio.sleep(CHARGE_SECONDS)

    def _believe(self, stream: Stream, data: bytes) -> bool:
        """Without certificates, believe the first message's sender."""
        sender = ""
        if self.credentials is None:
            with contextlib.suppress(Exception):
                sender = str(wire.Message.FromString(data).sender)
        return self._admit(stream, sender)

    def _closed(self, stream: Stream) -> None:
        line = self._lines.get(stream.peer)
        if line and line.stream is stream:
            line.stream = None

    # The end that is dialled

    async def _welcome(self, connection: socket.socket) -> bool:
        """Have somebody who dials show who it is; without certificates, in its first message.

        Returns whether it is let in.
        """
        loop = asyncio.get_running_loop()
        secure: dict[str, Any] = {}
        if self.credentials is not None:
            context = self.credentials.server_context()
            secure = {"ssl": context, "ssl_handshake_timeout": HANDSHAKE_SECONDS}
        _, stream = await loop.connect_accepted_socket(self._stream, connection, **secure)
        if self.credentials is not None:
            return self._admit(stream, _named(stream.certificate))
        stream.admit()
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                while stream.is_open and not stream.peer:
                    await asyncio.sleep(WAIT_SECONDS)
        except (TimeoutError, asyncio.CancelledError):
            stream.close("it said nothing")
            raise
        return bool(stream.peer)

    def _stream(self) -> Stream:
        return Stream(lambda _: None, self._heard, self._closed, self.limits)

    def _admit(self, stream: Stream, peer: str) -> bool:
        bad = ""
        if peer not in self.neighbours or peer >= self.name:
            bad = f"{shown(peer)} is not a neighbour that dials"
        elif self.credentials and (why := self.credentials.objection(peer, stream.certificate)):
            bad = f"{peer}: {why}"
        elif self._is_lively(peer):
            bad = f"{peer} has a connection already, and was heard over it just now"
        if bad:
            self._count_refused(bad)
            stream.close(bad)
            return False
        self._take_over(stream, peer)
        return True

    def _is_lively(self, peer: str) -> bool:
        """Whether a neighbour is heard: who connects again and again would cut that off.

        One that has lost its connection has been silent, or its system has closed it.
        """
        line = self._lines[peer]
        if line.stream is None or not line.stream.is_open:
            return False
        return time.monotonic() - line.heard_at < LIVELY * self.lease_seconds

    @property
    def refused(self) -> int:
        """How many connections were refused."""
        return self._refusals.n

    def _count_refused(self, why: str) -> None:
        if self._refusals.is_worth_a_line(time.monotonic()):
            words = "Node %s: A connection was refused: %s. (%d refused so far)"
            log.warning(words, self.name, why, self.refused)

    # The end that dials

    async def _dial(self, neighbour: str) -> None:
        lost_at, last_words, often = 0.0, "", Seldom()
        while not self._is_stopped:
            started = time.monotonic()
            words = ""
            try:
                words = await self._call(neighbour)
            except (OSError, NetworkError, TimeoutError) as error:
                words = str(error) or type(error).__name__
            if words != last_words and often.is_worth_a_line(time.monotonic()):
                log.info("Node %s cannot reach node %s: %s", self.name, neighbour, plain(words))
                last_words = words
            now, (shortest, longest) = time.monotonic(), REDIAL_SECONDS
            lost_at = now if now - started > longest or not lost_at else lost_at
            await asyncio.sleep(min(max(shortest, (now - lost_at) / 4), longest))

    async def _call(self, neighbour: str) -> str:
        """Talk to a neighbour until the connection ends; return why it did."""
        stream = await self._connect(neighbour)
        try:
            mine = self.credentials
            if mine and (bad := mine.objection(neighbour, stream.certificate)):
                raise NetworkError(bad)
            self._take_over(stream, neighbour)
            await self._keep_lease(self._lines[neighbour], stream)
        finally:
            stream.close()
        return stream.why

    async def _connect(self, neighbour: str) -> Stream:
        host, _, port = self.neighbours[neighbour].rpartition(":")
        secure: dict[str, Any] = {}
        if self.credentials is not None:
            context = self.credentials.client_context()
            secure = {"ssl": context, "server_hostname": "", "ssl_handshake_timeout": 5.0}
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(2 * HANDSHAKE_SECONDS):
            _, stream = await loop.create_connection(
                self._stream, host.strip("[]"), int(port), **secure
            )
        return stream

    async def _keep_lease(self, line: _Line, stream: Stream) -> None:
        """Give a silent connection up: TCP may take minutes to notice a cut."""
        while stream.is_open:
            silent = time.monotonic() - line.heard_at
            if silent >= self.lease_seconds:
                stream.close(f"nothing was heard for {self.lease_seconds:.0f} s")
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(self.lease_seconds - silent, 0.25)):
                    await asyncio.shield(stream.closed)


def _named(certificate: bytes) -> str:
    return named_in(x509.load_der_x509_certificate(certificate)) if certificate else ""
