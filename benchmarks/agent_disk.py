"""A full disk, and kills right after an acknowledgement: what was said to be done is there.

    python -m benchmarks.agent_disk [--seconds 30] [--kills 100] [--on FOLDER]

The first part needs a small file system that may be filled: as root one is mounted, or name a
folder that is on one. Three agents train, one of them there; it is filled for a while, and the
agent told things all the time. Then an agent is told something, and killed (-9) as soon as it has
said that it is done, again and again: rows, couple, decouple, link, unlink, and a task that leaves.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.agents import (
    SHAPES,
    ForkedAgents,
    make_blocks,
    make_site,
    status,
    tell,
    write_rows,
)  # fmt: skip
from dtsvm import Network

THREE = list("abc")
SETTINGS = {"C": 0.01, "tol": 1e-300}
HURRIED = {"round_seconds": 0.2, "evict_seconds": 5.0, "start_seconds": 0.1}
MEGABYTES = 24
ROWS = 5  # told at once


@contextlib.contextmanager
def small_disk(on: str | None) -> Iterator[Path]:
    """A folder on a small file system."""
    if on:
        yield Path(on)
        return
    with tempfile.TemporaryDirectory() as name:
        options = f"size={MEGABYTES}m,mode=0700"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "dtsvm", name], check=True)
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", "-l", name], check=True)


def fill(folder: Path) -> Path:
    """Fill the file system of a folder; return the file to take away."""
    path = folder / "filling"
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return path


def full_disk(disk: Path, seconds: float) -> None:
    """Fill a disk while its agent trains and is told rows; then kill it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "site"
        blocks = make_blocks(THREE, ["one"])
        make_site(folder, SHAPES["ring"](THREE), blocks, SETTINGS, **HURRIED)
        home = folder / "a"
        shutil.move(home, disk / "a")
        home.symlink_to(disk / "a")
        more = folder / "more.csv"
        write_rows(more, *make_blocks(["a"], ["one"], n=ROWS, seed=8)["a", "one"])
        with ForkedAgents(folder) as agents:
            for node in THREE:
                agents.start(node)
            agents.wait_for(lambda: status(folder, "a")["round"] > 20)
            said: Counter[str] = Counter()

            def tell_rows(until: float) -> None:
                while time.monotonic() < until:
                    answer = tell(folder, "a", command="rows", file=str(more), task="one")
                    said["done" if "said" in answer else answer["error"]] += 1
                    time.sleep(0.5)

            tell_rows(time.monotonic() + 2.0)
            filling, before = fill(disk), status(folder, "a")["round"]
            tell_rows(time.monotonic() + seconds)
            during = status(folder, "a")
            filling.unlink()
            tell_rows(time.monotonic() + 2.0)
            alive = all(one.poll() is None for one in agents.running.values())
            os.kill(agents.running["a"].pid, signal.SIGKILL)
            agents.running.pop("a").wait()
            agents.start("a")
            agents.wait_for(lambda: status(folder, "a")["nodes"] == 3)
            held = status(folder, "a")["tasks"]["one"]
    done = said.pop("done")
    print(f"disk full for {seconds:.0f} s: alive {alive}, {during['round'] - before} rounds in it, "
          f"{during['failures']} failures survived")  # fmt: skip
    for words, n in said.items():
        print(f"  refused {n} times: {words}")
    wanted = len(blocks["a", "one"][1]) + ROWS * done
    print(f"  rows acknowledged {done} times; after kill -9 it holds {held} of {wanted} rows")


def _wishes(kills: int, more: str) -> list[dict[str, Any]]:
    """What an agent is told, one after another."""
    each = kills // 5
    tasks = [f"t{k:02d}" for k in range(each)]
    out: list[dict[str, Any]] = []
    for k, task in enumerate(tasks):
        out += [
            {"command": "rows", "file": more, "task": "one"},
            {"command": "link", "name": f"n{k}", "address": f"127.0.0.1:{5000 + k}"},
            {"command": "couple", "tasks": ["one", "two"]}
            if k % 2 == 0
            else {"command": "decouple", "task": "one"},
            {"command": "unlink", "name": f"n{k}"},
            {"command": "leave", "task": task},
        ]
    return out


def _is_there(found: dict[str, Any], wish: dict[str, Any], n_rows: int) -> bool:
    what = wish["command"]
    if what == "rows":
        return bool(found["tasks"]["one"] == n_rows)
    if what in ("link", "unlink"):
        return bool((wish["name"] in found["neighbours"]) == (what == "link"))
    if what in ("couple", "decouple"):
        return bool((["one", "two"] in found["groups"]) == (what == "couple"))
    return wish["task"] not in found["tasks"]


def kill_after(kills: int) -> None:
    """Tell, kill, start again and look, many times."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "site"
        tasks = ["one", "two", *(f"t{k:02d}" for k in range(kills // 5))]
        blocks = make_blocks(["a", "b"], tasks)
        make_site(folder, Network.line(["a", "b"]), blocks, SETTINGS, couple=False, **HURRIED)
        more = folder / "more.csv"
        write_rows(more, *make_blocks(["a"], ["one"], n=ROWS, seed=8)["a", "one"])
        n_rows, kept, lost = len(blocks["a", "one"][1]), Counter[str](), Counter[str]()
        with ForkedAgents(folder) as agents:
            agents.start("a")
            agents.wait_for(lambda: status(folder, "a").get("tasks"))
            for wish in _wishes(kills, str(more)):
                answer = tell(folder, "a", **wish)
                os.kill(agents.running["a"].pid, signal.SIGKILL)
                agents.running.pop("a").wait()
                agents.start("a")
                agents.wait_for(lambda: status(folder, "a").get("tasks"))
                what = wish["command"]
                if "said" not in answer:
                    lost[f"{what} refused: {answer}"] += 1
                    continue
                n_rows += ROWS if what == "rows" else 0
                is_there = _is_there(status(folder, "a"), wish, n_rows)
                (kept if is_there else lost)[what] += 1
    print(f"killed right after an acknowledgement {kept.total() + lost.total()} times: "
          f"{kept.total()} there {dict(kept)}, lost {dict(lost)}")  # fmt: skip


def main() -> None:
    """Print what was seen."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--on")
    asked = parser.parse_args()
    with small_disk(asked.on) as disk:
        full_disk(disk, asked.seconds)
    kill_after(asked.kills)


if __name__ == "__main__":
    main()
