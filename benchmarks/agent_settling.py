"""Six real agents with mutual TLS: rounds until certified, beside those of a session.

    python -m benchmarks.agent_settling [--calm 5] [--seeds 20] [--loss 0.3] [ring complete line]

First each network undisturbed, with rows of several seeds. Then, seed by seed and network by
network in turn, messages are lost and every agent is killed (-9) once and started again while it
trains. A line each: rounds, counted from when the last was started again, those of a session
without and with as much loss, and both ratios; the worst certified gap; the distance of the
farthest agent from the optimum; rounds in all, those while agents are killed included.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.agents import (
    NAMES,
    SHAPES,
    ForkedAgents,
    cold,
    farthest,
    make_blocks,
    make_session,
    make_site,
    status,
)  # fmt: skip

SETTINGS = {"C": 0.1, "tol": 1e-4}
HURRIED = {"round_seconds": 0.1, "evict_seconds": 3.0, "start_seconds": 60.0}
PATIENCE = 240.0  # seconds


def disturb(agents: ForkedAgents, folder: Path, rng: np.random.Generator) -> None:
    """Kill every agent once, in any order, and start it again some rounds later."""
    for name in rng.permutation(NAMES).tolist():
        time.sleep(float(rng.uniform(0.0, 0.3)))
        process = agents.running.pop(name)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(float(rng.uniform(0.0, 0.3)))
        agents.start(name)
        agents.wait_for(lambda name=name: status(folder, name)["nodes"] > 0)


def settle(shape: str, seed: int, loss: float, *, is_disturbed: bool) -> tuple[float, ...]:
    """Return rounds, two sessions', the worst gap, the distance from the optimum, rounds in all."""
    network = SHAPES[shape](NAMES)
    blocks = make_blocks(NAMES, ["one"], p=10, n=20, seed=seed)
    sessions = [
        make_session(network, blocks, SETTINGS, **lossy)
        for lossy in ({}, {"loss": loss, "seed": seed})
    ]
    for session in sessions:
        session.run()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "site"
        make_site(folder, network, blocks, SETTINGS, **(HURRIED if is_disturbed else {}))
        with ForkedAgents(folder, loss, seed) as agents:
            for node in NAMES:
                agents.start(node)
            before = 0
            if is_disturbed:
                agents.wait_for(lambda: status(folder, "a")["round"] > 3)
                disturb(agents, folder, np.random.default_rng(seed))
                before = max(status(folder, node)["round"] for node in NAMES)
            agents.settle(NAMES, seconds=PATIENCE)
            found = [status(folder, node) for node in NAMES]
            models = [folder / node / "model.json" for node in NAMES]
            agents.wait_for(lambda: all(path.exists() for path in models))
            off = farthest(folder, NAMES, cold(network, blocks, {**SETTINGS, "tol": 1e-9}))
    in_all = max(one["round"] for one in found)
    alone = [session.info.n_rounds for session in sessions]
    return in_all - before, *alone, max(one["gap"] for one in found), off, in_all


def line(shape: str, seed: int, found: tuple[float, ...]) -> str:
    """Return a row of the table."""
    rounds, alone, lossy, gap, off, in_all = found
    return (
        f"{shape:10}{seed:5}{rounds:8.0f}{alone:9.0f}{rounds / alone:7.2f}{lossy:9.0f}"
        f"{rounds / lossy:7.2f}{gap:10.1e}{off:10.1e}{in_all:8.0f}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calm", type=int, default=5, help="seeds undisturbed")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--loss", type=float, default=0.3)
    parser.add_argument("shapes", nargs="*", default=list(SHAPES))
    asked = parser.parse_args()
    print("undisturbed")
    print("network    seed  rounds  session  ratio    lossy  ratio       gap       off  in all")
    for shape in asked.shapes:
        for seed in range(asked.calm):
            found = settle(shape, seed, 0.0, is_disturbed=False)
            print(line(shape, seed, found), flush=True)
    print(f"{asked.loss:.0%} of the messages lost, every agent killed once")
    good, ratios = 0, []
    for seed in range(asked.seeds):
        shape = asked.shapes[seed % len(asked.shapes)]
        try:
            found = settle(shape, seed, asked.loss, is_disturbed=True)
        except AssertionError as error:
            print(f"{shape:10}{seed:5}  not settled: {str(error)[:200]!r}", flush=True)
            continue
        good += found[3] <= SETTINGS["tol"]
        ratios.append((found[0] / found[1], found[0] / found[2]))
        print(line(shape, seed, found), flush=True)
    if ratios:
        (to_whole, to_lossy), (most, _) = np.median(ratios, axis=0), np.max(ratios, axis=0)
        print(
            f"{good} of {asked.seeds} certified; median ratio {to_whole:.2f} to a session that "
            f"loses nothing ({most:.2f} at most), {to_lossy:.2f} to one that loses as much"
        )


if __name__ == "__main__":
    main()
