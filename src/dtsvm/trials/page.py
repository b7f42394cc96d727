"""Results to one HTML page: nothing outside it is asked for, and it opens from disk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from dtsvm.trials import table1
from dtsvm.trials.campaign import Result
from dtsvm.trials.intervals import Claim, Finding, Verdict, verdict
from dtsvm.trials.picture import INK, PAPER, RULE
from dtsvm.trials.regimes import Regime

__all__ = ["inline_svg", "render"]

SIGNS = {
    Verdict.HOLDS: ("holds", "✓ holds"),
    Verdict.FAILS: ("fails", "✗ does not hold"),
    Verdict.UNDECIDED: ("undecided", "? undecided"),
}


def render(
    results: Sequence[Result],
    regimes: Sequence[Regime],
    pictures: Mapping[str, str],
    facts: Mapping[str, Any],
) -> str:
    """Return the page: what was claimed, what was measured, every picture."""
    style = resources.files("dtsvm.trials").joinpath("page.css").read_text("utf-8")
    claims = [claim for result in results for claim in result.claims]
    body = [
        "<h1>The paper’s experiments, measured</h1>",
        _opening(claims, regimes, facts),
        '<div class="cards">',
        *(_regime_card(regime) for regime in regimes),
        "</div>",
        "<nav>" + " ".join(_link(f"#{r.experiment.name}", r.experiment.name) for r in results),
        "</nav>",
        *(_claims(claims) if claims else ()),
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
    colours = {INK: "currentColor", RULE: "var(--rule)", PAPER: "none"}
    text = svg[start:]
    for colour, meaning in colours.items():
        text = text.replace(colour, meaning)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(words)}" ', 1)


def _opening(claims: Sequence[Claim], regimes: Sequence[Regime], facts: Mapping[str, Any]) -> str:
    counts = []
    for regime in regimes:
        of = [claim.verdict for claim in claims if claim.regime == regime.name]
        hold, fail, open_ = (of.count(kind) for kind in Verdict)
        told = f"{hold} hold, {fail} do not, {open_} stay undecided"
        counts.append(f"in the {regime.name} regime {told}")
    summary = f"Of {len(claims) // len(regimes)} claims: {'; '.join(counts)}. " if claims else ""
    quick = "A quick run: few repeats, so much stays undecided." if facts["is_quick"] else ""
    return (
        f"<p>{summary}{quick}</p><p>A claim is one or more differences that the paper says are "
        "below zero, mostly of risks in percentage points. It holds when all their 95 % intervals "
        "over the repeats, paired by draw, lie below zero; it does not hold when one lies wholly "
        "at or above zero. The paper does not say how its images were scaled, and the scale "
        "decides much: so everything is measured in two regimes, and no setting changes from one "
        "figure to the next but those in the captions.</p>"
    )


def _regime_card(regime: Regime) -> str:
    words = escape(regime.words)
    return f'<div class="card"><strong>{regime.name} regime</strong><br>{words}</div>'


def _claims(claims: Sequence[Claim]) -> list[str]:
    by_sentence: dict[tuple[str, str], list[Claim]] = {}
    for claim in claims:
        by_sentence.setdefault((claim.source, claim.sentence), []).append(claim)
    parts = ['<h2 id="claims">What the paper says, shortened, and what was measured</h2>']
    for (source, sentence), those in by_sentence.items():
        cards = "".join(_claim_card(claim) for claim in those)
        parts.append(
            f'<div class="claim"><b>{escape(sentence)}</b> <span class="soft">'
            f'{_link("#" + source, source)}</span><div class="cards">{cards}</div></div>'
        )
    return parts


def _claim_card(claim: Claim) -> str:
    """The verdict, the difference that decides it, and the others behind a click."""
    ranked = sorted(claim.findings, key=lambda finding: -finding.difference.low)
    if claim.verdict is not Verdict.FAILS:
        ranked.sort(key=lambda finding: -finding.difference.high)
    first, *others = ranked
    more = ""
    if others:
        items = "".join(f"<li>{_finding(finding)}</li>" for finding in others)
        more = f"<details><summary>{len(others)} more</summary><ul>{items}</ul></details>"
    return (
        f'<div class="card"><strong>{claim.regime}</strong>: {_mark(claim.verdict)}'
        f'<div class="soft">{_finding(first)}</div>{more}</div>'
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


def _section(result: Result, regimes: Sequence[Regime], svg: str) -> str:
    experiment = result.experiment
    name = experiment.name
    files = " · ".join(_link(f"{name}.{kind}", kind.upper()) for kind in ("csv", "png", "svg"))
    extra = _table1(result, regimes) if name == "table1" else ""
    return (
        f'<h2 id="{name}">{escape(experiment.title)}</h2>{extra}<figure><div class="wide">'
        f"{inline_svg(svg, name, experiment.title)}</div><figcaption>{escape(experiment.caption)} "
        f"Repeats: {result.n_repeats} in each regime. {files}</figcaption></figure>"
    )


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
