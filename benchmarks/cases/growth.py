"""Whether time and memory grow as the nodes do, from 10 to 10,000.

Every node linked to the two before and the two after it on a ring, 1 task, 20 rows a node, 10
features, one thread, each size in its own process, the sizes in turns. Value: the worst of
t(10n) / 10t(n) over the sizes, each the median over the turns; 1 is linear. *A round*: what 250
more rounds take, η = 0.3 n, so that ρ = 2η/n and the work of an agent stay the same; with every
node's rows side by side in X, as sites bring them, and with all rows shuffled: then each look at a
row is a look anywhere in memory, which stays in the processor's cache at 1,000 nodes and not at
10,000. *Everything before the second round*: `fit` with automatic penalties and one round.
*Memory*: the peak that Python and NumPy allocate in `fit`, beyond its rows. The last two leave 10
nodes out: constants rule there.
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


Turns = list[dict[int, float | None]]


def run(settings: Settings) -> list[dict]:
    sizes = settings.pick([10, 100, 1000, 10_000], [10, 30, 90])
    turns = min(settings.repeats, 5)
    asked = {"round": turns, "shuffled": turns, "first": turns, "memory": 1}
    found = {
        what: [{n: _ask(what, n, settings) for n in sizes} for _ in range(n_turns)]
        for what, n_turns in asked.items()
    }
    return [
        _step("a round, rows node by node", found["round"], sizes),
        _step("a round, rows shuffled", found["shuffled"], sizes),
        _step("everything before the second round", found["first"], sizes[1:]),
        _step("peak memory", found["memory"], sizes[1:]),
    ]


def _ask(what: str, n: int, settings: Settings) -> float | None:
    limit = settings.pick(LIMIT_SECONDS, 60.0)
    answer = workers.ask("growth", {"what": what, "n": n}, limit)
    value = answer["value"] if answer else None
    print(f"{what}, {n:,} nodes: {value if answer else f'over {limit:.0f} s'}")
    return value


def _step(name: str, turns: Turns, sizes: list[int]) -> dict:
    late = [f"{n:,} nodes took too long" for n in sizes if any(t[n] is None for t in turns)]
    steps = {
        f"{a:,} to {b:,}": float(np.median([t[b] / t[a] / (b / a) for t in turns]))
        for a, b in pairwise(sizes)
        if all(t[a] and t[b] for t in turns)
    }
    notes = [f"{key}: {value:.2f}" for key, value in steps.items()] + late
    value = max(steps.values()) if steps and not late else None
    return measured(name, value, goal=("at most", 1.3, 1.1), note="; ".join(notes), values=turns)


def _work(what: str, n: int) -> dict:
    warnings.simplefilter("ignore", NotConvergedWarning)
    links = sorted({tuple(sorted((i, (i + k) % n))) for i in range(n) for k in (1, 2)})
    problem = problems.synthetic(Network(range(n), links), 20, 10, 0.1, 0, n_tasks=1)
    small = problems.synthetic(Network.ring(4), 5, 10, 0.1, 0, n_tasks=1)
    small.fit(max_rounds=3000)  # load what is compiled
    if what == "round":
        by_node = np.argsort(problem.node, kind="stable")
        columns = {name: getattr(problem, name)[by_node] for name in ("X", "y", "task", "node")}
        problem = problem.replace(**columns)
    work = {"round": _round, "shuffled": _round, "first": _first, "memory": _memory}
    return {"value": work[what](problem)}


def _round(problem: Problem) -> float:
    def seconds(rounds: int) -> float:
        eta = 0.3 * len(problem.network)
        return problem.fit(
            node_penalty=eta, task_penalty=eta, tol=1e-14, max_rounds=rounds, n_jobs=1
        ).info_.seconds

    return (seconds(MORE_ROUNDS + 1) - seconds(1)) / MORE_ROUNDS


def _first(problem: Problem) -> float:
    before = time.perf_counter()
    problem.fit(max_rounds=1, n_jobs=1)
    return time.perf_counter() - before


def _memory(problem: Problem) -> float:
    tracemalloc.start()
    problem.fit(max_rounds=60, n_jobs=1)
    return float(tracemalloc.get_traced_memory()[1])


if __name__ == "__main__":
    workers.answer(_work)
