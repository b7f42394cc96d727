"""One connection: messages after their lengths, at no more than a neighbour's fair speed."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable

if sys.platform == "linux":
    import fcntl
    import termios

__all__ = ["SHARE", "Allowance", "Limits", "Stream"]

LENGTH = 4  # bytes before every message, the highest first
BURST_SECONDS = 2.0
MOST_WAIT_SECONDS = 10.0  # an honest neighbour may ask for what takes long, once
SHARE = 4.0  # seconds that a neighbour waits for each that its messages take to be understood
MOST_UNREAD = 1_000_000  # bytes that wait to be written, beside messages
RECORD_BYTES, FULL_RECORD = 22, 16_384  # what a TLS record adds, and the most that it carries
EMPTY_SECONDS = 1e-4  # that a record takes which is for no message, if it has new keys made
# Where Linux says how many bytes a connection has received: in `struct tcp_info`.
RECEIVED = slice(128, 136)


class Limits:
    """How much a neighbour may say.

    Parameters
    ----------
    most_bytes : int
        Length of a message.
    messages_per_second, bytes_per_second : float
        What is read; who says more is read later, so that its own sending has to wait.
    """

    def __init__(
        self,
        most_bytes: int = 16_000_000,
        messages_per_second: float = 4_000.0,
        bytes_per_second: float = 200e6,
    ) -> None:
        self.most_bytes = most_bytes
        self.messages_per_second = messages_per_second
        self.bytes_per_second = bytes_per_second


class Allowance:
    """How much one neighbour may say before it has to wait, on whatever connection it does.

    Examples
    --------
    >>> allowance = Allowance(0.0)
    >>> allowance.spend(1.5, 0.0), allowance.spend(1.5, 0.5)
    (0.0, 0.5)
    """

    def __init__(self, now: float) -> None:
        self._left, self._at = BURST_SECONDS, now  # seconds of reading at full speed

    def spend(self, seconds: float, now: float) -> float:
        """Count what was said; return how long nothing more is read."""
        left = min(BURST_SECONDS, self._left + now - self._at) - seconds
        self._left, self._at = max(left, -MOST_WAIT_SECONDS), now
        return max(-self._left, 0.0)


class Stream(asyncio.Protocol):
    """A connection to another node, in the roles of dialler and dialled.

    Parameters
    ----------
    on_open : callable
        Called with the stream once it is connected.
    on_message, on_close : callable
        Called with the stream (and a message).
    limits : Limits
        How much may be said.
    """

    def __init__(
        self,
        on_open: Callable[[Stream], None],
        on_message: Callable[[Stream, bytes], None],
        on_close: Callable[[Stream], None],
        limits: Limits,
    ) -> None:
        self._on_open, self._on_message, self._on_close = on_open, on_message, on_close
        self.limits = limits
        self.peer = ""  # who is at the other end, once that is known
        self.is_open = False
        self.is_admitted = False  # until it is known who it is, messages wait
        self.is_writable = True
        self.on_writable: Callable[[], None] = lambda: None
        self.closed = asyncio.get_running_loop().create_future()
        self.why = ""  # it was closed
        self._buffer = bytearray()  # the beginning of a message
        self._awaited = LENGTH  # bytes in it, before there is more to do
        self.allowance = Allowance(asyncio.get_running_loop().time())  # until it is known who it is
        self.work = 0.0  # seconds that were spent on its messages, since it was last read
        self._n_fair = 0  # bytes that were received for messages, with what TLS adds to each
        self._n_beside = 0  # bytes that were received beside them when that was last looked at
        self._read_at = 0.0  # when it is read again

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.is_open = True
        self._on_open(self)

    def data_received(self, data: bytes) -> None:
        """Hand out whole messages."""
        n_messages = 0
        if self.is_admitted and not self._buffer:
            n_messages = self._hand_out(data)  # nearly always one message, copied once
        else:
            self._buffer += data
            if self.is_admitted and len(self._buffer) >= self._awaited:
                n_messages = self._empty()
        self._slow_down(n_messages, len(data))

    def _empty(self) -> int:
        whole, self._buffer = bytes(self._buffer), bytearray()
        return self._hand_out(whole)

    def _hand_out(self, data: bytes) -> int:
        """Hand out the whole messages at the beginning of what came; keep the rest."""
        n_messages = at = 0
        self._awaited = LENGTH
        while len(data) - at >= LENGTH and self.is_open:
            length = int.from_bytes(data[at : at + LENGTH], "big")
            if length > self.limits.most_bytes:
                self.close(f"a message of {length} bytes is too long")
                break
            begin, end = at + LENGTH, at + LENGTH + length
            if len(data) < end:
                self._awaited = LENGTH + length
                break
            at = end
            n_messages += 1
            self._on_message(self, data[begin:end])
        self._buffer += data[at:]
        return n_messages

    def eof_received(self) -> bool:
        """Close when the other end has closed."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """End."""
        self.is_open = False
        self.why = self.why or (f"{error}" if error else "closed by the other end")
        if not self.closed.done():
            self.closed.set_result(None)
        self._on_close(self)

    def pause_writing(self) -> None:
        """Let messages wait."""
        self.is_writable = False

    def resume_writing(self) -> None:
        """Write what waits."""
        self.is_writable = True
        self.on_writable()

    def _slow_down(self, n_messages: int, n_bytes: int) -> None:
        """Read on only when what was read had been fairly said."""
        loop, limits = asyncio.get_running_loop(), self.limits
        cost = n_messages / limits.messages_per_second + n_bytes / limits.bytes_per_second
        self._n_fair += n_bytes + RECORD_BYTES * n_messages
        wait = self.allowance.spend(cost + SHARE * self.work, loop.time())
        self.work = 0.0
        if wait and self.is_open:
            self._wait(wait)

    def _wait(self, seconds: float) -> None:
        """Read nothing for so long, or as long as was said before."""
        loop = asyncio.get_running_loop()
        self._read_at = max(self._read_at, loop.time() + seconds)
        self.transport.pause_reading()
        loop.call_at(self._read_at, self._read_on)

    def _read_on(self) -> None:
        is_time = asyncio.get_running_loop().time() >= self._read_at
        if is_time and self.is_open and not self.transport.is_closing():
            self.transport.resume_reading()

    # Called by the transport

    def admit(self) -> None:
        """Hand out messages from now on."""
        self.is_admitted = True
        self._empty()

    def spend(self, seconds: float) -> None:
        """Count what takes time beside messages."""
        wait = self.allowance.spend(seconds, asyncio.get_running_loop().time())
        if wait:
            self._wait(wait)

    def charge_records(self) -> None:
        """Count what came and was for no message: it takes time too, and nothing else shows it.

        A message is written as one record, or as full ones. Who sends many small records, empty
        ones or new keys is known by how many bytes there were. TLS answers some of that by itself;
        if the other end does not read the answers they pile up here.
        """
        if not self.is_open or self.transport.is_closing():
            return
        fair = self._n_fair + self._n_fair // (FULL_RECORD // RECORD_BYTES)
        beside = self._n_received(fair) - fair
        if self._n_beside:
            n_records = max(beside - self._n_beside, 0) / RECORD_BYTES
            self.spend(SHARE * EMPTY_SECONDS * n_records)
        self._n_beside = max(beside, self._n_beside)  # at first that is the handshake
        if self.transport.get_write_buffer_size() > MOST_UNREAD + 2 * self.limits.most_bytes:
            self.close("it does not read what it is told")

    def _n_received(self, otherwise: int) -> int:
        """How many bytes were read from the connection, if the system tells."""
        line = self.transport.get_extra_info("socket")
        if line is None or sys.platform != "linux":
            return otherwise
        told = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, RECEIVED.stop)
        waiting = fcntl.ioctl(line.fileno(), termios.FIONREAD, bytes(4))
        return int.from_bytes(told[RECEIVED], sys.byteorder) - int.from_bytes(
            waiting, sys.byteorder
        )

    def write(self, data: bytes) -> None:
        """Write a message."""
        if self.is_open and not self.transport.is_closing():
            self.transport.write(len(data).to_bytes(LENGTH, "big") + data)

    def close(self, why: str = "") -> None:
        """Close at once."""
        self.why = self.why or why
        self.is_open = False
        self.transport.abort()

    @property
    def certificate(self) -> bytes:
        """The other end's certificate, DER; empty without TLS."""
        tls = self.transport.get_extra_info("ssl_object")
        return (tls.getpeercert(binary_form=True) or b"") if tls else b""
