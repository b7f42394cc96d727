"""The leading picture: what training together gained or cost, in every setting measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dtsvm.trials.intervals import Claim, Interval
from dtsvm.trials.picture import INK, canvas, styled
from dtsvm.trials.tables import Table

__all__ = ["HELPS", "HURTS", "Gain", "draw_gains", "gains"]

HELPS, HURTS = "#007a56", "#b3441c"
REGIME_MARKERS = {"paper": "s", "standard": "o"}
NAME_WIDTH = 5.0  # percentage points


class Gain(NamedTuple):
    """Risk together less risk apart, in one setting and regime; below zero it helped."""

    setting: str
    regime: str
    difference: Interval


def gains(claims: Sequence[Claim]) -> list[Gain]:
    """Return what the claims measured of training together, in their order, each setting once."""
    found = {
        (finding.lead, claim.regime): Gain(finding.lead, claim.regime, finding.difference)
        for claim in claims
        for finding in claim.findings
        if finding.lead
    }
    return list(found.values())


def draw_gains(found: Sequence[Gain]) -> Any:
    """Draw every setting as a line of the regimes' differences with their 95 % intervals."""
    return _draw(Table(("setting", "regime", "mean", "low", "high"), [
        (gain.setting, gain.regime, gain.difference.mean, _near(gain.difference.low),
         _near(gain.difference.high)) for gain in found
    ]))  # fmt: skip


def _near(limit: float) -> float:
    """A single repeat has no limits; the picture then shows its dot alone."""
    return limit if np.isfinite(limit) else np.nan


@styled
def _draw(table: Table) -> Any:
    settings = sorted(table.levels("setting"), key=lambda s: table.where(setting=s)["mean"].min())
    figure, axes = canvas(1, 1, width=9.5, height=1.2 + 0.36 * len(settings))
    axis = axes[0, 0]
    axis.axvline(0, color=INK, lw=1)
    for y, setting in enumerate(reversed(settings)):
        for k, regime in enumerate(table.levels("regime")):
            at = table.where(setting=setting, regime=regime)
            if len(at):
                _draw_one(axis, y + 0.17 * (0.5 - k) * 2, regime, at)
    axis.set_yticks(range(len(settings)), list(reversed(settings)))
    axis.grid(visible=False, axis="y")
    axis.set_ylim(-0.7, len(settings) - 0.1)
    low, high = axis.get_xlim()
    axis.set_xlim(min(low, -5), max(high, 5))
    axis.set_xlabel("risk trained together − risk trained apart, percentage points, 95 % interval")
    top = len(settings) - 0.35
    axis.text(-0.4, top, "← together is better", color=HELPS, ha="right", weight="bold")
    axis.text(0.4, top, "apart is better →", color=HURTS, ha="left", weight="bold")
    return figure


def _draw_one(axis: Any, y: float, regime: str, at: Table) -> None:
    mean, low, high = (float(at[name][0]) for name in ("mean", "low", "high"))
    colour = HELPS if high < 0 else HURTS if low > 0 else INK
    axis.plot([low, high], [y, y], color=colour, lw=1.5)
    axis.plot([mean], [y], REGIME_MARKERS.get(regime, "D"), color=colour, ms=6)
    left, right = np.nanmin([mean, low]), np.nanmax([mean, high])
    is_left = -NAME_WIDTH < right < 0  # to the right the name would stand on the line at zero
    axis.annotate(regime, (left if is_left else right, y), xytext=(-6 if is_left else 6, 0),
                  textcoords="offset points", ha="right" if is_left else "left", va="center",
                  fontsize=7.5, color=colour)  # fmt: skip
