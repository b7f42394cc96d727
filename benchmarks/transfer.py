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
from benchmarks.transfer_ways import Posed, by_hand, chosen, errors, told
from dtsvm import DTSVMCV, Network
from dtsvm.select import split


@click.group(invoke_without_command=True)
@click.option("--splits", default=20, show_default=True, help="Random splits of every set.")
@click.option("--only", default="", help="Sets whose name contains this.")
@click.option("--tol", default=0.05, show_default=True, help="Certified gap of every candidate.")
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
        wrong = {way: errors(u, rows) for way, u in found.items()}
        _keep(OWN_TASKS, {"seed": seed, "tol": tol, "rows": len(rows.y), "errors": wrong})


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
        wrong = {way: errors(u, rows) for way, u in paths[path](problem).items()}
        if path == CHOSEN_RESULTS:
            seen = zip(told(problem), wrong["chosen"], strict=True)
            wrong["told"] = [None if new is None else held for held, new in seen]
        line = {"set": name, "seed": seed, "tol": tol, "errors": wrong,
                "seconds": time.perf_counter() - started}  # fmt: skip
        FOLDER.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        means = ", ".join(f"{way} {macro([line], way).mean():.1f}" for way in wrong)
        click.echo(f"{name}, split {seed}: {means} ({line['seconds']:.0f} s)")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.transfer")
