"""Rounds to go on after a change, against starting anew in the changed world.

Random cases: a ring or a random network of 6 to 20 nodes with 20 rows an agent, or of 15 to 30
nodes with 100 rows an agent; 2 tasks, 3 to 10 features, C from 0.01 to 1. Trained to `tol`; then
one node leaves, or 5 % more rows come to random agents; then trained to the same `tol` again.
Value: the median of these rounds over those of a session that starts anew in the changed world.
"""

from __future__ import annotations

import numpy as np
from rich.progress import track

from benchmarks import problems
from benchmarks.problems import Problem
from benchmarks.results import measured
from benchmarks.settings import Settings
from dtsvm import Network, Session
from dtsvm.errors import NetworkError

TOLERANCES = (1e-2, 1e-3, 1e-4)
MOST = 10_000
DEPARTURE, ROWS = "one departure", "5 % new rows"
SIZES = {"20 rows an agent": (6, 21, 20), "100 rows an agent": (15, 31, 100)}


def run(settings: Settings) -> list[dict]:
    n = settings.pick(60, 4)
    rng = np.random.default_rng(settings.seed)
    found: dict[tuple[str, float], list[tuple[int, int]]] = {}
    for size in track([*SIZES] * n, "cases", transient=True):
        problem = random_problem(rng, *SIZES[size])
        leaver, late = _leaver(problem.network, rng), _late(problem, rng)
        for tol in TOLERANCES:
            departure = _departure(problem, leaver, tol)
            found.setdefault((f"{size}, {DEPARTURE}", tol), []).append(departure)
            arrival = _arrival(problem, late, tol)
            found.setdefault((f"{size}, {ROWS}", tol), []).append(arrival)
    lines = [
        (f"{event}, tol {tol:g}", pairs)
        for (event, tol), pairs in sorted(found.items(), key=lambda item: (item[0][0], -item[0][1]))
    ]
    for event in (DEPARTURE, ROWS):
        every = [pair for (name, _), pairs in found.items() if event in name for pair in pairs]
        lines.append((f"{event}, all of these", every))
    return [_line(name, pairs) for name, pairs in lines]


def _line(name: str, pairs: list[tuple[int, int]]) -> dict:
    warm, cold = np.array(pairs).T
    ratio = warm / cold
    return measured(
        name,
        float(np.median(ratio)),
        ours=float(np.median(warm)),
        rival=float(np.median(cold)),
        sides="rounds",
        goal=("at most", 0.5, 0.25),
        note=f"worst of {len(pairs)}: {ratio.max():.2f}",
        pairs=pairs,
    )


def random_problem(rng: np.random.Generator, fewest: int, most: int, n_rows: int) -> Problem:
    """Draw a ring or a random network and its rows."""
    n = int(rng.integers(fewest, most))
    seed = int(rng.integers(2**31))
    network = Network.ring(n) if rng.random() < 0.5 else Network.random(n, degree=0.4, seed=seed)
    p = int(rng.integers(3, 11))
    return problems.synthetic(network, n_rows, p, 10 ** rng.uniform(-2, 0), rng)


def _leaver(network: Network, rng: np.random.Generator) -> int:
    """Choose a node without which the others still hear each other."""
    for node in rng.permutation(len(network)).tolist():
        links = [link for link in network if node not in link]
        if Network([v for v in network.nodes if v != node], links).is_connected:
            return node
    raise NetworkError("Every node is needed.")


def _late(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Mark the rows that come later: one in 21."""
    is_late = np.zeros(len(problem.y), bool)
    is_late[rng.permutation(len(problem.y))[: round(len(problem.y) / 21)]] = True
    return is_late


def _departure(problem: Problem, leaver: int, tol: float) -> tuple[int, int]:
    live = problem.session()
    live.run(MOST, tol=tol)
    live.leave(node=leaver)
    warm = _rounds(live, tol)
    rest = problem.session()
    rest.leave(node=leaver)
    return warm, _rounds(rest, tol)


def _arrival(problem: Problem, is_late: np.ndarray, tol: float) -> tuple[int, int]:
    early = ~is_late
    live = problem.replace(
        X=problem.X[early], y=problem.y[early], task=problem.task[early], node=problem.node[early]
    ).session()
    live.run(MOST, tol=tol)
    for row in np.flatnonzero(is_late):
        where = int(problem.node[row]), int(problem.task[row])
        live.add_data(*where, problem.X[row : row + 1], problem.y[row : row + 1])
    return _rounds(live, tol), _rounds(problem.session(), tol)


def _rounds(live: Session, tol: float) -> int:
    before = live.round
    live.run(MOST, tol=tol)
    return live.round - before
