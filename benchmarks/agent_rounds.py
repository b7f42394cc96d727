"""Rounds a second of six real agents, beside a bare exchange of the same bytes.

    python -m benchmarks.agent_rounds [--repeats 40] [ring complete] [10 784]

Both sides are six processes with mutual TLS over the same transport; a bare one sends as many bytes
as an agent's message has and waits for all its neighbours, with no arithmetic and no checks. They
take turns, half a second each, the other side stopped meanwhile: a machine whose pace changes from
minute to minute is as quick for both. Medians are shown: rounds a second and their ratio, the same
ratio of processor seconds a round (which other work on the machine disturbs less), and those of an
agent in microseconds.

The rows are the same for ever, so an agent may come to where not one bit of its numbers changes any
more. Then it says that it is calm, or not, from round to round, which is not training: where one
does, both sides begin anew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import mmap
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dtsvm import Network
from dtsvm.runtime.agent.process.process import ask
from dtsvm.runtime.agent.process.transport import Transport
from dtsvm.runtime.agent.site.certificates import make_authority, make_certificate
from dtsvm.runtime.agent.site.config import read_config, to_toml

NODES = list("abcdef")
SECONDS, WARM_SECONDS = 0.5, 0.25  # of a stretch, and before it
SETTLE_SECONDS = 1.5  # before the first: connections that were silent for long are made anew
MOST_TRIES = 10
HEADER = 75  # bytes of an agent's message beside its numbers
AGENT = [sys.executable, "-c", "from dtsvm.ui import main; main()", "agent"]


def make_site(folder: Path, network: Network, p: int, n: int = 20) -> None:
    """Write the nodes' folders, with rows that never let them settle."""
    rng = np.random.default_rng(0)
    make_authority(folder, "bench")
    sockets = [socket.socket() for _ in NODES]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    address = {v: f"127.0.0.1:{s.getsockname()[1]}" for v, s in zip(NODES, sockets, strict=True)}
    for one in sockets:
        one.close()
    for name in NODES:
        home = folder / name
        home.mkdir()
        make_certificate(folder, home, name)
        X = rng.normal(size=(n, p))
        lines = [",".join([*(f"x{j}" for j in range(p)), "y"])]
        lines += [",".join([*map(repr, x), str(1 if x[0] > 0 else -1)]) for x in X.tolist()]
        (home / "rows.csv").write_text("\n".join(lines) + "\n")
        around = {str(v): address[str(v)] for v in network.neighbours(name)}
        tasks = {"one": {"data": "rows.csv", "label": "y", "labels": [-1, 1]}}
        settings = {"C": 0.01, "tol": 1e-300}
        text = to_toml(name, "0abc", address[name], around, tasks, settings)
        (home / "node.toml").write_text(text.replace("start_seconds = 30", "start_seconds = 120"))


def processor_seconds(running: list[subprocess.Popen[bytes]]) -> float:
    """Return what processes have used of processors, together."""
    files = [Path(f"/proc/{one.pid}/stat").read_text() for one in running]
    ticks = sum(int(n) for text in files for n in text.rpartition(")")[2].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


class Calm(Exception):
    """An agent's numbers have come to rest."""


class Side:
    """Six processes that exchange rounds while they are let, and stand still otherwise.

    Parameters
    ----------
    command : list of str
        Runs one of them, its node's file appended.
    folder : Path
        Where the nodes' folders are.
    look : callable
        Returns the round in which a node is, and for how many it has been calm.
    """

    def __init__(
        self, command: list[str], folder: Path, look: Callable[[Path], tuple[int, int]]
    ) -> None:
        self.folder, self.look = folder, look
        self.running = [
            subprocess.Popen([*command, str(folder / v / "node.toml")], stderr=subprocess.DEVNULL)
            for v in NODES
        ]
        while min(look(folder / name)[0] for name in NODES) < 200:
            time.sleep(0.2)
        self.signal(signal.SIGSTOP)

    def signal(self, number: int) -> None:
        """Send a signal to all of them."""
        for process in self.running:
            process.send_signal(number)

    def measure(self, warm_seconds: float = WARM_SECONDS) -> tuple[float, float]:
        """Return rounds a second of one node, and its processor seconds a round.

        Raises Calm if a node is at rest.
        """
        self.signal(signal.SIGCONT)
        time.sleep(warm_seconds)
        used, then = processor_seconds(self.running), time.monotonic()
        before, _ = self.look(self.folder / "a")
        time.sleep(SECONDS)
        n = self.look(self.folder / "a")[0] - before
        speed = n / (time.monotonic() - then)
        used = processor_seconds(self.running) - used
        if any(self.look(self.folder / name)[1] for name in NODES):
            raise Calm
        self.signal(signal.SIGSTOP)
        return speed, used / n / len(NODES)

    def stop(self) -> None:
        """End them."""
        for process in self.running:
            process.kill()
            process.wait(30)


def asked(home: Path) -> tuple[int, int]:
    """Return an agent's round and calm."""
    try:
        found = asyncio.run(ask(home, command="status"))
        return int(found["round"]), int(found["calm"])
    except Exception:
        return 0, 0


def counted(home: Path) -> tuple[int, int]:
    """Return a bare node's round; it is never calm."""
    path = home / "round"
    return int.from_bytes(path.read_bytes(), "little") if path.exists() else 0, 0


async def exchange_bare(path: Path, size: int) -> None:
    """Send `size` bytes to all neighbours and wait for theirs, round after round."""
    config = read_config(path)
    newest = dict.fromkeys(config.neighbours, -1)
    news = asyncio.Event()

    def hear(peer: str, data: bytes) -> None:
        newest[peer] = int.from_bytes(data[:8], "little")
        news.set()

    line = Transport(config.name, config.listen, config.neighbours, config.credentials(), hear)
    await line.start()
    (config.folder / "round").write_bytes(bytes(8))
    filling, k = bytes(size - 8), 0
    with (config.folder / "round").open("r+b") as file, mmap.mmap(file.fileno(), 8) as shown:
        while True:
            message = k.to_bytes(8, "little") + filling
            for name in newest:
                line.send(name, message)
            while min(newest.values()) < k:
                news.clear()
                await news.wait()
            k += 1
            shown[:] = k.to_bytes(8, "little")


def measure(network: Network, p: int, repeats: int) -> dict[str, float]:
    """Return the medians of both speeds and of both ratios; raises Calm if an agent rests."""
    bare = [sys.executable, "-m", "benchmarks.agent_rounds", "--bare", str(16 * (p + 1) + HEADER)]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        sides = []
        try:
            for command, name, count in ((AGENT, one, asked), (bare, other, counted)):
                make_site(Path(name), network, p)
                sides.append(Side(command, Path(name), count))
            for side in sides:
                side.measure(SETTLE_SECONDS)  # one stood still for long while the other started
            found = []
            for _ in range(repeats):
                (agents, used), (plain, least) = (side.measure() for side in sides)
                found.append((agents, plain, agents / plain, least / used, 1e6 * used))
        finally:
            for side in sides:
                side.stop()
    names = ("agents_per_second", "bare_per_second", "ratio", "processor_ratio", "microseconds")
    return dict(zip(names, np.median(found, axis=0).tolist(), strict=True))


def measured(network: Network, p: int, repeats: int) -> dict[str, float]:
    """Return what `measure` does, begun anew as often as it takes."""
    for _ in range(MOST_TRIES):
        try:
            return measure(network, p, repeats)
        except Calm:
            print(f"an agent of {len(network)} links and {p} features rests; begun anew",
                  file=sys.stderr)  # fmt: skip
    raise SystemExit(f"an agent came to rest {MOST_TRIES} times")


def main() -> None:
    """Print a row for every network and number of features."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("cases", nargs="*", default=["ring", "complete", "10", "784"])
    asked_for = parser.parse_args()
    shapes = [case for case in asked_for.cases if not case.isdigit()]
    print("network      p    agents      bare   ratio  processor  µs a round")
    for shape in shapes:
        for p in (int(case) for case in asked_for.cases if case.isdigit()):
            found = measured(Network.named(shape, NODES), p, asked_for.repeats)
            agents, bare, ratio, share, used = found.values()
            print(f"{shape:10}{p:4}{agents:10.0f}{bare:10.0f}{ratio:8.2f}{share:11.2f}{used:12.0f}",
                  flush=True)  # fmt: skip
            record = {"case": "agent_rounds", "network": shape, "p": p, "seed": 0, **found,
                      "repeats": asked_for.repeats,
                      "python": platform.python_version()}  # fmt: skip
            print(json.dumps(record), file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bare"]:
        asyncio.run(exchange_bare(Path(sys.argv[3]), int(sys.argv[2])))
    else:
        main()
