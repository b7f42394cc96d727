"""How good every node's own classifiers are when training says that it is done.

The problems of `warm`, trained to `tol`. Value: the worst node's relative suboptimality (against
Clarabel, pooled rows) over `tol`. The certificate is of the average of all nodes; that each of them
is as good is what the stopping rule's bound on residuals is for.
"""

from __future__ import annotations

import numpy as np
from rich.progress import track

from benchmarks import reference
from benchmarks.cases import warm
from benchmarks.problems import session_decisions
from benchmarks.results import measured
from benchmarks.settings import Settings


def run(settings: Settings) -> list[dict]:
    rng = np.random.default_rng(settings.seed)
    found: dict[float, list[float]] = {tol: [] for tol in warm.TOLERANCES}
    for size in track([*warm.SIZES] * settings.pick(60, 4), "cases", transient=True):
        problem = warm.random_problem(rng, *warm.SIZES[size])
        optimum = reference.solve(problem).optimum
        for tol, shares in found.items():
            live = problem.session()
            live.run(warm.MOST, tol=tol)
            shares.append(problem.worst(session_decisions(live, problem.n_tasks), optimum) / tol)
    return [
        measured(
            f"tol {tol:g}, nine in ten",
            float(np.percentile(shares, 90)),
            goal=("at most", 1.0, None),
            note=f"median {np.median(shares):.2f}, worst of {len(shares)}: {max(shares):.2f}",
        )
        for tol, shares in found.items()
    ]
