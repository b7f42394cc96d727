"""Does choosing help? `python -m benchmarks.transfer` measures, its `table` writes the page.

On each set and split, all on pooled rows: the best of three that are tuned by hand (every task
alone with its own C; one classifier for all, C; multi-task, C and the own share θ), all by the
fewest held-out errors in the same three folds, against `DTSVMCV`'s choice with nothing to set, and
with its guard. All are trained by the same code from the same candidates. Errors are on rows that
nobody has seen, averaged over tasks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.results import FOLDER
from benchmarks.settings import MissingData
from benchmarks.transfer_more import COSTLY, LIARS, cost, oracle, poison
from benchmarks.transfer_page import (
    BY_HAND_RESULTS,
    CHOSEN_RESULTS,
    COSTS,
    ORACLES,
    OWN_TASKS,
    POISONED,
    macro,
    read,
    write,
)
from benchmarks.transfer_sets import (
    FRESH,
    R_CONFIRMING,
    R_DECIDING,
    SENSORS,
    SETS,
    Places,
    Split,
)
from dtsvm import DTSVMCV, Network
from dtsvm.select import (
    SMALL,
    Candidate,
    Family,
    Held,
    Job,
    Lane,
    candidates,
    choose,
    moments,
    out_of_fold,
    split,
)
from dtsvm.svm.lanes import Lanes

THETAS = (0.02, 0.1, 0.3, 0.6, 0.9)


@click.group(invoke_without_command=True)
@click.option("--splits", default=20, show_default=True, help="Random splits of every set.")
@click.option("--only", default="", help="Sets whose name contains this.")
@click.option("--tol", default=0.01, show_default=True, help="Certified gap of every candidate.")
@click.option("--mnist", envvar="DTSVM_MNIST", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--data", envvar="DTSVM_DATA", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--r-sets",
    envvar="DTSVM_R_SETS",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where `python -m benchmarks.r_sets DIR` wrote its sets.",
)
@click.pass_context
def main(ctx: click.Context, splits: int, only: str, tol: float, **folders: Path) -> None:
    """Measure splits that are not in the results yet, then write docs/transfer.md."""
    if ctx.invoked_subcommand:
        return
    sets = {**SETS, **FRESH} | ({**R_DECIDING, **R_CONFIRMING} if folders["r_sets"] else {})
    for seed in range(splits):
        for name, draw in sets.items():
            if only in name:
                _measure_one(name, draw, seed, tol, Places(**folders))
    click.echo(f"wrote {write()}")


@main.command("poison")
@click.option("--splits", default=20, show_default=True)
@click.option("--only", default="", help="Sets whose name contains this.")
@click.pass_context
def poison_command(ctx: click.Context, splits: int, only: str) -> None:
    """Measure what tasks with random labels do to the others."""
    places, done = _places(ctx), {(x["set"], x["seed"]) for x in read(POISONED)}
    for seed in range(splits):
        for name in LIARS:
            if only in name and (name, seed) not in done:
                _keep(POISONED, poison(places, name, seed))


@main.command("oracle")
@click.option("--splits", default=20, show_default=True)
@click.option("--only", default="", help="Sets whose name contains this.")
@click.pass_context
def oracle_command(ctx: click.Context, splits: int, only: str) -> None:
    """Measure what could be done about them, were honest tasks' error rates known."""
    places, done = _places(ctx), {(x["set"], x["seed"]) for x in read(ORACLES)}
    for seed in range(splits):
        for name in LIARS:
            if only in name and (name, seed) not in done:
                _keep(ORACLES, oracle(places, name, seed))


@main.command("cost")
@click.option("--tol", default=0.05, show_default=True)
@click.option("--only", default="", help="Sets whose name contains this.")
@click.pass_context
def cost_command(ctx: click.Context, tol: float, only: str) -> None:
    """Measure one choice on a ring of 8 nodes beside one fit."""
    for name in COSTLY:
        if only in name:
            _keep(COSTS, cost(_places(ctx), name, tol))


@main.command("sensors")
@click.option("--splits", default=10, show_default=True)
@click.option("--rings", default=1, show_default=True, help="Of these, so many over a ring, too.")
@click.option("--tol", default=0.05, show_default=True)
@click.pass_context
def sensors_command(ctx: click.Context, splits: int, rings: int, tol: float) -> None:
    """Measure 23 vehicle sensors that are each a node and a task of their own."""
    done = {line["seed"] for line in read(OWN_TASKS)}
    for seed in (seed for seed in range(splits) if seed not in done):
        rows = SENSORS(_places(ctx), seed)
        problem = Posed(rows, seed, tol)
        found = {**by_hand(problem), **chosen(problem)}
        if seed < rings:
            found["over a ring"] = over_a_ring(rows, seed, tol)
        errors = {way: _errors(u, rows) for way, u in found.items()}
        _keep(OWN_TASKS, {"seed": seed, "tol": tol, "rows": len(rows.y), "errors": errors})


def over_a_ring(rows: Split, seed: int, tol: float) -> np.ndarray:
    """Return what the same number of nodes on a ring, each with one task, choose in rounds."""
    network, fold = Network.ring(int(rows.task.max()) + 1), split(rows.y, rows.task, 3, seed)
    clf = DTSVMCV(network, folds=fold, tol=tol, max_rounds=2000, n_jobs=1)
    clf.fit(rows.X, rows.y, task=rows.task, node=rows.task)
    return np.column_stack([clf.coef_, clf.intercept_])


def _places(ctx: click.Context) -> Places:
    params = ctx.parent.params if ctx.parent else {}
    return Places(params["data"], params["mnist"], params["r_sets"])


def _keep(path: Path, found: dict[str, Any]) -> None:
    FOLDER.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(found) + "\n")
    click.echo(json.dumps(found, ensure_ascii=False))


@main.command()
def table() -> None:
    """Write docs/transfer.md from the results."""
    click.echo(f"wrote {write()}")


def _measure_one(
    name: str, draw: Callable[[Places, int], Split], seed: int, tol: float, places: Places
) -> None:
    """Measure what is not in the results yet; by hand and chosen are kept apart."""
    paths = {BY_HAND_RESULTS: by_hand, CHOSEN_RESULTS: chosen}
    is_done = {
        path: any((x["set"], x["seed"]) == (name, seed) for x in read(path)) for path in paths
    }
    if all(is_done.values()):
        return
    try:
        rows = draw(places, seed)
    except MissingData as missing:
        click.echo(f"{name} skipped: {missing}")
        return
    problem = Posed(rows, seed, tol)
    for path in (path for path in paths if not is_done[path]):
        started = time.perf_counter()
        errors = {way: _errors(u, rows) for way, u in paths[path](problem).items()}
        line = {"set": name, "seed": seed, "tol": tol, "errors": errors,
                "seconds": time.perf_counter() - started}  # fmt: skip
        FOLDER.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        means = ", ".join(f"{way} {macro([line], way).mean():.1f}" for way in errors)
        click.echo(f"{name}, split {seed}: {means} ({line['seconds']:.0f} s)")


# One split


class Posed:
    """A split as a problem, and a trainer that trains nothing twice."""

    def __init__(self, rows: Split, seed: int, tol: float) -> None:
        n_tasks = int(rows.task.max()) + 1
        square, n = moments(rows.X).tolist()
        fold = split(rows.y, rows.task, 3, seed)
        self.held = Held(rows.X, rows.y, rows.task, fold, n_tasks, 3)
        where = [0], np.zeros(len(rows.y), np.int64)
        lanes = Lanes(self.held, where, Network([0], []), square / n, tol, 2000, 1)
        self.train = Remembered(lanes)
        self.candidates = candidates(SMALL, n_tasks=n_tasks, mean_square=square / n)


def by_hand(problem: Posed) -> dict[str, np.ndarray]:
    """Return every task's classifier (task, p + 1) by the three ways by hand."""
    prices = sorted({c.C for c in problem.candidates})
    return tune_by_hand(problem.held, problem.train, prices)


def chosen(problem: Posed) -> dict[str, np.ndarray]:
    """Return every task's classifier as chosen, and with the guard."""
    held, some, train = problem.held, problem.candidates, problem.train
    return {
        way: choose(held, some, train, reference=1, guard=guard).classifiers
        for way, guard in (("chosen", None), ("guarded", "alone"))
    }


class Remembered:
    """A trainer that trains nothing twice."""

    def __init__(self, train: Lanes) -> None:
        self.train = train
        self.known: dict[Any, np.ndarray] = {}

    def __call__(self, jobs: list[Job]) -> list[np.ndarray]:
        """Train what is new, remember it, and give all."""
        keys = [self._key(job) for job in jobs]
        new = {key: job for key, job in zip(keys, jobs, strict=True) if key not in self.known}
        if new:
            self.known.update(zip(new, self.train(list(new.values())), strict=True))
        return [self.known[key] for key in keys]

    @staticmethod
    def _key(job: Job) -> tuple[Any, ...]:
        lanes = tuple((lane.rows.tobytes(), lane.side.tobytes()) for lane in job.lanes)
        return (*job.candidate.family[:2], job.candidate.C, lanes)


def tune_by_hand(held: Held, train: Remembered, prices: list[float]) -> dict[str, np.ndarray]:
    """Return classifiers (task, p + 1) with the fewest held-out errors, ties to the smaller C."""
    families = {
        "alone": [Family("task", 1.0)],
        "one for all": [Family("common", 0.0)],
        "multi-task": [Family("task", theta) for theta in THETAS],
    }
    return {
        way: _tune(held, train, [Candidate(f, C) for C in prices for f in some], way == "alone")
        for way, some in families.items()
    }


def _tune(held: Held, train: Remembered, some: list[Candidate], by_task: bool) -> np.ndarray:
    plain = np.ones(held.n_tasks)
    folds = [Lane(np.flatnonzero(held.fold != k), plain) for k in range(held.n_folds)]
    trained = np.stack(train([Job(candidate, folds) for candidate in some]))
    wrong = (out_of_fold(held, trained) > 0) != (held.y > 0)[:, None]
    rates = np.stack([wrong[held.task == t].mean(axis=0) for t in range(held.n_tasks)])
    best = rates.argmin(axis=1) if by_task else np.full(held.n_tasks, rates.mean(axis=0).argmin())
    everything = [Lane(np.arange(len(held.y)), plain)]
    used = {m: train([Job(some[m], everything)])[0][0] for m in np.unique(best).tolist()}
    return np.stack([used[m][t] for t, m in enumerate(best.tolist())])


def _errors(u: np.ndarray, rows: Split) -> list[float | None]:
    score = (rows.X_test * u[rows.task_test, :-1]).sum(axis=1) + u[rows.task_test, -1]
    wrong = (score > 0) != (rows.y_test > 0)
    by_task = [wrong[rows.task_test == t] for t in range(len(u))]
    return [float(mine.mean()) if len(mine) else None for mine in by_task]


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.transfer")
