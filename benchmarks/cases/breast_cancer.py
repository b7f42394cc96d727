"""A small ordinary problem on rings, against LIBLINEAR with all rows in one place.

Standardised, C = 0.1. Done when the worst node's classifier is within 1e-4 of the optimum
(Clarabel, pooled rows); every side's tolerance is the loosest that gets there, found beforehand.
Ours is the whole time from rows to answer, over simulated links; with losses the same for each of
the seeds of the repeats. LIBLINEAR has all rows in one place, and the best of several constants
for its bias column.
"""

from __future__ import annotations

import numpy as np

from benchmarks import problems, reference
from benchmarks.problems import Problem, node_decisions, session_decisions
from benchmarks.results import measured
from benchmarks.rivals.liblinear import quickest
from benchmarks.settings import Settings
from benchmarks.stopping import loosest_tol
from benchmarks.timing import race, spread
from dtsvm import Network, Session

TARGET = 1e-4


def run(settings: Settings) -> list[dict]:
    return [
        _ring(4, 0.0, settings),
        _ring(8, 0.2, settings),
    ]


def _ring(n_nodes: int, loss: float, settings: Settings) -> dict:
    problem = problems.breast_cancer(Network.ring(n_nodes), C=0.1, seed=settings.seed)
    best = reference.solve(problem)
    name = f"{n_nodes}-ring" + (f", {loss:.0%} of messages lost" if loss else "")
    rival, log = quickest(problem, best.optimum, TARGET)
    seeds = range(settings.repeats if loss else 1)

    def worst(tol: float) -> float:
        if not loss:
            return problem.worst(node_decisions(problem.fit(tol=tol)), best.optimum)
        return max(
            problem.worst(session_decisions(_lossy(problem, loss, s, tol), 1), best.optimum)
            for s in seeds
        )

    tol = loosest_tol(worst, TARGET)
    if tol is None or rival is None:
        who = "We" if tol is None else "LIBLINEAR"
        return measured(
            name,
            None,
            goal=("at most", 5.0, 2.0),
            note=f"{who} did not reach {TARGET:g}",
            search=log,
        )
    seed = iter(np.resize(seeds, settings.repeats).tolist())

    def ours():
        if not loss:
            return lambda: problem.fit(tol=tol)
        s = next(seed)
        return lambda: _lossy(problem, loss, s, tol)

    seconds = race({"ours": ours, "LIBLINEAR": lambda: rival.fit}, settings.repeats)
    a, b = (float(np.median(seconds[who])) for who in ("ours", "LIBLINEAR"))
    return measured(
        name,
        a / b,
        ours=a,
        rival=b,
        goal=("at most", 5.0, 2.0),
        our_tol=tol,
        their_tol=rival.tol,
        their_constant=rival.constant,
        spread={who: spread(values) for who, values in seconds.items()},
    )


def _lossy(problem: Problem, loss: float, seed: int, tol: float) -> Session:
    live = problem.session(loss=loss, seed=seed)
    live.run(10_000, tol=tol)
    return live
