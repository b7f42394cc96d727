"""Rounds of one network, timed inside every rank: what `benchmarks.cases.ranks` asks for.

    mpiexec -n 2 python -m benchmarks.rank_rounds '{"network": "small nodes", "way": "2 ranks"}'

Printed by rank 0, as JSON: milliseconds a round beyond start-up, where every rank spends them
(local solves, exchange with neighbours with the waiting in it, messages carried inside, totals and
looks; `work` is the processor's time of solves and carrying, which others can slow but not stop),
rows looked at a round, and how many cores other programs kept busy meanwhile.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks import problems
from benchmarks.settings import Settings
from dtsvm import Network
from dtsvm.errors import NotConvergedWarning
from dtsvm.kernel import compiled

__all__ = ["SIZES", "WAYS"]

# Nodes, rows a node, features, timed rounds, whole and quick.
SIZES = {
    "small nodes": ((10_000, 20, 10, 60), (40, 5, 4, 20)),
    "large nodes": ((100, 400, 200, 60), (10, 20, 20, 20)),
    "MNIST": ((100, 0, 784, 60), (10, 0, 784, 20)),
}
# Processes (0: memory), threads, which part of the nodes, and whether processes are strangers.
WAYS = {
    "memory, 1 thread": (0, 1, 1, False), "memory, 2 threads": (0, 2, 1, False),
    "1 rank": (1, 1, 1, False), "2 ranks": (2, 1, 1, False), "4 ranks": (4, 1, 1, False),
    "8 ranks": (8, 1, 1, False), "1 rank, half the nodes": (1, 1, 2, False),
    "2 strangers, half the nodes each": (2, 1, 2, True),
}  # fmt: skip
MINE = ("solve", "exchange", "carry", "total", "work")


class Clock:
    """Seconds by what they were spent on, and rows looked at."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.looks = 0

    def timed(self, what: str, function: Any) -> Any:
        def run(*args: Any) -> Any:
            began, own = time.perf_counter(), time.thread_time()
            found = function(*args)
            self.seconds[what] += time.perf_counter() - began
            if what in ("solve", "carry"):
                self.seconds["work"] += time.thread_time() - own
            if what == "solve":
                self.looks += found
            return found

        return run

    def watch(self) -> None:
        """Put stamps around the parts of a rank's round."""
        from dtsvm.runtime.mpi import engine, halo

        names = {name: getattr(compiled, name) for name in dir(compiled) if name[0] != "_"}
        names["local_steps"] = self.timed("solve", compiled.local_steps)
        names["carry"] = self.timed("carry", compiled.carry)
        engine.compiled = SimpleNamespace(**names)
        for name in ("start", "finish"):
            setattr(halo.Halo, name, self.timed("exchange", getattr(halo.Halo, name)))
        engine.Mpi._round = self.timed("round", engine.Mpi._round)


def make(name: str, way: str, quick: bool) -> tuple[problems.Problem, int]:
    n_nodes, n_rows, n_features, n_rounds = SIZES[name][quick]
    n_nodes //= WAYS[way][2]

    def ring(n: int) -> Network:
        links = sorted({tuple(sorted((i, (i + k) % n))) for i in range(n) for k in (1, 2)})
        return Network(range(n), links)

    if name != "MNIST":
        problem = problems.synthetic(ring(n_nodes), n_rows, n_features, 0.1, 0, n_tasks=1)
        return problem, n_rounds
    found = os.environ.get("DTSVM_MNIST")
    settings = Settings(quick, mnist=Path(found) if found else None)
    whole = problems.digits_pixels(ring(SIZES[name][quick][0]), settings, 0.01)
    own = whole.node < n_nodes
    return whole.replace(X=whole.X[own], y=whole.y[own], task=whole.task[own],
                         node=whole.node[own], network=ring(n_nodes)), n_rounds  # fmt: skip


def others_busy(began: tuple[float, float, float]) -> float:
    """Cores that were busy with what is not this program since `began`."""
    busy, own, now = clocks()
    return max((busy - began[0]) - (own - began[1]), 0.0) / max(now - began[2], 1e-9)


def clocks() -> tuple[float, float, float]:
    line = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    ticks = [float(v) for v in line[:8]]
    busy = sum(ticks) - ticks[3] - ticks[4]
    return busy / os.sysconf("SC_CLK_TCK"), time.process_time(), time.perf_counter()


def work(name: str, way: str, quick: bool = False) -> dict[str, Any] | None:
    """Time rounds; return what was found at rank 0, None elsewhere."""
    warnings.simplefilter("ignore", NotConvergedWarning)
    n_processes, n_threads, _, are_strangers = WAYS[way]
    problem, n_rounds = make(name, way, quick)
    clock, world = Clock(), None
    if n_processes:
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        clock.watch()
    if are_strangers:
        from dtsvm.runtime.mpi import ranks

        ranks.world = lambda: MPI.COMM_SELF

    def fit(rounds: int) -> float:
        eta = 0.3 * len(problem.network)
        clock.seconds.clear()
        clock.looks = 0
        if world is not None:
            world.Barrier()
        return problem.fit(
            node_penalty=eta, task_penalty=eta, tol=1e-14, max_rounds=rounds, n_jobs=n_threads,
            engine="mpi" if n_processes else "memory",
        ).info_.seconds  # fmt: skip

    short = fit(3)
    began = clocks()
    seconds = (fit(n_rounds + 3) - short) / n_rounds
    spent, n = clock.seconds, n_rounds + 3
    own = sum(spent[part] for part in ("solve", "exchange", "carry"))
    spent["total"] = spent["round"] - own
    mine = [1e3 * spent[part] / n for part in MINE], clock.looks / n, seconds
    n_others = 1 if world is None else world.size
    busy = others_busy(began) - (n_others - 1)  # other ranks never rest
    every = [mine] if world is None else world.gather(mine)
    if every is None:
        return None
    return {
        "ms": 1e3 * max(each[2] for each in every),
        "parts": {part: [round(e[0][k], 3) for e in every] for k, part in enumerate(MINE)},
        "looks": [round(each[1]) for each in every],
        "others": round(max(busy, 0.0), 2),
    }


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    found = work(asked["network"], asked["way"], asked.get("quick", False))
    if found is not None:
        print(json.dumps(found, default=float), flush=True)
