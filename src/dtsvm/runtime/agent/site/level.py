"""The level of privacy in a node's TOML file, and what does not go with it."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from dtsvm.errors import ParameterError, did_you_mean
from dtsvm.problem import Privacy

__all__ = ["read_privacy"]

SHARE = 0.1  # of a privacy budget, for sums before the first round and for those after the last
CHOOSING = 0.35  # of a privacy budget, for choosing C
CANDIDATES = (0.8, 0.2, 0.05)  # rows are no longer than 1, so these go from much to little noise


def read_privacy(path: Path, content: dict[str, Any]) -> Privacy:
    """Return the level; refuse what would tell of rows without noise."""
    given = content.get("privacy", {})
    known = [f.name for f in fields(Privacy)]
    for name in given if isinstance(given, dict) else [given]:
        if name not in known:
            raise ParameterError(f"{path}: [privacy] has {name!r}. {did_you_mean(name, known)}")
    found = Privacy.checked(str(path), **given)
    if found.level != "dp":
        return found
    if "prepare" in content and not found.ranges:
        raise ParameterError(
            f"{path}: under differential privacy a column's range must not be found by looking at "
            "rows. Write what every column may hold, such as age = [0, 120] or "
            'ward = ["north", "south"], under [privacy.ranges].'
        )
    found = _with_candidates(path, found, is_auto=content.get("settings", {}).get("C") == "auto")
    is_summed = "prepare" in content or content.get("class_weight") == "balanced"
    found = replace(
        found,
        preparation=(found.preparation or SHARE) if is_summed else 0.0,
        probability=(found.probability or SHARE) if content.get("probability") else 0.0,
    )
    if found.share <= 0:
        raise ParameterError(
            f"{path}: preparation, choosing and probabilities have {found.preparation:g}, "
            f"{found.choosing:g} and {found.probability:g} of the budget, which leaves nothing for "
            "rounds."
        )
    files: dict[str, str] = {}
    for task, lines in content["tasks"].items():
        twin = files.setdefault(str(lines.get("data", task)), task)
        if twin != task:
            raise ParameterError(
                f"{path}: tasks {twin!r} and {task!r} both read {lines['data']}, so that a row "
                "would be told of twice. Under differential privacy give every row to one task."
            )
        if len(lines.get("labels", ())) < 2:
            raise ParameterError(
                f"{path}: under differential privacy nobody is told which labels were found; write "
                f"those of task {task!r} as labels = [negative, positive], or all of several."
            )
    return found


def _with_candidates(path: Path, found: Privacy, *, is_auto: bool) -> Privacy:
    """Return the level with what C is chosen from, and the share of the budget for that."""
    if not is_auto and (found.candidates or found.choosing):
        raise ParameterError(
            f"{path}: [privacy] has candidates for C or a share for choosing, but C is written "
            'down. Write C = "auto" under [settings], or leave them out.'
        )
    if not is_auto:
        return found
    candidates = found.candidates or tuple(C / found.norm**2 for C in CANDIDATES)
    return replace(found, candidates=candidates, choosing=found.choosing or CHOOSING)
