"""Nodes over the ranks of MPI, beside the same rounds in one process.

*Small nodes*: 10,000 nodes, each linked to the two before and the two after it on a ring, 20 rows
of 10 features a node: rounds are short and messages many. *Large nodes*: 100 nodes linked likewise,
400 rows of 200 features a node: rounds are work. One task, fixed penalties, a number of rounds
without a certificate; a process or program each, in turns. Ours and rival: milliseconds a round,
the median over the turns. *Two ranks*: memory's with two threads over ours with two ranks.
*Four ranks*, *eight ranks*: on the same machine, ours with one rank over ours with so many; with
fewer cores than ranks it shows what waiting for each other costs. *Weak scaling*: one rank with
half the nodes over two ranks with all.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from rich import print

from benchmarks import problems
from benchmarks.results import measured
from benchmarks.settings import MissingData, Settings
from dtsvm import Network
from dtsvm.errors import NotConvergedWarning

LIMIT_SECONDS = 300.0
SIZES = {"small nodes": (10_000, 20, 10, 60), "large nodes": (100, 400, 200, 60)}
QUICK = {"small nodes": (40, 5, 4, 20), "large nodes": (10, 20, 20, 20)}
WAYS = {"memory, 1 thread": (0, 1), "memory, 2 threads": (0, 2), "1 rank": (1, 1),
        "2 ranks": (2, 1), "4 ranks": (4, 1), "8 ranks": (8, 1),
        "1 rank, half the nodes": (1, 1)}  # fmt: skip


def run(settings: Settings) -> list[dict]:
    mpiexec = shutil.which("mpiexec") or shutil.which("mpiexec", path=Path(sys.executable).parent)
    if mpiexec is None:
        raise MissingData("There is no mpiexec here: pip install mpi4py mpich.")
    found = []
    for name, sizes in settings.pick(SIZES, QUICK).items():
        turns = [
            {way: _ask(mpiexec, way, sizes) for way in WAYS}
            for _ in range(min(settings.repeats, 5))
        ]
        middle = {way: float(np.median([turn[way] for turn in turns])) for way in WAYS}
        print(name, {way: round(1e3 * seconds, 3) for way, seconds in middle.items()}, "ms a round")
        found += _results(name, middle)
    return found


def _results(name: str, middle: dict[str, float]) -> list[dict]:
    def ratio(what: str, ours: str, rival: str, target: float | None) -> dict:
        return measured(
            f"{name}: {what}", middle[rival] / middle[ours],
            goal=("at least", target, None) if target else None, sides="ms",
            ours=1e3 * middle[ours], rival=1e3 * middle[rival], note=f"{rival} over {ours}",
        )  # fmt: skip

    return [
        ratio("one rank", "1 rank", "memory, 1 thread", None),
        ratio("two ranks", "2 ranks", "memory, 2 threads", 0.8),
        ratio("weak scaling", "2 ranks", "1 rank, half the nodes", 0.8),
        ratio("four ranks", "4 ranks", "1 rank", None),
        ratio("eight ranks", "8 ranks", "1 rank", None),
    ]


def _ask(mpiexec: str, way: str, sizes: tuple[int, int, int, int]) -> float:
    n_ranks, n_threads = WAYS[way]
    n_nodes, *rest = sizes
    asked = [n_nodes // 2 if "half" in way else n_nodes, *rest, n_ranks, n_threads]
    command = [sys.executable, "-m", "benchmarks.cases.ranks", json.dumps(asked)]
    if n_ranks:
        command = [mpiexec, "-n", str(n_ranks), *command]
    out = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS
    ).stdout
    return float(json.loads(out.splitlines()[-1]))


def _work(asked: list[int]) -> float:
    """Seconds a round, start-up left out: what more rounds take beyond a few."""
    n_nodes, n_rows, n_features, n_rounds, n_ranks, n_threads = asked
    warnings.simplefilter("ignore", NotConvergedWarning)
    links = sorted({tuple(sorted((i, (i + k) % n_nodes))) for i in range(n_nodes) for k in (1, 2)})
    problem = problems.synthetic(
        Network(range(n_nodes), links), n_rows, n_features, 0.1, 0, n_tasks=1
    )

    def seconds(rounds: int) -> float:
        eta = 0.3 * n_nodes
        return problem.fit(
            node_penalty=eta, task_penalty=eta, tol=1e-14, max_rounds=rounds, n_jobs=n_threads,
            engine="mpi" if n_ranks else "memory",
        ).info_.seconds  # fmt: skip

    return (seconds(n_rounds + 3) - seconds(3)) / n_rounds


if __name__ == "__main__":
    spent = _work(json.loads(sys.argv[1]))
    if "mpi4py" not in sys.modules or sys.modules["mpi4py.MPI"].COMM_WORLD.rank == 0:
        print(spent)
