"""Ten minutes of coming and going: memory, descriptors and threads, then what rest costs.

    python -m benchmarks.agent_soak [--minutes 10] [--rest 700]

Six agents in a ring with mutual TLS. Every other one is killed (-9) and started again, told rows,
and linked and unlinked, all the time; the other three stay. Of these the first and the last third
are compared. Then all settle, and rest is looked at, for longer than the ten minutes between an
agent's lines: processor and log.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.agents import (
    NAMES,
    SHAPES,
    ForkedAgents,
    make_blocks,
    make_site,
    processor_seconds,
    status,
    tell,
    uses,
    write_rows,
)

SETTINGS = {"C": 0.1, "tol": 1e-4}
TIMING = {"round_seconds": 0.2, "evict_seconds": 3.0, "start_seconds": 20.0}
STAYING, COMING = NAMES[1::2], NAMES[::2]
MOST_ROWS = 60  # times that rows are told


def done(answer: dict[str, Any]) -> None:
    """Raise what an agent refuses."""
    if "error" in answer:
        raise RuntimeError(answer["error"])


def disturb(agents: ForkedAgents, folder: Path, ports: dict[str, int], k: int) -> None:
    """Let something happen."""
    name, other = COMING[k % 3], STAYING[(k + 1) % 3]
    if k % 4 == 0:
        os.kill(agents.running[name].pid, signal.SIGKILL)
        agents.running.pop(name).wait()
        time.sleep(0.5 + (k % 3))
        agents.start(name)
    elif k % 4 == 1 and k < 4 * MOST_ROWS:
        done(tell(folder, other, command="rows", file=str(folder / "more.csv"), task="one"))
    elif k % 4 >= 2:
        is_on = k % 4 == 2
        for one, to in ((STAYING[0], STAYING[1]), (STAYING[1], STAYING[0])):
            address = {"address": f"127.0.0.1:{ports[to]}"} if is_on else {}
            done(tell(folder, one, command="link" if is_on else "unlink", name=to, **address))


def churn(agents: ForkedAgents, folder: Path, ports: dict[str, int], seconds: float) -> list[float]:
    """Disturb for so long; return samples of what those that stay use."""
    began, samples, k, failed = time.monotonic(), [], 0, 0
    while time.monotonic() - began < seconds:
        try:
            disturb(agents, folder, ports, k)
        except Exception as error:  # an agent that has just been started does not answer yet
            failed += 1
            print(f"  not told: {error}", flush=True)
        k += 1
        time.sleep(2.0)
        samples.append([uses(agents.running[name].pid) for name in STAYING])
    print(f"{k} events, {failed} of them not taken")
    return samples


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rest", type=float, default=700.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "site"
        blocks = make_blocks(NAMES, ["one"], p=10, n=20)
        ports = make_site(folder, SHAPES["ring"](NAMES), blocks, SETTINGS, **TIMING)
        write_rows(folder / "more.csv", *make_blocks(["a"], ["one"], p=10, n=2, seed=8)["a", "one"])
        with ForkedAgents(folder) as agents:
            for node in NAMES:
                agents.start(node)
            agents.settle(NAMES)
            samples = np.array(churn(agents, folder, ports, 60.0 * asked.minutes))
            third = max(len(samples) // 3, 1)
            first, last = samples[:third].mean(axis=0), samples[-third:].mean(axis=0)
            print("agent  memory MB: first, last third   descriptors      threads")
            for i, node in enumerate(STAYING):
                (m, d, t), (m1, d1, t1) = first[i], last[i]
                print(f"{node:5}{m:12.1f}{m1:12.1f}{d:16.1f}{d1:7.1f}{t:9.1f}{t1:6.1f}")
            rest(agents, folder, asked.rest)


def rest(agents: ForkedAgents, folder: Path, seconds: float) -> None:
    """Let all settle, then see what they use."""
    agents.settle(NAMES, seconds=300)
    time.sleep(10.0)
    pids = [agents.running[node].pid for node in NAMES]
    logs = [folder / f"{node}.log" for node in NAMES]
    used, size = [processor_seconds(pid) for pid in pids], [p.stat().st_size for p in logs]
    rounds = [status(folder, node)["round"] for node in NAMES]
    time.sleep(seconds)
    used = [processor_seconds(pid) - before for pid, before in zip(pids, used, strict=True)]
    grown = [p.stat().st_size - before for p, before in zip(logs, size, strict=True)]
    share, day = max(used) / seconds, max(grown) * 86_400 / seconds
    moved = max(status(folder, v)["round"] - r for v, r in zip(NAMES, rounds, strict=True))
    print(
        f"at rest for {seconds:.0f} s: processor {share:.2%} of a core at most, "
        f"log {max(grown)} bytes or {day / 1e3:.1f} kB a day at most, {moved} rounds"
    )


if __name__ == "__main__":
    main()
