"""Six real agents choose C, coupling and company, beside `DTSVMCV` on the same rows and folds.

    DTSVM_DATA=… python -m benchmarks.agent_choice [--set NAME] [--kill] [--rows 400] [--tasks 50]
        [--tol 0.05] [--seconds 900]

The rows are those of a set of `benchmarks.transfer` (vehicle with 20 rows of each of 23 tasks), at
most so many of each of so many tasks, dealt to six nodes on a ring, each a process with mutual TLS.
With --kill one is killed in the middle of it, and started again. Rounds stand beside those of
single fits in memory, with company, at the four values of C and the same tolerance.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.transfer_sets import SETS, Places
from dtsvm import DTSVM, DTSVMCV, Network
from dtsvm.errors import NotConvergedWarning
from dtsvm.runtime.agent.process.children import Children, free_addresses
from dtsvm.runtime.agent.site.folders import make_site
from dtsvm.select import LEVELS
from dtsvm.svm import load_model

NODES = list("abcdef")


def write_site(site: Path, rows: dict, tol: float) -> None:
    """Write a folder a node, with a file a task."""
    network = Network.ring(NODES)
    address = dict(zip(NODES, free_addresses(len(NODES)), strict=True))
    tasks = sorted({task for _, task in rows})
    lines = {t: {"data": f"{t}.npz", "label": "y", "labels": [-1, 1]} for t in tasks}
    make_site(site, network, address, lines, {"C": "auto", "tol": tol})
    for (node, task), (X, y) in rows.items():
        np.savez(site / node / f"{task}.npz", X=X, y=y)


def wait(children: Children, until: float) -> dict:
    """Ask until all have settled; return their statuses."""
    while time.monotonic() < until:
        children.check()
        found = children.statuses()
        if len(found) == len(NODES) and all(one["is_settled"] for one in found.values()):
            return found
        time.sleep(0.2)
    raise SystemExit(f"not settled: {[one.get('choosing') for one in found.values()]}")


def kill_in_the_middle(children: Children) -> None:
    """Kill one when it has certified some candidates, and start it again."""
    while True:
        status = children.statuses().get("c", {})
        if status.get("choosing", {}).get("certified", 0) > 3:
            break
        time.sleep(0.05)
    print(f"node c killed: {status['choosing']['certified']} of {status['choosing']['tracks']} "
          f"candidates certified, round {status['round']}")  # fmt: skip
    children.kill("c")
    time.sleep(1.0)
    children.start("c")


def run(rows: dict, tol: float, is_killed: bool, most_seconds: float) -> tuple[dict, dict, float]:
    """Return the last statuses, the models and the seconds from start to settled."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        write_site(site, rows, tol)
        with Children(site) as children:
            began = time.monotonic()
            for name in NODES:
                children.start(name)
            if is_killed:
                kill_in_the_middle(children)
            statuses = wait(children, began + most_seconds)
            seconds = time.monotonic() - began
            models = {name: load_model(site / name / "model.json") for name in NODES}
    return statuses, models, seconds


def compared(some: list, others: dict[str, dict]) -> str:
    """Say how far two choices of the same rows are apart; both are trained to the same tol."""
    pairs = [(one, others[str(one.task)]) for one in some]
    worst = max(
        abs(theirs["weights"].get(k, 0.0) - one.weights.get(k, 0.0))
        for one, theirs in pairs
        for k in {*theirs["weights"], *one.weights}
    )
    alike = sum(str(one) == theirs["sentence"] for one, theirs in pairs)
    return f"shares differ by {worst:.2e} at most, sentences are alike in {alike} of {len(pairs)}"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--set", default="vehicle (20; tested on tasks of ≥ 27)", choices=SETS)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--tol", type=float, default=0.05)
    parser.add_argument("--seconds", type=float, default=900.0, help="after which it gives up")
    asked = parser.parse_args()
    mnist = os.environ.get("DTSVM_MNIST")
    places = Places(Path(os.environ["DTSVM_DATA"]), Path(mnist) if mnist else None)
    split = SETS[asked.set](places, 0)
    n_tasks = min(asked.tasks, int(split.task.max()) + 1)
    some = split.task < n_tasks
    turn = np.concatenate([np.arange((split.task == t).sum()) for t in range(n_tasks)])
    some[some] = turn < asked.rows
    X, y = split.X[some], split.y[some].astype(int)
    task = np.array([f"v{t:02d}" for t in split.task[some]])
    node = np.array(NODES)[turn[turn < asked.rows] % len(NODES)]
    rows = {(v, t): (X[(node == v) & (task == t)], y[(node == v) & (task == t)])
            for v in NODES for t in np.unique(task).tolist()}  # fmt: skip

    began = time.monotonic()
    memory = DTSVMCV(Network.ring(NODES), tol=asked.tol).fit(X, y, task=task, node=node)
    print(f"memory: {memory.info_.n_rounds} rounds, {memory.info_.bytes_sent / 1e6:.1f} MB, "
          f"{time.monotonic() - began:.1f} s")  # fmt: skip
    rounds = []
    for level in LEVELS:
        price = level / np.mean((X**2).sum(axis=1))
        fit = DTSVM(Network.ring(NODES), C=price, tol=asked.tol, relays="auto", max_seconds=30)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            rounds.append(fit.fit(X, y, task=task, node=node).info_.n_rounds)
    levels = ", ".join(map(str, LEVELS))
    print(f"fits in memory at this tol, C = {levels} over the mean squared row: "
          f"{rounds} rounds, {np.mean(rounds):.0f} on average")  # fmt: skip

    statuses, models, seconds = run(rows, asked.tol, asked.kill, asked.seconds)
    sent = sum(one["bytes_sent"] for one in statuses.values())
    choosing = statuses["a"]["choosing"]
    each = sent / sum(one["messages_sent"] for one in statuses.values())
    print(f"agents: {choosing['rounds']} rounds, {sent / 1e6:.1f} MB, {each / 1e3:.1f} kB a "
          f"message, {seconds:.1f} s, begun {choosing['times_begun']} times")  # fmt: skip
    first = models["a"]
    same = all(np.array_equal(first.coef_, one.coef_) for one in models.values())
    print(f"the same classifiers at every node: {same}")
    U, V = (np.column_stack([m.coef_, m.intercept_]) for m in (first, memory))
    print(f"largest difference of a classifier to memory's: {np.abs(U - V).max():.2e} "
          f"(largest number {np.abs(V).max():.2f})")  # fmt: skip
    chosen = {one["task"]: one for one in choosing["choices"]}
    print(f"agents beside memory: {compared(memory.choices_, chosen)}")
    other = DTSVMCV(Network.complete(NODES), tol=asked.tol).fit(X, y, task=task, node=node)
    same = {str(one.task): one.to_dict() for one in other.choices_}
    print(f"memory with all nodes linked beside memory: {compared(memory.choices_, same)}")
    for one in memory.choices_[:3]:
        print(f"  memory: {one}\n  agents: {chosen[str(one.task)]['sentence']}")


if __name__ == "__main__":
    main()
