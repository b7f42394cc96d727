"""Whether time and memory grow as the nodes do, from 10 to 10,000.

Every node linked to the two before and the two after it on a ring, 1 task, 20 rows a node, 10
features, one thread, each size in its own process. Value: the worst of t(10n) / 10t(n) over the
sizes; 1 is linear. *A round*: what 250 more rounds take, η = 0.3 n, so that ρ = 2η/n and the
work of an agent stay the same. *Everything before the second round*: `fit` with automatic
penalties and one round. *Memory*: the peak that Python and NumPy allocate in `fit`, beyond its
rows. The last two leave 10 nodes out: constants rule there.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
from rich import print

from benchmarks import problems, workers
from benchmarks.problems import Problem
from benchmarks.results import measured
from benchmarks.settings import Settings
from dtsvm import Network
from dtsvm.errors import NotConvergedWarning

LIMIT_SECONDS = 900.0
MORE_ROUNDS = 250


def run(settings: Settings) -> list[dict]:
    sizes = settings.pick([10, 100, 1000, 10_000], [10, 30, 90])
    found = {
        what: {n: _ask(what, n, settings) for n in sizes} for what in ("round", "first", "memory")
    }
    return [
        _step("a round", found["round"]),
        _step("everything before the second round", found["first"], sizes[1:]),
        _step("peak memory", found["memory"], sizes[1:]),
    ]


def _ask(what: str, n: int, settings: Settings) -> float | None:
    limit = settings.pick(LIMIT_SECONDS, 60.0)
    question = {"what": what, "n": n, "repeats": min(settings.repeats, 5)}
    answer = workers.ask("growth", question, limit)
    value = answer["value"] if answer else None
    print(f"{what}, {n:,} nodes: {value if answer else f'over {limit:.0f} s'}")
    return value


def _step(name: str, values: dict[int, float | None], sizes: list[int] | None = None) -> dict:
    sizes = sizes or list(values)
    steps = {
        f"{a:,} to {b:,}": values[b] / values[a] / (b / a)
        for a, b in pairwise(sizes)
        if values[a] and values[b]
    }
    late = [f"{n:,} nodes took too long" for n in sizes if values[n] is None]
    notes = [f"{key}: {value:.2f}" for key, value in steps.items()] + late
    value = max(steps.values()) if steps and not late else None
    return measured(name, value, goal=("at most", 1.3, 1.1), note="; ".join(notes), values=values)


def _work(what: str, n: int, repeats: int) -> dict:
    warnings.simplefilter("ignore", NotConvergedWarning)
    links = sorted({tuple(sorted((i, (i + k) % n))) for i in range(n) for k in (1, 2)})
    problem = problems.synthetic(Network(range(n), links), 20, 10, 0.1, 0, n_tasks=1)
    small = problems.synthetic(Network.ring(4), 5, 10, 0.1, 0, n_tasks=1)
    small.fit(max_rounds=3000)  # load what is compiled
    return {"value": {"round": _round, "first": _first, "memory": _memory}[what](problem, repeats)}


def _round(problem: Problem, repeats: int) -> float:
    def seconds(rounds: int) -> float:
        eta = 0.3 * len(problem.network)
        return problem.fit(
            node_penalty=eta, task_penalty=eta, tol=1e-14, max_rounds=rounds, n_jobs=1
        ).info_.seconds

    differences = [seconds(MORE_ROUNDS + 1) - seconds(1) for _ in range(repeats)]
    return float(np.median(differences)) / MORE_ROUNDS


def _first(problem: Problem, repeats: int) -> float:
    before = time.perf_counter()
    problem.fit(max_rounds=1, n_jobs=1)
    return time.perf_counter() - before


def _memory(problem: Problem, repeats: int) -> float:
    tracemalloc.start()
    problem.fit(max_rounds=20, n_jobs=1)
    return float(tracemalloc.get_traced_memory()[1])


if __name__ == "__main__":
    workers.answer(_work)
