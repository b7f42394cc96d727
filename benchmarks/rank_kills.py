"""A rank killed in training, again and again: how soon all end, and whether the state is whole.

    python -m benchmarks.rank_kills --times 10 --ranks 3

`mpiexec -n 3 dtsvm train … --checkpoint` runs until its checkpoint has been replaced some times;
one of its ranks, each in its turn, is then killed by signal 9 (or, with --signal INT, is sent
Ctrl-C). Printed are the seconds until the last process had ended; then one process goes on from
the checkpoint for three rounds, which it refuses if a byte is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COMMAND = str(Path(sys.executable).with_name("dtsvm"))
MPIEXEC = str(Path(sys.executable).with_name("mpiexec"))
ASKED = ["train", "rows.npz", "--label", "y", "--C", "1000", "--tol", "1e-15", "--network", "ring",
         "--node-penalty", "1e7",  # so that it does not end by itself
         "--checkpoint", "state.npz", "--checkpoint-seconds", "0"]  # fmt: skip
PATIENCE_SECONDS = 120.0


def children(pid: int) -> list[int]:
    return [int(v) for v in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(is_so, seconds: float = PATIENCE_SECONDS) -> float:
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"not within {seconds:g} s")
        time.sleep(0.01)
    return time.monotonic() - began


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False


def strike(folder: Path, n_ranks: int, victim: int, number: int) -> tuple[float, int]:
    """Kill a rank; return the seconds until all had ended, and the rounds that were kept."""
    state = folder / "state.npz"
    state.unlink(missing_ok=True)
    process = subprocess.Popen(
        [MPIEXEC, "-n", str(n_ranks), COMMAND, *ASKED, "--max-rounds", "100000000"], cwd=folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        seen: set[int] = set()

        def is_renewed() -> bool:
            if state.exists():
                seen.add(state.stat().st_ino)
            return len(seen) > 3

        wait_for(is_renewed)
        time.sleep(0.037 * (victim % 10))  # not always at the same moment
        ranks = children(children(process.pid)[0])
        os.kill(ranks[victim % n_ranks], number)
        took = wait_for(lambda: process.poll() is not None and not any(map(is_running, ranks)))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    out = [*ASKED, "--max-rounds", "3", "--out", "model.json"]
    done = subprocess.run([COMMAND, *out], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"the checkpoint was refused: {done.stderr}")
    return took, json.loads((folder / "model.json").read_text())["info"]["n_rounds"] - 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--signal", default="KILL", choices=("KILL", "INT"))
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    y = (X[:, 0] + rng.normal(size=2000) > 0).astype(int)
    number = getattr(signal, f"SIG{asked.signal}")
    took = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "rows.npz", X=X, y=y, node=np.arange(2000) % 8)
        for k in range(asked.times):
            seconds, rounds = strike(folder, asked.ranks, k, number)
            took.append(seconds)
            print(f"{k + 1}: rank {k % asked.ranks} struck; all ended after {seconds:.2f} s; "
                  f"the checkpoint is whole, {rounds} rounds", flush=True)  # fmt: skip
    print(f"{len(took)} of {asked.times} whole; all ended within {max(took):.2f} s at worst")


if __name__ == "__main__":
    main()
