"""Does it converge on whatever comes: random networks, tasks, rows and weights.

The tests' random worlds: 2 to 12 nodes on any connected graph, 1 to 4 tasks at some of them,
agents with few rows, rows of one class or none, C from 1e-3 to 10, ε₁/ε₂ from 0.01 to 100; tol =
1e-4, at most 10,000 rounds, nothing tuned. One in fifty is compared with Clarabel.
"""

from __future__ import annotations

import numpy as np
from rich.progress import track

from benchmarks.reference import from_tests
from benchmarks.results import measured
from benchmarks.settings import Settings
from dtsvm.rounds import Status

TOL = 1e-4
MOST = 10_000


def run(settings: Settings) -> list[dict]:
    n = settings.pick(1000, 20)
    rng = np.random.default_rng(settings.seed)
    rounds, failed, furthest = [], [], 0.0
    for k in track(range(n), "problems", transient=True):
        world = _world(rng)
        live = world.session()
        info = live.run(MOST, tol=TOL)
        if info.status is Status.CONVERGED:
            rounds.append(live.round)
        else:
            failed.append(
                {
                    "problem": k,
                    **world.settings,
                    "nodes": len(world.network),
                    "gap": info.gap,
                    "primal": info.primal_residual,
                    "dual": info.dual_residual,
                }
            )
        if k % 50 == 0:
            furthest = max(furthest, info.objective / _optimum(world) - 1.0)
    out = [
        measured(
            "converged",
            len(rounds),
            goal=("at least", n, None),
            unit=f"of {n}",
            note=f"at most {furthest:.1e} above the optimum where checked",
            failed=failed,
        )
    ]
    if rounds:
        counts = np.array(rounds + [MOST] * len(failed))
        for name, share in (("median", 50), ("99 of 100", 99), ("most", 100)):
            value = float(np.percentile(counts, share))
            out.append(measured(f"rounds, {name}", value, unit="rounds"))
    return out


def _world(rng: np.random.Generator):
    ratio = 10 ** rng.uniform(-2, 2)
    return from_tests("worlds").make_world(
        rng,
        n_nodes=int(rng.integers(2, 13)),
        n_tasks=int(rng.integers(1, 5)),
        n_features=int(rng.integers(1, 6)),
        C=10 ** rng.uniform(-3, 1),
        common_reg=ratio**0.5,
        specific_reg=ratio**-0.5,
    )


def _optimum(world) -> float:
    tasks = sorted({task for _, task in world.blocks})
    weights = {k: world.settings[k] for k in ("C", "common_reg", "specific_reg")}
    return from_tests("reference").solve_pooled(*world.pooled_rows(tasks), **weights).objective
