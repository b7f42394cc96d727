"""Results to one HTML page: nothing outside it is asked for, and it opens from disk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from dtsvm.trials import table1
from dtsvm.trials.campaign import Result
from dtsvm.trials.intervals import NEGLIGIBLE, Claim, Finding, Verdict, verdict
from dtsvm.trials.lead import HELPS, HURTS, Gain, gains
from dtsvm.trials.picture import INK, PAPER, RULE
from dtsvm.trials.regimes import Regime

__all__ = ["inline_svg", "render"]

SIGNS = {
    Verdict.HOLDS: ("holds", "✓ holds"),
    Verdict.FAILS: ("fails", "✗ does not hold"),
    Verdict.UNDECIDED: ("undecided", "? undecided"),
}
WHAT = (
    "DTSVM trains related linear classifiers over a network that has no centre. Every node keeps "
    "its rows; neighbours exchange decision variables only; and the network ends at the "
    "classifiers that pooling all rows would have given. Related tasks share a common part, so a "
    "task with few or lopsided rows can lean on one that has many. Where a task has plenty of rows "
    "of its own there is little to gain, and leaning on others can cost."
)
WORDS = "Risk trained together less risk trained apart, in every setting measured"


def render(
    results: Sequence[Result],
    regimes: Sequence[Regime],
    pictures: Mapping[str, str],
    facts: Mapping[str, Any],
) -> str:
    """Return the page: when it helps, every claim's verdict, every picture."""
    style = resources.files("dtsvm.trials").joinpath("page.css").read_text("utf-8")
    claims = [claim for result in results for claim in result.claims]
    body = [
        "<h1>When does training together help?</h1>",
        f"<p>{WHAT}{_extremes(gains(claims))}</p>",
        *(_lead(pictures["lead"]) if "lead" in pictures else ()),
        *(_matrix(claims, regimes) if claims else ()),
        _reading(regimes),
        *(_section(result, regimes, pictures[result.experiment.name]) for result in results),
        _closing(facts),
    ]
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>dtsvm: the paper’s experiments</title><style>{style}</style></head><body>"
    )
    return head + "\n".join(body) + "</body></html>\n"


def inline_svg(svg: str, name: str, words: str) -> str:
    """Return a picture to put into the page: its ink follows the page, its ids are its own."""
    start = svg.index("<svg")
    colours = {
        INK: "currentColor",
        RULE: "var(--rule)",
        PAPER: "none",
        HELPS: "var(--holds)",
        HURTS: "var(--fails)",
    }
    text = svg[start:]
    for colour, meaning in colours.items():
        text = text.replace(colour, meaning)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(words)}" ', 1)


# When it helps


def _extremes(found: Sequence[Gain]) -> str:
    """Word the largest gain and the largest cost that are surely not zero."""
    sure = [g for g in found if g.difference.high < 0 or g.difference.low > 0]
    best = min(sure, key=lambda g: g.difference.mean, default=None)
    worst = max(sure, key=lambda g: g.difference.mean, default=None)
    told = ""
    if best is not None and best.difference.mean < 0:
        told += f" Measured here, the largest gain is {_setting(best)}"
        told += "." if worst is None or worst.difference.mean <= 0 else ""
    if worst is not None and worst.difference.mean > 0:
        told += f"{', the' if told else ' Measured here, the'} largest cost {_setting(worst)}."
    return told


def _setting(gain: Gain) -> str:
    points = f"{abs(gain.difference.mean):.1f} points"
    return f"<b>{points}</b> ({escape(gain.setting)}; {gain.regime} regime)"


def _lead(svg: str) -> list[str]:
    return [
        f'<figure><div class="wide">{inline_svg(svg, "lead", WORDS)}</div><figcaption>'
        "Every setting of the paper in which a task trains with another and without it, with the "
        f"same rows. {_link('lead.png', 'PNG')} · {_link('lead.svg', 'SVG')}</figcaption></figure>"
    ]


# What the paper says


def _by_sentence(claims: Sequence[Claim]) -> dict[tuple[str, str], dict[str, Claim]]:
    lines: dict[tuple[str, str], dict[str, Claim]] = {}
    for claim in claims:
        lines.setdefault((claim.source, claim.sentence), {})[claim.regime] = claim
    return lines


def _matrix(claims: Sequence[Claim], regimes: Sequence[Regime]) -> list[str]:
    """All claims and regimes on one screen."""
    heads = "".join(f'<th scope="col">{regime.name} regime</th>' for regime in regimes)
    rows = []
    for (source, sentence), line in _by_sentence(claims).items():
        short = next(iter(line.values())).short or sentence
        cells = "".join(f"<td>{_mark(line[regime.name].verdict)}</td>" for regime in regimes)
        rows.append(
            f'<tr><th scope="row" title="{escape(sentence)}">{escape(short)}</th>'
            f"<td>{_link('#' + source, source)}</td>{cells}</tr>"
        )
    return [
        f'<h2 id="claims">What the paper says: {_count(claims, regimes)}</h2>',
        '<div class="wide"><table class="matrix"><thead><tr><th scope="col">claim, in short</th>'
        f'<th scope="col">from</th>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
        "</div>",
    ]


def _count(claims: Sequence[Claim], regimes: Sequence[Regime]) -> str:
    counts = []
    for regime in regimes:
        of = [claim.verdict for claim in claims if claim.regime == regime.name]
        hold = of.count(Verdict.HOLDS)
        counts.append(f"{hold} of {len(of)} claims hold in the {regime.name} regime")
    return ", ".join(counts)


def _reading(regimes: Sequence[Regime]) -> str:
    cards = "".join(
        f'<div class="card"><strong>{regime.name} regime</strong><br>{escape(regime.words)}</div>'
        for regime in regimes
    )
    return (
        "<details><summary>How to read this</summary><p>A claim is one or more differences that "
        "the paper says are below zero, mostly of risks in percentage points. It holds when all "
        "their 95 % intervals over the repeats, paired by draw, lie below zero. It does not hold "
        f"when one of them leaves no room for a gain of {NEGLIGIBLE:g} points, fewer than two of "
        "1,800 test rows. Fewer than five repeats decide nothing, nor do repeats that are all the "
        "same. The paper does not say how its images were scaled, and the scale decides much: so "
        "everything is measured in two regimes, and no setting changes from one figure to the "
        f'next but those in the captions.</p><div class="cards">{cards}</div></details>'
    )


# Figure by figure


def _section(result: Result, regimes: Sequence[Regime], svg: str) -> str:
    experiment = result.experiment
    name = experiment.name
    files = " · ".join(_link(f"{name}.{kind}", kind.upper()) for kind in ("csv", "png", "svg"))
    extra = _table1(result, regimes) if name == "table1" else ""
    return (
        f'<section><h2 id="{name}">{escape(experiment.title)}</h2>{_conclusions(result)}{extra}'
        f'<figure><div class="wide">{inline_svg(svg, name, experiment.title)}</div><figcaption>'
        f"{escape(experiment.caption)} Repeats: {result.n_repeats} in each regime. {files}"
        f"</figcaption></figure></section>"
    )


def _conclusions(result: Result) -> str:
    """One sentence a claim: where it holds and where not; what decides it behind a click."""
    parts = []
    for (_, sentence), line in _by_sentence(result.claims).items():
        told = "; ".join(f"{name} regime: {_mark(claim.verdict)}" for name, claim in line.items())
        cards = "".join(_claim_card(claim) for claim in line.values())
        parts.append(
            f'<p class="conclusion"><b>{escape(sentence)}</b> {told}.</p>'
            f'<details><summary>what was measured</summary><div class="cards">{cards}</div>'
            "</details>"
        )
    return "".join(parts)


def _claim_card(claim: Claim) -> str:
    """A regime's verdict and all its differences, the one that decides first."""
    ranked = sorted(claim.findings, key=lambda finding: -finding.difference.low)
    if claim.verdict is not Verdict.FAILS:
        ranked.sort(key=lambda finding: -finding.difference.high)
    items = "".join(f"<li>{_finding(finding)}</li>" for finding in ranked)
    return (
        f'<div class="card"><strong>{claim.regime}</strong>: {_mark(claim.verdict)}'
        f"<ul>{items}</ul></div>"
    )


def _finding(finding: Finding) -> str:
    mean, low, high, n = finding.difference
    limits = f"[{low:+.2f}, {high:+.2f}]" if n > 1 else "one repeat, no interval"
    number = f"{mean:+.2f} {limits}".replace("-", "−")
    return (
        f'{escape(finding.what)}: <span class="number">{number}</span> '
        f"{_mark(verdict(finding.difference))}"
    )


def _mark(judged: Verdict) -> str:
    kind, words = SIGNS[judged]
    return f'<span class="verdict {kind}">{words}</span>'


def _table1(result: Result, regimes: Sequence[Regime]) -> str:
    heads = "".join(f"<th>{v + 1}</th>" for v in range(table1.N_NODES))
    rows = [
        _row(f"{side}, the paper’s table", *values, kind="paper")
        for side, values in table1.PAPER_TABLE.items()
    ]
    for regime in regimes:
        shown = result.table.where(regime=regime.name)
        for side in table1.SIDES:
            rows.append(_row(f"{side}, {regime.name} regime", *table1.summary(shown, side)))
    return (
        '<p class="soft">Risk of Task 2 in percent, mean ± STD, by node; G is their mean.</p>'
        f'<div class="wide"><table><thead><tr><th></th>{heads}<th>G</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(name: str, means: Iterable[float], stds: Iterable[float], kind: str = "ours") -> str:
    cells = "".join(f"<td>{m:.1f} ± {s:.1f}</td>" for m, s in zip(means, stds, strict=True))
    return f'<tr class="{kind}"><th>{escape(name)}</th>{cells}</tr>'


def _closing(facts: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return (
        f'<p class="soft">Seed {facts["seed"]}; {facts["seconds"]:g} s of experiments; {versions}. '
        f"Everything in numbers: {_link('report.json', 'report.json')}, "
        f"{_link('claims.csv', 'claims.csv')}.</p>"
    )


def _link(target: str, words: str) -> str:
    return f'<a href="{target}">{escape(words)}</a>'
