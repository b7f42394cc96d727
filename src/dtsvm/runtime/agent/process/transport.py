"""The wire: gRPC streams between neighbours, mutual TLS, the newest message and no queue.

One bidirectional stream a link; the lower name dials. Whose stream it is comes from the certificate
at its other end, so a node can speak for nobody but itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from dtsvm.errors import NetworkError
from dtsvm.runtime.agent.node import wire_pb2 as wire

__all__ = ["Credentials", "Transport", "is_loopback"]

log = logging.getLogger(__name__)
SERVICE, METHOD = "dtsvm.agent.v1.Agent", "Link"
MOST_BYTES = 64_000_000
REDIAL_SECONDS = (0.1, 1.0)


@dataclass(frozen=True)
class Credentials:
    """The network's CA, and a node's own certificate and key, as PEM."""

    ca: bytes
    certificate: bytes
    key: bytes


@dataclass
class _Line:
    """What is to be written to one neighbour: at most the two newest messages."""

    waiting: deque[bytes] = field(default_factory=lambda: deque(maxlen=2))
    last: bytes | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    stream: int = 0  # counts streams: the newest one is the one that is used
    heard_at: float = 0.0


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
    on_message : callable
        Takes the neighbour's name and the bytes.
    lease_seconds : float
        A stream that is silent this long is given up and dialled anew.
    """

    def __init__(
        self,
        name: str,
        listen: str,
        neighbours: dict[str, str],
        credentials: Credentials | None,
        on_message: Callable[[str, bytes], object],
        lease_seconds: float = 3.0,
    ) -> None:
        for address in [listen, *neighbours.values()]:
            if credentials is None and not is_loopback(address):
                raise NetworkError(
                    f"Without certificates a node talks on loopback only, not to {address}. "
                    "Use the certificates of 'dtsvm network new'."
                )
        self.name, self.listen, self.neighbours = name, listen, dict(neighbours)
        self.credentials, self.on_message = credentials, on_message
        self.lease_seconds = lease_seconds
        self.port = 0
        self.refused = 0
        self._lines = {neighbour: _Line() for neighbour in neighbours}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: Any = None

    async def start(self) -> None:
        """Listen, and dial the neighbours with higher names."""
        options = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", MOST_BYTES)]
        self._server = grpc.aio.server(options=options)
        handler = grpc.stream_stream_rpc_method_handler(self._serve)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),)
        )
        try:
            self.port = self._add_port()
        except RuntimeError as error:
            raise NetworkError(
                f"Node {self.name!r} cannot listen at {self.listen}: is another agent running?"
            ) from error
        await self._server.start()
        for neighbour in self.neighbours:
            self._dial_if_lower(neighbour)

    def _add_port(self) -> int:
        mine = self.credentials
        if mine is None:
            return int(self._server.add_insecure_port(self.listen))
        credentials = grpc.ssl_server_credentials(
            [(mine.key, mine.certificate)], mine.ca, require_client_auth=True
        )
        return int(self._server.add_secure_port(self.listen, credentials))

    def link(self, neighbour: str, address: str) -> None:
        """Talk to one more neighbour; of one that is known, note the address for the next call."""
        is_new = neighbour not in self.neighbours
        self.neighbours[neighbour] = address
        if is_new:
            self._lines[neighbour] = _Line()
            self._dial_if_lower(neighbour)

    def _dial_if_lower(self, neighbour: str) -> None:
        if self.name < neighbour:
            task = asyncio.create_task(self._dial(neighbour))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Close every stream."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.stop(grace=0.2)

    def send(self, neighbour: str, data: bytes) -> None:
        """Let the newest message wait to be written; what is older than two is dropped."""
        line = self._lines[neighbour]
        line.waiting.append(data)
        line.last = data
        line.ready.set()

    async def flush(self, seconds: float) -> None:
        """Give waiting messages a moment to be written."""
        until = time.monotonic() + seconds
        while any(line.waiting for line in self._lines.values()) and time.monotonic() < until:
            await asyncio.sleep(0.01)

    async def _write(self, neighbour: str, write: Callable[[bytes], Awaitable[Any]]) -> None:
        """Write to the neighbour's newest stream, beginning with what was said last."""
        line = self._lines[neighbour]
        line.stream += 1
        mine = line.stream
        if line.last is not None and not line.waiting:
            line.waiting.append(line.last)
            line.ready.set()
        while line.stream == mine:
            if not line.waiting:
                line.ready.clear()
                await line.ready.wait()
                continue
            await write(line.waiting.popleft())

    # The end that is dialled

    async def _serve(self, requests: Any, context: Any) -> None:
        peer = await self._peer(requests, context)
        if peer not in self.neighbours or peer >= self.name:
            self.refused += 1
            log.warning("Node %s refused a stream from %s.", self.name, peer or "nobody known")
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "not a neighbour that dials")
        writer = asyncio.create_task(self._write(peer, context.write))
        try:
            async for data in requests:
                self._hear(peer, data)
        finally:
            writer.cancel()

    async def _peer(self, requests: Any, context: Any) -> str:
        """Return the name in the certificate; without certificates, what the peer says."""
        if self.credentials is not None:
            names = context.auth_context().get("x509_common_name", [])
            return names[0].decode() if len(names) == 1 else ""
        data = await anext(aiter(requests), b"")
        with contextlib.suppress(Exception):
            sender = str(wire.Message.FromString(data).sender)
            if sender in self.neighbours:
                self._hear(sender, data)
            return sender
        return ""

    def _hear(self, peer: str, data: bytes) -> None:
        self._lines[peer].heard_at = time.monotonic()
        self.on_message(peer, data)

    # The end that dials

    async def _dial(self, neighbour: str) -> None:
        pause = REDIAL_SECONDS[0]
        last_words = ""
        while True:
            started = time.monotonic()
            try:
                await self._call(neighbour)
            except grpc.aio.AioRpcError as error:
                words = f"{error.code().name}: {error.details()}"
                if words != last_words:
                    log.info("Node %s cannot reach node %s: %s", self.name, neighbour, words)
                last_words = words
            is_long = time.monotonic() - started > 10 * REDIAL_SECONDS[1]
            pause = REDIAL_SECONDS[0] if is_long else min(2 * pause, REDIAL_SECONDS[1])
            await asyncio.sleep(pause)

    async def _call(self, neighbour: str) -> None:
        async with self._channel(neighbour) as channel:
            call = channel.stream_stream(f"/{SERVICE}/{METHOD}")()
            writer = asyncio.create_task(self._write(neighbour, call.write))
            lease = asyncio.create_task(self._keep_lease(neighbour, call))
            try:
                async for data in call:
                    self._hear(neighbour, data)
            except asyncio.CancelledError:
                if not call.cancelled() or asyncio.current_task().cancelling():  # type: ignore[union-attr]
                    raise
            finally:
                call.cancel()
                for task in (writer, lease):
                    task.cancel()
                await asyncio.gather(writer, lease, return_exceptions=True)

    async def _keep_lease(self, neighbour: str, call: Any) -> None:
        """Give a silent stream up: TCP and HTTP/2 may take minutes to notice a cut."""
        line = self._lines[neighbour]
        line.heard_at = time.monotonic()
        while time.monotonic() - line.heard_at < self.lease_seconds:
            await asyncio.sleep(self.lease_seconds / 4)
        call.cancel()

    def _channel(self, neighbour: str) -> Any:
        options = [
            ("grpc.max_receive_message_length", MOST_BYTES),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        mine = self.credentials
        if mine is None:
            return grpc.aio.insecure_channel(self.neighbours[neighbour], options=options)
        options.append(("grpc.ssl_target_name_override", neighbour))  # type: ignore[arg-type]
        credentials = grpc.ssl_channel_credentials(mine.ca, mine.key, mine.certificate)
        return grpc.aio.secure_channel(self.neighbours[neighbour], credentials, options=options)
