"""The socket in a node's folder, at which its owner tells it things."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from dtsvm.errors import NetworkError

__all__ = ["ask", "listen"]

MOST_BYTES = 1_000_000
ANSWER_SECONDS = 30.0


def _short_socket(path: Path) -> str:
    """Return a spelling of the socket's path that fits into the kernel's 107 bytes."""
    relative = os.path.relpath(path)
    return min((str(path), relative), key=len)


async def listen(
    path: Path, answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
) -> asyncio.Server:
    """Answer JSON lines at a socket that only its owner can open."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = json.loads(await asyncio.wait_for(reader.readline(), ANSWER_SECONDS))
            answered = (
                await answer(asked) if isinstance(asked, dict) else {"error": "Not an object."}
            )
        except (ValueError, TimeoutError):
            answered = {"error": "That is not JSON."}
        except OSError:
            answered = {}
        with contextlib.suppress(OSError):
            writer.write(json.dumps(answered).encode() + b"\n")
            await writer.drain()
        writer.close()

    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    before = os.umask(0o177)
    try:
        return await asyncio.start_unix_server(serve, _short_socket(path), limit=MOST_BYTES)
    finally:
        os.umask(before)


async def ask(folder: Path, seconds: float = ANSWER_SECONDS, **asked: Any) -> dict[str, Any]:
    """Ask a running agent, through the socket in its folder."""
    path = folder / "control.sock"
    try:
        reader, writer = await asyncio.open_unix_connection(_short_socket(path), limit=2**24)
    except (FileNotFoundError, ConnectionRefusedError):
        raise NetworkError(f"No agent is running in {folder}. Start it first.") from None
    try:
        writer.write(json.dumps(asked).encode() + b"\n")
        await writer.drain()
        line = await asyncio.wait_for(reader.readline(), seconds)
    except TimeoutError:
        raise NetworkError(f"The agent in {folder} did not answer in {seconds:.0f} s.") from None
    finally:
        writer.close()
    if not line:
        raise NetworkError(f"The agent in {folder} did not answer.")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise NetworkError(str(answer["error"]))
    return answer
