"""Results to files: pictures, tables, one JSON and the page that shows them all."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dtsvm
from dtsvm.trials.campaign import Campaign, Result
from dtsvm.trials.intervals import Claim
from dtsvm.trials.lead import draw_gains, gains
from dtsvm.trials.page import render
from dtsvm.trials.picture import save
from dtsvm.trials.tables import Table

__all__ = ["write_report"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")
CLAIM_COLUMNS = ("experiment", "claim", "regime", "finding", "mean", "low", "high", "repeats",
                 "verdict")  # fmt: skip


def write_report(
    folder: Path,
    campaign: Campaign,
    results: Sequence[Result],
    seconds: float,
    watch: Callable[[str], object] = lambda name: None,
) -> Path:
    """Write everything; return the page.

    Parameters
    ----------
    folder : Path
        Where; made if it is not there. Files of the same names are replaced.
    campaign : Campaign
        What was asked for.
    results : sequence of Result
        What came out.
    seconds : float
        How long the experiments took.
    watch : callable, optional
        Called with an experiment's name once it is drawn.

    Returns
    -------
    Path
        index.html in `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for result in results:
        name = result.experiment.name
        result.table.write(folder / f"{name}.csv")
        save(result.experiment.draw(result.table), folder / name)
        watch(name)
    claims = [claim for result in results for claim in result.claims]
    lead = gains(claims)
    if lead:
        save(draw_gains(lead), folder / "lead")
    _claims_table(claims).write(folder / "claims.csv")
    facts = _facts(campaign, results, seconds)
    text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    (folder / "report.json").write_text(text, encoding="utf-8")
    pictures = {
        result.experiment.name: (folder / f"{result.experiment.name}.svg").read_text("utf-8")
        for result in results
    }
    if lead:
        pictures["lead"] = (folder / "lead.svg").read_text("utf-8")
    page = folder / "index.html"
    page.write_text(render(results, campaign.regimes, pictures, facts), encoding="utf-8")
    return page


def _claims_table(claims: Sequence[Claim]) -> Table:
    rows = [
        (claim.source, claim.sentence, claim.regime, what, mean, low, high, n, str(claim.verdict))
        for claim in claims
        for what, (mean, low, high, n), _ in claim.findings
    ]
    return Table(CLAIM_COLUMNS, rows)


def _facts(campaign: Campaign, results: Sequence[Result], seconds: float) -> dict[str, Any]:
    return {
        "seed": campaign.seed,
        "is_quick": campaign.is_quick,
        "jobs": campaign.jobs,
        "seconds": round(seconds, 1),
        "versions": {
            "dtsvm": dtsvm.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
        "platform": platform.platform(),
        "regimes": [
            {"name": r.name, "scale": r.scale, "labels": r.labels} for r in campaign.regimes
        ],
        "experiments": [
            {
                "name": result.experiment.name,
                "numbers_of": result.experiment.source,
                "repeats": result.n_repeats,
                "seconds": round(result.seconds, 1),
                "parameters": result.experiment.parameters,
            }
            for result in results
        ],
        "claims": [_claim_facts(claim) for result in results for claim in result.claims],
    }


def _claim_facts(claim: Claim) -> dict[str, Any]:
    def known(value: float) -> float | None:
        return round(value, 4) if abs(value) < float("inf") else None

    return {
        "experiment": claim.source,
        "claim": claim.sentence,
        "regime": claim.regime,
        "verdict": str(claim.verdict),
        "findings": [
            {"what": what, "mean": known(d.mean), "low": known(d.low), "high": known(d.high)}
            for what, d, _ in claim.findings
        ],
    }
