"""A whole network on one machine: its agents as children of this process, none outliving it."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dtsvm.errors import NetworkError
from dtsvm.runtime.agent.process.process import ask

__all__ = ["Children", "free_addresses"]

COMMAND = [sys.executable, "-c", "from dtsvm.ui import main; main()", "agent"]
ANSWER_SECONDS = 1.0
STOP_SECONDS = 10.0


def free_addresses(n: int) -> list[str]:
    """Return addresses on loopback that were free a moment ago."""
    sockets = [socket.socket() for _ in range(n)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    finally:
        for one in sockets:
            one.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put signals off until a child that is being started is known, so that it can be ended."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals come to the main thread only
        return
    late: list[int] = []
    signs = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {sign: signal.signal(sign, lambda number, _: late.append(number)) for sign in signs}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
        for number in late:
            signal.raise_signal(number)


class Children:
    """The agents of a site that run as children; leaving the ``with`` block ends them all.

    Parameters
    ----------
    site : Path
        The folder that `make_site` made. Each agent logs to agent.log in its own folder.
    """

    def __init__(self, site: Path) -> None:
        self.site = site
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Start a node's agent."""
        with self.log(name).open("ab") as log, _uninterrupted():
            self.running[name] = subprocess.Popen(
                [*COMMAND, str(self.site / name / "node.toml")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the parent, which ends its children
            )

    def log(self, name: str) -> Path:
        """Return where a node's agent logs."""
        return self.site / name / "agent.log"

    def kill(self, name: str) -> None:
        """Kill an agent as a power cut would: it can say and save nothing."""
        child = self.running.pop(name)
        child.kill()
        child.wait()

    def check(self) -> None:
        """Refuse to go on when an agent has ended by itself."""
        for name, child in self.running.items():
            if child.poll() is not None:
                words = self.log(name).read_text(errors="replace").strip().splitlines()
                raise NetworkError(
                    f"The agent of node {name!r} ended with code {child.returncode}: "
                    f"{words[-1] if words else 'it said nothing'} (its log: {self.log(name)})"
                )

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Ask every agent how it is; who is not ready to answer is left out."""
        names = list(self.running)
        found = asyncio.run(self._ask_all(names, command="status"))
        return {n: s for n, s in zip(names, found, strict=True) if isinstance(s, dict)}

    def leave(self) -> None:
        """Ask all to leave politely, and wait until they have gone."""
        asyncio.run(self._ask_all(list(self.running), command="leave"))
        for name in list(self.running):
            try:
                self.running[name].wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                raise NetworkError(
                    f"Node {name!r} was asked to leave and is still there after "
                    f"{STOP_SECONDS:.0f} s. Look at its log: {self.log(name)}"
                ) from None
            del self.running[name]

    async def _ask_all(self, names: list[str], **asked: Any) -> list[Any]:
        questions = [
            asyncio.wait_for(ask(self.site / name, **asked), ANSWER_SECONDS) for name in names
        ]
        return list(await asyncio.gather(*questions, return_exceptions=True))

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self.running.values():
            child.terminate()
        for child in self.running.values():
            try:
                child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.running.clear()
