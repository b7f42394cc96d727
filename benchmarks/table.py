"""The table: docs/benchmarks.md from the JSON lines; verdicts are computed here only."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.registry import CASES, load

__all__ = ["sentence", "verdict", "write"]

PAGE = results.ROOT / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Written by `python -m benchmarks table` from the results of `python -m benchmarks`; edit neither
numbers nor verdicts here. We and the rival run in one process run and take turns; values are
medians over the repeats. *Target* is what we hold ourselves to, *dream* what we hope for.
Sections whose versions name numba were measured on an earlier kernel: the rounds are the same, the
seconds are not.
"""
NOT_RUN = "Not run yet."
COLUMNS = ("measured", "ours", "rival", "value", "target", "dream", "verdict", "")


def write() -> Path:
    """Write the page; return where it is. What was not run here stays as it stands there."""
    kept, standing = results.read(), _standing()
    parts = [HEAD]
    for case, title in CASES.items():
        if case not in kept and NOT_RUN not in standing.get(title, NOT_RUN):
            parts.append(standing[title])
            continue
        _, how = inspect.getdoc(load(case)).split("\n\n", 1)
        parts.append(f"## {title}\n\n`{case}`. {how}\n")
        parts.append(_case(kept[case]) if case in kept else f"{NOT_RUN}\n")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(parts))
    return PAGE


def _standing() -> dict[str, str]:
    """The sections of the page as it is, by title."""
    if not PAGE.exists():
        return {}
    _, *sections = PAGE.read_text().split("\n## ")
    return {text.split("\n", 1)[0]: f"## {text.rstrip()}\n" for text in sections}


def verdict(result: dict[str, Any]) -> str:
    """Judge a result: dream, met or missed."""
    value, bound = result["value"], result["bound"]
    if bound is None or result["target"] is None:
        return ""
    if value is None:
        return "missed"

    def reaches(level: float | None) -> bool:
        if level is None:
            return False
        return value <= level if bound == "at most" else value >= level

    if reaches(result["dream"]):
        return "dream"
    return "met" if reaches(result["target"]) else "missed"


def sentence(result: dict[str, Any]) -> str:
    """Sum a result up in a line of the terminal."""
    cells = [cell for cell in _cells(result)[1:3] if cell]
    sides = f" ({' against '.join(cells)})" if cells else ""
    target = f", target {_target(result)}" if result["target"] is not None else ""
    judged = f": {verdict(result)}" if verdict(result) else ""
    note = f" [{result['note']}]" if result["note"] else ""
    value = _number(result["value"], result["unit"]) or "not reached"
    return f"{result['name']}: {value}{sides}{target}{judged}{note}"


def _case(found: list[dict[str, Any]]) -> str:
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    lines += [f"| {' | '.join(_cells(result))} |" for result in found]
    first = found[0]
    versions = ", ".join(f"{name} {number}" for name, number in first["versions"].items())
    changed = " with changes" if first["is_dirty"] else ""
    about = (
        f"{first['run'][:10]}, commit {first['commit']}{changed}, {first['machine']}, "
        f"seed {first['seed']}, {first['repeats']} repeats, {first['case_seconds']:.0f} s in all, "
        f"load average {first['load_average']:.1f}; {versions}."
    )
    return "\n".join([*lines, "", about, ""])


def _cells(result: dict[str, Any]) -> list[str]:
    sides = result["sides"]
    return [
        result["name"],
        _number(result["ours"], sides),
        _number(result["rival"], sides),
        f"**{_number(result['value'], result['unit']) or 'not reached'}**",
        _target(result),
        _number(result["dream"], result["unit"]),
        verdict(result),
        result["note"],
    ]


def _target(result: dict[str, Any]) -> str:
    if result["target"] is None:
        return ""
    sign = "≤" if result["bound"] == "at most" else "≥"
    return f"{sign} {_number(result['target'], result['unit'])}"


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "s":
        for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
            if value >= size:
                return f"{_digits(value / size)} {name}"
    return f"{_digits(value)}{'' if unit == 'x' else ' '}{unit.replace('x', '×')}"


def _digits(value: float) -> str:
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
