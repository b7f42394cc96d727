"""What monitoring reads: Prometheus text and a health answer, on loopback, over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Any

from dtsvm.errors import NetworkError
from dtsvm.runtime.agent.process.transport import is_loopback

__all__ = ["as_text", "serve"]

GAUGES = {
    "round": "Rounds counted.",
    "residual": "Worst relative residual of a link.",
    "gap": "Certified relative gap; absent while there is none.",
    "nodes": "Nodes that can be reached, this one too.",
    "rounds_per_second": "Rounds a second lately.",
    "messages_sent": "Messages sent since the start.",
    "bytes_sent": "Bytes sent since the start.",
    "refused": "Messages refused since the start.",
    "connections_refused": "Connections refused since the start.",
    "failures": "Errors that were logged and survived.",
}
CHOOSING = {
    "tracks": "Candidates in training now.",
    "certified": "Those of them that are certified.",
    "times_begun": "How often choosing was begun.",
    "is_done": "Whether a choice stands.",
}
COUNTERS = ("messages_sent", "bytes_sent", "refused", "connections_refused", "failures")
BROKEN = (OSError, ValueError, TimeoutError, EOFError, asyncio.LimitOverrunError)
MOST_REQUEST, REQUEST_SECONDS, MOST_WAITING = 8_192, 5.0, 16


def as_text(status: Mapping[str, Any]) -> str:
    """Return a status in the text format that Prometheus reads.

    >>> print(as_text({"node": "a", "round": 7, "neighbours": ["b"], "present": []}))
    # HELP dtsvm_round Rounds counted.
    # TYPE dtsvm_round gauge
    dtsvm_round{node="a"} 7
    # HELP dtsvm_neighbours Neighbours, by whether they are present.
    # TYPE dtsvm_neighbours gauge
    dtsvm_neighbours{node="a",is_present="yes"} 0
    dtsvm_neighbours{node="a",is_present="no"} 1
    # HELP dtsvm_settled Whether the node has settled.
    # TYPE dtsvm_settled gauge
    dtsvm_settled{node="a"} 0
    <BLANKLINE>
    """
    node = status["node"]
    lines = []
    for name, what in GAUGES.items():
        value = status.get(name)
        if value is None or not math.isfinite(value):
            continue
        kind = "counter" if name in COUNTERS else "gauge"
        full = f"dtsvm_{name}_total" if name in COUNTERS else f"dtsvm_{name}"
        lines += [f"# HELP {full} {what}", f"# TYPE {full} {kind}"]
        lines.append(f'{full}{{node="{node}"}} {value}')
    for name, what in CHOOSING.items() if "choosing" in status else ():
        lines += [f"# HELP dtsvm_choosing_{name} {what}", f"# TYPE dtsvm_choosing_{name} gauge"]
        lines.append(f'dtsvm_choosing_{name}{{node="{node}"}} {int(status["choosing"][name])}')
    present, all_ = len(status["present"]), len(status["neighbours"])
    lines += [
        "# HELP dtsvm_neighbours Neighbours, by whether they are present.",
        "# TYPE dtsvm_neighbours gauge",
        f'dtsvm_neighbours{{node="{node}",is_present="yes"}} {present}',
        f'dtsvm_neighbours{{node="{node}",is_present="no"}} {all_ - present}',
        "# HELP dtsvm_settled Whether the node has settled.",
        "# TYPE dtsvm_settled gauge",
        f'dtsvm_settled{{node="{node}"}} {int(bool(status.get("is_settled")))}',
    ]
    return "\n".join(lines) + "\n"


async def serve(
    address: str, status: Callable[[], Mapping[str, Any]], trouble: Callable[[], str]
) -> asyncio.Server:
    """Answer GET /metrics and GET /health at a loopback address.

    /health says 200 while `trouble` returns nothing, and 503 with its sentence otherwise. Few
    may ask at once, and the oldest gives way: whoever is on this machine may, and has no
    descriptors to take from the node.
    """
    waiting: dict[asyncio.StreamWriter, None] = {}  # the oldest first
    if not is_loopback(address):
        raise NetworkError(f"metrics = {address!r} is not on loopback: write 127.0.0.1:9464.")

    def answer(path: str) -> tuple[str, str]:
        if path == "/metrics":
            return "200 OK", as_text(status())
        if path == "/health":
            words = trouble()
            return ("503 Service Unavailable", words + "\n") if words else ("200 OK", "well\n")
        return "404 Not Found", "There are /metrics and /health.\n"

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(waiting) >= MOST_WAITING:
            oldest = next(iter(waiting))
            del waiting[oldest]
            oldest.transport.abort()
        waiting[writer] = None
        with contextlib.suppress(*BROKEN):
            asked = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_SECONDS)
            words = asked.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
            is_get = len(words) == 3 and words[0] == "GET"
            code, text = answer(words[1]) if is_get else ("405 Method Not Allowed", "GET only.\n")
            body = text.encode()
            head = f"HTTP/1.1 {code}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        waiting.pop(writer, None)
        writer.close()

    host, _, port = address.rpartition(":")
    try:
        return await asyncio.start_server(handle, host.strip("[]"), int(port), limit=MOST_REQUEST)
    except OSError as error:
        raise NetworkError(f"metrics cannot listen at {address}: {error.strerror}.") from error
