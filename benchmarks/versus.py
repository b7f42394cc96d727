"""Time a round and a whole fit against another commit of dtsvm, taking turns in one run.

    python -m benchmarks.versus /path/to/other/python

Both interpreters stay open and are asked in turn; what counts is processor time, on one thread:
little of what else the machine does is seen, and what is, falls on both. Printed are medians and
the median of the ratios of neighbouring turns, ours over theirs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

CASES = ("rounds, p = 10", "rounds, p = 784", "rounds, p = 784, many rows", "whole fit, paper size")


def problem(p: int, n_rows: int, n_nodes: int = 10, n_tasks: int = 2):
    """Rows of some related tasks, dealt to nodes."""
    rng = np.random.default_rng(0)
    n = n_nodes * n_tasks * n_rows
    X = rng.normal(size=(n, p))
    task = np.repeat(np.arange(n_tasks), n // n_tasks)
    node = np.tile(np.repeat(np.arange(n_nodes), n_rows), n_tasks)
    w = rng.normal(size=p) + 0.5 * rng.normal(size=(n_tasks, p))
    y = np.where((X * w[task]).sum(1) / np.sqrt(p) + 0.5 * rng.normal(size=n) > 0, 1, -1)
    return X, y, task, node


def make(case: str):
    """Return a function that does the case once and says how many seconds one unit took."""
    from dtsvm import DTSVM, Network, Session

    net = Network.random(10, degree=0.6, seed=0)
    if case == "whole fit, paper size":
        X, y, task, node = problem(10, 10)
        estimator = DTSVM(net, C=0.01, n_jobs=1)

        def fit() -> float:
            begin = time.process_time()
            for _ in range(20):
                estimator.fit(X, y, task=task, node=node)
            return (time.process_time() - begin) / 20

        return fit
    p, n_rows = {"rounds, p = 10": (10, 10), "rounds, p = 784": (784, 10)}.get(case, (784, 200))
    X, y, task, node = problem(p, n_rows)

    def rounds() -> float:
        live = Session(net, C=0.01, n_jobs=1)
        for v in range(10):
            for t in range(2):
                mine = (node == v) & (task == t)
                live.enter(v, t, X[mine], y[mine])
        live.couple(0, 1)
        live.run(rounds=1)
        n = 100 if n_rows > 100 else 400
        begin = time.process_time()
        live.run(rounds=n)
        return (time.process_time() - begin) / n

    return rounds


def answer() -> None:
    """Do what is asked on standard input, one case a line."""
    cases = {}
    for line in sys.stdin:
        case = line.strip()
        if case not in cases:
            cases[case] = make(case)
            cases[case]()
        print(json.dumps(cases[case]()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", nargs="?")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.answer:
        answer()
        return
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [
        subprocess.Popen([python, str(Path(__file__)), "--answer"], **pipes)
        for python in (sys.executable, given.other)
    ]

    def ask(one, case: str) -> float:
        one.stdin.write(case + "\n")
        one.stdin.flush()
        return json.loads(one.stdout.readline())

    for case in CASES:
        turns = [[ask(one, case) for one in both] for _ in range(given.turns)]
        ours, theirs = (statistics.median(each) for each in zip(*turns, strict=True))
        ratio = statistics.median(a / b for a, b in turns)
        print(f"{case:28s} {1e6 * ours:10.1f} µs {1e6 * theirs:10.1f} µs  ratio {ratio:.2f}")
    for one in both:
        one.stdin.close()
        one.wait()


if __name__ == "__main__":
    main()
