"""What strangers cost an agent: rounds a second while they are there, beside before and after.

    python -m benchmarks.agent_strangers [--seconds 8] [KIND ...]

Three agents with mutual TLS train; strangers turn to one of them from a process of their own:
a thousand connections that say nothing, eight that send 58 MB each (as noise, then behind a
handshake with a certificate of this network that is no neighbour's), two hundred that send a
handshake of which a byte comes every second, fifty that send the beginning of one and are gone, and
a neighbour that connects again and again, with its own certificate. Another neighbour, let in,
sends a message in TLS records of one byte each, changes its keys again and again, or asks for the
agent's own to be changed, and does not read the answers. Whoever is cut off comes again.
The strangers use the same processors, so the same is first done to a port that takes everything:
`elsewhere`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import functools
import logging
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.agents import (
    SHAPES,
    ForkedAgents,
    free_ports,
    make_blocks,
    make_site,
    processor_seconds,
    status,
    uses,
)
from dtsvm.runtime.agent.process.trouble import have_descriptors
from dtsvm.runtime.agent.site.certificates import make_certificate

THREE = list("abc")
SETTINGS = {"C": 0.01, "tol": 1e-300}
TIMING = {"round_seconds": 1.0, "evict_seconds": 30.0, "start_seconds": 10.0}
LIAR = "0"  # a neighbour that is let in, and never begins to train
FLOOD, PIECE = 58_000_000, 65_536
ATTACKS = {"silent": 1000, "noise": 8, "certified": 8, "slow": 200, "hello": 50, "neighbour": 8}
ATTACKS |= {"records": 1, "keys": 1, "requests": 1}
LET_IN = ("records", "keys", "requests")
WITH_TLS = ("certified", "neighbour", *LET_IN)  # a port that takes everything does not answer them
AT_ONCE = ("hello", "neighbour", *LET_IN)  # they do not wait before they come again


# The strangers


async def silent(port: int, _: Path) -> None:
    """Say nothing until the other end closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await reader.read()
    writer.close()


async def noise(port: int, _: Path) -> None:
    """Send 58 MB that are no handshake."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    await _pour(writer)


async def certified(port: int, folder: Path) -> None:
    """Send a message of 58 MB with a certificate of the network."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=_context(folder / "z"))
    writer.write(FLOOD.to_bytes(4, "big"))
    await _pour(writer)


@functools.cache
def _context(home: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(home / "node.pem", home / "node.key")
    return context


async def _pour(writer: asyncio.StreamWriter) -> None:
    for _ in range(FLOOD // PIECE):
        if writer.is_closing():
            return
        writer.write(bytes(PIECE))
        await writer.drain()
    writer.close()


@functools.cache
def hello_bytes() -> bytes:
    """How a handshake begins."""
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(into, out).do_handshake()
    return out.read()


async def hello(port: int, _: Path) -> None:
    """Send the beginning of a handshake, wait for the answer, and be gone."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(hello_bytes())
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(reader.read(1), 0.2)
    writer.transport.abort()


async def neighbour(port: int, folder: Path) -> None:
    """Connect with a neighbour's certificate, and be gone."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=_context(folder / "a"))
    writer.transport.abort()


class Records:
    """A connection of the lying neighbour of which every TLS record can be made by hand."""

    def __init__(self, port: int, folder: Path) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 5.0)
        self._into, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = _context(folder / LIAR).wrap_bio(self._into, self._out)
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.flush()
                self._into.write(self.socket.recv(PIECE))
        self.flush()

    def flush(self) -> None:
        """Send what was written."""
        self.socket.sendall(self._out.read())

    def change_keys(self, kind: int) -> None:
        """Send a key update, 1 for one that asks for an answer; Python has no name for it."""
        maps = Path("/proc/self/maps").read_text().splitlines()
        path = next(line.split()[-1] for line in maps if "libssl" in line)
        library = ctypes.CDLL(path)
        after_head_and_socket = id(self.tls._sslobj) + 24  # type: ignore[attr-defined]
        at = ctypes.c_void_p(ctypes.c_void_p.from_address(after_head_and_socket).value)
        for _ in range(500):
            assert library.SSL_key_update(at, kind) == 1
            assert library.SSL_do_handshake(at) == 1


async def records(port: int, folder: Path) -> None:
    """Send a message that never ends, a byte in a record."""
    line = Records(port, folder)
    line.tls.write(PIECE.to_bytes(4, "big"))
    for _ in range(PIECE // 1000):
        for _ in range(1000):
            line.tls.write(b"x")
        line.flush()
    line.socket.close()


async def keys(port: int, folder: Path) -> None:
    """Change keys again and again."""
    line = Records(port, folder)
    while True:
        line.change_keys(0)
        line.flush()


async def requests(port: int, folder: Path) -> None:
    """Ask for the other end's keys to be changed again and again, and read none of it."""
    line = Records(port, folder)
    while True:
        line.change_keys(1)
        line.flush()


async def slow(port: int, _: Path) -> None:
    """Send a handshake, a byte a second."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    for byte in hello_bytes():
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(1.0)
    writer.close()


async def attack(kind: str, port: int, folder: Path) -> None:
    """Be all strangers of one kind; whoever is cut off comes again."""
    have_descriptors()
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it is cut off all the time
    print("here", flush=True)

    async def again() -> None:
        while True:
            with contextlib.suppress(OSError, ssl.SSLError):
                await globals()[kind](port, folder)
            await asyncio.sleep(0.0 if kind in AT_ONCE else 0.1)

    await asyncio.gather(*(again() for _ in range(ATTACKS[kind])))


async def swallow(port: int) -> None:
    """Be a port that takes everything."""
    have_descriptors()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while await reader.read(PIECE):
                pass
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


# What they cost


class Watch:
    """Looks at the agent that strangers turn to."""

    def __init__(self, folder: Path, pid: int, seconds: float) -> None:
        self.folder, self.pid, self.seconds = folder, pid, seconds
        self.used = uses(pid)

    def speed(self) -> tuple[float, float]:
        """Rounds a second, and processor microseconds of each."""
        before, then = status(self.folder, "b")["round"], time.monotonic()
        used = processor_seconds(self.pid)
        time.sleep(self.seconds)
        n = max(status(self.folder, "b")["round"] - before, 1)
        used = processor_seconds(self.pid) - used
        return n / (time.monotonic() - then), 1e6 * used / n

    def beside(self, kind: str, port: int) -> tuple[float, float]:
        """The same while strangers turn to a port."""
        words = [sys.executable, "-m", "benchmarks.agent_strangers", "--as", kind, str(port)]
        stranger = subprocess.Popen([*words, str(self.folder)], stdout=subprocess.PIPE)
        try:
            assert stranger.stdout is not None
            stranger.stdout.readline()  # it is there
            time.sleep(1.0)
            found = self.speed()
            self.used = uses(self.pid)
            return found
        finally:
            stranger.kill()
            stranger.wait()


def main(seconds: float, kinds: list[str]) -> None:
    """Print a row for every kind of stranger."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "site"
        ports = make_site(folder, SHAPES["complete"]([LIAR, *THREE]), make_blocks(THREE, ["one"]),
                          SETTINGS, **TIMING)  # fmt: skip
        (folder / "z").mkdir()
        make_certificate(folder, folder / "z", "z")
        (sink,) = free_ports(1)
        words = [sys.executable, "-m", "benchmarks.agent_strangers", "--as", "swallow", str(sink)]
        swallower = subprocess.Popen(words)
        try:
            with ForkedAgents(folder) as agents:
                for node in THREE:
                    agents.start(node)
                agents.wait_for(lambda: status(folder, "b")["round"] > 100)
                _table(agents, folder, (ports["b"], sink), seconds, kinds)
        finally:
            swallower.kill()
            swallower.wait()


def _table(
    agents: ForkedAgents, folder: Path, ports: tuple[int, int], seconds: float, kinds: list[str]
) -> None:
    port, sink = ports
    pid = agents.running["b"].pid
    watch = Watch(folder, pid, seconds)
    print("                 rounds a second: µs each      memory")
    print("strangers          before    elsewhere     during      after    MB  descriptors  alive")
    for kind in kinds:
        n, found = ATTACKS[kind], [watch.speed()]
        found += [(0.0, 0.0)] if kind in WITH_TLS else [watch.beside(kind, sink)]
        found += [watch.beside(kind, port)]
        memory, descriptors, _ = watch.used
        found += [watch.speed()]
        alive = all(one.poll() is None for one in agents.running.values())
        cells = "".join(f"{f'{speed:.0f}: {used:.0f}':>11}" for speed, used in found)
        print(f"{kind:9}{n:5}{cells}{memory:7.0f}{descriptors:8.0f}       {alive}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as"]:
        kind, port = sys.argv[2], int(sys.argv[3])
        does = swallow(port) if kind == "swallow" else attack(kind, port, Path(sys.argv[4]))
        asyncio.run(does)
    else:
        parser = argparse.ArgumentParser()
        parser.add_argument("--seconds", type=float, default=8.0)
        parser.add_argument("kinds", nargs="*", default=list(ATTACKS), metavar="KIND")
        given = parser.parse_args()
        main(given.seconds, given.kinds)
