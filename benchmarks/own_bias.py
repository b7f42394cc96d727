"""How free a task's own bias is, and what that does to errors: what `select.lift.FREEDOM` is for.

    DTSVM_DATA=… DTSVM_MNIST=… python -m benchmarks.own_bias [--splits 20] [--only heart]

Every set's choice on pooled rows with a constant whose square is 3, 1 and 0.3 mean squared rows,
all trained to a gap of 0.05, on the same splits and folds: macro error in %, and the difference to
the first with its standard error. A longer constant takes more rounds.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from benchmarks.settings import MissingData
from benchmarks.transfer_sets import FRESH, SETS, Places, Split
from benchmarks.transfer_ways import Posed, errors
from dtsvm.select import choose, lift

VALUES = (3.0, 1.0, 0.3)


def macro_errors(rows: Split, seed: int) -> list[float]:
    """Return the chosen classifiers' macro error with each freedom."""
    out = []
    for value in VALUES:
        lift.FREEDOM = value
        problem = Posed(rows, seed, 0.05)
        found = choose(problem.held, problem.candidates, problem.train, reference=1)
        out.append(100 * float(np.nanmean(np.array(errors(found.classifiers, rows), float))))
    return out


@click.command()
@click.option("--splits", default=20, show_default=True, help="Random splits of every set.")
@click.option("--only", default="", help="Sets whose name contains this.")
@click.option("--mnist", envvar="DTSVM_MNIST", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--data", envvar="DTSVM_DATA", type=click.Path(path_type=Path), metavar="DIR")
def main(splits: int, only: str, mnist: Path, data: Path) -> None:
    """Measure and print."""
    for name, draw in {**SETS, **FRESH}.items():
        if only not in name:
            continue
        try:
            each = [macro_errors(draw(Places(data, mnist), seed), seed) for seed in range(splits)]
        except MissingData as missing:
            click.echo(f"{name} skipped: {missing}")
            continue
        found = np.array(each)
        less = found[:, 1:] - found[:, :1]
        wide = less.std(axis=0, ddof=1) / len(less) ** 0.5 if len(less) > 1 else 0 * less[0]
        said = [f"{d:+.2f} ± {e:.2f}" for d, e in zip(less.mean(axis=0), wide, strict=True)]
        click.echo(f"{name}, {splits} splits: {found.mean(axis=0).round(2).tolist()}, "
                   f"{', '.join(said)} points")  # fmt: skip


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.own_bias")
