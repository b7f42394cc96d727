"""Nodes over the ranks of MPI, beside the same rounds in one process.

*Small nodes*: 10,000 nodes, each linked to the two before and the two after it on a ring, 20 rows
of 10 features a node: rounds are short and messages many. *Large nodes*: 100 nodes linked likewise,
400 rows of 200 features a node. *MNIST*: the images of 3, 6, 8 and 9 as two tasks over 100 nodes
linked likewise, 784 pixels. Fixed penalties, a number of rounds without a certificate; a process or
program each, in turns. Ours and rival: milliseconds a round, the least over the turns, for what
else a machine does only adds to it. *Two ranks*: memory's with two threads over ours with two
ranks. *Four ranks*, *eight ranks*: ours with one rank over ours with so many; with fewer cores than
ranks it shows what waiting for each other costs. *Weak scaling*: one rank with half the nodes over
two ranks with all. *Ceiling of weak scaling*: one rank with half the nodes, alone over two of it at
once that know nothing of each other: what two cores of this machine, which share cache and memory,
leave of each other's speed. *Two ranks beside two strangers*: the latter over two ranks. *Of work*:
the same of the processor's time for local solves and messages inside a rank, of the slowest rank:
what other programs on a busy machine slow least; waiting is not in it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich import print

from benchmarks.rank_rounds import SIZES, WAYS
from benchmarks.results import ROOT, measured
from benchmarks.settings import MissingData, Settings

LIMIT_SECONDS = 300.0
HALF, STRANGERS = "1 rank, half the nodes", "2 strangers, half the nodes each"


def run(settings: Settings) -> list[dict]:
    mpiexec = shutil.which("mpiexec") or shutil.which("mpiexec", path=Path(sys.executable).parent)
    if mpiexec is None:
        raise MissingData("There is no mpiexec here: pip install mpi4py mpich.")
    names = [name for name in SIZES if name != "MNIST" or settings.quick or settings.mnist]
    chosen = os.environ.get("DTSVM_RANKS", "")  # one network alone
    found = []
    for name in [name for name in names if chosen in name]:
        turns = [
            {way: _ask(mpiexec, name, way, settings) for way in WAYS}
            for _ in range(min(settings.repeats, 5))
        ]
        best = {way: min((turn[way] for turn in turns), key=lambda one: one["ms"]) for way in WAYS}
        for way, one in best.items():
            print(name, way, {key: one[key] for key in ("ms", "parts", "looks", "others")})
        found += _results(name, best)
    return found


def _results(name: str, best: dict[str, dict[str, Any]]) -> list[dict]:
    def ratio(what: str, ours: str, rival: str, target: float | None = None) -> dict:
        value = best[rival]["ms"] / best[ours]["ms"]
        if not 0.0 < value <= 1.5 * (os.cpu_count() or 1):  # start-up varied by more than that
            note = f"not to be told from start-up: {best[ours]['ms']:.1f} ms a round"
            goal = ("at least", target, None) if target else None
            return measured(f"{name}: {what}", None, goal=goal, note=note)
        return measured(
            f"{name}: {what}", value,
            goal=("at least", target, None) if target else None, sides="ms",
            ours=best[ours]["ms"], rival=best[rival]["ms"], note=f"{rival} over {ours}",
            parts={way: best[way]["parts"] for way in (ours, rival)},
            others={way: best[way]["others"] for way in (ours, rival)},
        )  # fmt: skip

    def work(what: str, ours: str, rival: str, target: float | None = None) -> dict:
        mine, theirs = (max(best[way]["parts"]["work"]) for way in (ours, rival))
        return measured(
            f"{name}: {what}", theirs / mine if mine else None, sides="ms", ours=mine, rival=theirs,
            goal=("at least", target, None) if target else None, note=f"{rival} over {ours}",
        )  # fmt: skip

    busy = max(one["others"] for one in best.values())
    print(f"{name}: other programs kept up to {busy:.1f} cores busy")
    return [
        work("weak scaling of work", "2 ranks", HALF, 0.8),
        work("ceiling of weak scaling of work", STRANGERS, HALF),
        ratio("one rank", "1 rank", "memory, 1 thread"),
        ratio("two ranks", "2 ranks", "memory, 2 threads", 0.8),
        ratio("weak scaling", "2 ranks", HALF, 0.8),
        ratio("ceiling of weak scaling", STRANGERS, HALF),
        ratio("two ranks beside two strangers", "2 ranks", STRANGERS),
        ratio("four ranks", "4 ranks", "1 rank"),
        ratio("eight ranks", "8 ranks", "1 rank"),
    ]


def _ask(mpiexec: str, name: str, way: str, settings: Settings) -> dict[str, Any]:
    asked = {"network": name, "way": way, "quick": settings.quick}
    command = [sys.executable, "-m", "benchmarks.rank_rounds", json.dumps(asked)]
    if WAYS[way][0]:
        command = [mpiexec, "-n", str(WAYS[way][0]), *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if settings.mnist:
        environment["DTSVM_MNIST"] = str(settings.mnist)
    out = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS, cwd=ROOT,
        env=environment,
    ).stdout  # fmt: skip
    return json.loads(out.splitlines()[-1])
