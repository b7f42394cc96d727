"""`dtsvm reproduce`: the paper's experiments in, a folder with a report out."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dtsvm.kernel import VARIANT
from dtsvm.trials import EXPERIMENTS
from dtsvm.trials.campaign import Campaign, Result, run_campaign
from dtsvm.trials.picture import need_matplotlib
from dtsvm.trials.regimes import REGIMES
from dtsvm.trials.report import write_report
from dtsvm.ui.show import print_table

__all__ = ["reproduce"]

SMALL, SMALL_REPEATS = ("table1", "fig6"), 8  # a first look where nothing was compiled


@click.command()
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option(
    "--quick", "is_quick", is_flag=True, help="Just enough repeats to decide most claims."
)
@click.option(
    "--regime",
    type=click.Choice([*REGIMES, "both"]),
    default="both",
    show_default=True,
    help="How digits become rows where the paper does not say.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("report"),
    show_default=True,
    help="Folder of the report.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed.")
@click.option("--repeats", type=click.IntRange(1), help="Repeats, instead of the paper's number.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=lambda: min(os.cpu_count() or 1, 8),
    show_default="one a core",
    help="Processes; the numbers do not depend on it.",
)
def reproduce(
    experiments: tuple[str, ...],
    is_quick: bool,
    regime: str,
    out: Path,
    seed: int,
    repeats: int | None,
    jobs: int,
) -> None:
    """Run the paper's experiments and write a report.

    EXPERIMENT is fig2, fig3, fig4, fig5, fig6, table1, fig7 or all; all by default. The report is a
    folder: index.html, and for each experiment its picture (PNG, SVG) and its numbers (CSV).

    \b
    A first look, in a minute or two:
      dtsvm reproduce all --quick
    """  # noqa: D301
    need_matplotlib()
    if VARIANT == "python" and is_quick and not set(experiments) - {"all"}:
        experiments, repeats = SMALL, repeats or SMALL_REPEATS
        click.echo(
            f"Uncompiled, a first look is small: {' and '.join(SMALL)}, {repeats} repeats each. "
            "Name an experiment to run it all the same.",
            err=True,
        )
    campaign = Campaign(experiments or ("all",), regime, seed, repeats, is_quick, jobs)
    chosen = campaign.experiments
    started = time.perf_counter()
    with _bars() as bars:
        lines = {e.name: bars.add_task(EXPERIMENTS[e.name].title, total=None) for e in chosen}

        def watch(name: str, done: int, total: int) -> None:
            bars.update(lines[name], completed=done, total=total)

        results = run_campaign(campaign, watch)
        drawing = bars.add_task("Pictures and page", total=len(chosen))
        seconds = time.perf_counter() - started
        page = write_report(out, campaign, results, seconds, lambda name: bars.advance(drawing))
    _print_verdicts(results)
    click.echo(f"{page.resolve()}")


def _bars() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )


def _print_verdicts(results: list[Result]) -> None:
    """Print a line a claim, narrow enough for a terminal of 80 columns."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for claim in (claim for result in results for claim in result.claims):
        line = rows.setdefault((claim.source, claim.short or claim.sentence), {})
        line[claim.regime] = str(claim.verdict)
    if rows:
        regimes = list(next(iter(rows.values())))
        print_table(
            ["", "claim", *regimes], [[*key, *line.values()] for key, line in rows.items()], 4
        )
