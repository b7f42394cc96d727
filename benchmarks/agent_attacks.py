"""Lying neighbours as real processes: mutual TLS, sockets, four honest agents and one liar.

    python -m benchmarks.agent_attacks [--shape complete] [--patience SECONDS] [LIE ...]

The liar is an agent whose messages, or terms of sums, are changed by a lie of
`tests/runtime/agent/liars.py` or `liars_inside.py` once all five have met. It lies for five
seconds, is killed, and the honest have twenty to be certified at their own optimum. A line a lie:
seconds until then, distance from the optimum, growth of memory and of the log while it lied.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / part) for part in ("", "runtime/agent")]

import numpy as np  # noqa: E402
from forks import ForkedAgents  # noqa: E402
from liars import HEAVY, LIES, Liar  # noqa: E402
from liars_inside import INSIDE  # noqa: E402
from meetings import SHAPES, cold, make_blocks  # noqa: E402
from sites import farthest, make_site, status  # noqa: E402

from dtsvm.runtime.agent.node.node import Node  # noqa: E402
from dtsvm.runtime.agent.node.outbox import Outbox  # noqa: E402
from dtsvm.ui import main as command_line  # noqa: E402

FIVE, LIAR = list("abcde"), "a"
HONEST = [name for name in FIVE if name != LIAR]
SETTINGS = {"C": 0.1, "tol": 1e-6}
TIMING = {"evict_seconds": 2.0, "round_seconds": 0.5, "start_seconds": 10.0}
START, LYING, PATIENCE = 600.0, 5.0, 20.0  # seconds
WORST = [
    "round 2^62-1", "values of 1e300", "values ten times as large", "values as large as allowed",
    "garbage", "begins anew all the time", "two hundred tasks in one group", "two faces",
    "totals of garbage", "nothing more", "x and z that cancel at checks", "settings without end",
    "wrong masks", "an average of its own", "a box without end", "moves that make others leap",
    "as much of itself as may be said", "a loss of two values in turns",
    "comes and goes with much to hand over", "what the others once said",
]  # fmt: skip


def lie_as(name: str, config: str) -> None:
    """Be the liar: an agent that says what the lie makes of it, also when it says it again."""
    true, sign = Node._messages, Path(config).parent / "lie"
    true_earlier, how = Outbox.earlier, {**LIES, **HEAVY}.get(name)
    liars: dict[int, Liar] = {}

    def messages(self: Node, told: dict[str, bytes]) -> dict[str, bytes]:
        out = true(self, told)
        if not sign.exists():
            return out
        if id(self) not in liars:
            liars[id(self)] = Liar(self, np.random.default_rng(5))
            INSIDE.get(name, lambda node: None)(self)
        return liars[id(self)].said(out, how) if how else out

    def earlier(self: Outbox, names: list[str]) -> dict[str, bytes]:
        out = true_earlier(self, names)
        for liar in liars.values():
            out = liar.said(out, how) if how else out
        return out

    Node._messages = messages  # type: ignore[method-assign]
    Node.turn = lambda self, now: None  # type: ignore[method-assign]  # it says nothing by itself
    Outbox.earlier = earlier  # type: ignore[method-assign]
    command_line(["agent", config])


def memory(pid: int) -> int:
    """Resident bytes of a process."""
    fields = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in fields if line.startswith("VmRSS"))


def attack(name: str, shape: str, folder: Path, patience: float) -> str:
    """Let one lie happen; return a line about it."""
    blocks = make_blocks(FIVE, ["one"])
    network = SHAPES[shape](FIVE)
    make_site(folder, network, blocks, SETTINGS, **TIMING)
    rest = {key: rows for key, rows in blocks.items() if key[0] != LIAR}
    best = cold(SHAPES["complete"](HONEST), rest, {**SETTINGS, "tol": 1e-9})
    with ForkedAgents(folder) as agents:
        for node in HONEST:
            agents.start(node)
        liar = _start_liar(name, folder)
        agents.wait_for(lambda: all(status(folder, n)["nodes"] == 5 for n in HONEST), START)
        before = {node: memory(agents.running[node].pid) for node in HONEST}
        (folder / LIAR / "lie").touch()
        time.sleep(LYING)
        grown = max(memory(agents.running[node].pid) - before[node] for node in HONEST)
        liar.kill()
        liar.wait()
        seconds = _until_certified(folder, patience)
        logs = max(len((folder / f"{node}.log").read_bytes()) for node in HONEST)
        alive = all(agents.running[node].poll() is None for node in HONEST)
        far = farthest(folder, HONEST, best) if seconds < patience else np.inf
        return (
            f"{name:34} {shape:9} alive {alive}  certified after {seconds:4.1f} s  off {far:.0e}  "
            f"memory {grown / 1e6:+5.1f} MB  log {logs / 1e3:.1f} kB"
        )


def _start_liar(name: str, folder: Path) -> subprocess.Popen[bytes]:
    config = str(folder / LIAR / "node.toml")
    words = [sys.executable, "-m", "benchmarks.agent_attacks", "--as", name, config]
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(words, stdout=nowhere, stderr=nowhere)


def _until_certified(folder: Path, patience: float) -> float:
    began = time.monotonic()
    while time.monotonic() - began < patience:
        found = [status(folder, node) for node in HONEST]
        if all(one["is_settled"] and one["nodes"] == 4 for one in found):
            return time.monotonic() - began
        time.sleep(0.1)
    return patience


def _option(words: list[str], name: str) -> str:
    """Take an option and its value out of the words."""
    if name not in words:
        return ""
    place = words.index(name)
    _, value = words[place : place + 2]
    del words[place : place + 2]
    return value


def run(words: list[str]) -> None:
    """Try lies one after another."""
    shape, patience = _option(words, "--shape"), float(_option(words, "--patience") or PATIENCE)
    shapes = [shape] if shape else ["ring", "complete"]
    for name in words or WORST:
        for shape in shapes:
            with tempfile.TemporaryDirectory() as folder:
                print(attack(name, shape, Path(folder) / "site", patience), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as"]:
        lie_as(*sys.argv[2:4])
    else:
        run(sys.argv[1:])
