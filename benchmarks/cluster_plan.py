"""The plan on paper for 10⁶ nodes and 10⁹ rows, every figure from what this code takes today.

    python -m benchmarks.cluster_plan --nodes 1000000 --rows 1000000000 --features 50 --ranks 1000

Bytes of a row, an agent and a link end are read off the tables; bytes of a message and of a look at
the certificate off the arrays that ranks send; nanoseconds a number are timed here, at one rank
with 100,000 rows over 100 nodes. The network is a grid, dealt to ranks in squares.
"""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any

import numpy as np

from benchmarks.rank_rounds import Clock
from dtsvm import DTSVM
from dtsvm.errors import NotConvergedWarning
from dtsvm.rounds.snapshots import N_SNAPSHOTS
from dtsvm.rounds.tables import Tables
from dtsvm.runtime.mpi.certificate import SCALARS

__all__ = ["constants", "plan"]

PLAN_ROW_BYTES = 4 + 4  # slots, and the list of awake rows: `Plan.rows`
TABLE_GB = 2.0  # that a rank may give to tables


def constants(p: int) -> dict[str, int]:
    """Bytes of everything that a rank keeps or sends."""
    tables = Tables(p)

    def width(columns: Any) -> int:
        columns.take(1)
        return int(sum(columns.open(name).nbytes / columns.capacity for name in columns._kinds)) + 1

    state = 2 * (p + 1) * 8
    return {
        "row": 8 * p + width(tables.rows) + PLAN_ROW_BYTES,
        "agent": width(tables.agents),
        "end": width(tables.ends),
        "snapshots": N_SNAPSHOTS * state,  # of an agent, and of each link end
        "message": state + 8,
        "look": 8 * (2 * (p + 1) + len(SCALARS)) + state,  # sums, and x
    }


def nanoseconds_a_number(p: int) -> float:
    """Processor's time of local solves and messages over the numbers of the rows looked at."""
    warnings.simplefilter("ignore", NotConvergedWarning)
    clock = Clock()
    clock.watch()
    rng = np.random.default_rng(0)
    n = 100_000
    X = rng.normal(size=(n, p))
    y = np.sign(X[:, 0] + rng.normal(size=n))
    best = math.inf
    for _ in range(3):
        clock.seconds.clear()
        clock.looks = 0
        clf = DTSVM("ring", C=1e-4, engine="mpi", max_rounds=20)
        clf.fit(X, y, node=np.arange(n) * 100 // n)
        best = min(best, clock.seconds["work"] / (clock.looks * p))
    return 1e9 * best


def plan(n_nodes: int, n_rows: int, p: int, n_ranks: int, ns: float) -> list[tuple[str, str]]:
    """Return what a rank holds, sends and takes."""
    one = constants(p)
    n_ends = 4  # of an agent in a grid
    an_agent = one["agent"] + n_ends * one["end"] + (1 + n_ends) * one["snapshots"]
    border = 4 * math.sqrt(n_nodes / n_ranks)
    own = n_rows / n_ranks
    tables = n_nodes * an_agent
    return [
        ("rows a rank", f"{own:.0e} · {one['row']} bytes = {own * one['row'] / 1e9:.2f} GB"),
        ("sent in a round", f"some {border:.0f} border agents · {one['message']} bytes = "
         f"{border * one['message'] / 1e6:.2f} MB a rank"),
        ("time a round", f"a look at every row: {own * p:.0e} numbers · {ns:.2f} ns = "
         f"{own * p * ns / 1e9:.2f} s"),
        ("tables and snapshots", f"{n_nodes:.0e} · {an_agent / 1e3:.1f} kB = "
         f"{tables / 1e9:.0f} GB a rank"),
        ("a look at the certificate", f"{n_nodes:.0e} · {one['look'] / 1e3:.2f} kB = "
         f"{n_nodes * one['look'] / 1e9:.2f} GB to every rank"),
        (f"nodes at {TABLE_GB:g} GB of tables a rank", f"{1e9 * TABLE_GB / an_agent:,.0f}"),
        ("tables of its own nodes alone", f"{n_nodes / n_ranks * an_agent / 1e6:.0f} MB"),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=1_000_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=1000)
    asked = parser.parse_args()
    print(constants(asked.features))
    ns = nanoseconds_a_number(asked.features)
    for name, value in plan(asked.nodes, asked.rows, asked.features, asked.ranks, ns):
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
