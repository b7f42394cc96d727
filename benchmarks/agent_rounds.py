"""Rounds a second of six real agents, beside a bare exchange of the same bytes.

    python -m benchmarks.agent_rounds

Both sides are six processes with mutual TLS over the same transport; a bare one sends as many bytes
as an agent's message has and waits for all its neighbours, with no arithmetic and no checks. They
take turns, and medians are shown.
"""

from __future__ import annotations

import asyncio
import json
import platform
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dtsvm import Network
from dtsvm.runtime.agent.process.process import ask
from dtsvm.runtime.agent.process.transport import Transport
from dtsvm.runtime.agent.site.certificates import make_authority, make_certificate
from dtsvm.runtime.agent.site.config import read_config, to_toml

NODES = list("abcdef")
SECONDS, REPEATS = 3.0, 5
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


def asked(folder: Path, name: str) -> dict[str, float]:
    try:
        return asyncio.run(ask(folder / name, command="status"))
    except Exception:
        return {"round": 0, "arithmetic": 0.0}


def measure_agents(folder: Path) -> tuple[float, float]:
    """Return rounds a second and the share of time that is arithmetic, of one agent."""
    running = [
        subprocess.Popen([*AGENT, str(folder / v / "node.toml")], stderr=subprocess.DEVNULL)
        for v in NODES
    ]
    try:
        while min(asked(folder, name)["round"] for name in NODES) < 200:
            time.sleep(0.2)
        before, then = asked(folder, "a")["round"], time.monotonic()
        time.sleep(SECONDS)
        after = asked(folder, "a")
        return (after["round"] - before) / (time.monotonic() - then), after["arithmetic"]
    finally:
        stop(running)


def stop(running: list[subprocess.Popen[bytes]]) -> None:
    for process in running:
        process.terminate()
    for process in running:
        process.wait(30)


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
    filling, k, measured = bytes(size - 8), 0, (time.monotonic(), 0)
    while True:
        message = k.to_bytes(8, "little") + filling
        for name in newest:
            line.send(name, message)
        while min(newest.values()) < k:
            news.clear()
            await news.wait()
        k += 1
        then, before = measured
        if time.monotonic() - then > SECONDS:
            speed = (k - before) / (time.monotonic() - then)
            (config.folder / f"speed-{before > 0}").write_text(str(speed))
            measured = (time.monotonic(), k)


def measure_bare(folder: Path, size: int) -> float:
    """Return rounds a second of the bare exchange, its first stretch left out."""
    command = [sys.executable, "-m", "benchmarks.agent_rounds", "--bare", str(size)]
    running = [subprocess.Popen([*command, str(folder / v / "node.toml")]) for v in NODES]
    try:
        while not all((folder / name / "speed-True").exists() for name in NODES):
            time.sleep(0.2)
        return float((folder / "a" / "speed-True").read_text() or "nan")
    finally:
        stop(running)
        for path in folder.glob("*/speed-*"):
            path.unlink()


def measure(network: Network, p: int) -> tuple[float, float, float, float]:
    """Return the medians of both speeds, of their ratio, and of the share that is arithmetic."""
    found = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as name:
            make_site(Path(name), network, p)
            agents, share = measure_agents(Path(name))
            bare = measure_bare(Path(name), 16 * (p + 1) + HEADER)
        found.append((agents, bare, agents / bare, share))
    agents, bare, ratio, share = np.median(found, axis=0).tolist()
    return agents, bare, ratio, share


def main() -> None:
    print(f"{'network':10}{'p':>5}{'agents':>10}{'bare':>10}{'ratio':>8}{'arithmetic':>12}")
    for shape in ("ring", "complete"):
        for p in (10, 784):
            agents, bare, ratio, share = measure(Network.named(shape, NODES), p)
            print(f"{shape:10}{p:5}{agents:10.0f}{bare:10.0f}{ratio:8.2f}{share:12.2f}", flush=True)
            record = {"case": "agent_rounds", "network": shape, "p": p, "seed": 0,
                      "agents_per_second": agents, "bare_per_second": bare, "ratio": ratio,
                      "arithmetic": share, "repeats": REPEATS,
                      "python": platform.python_version()}  # fmt: skip
            print(json.dumps(record), file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bare"]:
        asyncio.run(exchange_bare(Path(sys.argv[3]), int(sys.argv[2])))
    else:
        main()
