"""The command: run cases, keep their results as JSON lines, write the table."""

from __future__ import annotations

import time
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from benchmarks import results, table
from benchmarks.registry import CASES, load
from benchmarks.settings import MissingData, Settings

console = Console(highlight=False)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("cases", nargs=-1, type=click.Choice([*CASES, "table"]), metavar="[CASE]...")
@click.option("--quick", is_flag=True, help="Tiny sizes: does it run? Its numbers mean nothing.")
@click.option("--repeats", type=click.IntRange(1), help="Timed repeats; 7 by default, 2 if quick.")
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--mnist",
    envvar="DTSVM_MNIST",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory of the four MNIST files (or DTSVM_MNIST).",
)
@click.option(
    "--data",
    envvar="DTSVM_DATA",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory of vehicle.npz (or DTSVM_DATA).",
)
def main(
    cases: tuple[str, ...],
    quick: bool,
    repeats: int | None,
    seed: int,
    mnist: Path | None,
    data: Path | None,
) -> None:
    """Run benchmark CASEs, all by default; `table` writes docs/benchmarks.md from what was kept."""
    wanted = [name for name in cases if name != "table"] or ([] if cases else list(CASES))
    settings = Settings(quick, repeats or (2 if quick else 7), seed, mnist, data)
    for name in wanted:
        run_case(name, settings)
    if wanted and quick:
        console.print("Quick results are kept apart: they never reach docs/benchmarks.md.")
    elif "table" in cases or not cases:
        console.print(f"wrote {table.write()}")


def run_case(name: str, settings: Settings) -> None:
    console.rule(name)
    started = time.perf_counter()
    try:
        found = load(name).run(settings)
    except MissingData as missing:
        console.print(f"[yellow]skipped:[/] {missing}")
        return
    results.keep(name, found, settings, seconds=time.perf_counter() - started)
    for result in found:
        console.print(escape(table.sentence(result)))
    console.print(f"[dim]{name}: {time.perf_counter() - started:.1f} s[/]")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
