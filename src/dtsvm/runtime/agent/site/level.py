"""The level of privacy in a node's TOML file, and what does not go with it."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from dtsvm.errors import ParameterError, did_you_mean
from dtsvm.problem import Privacy

__all__ = ["read_privacy"]

PREPARATION = 0.1  # share of a privacy budget for sums before the first round


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
    if content.get("probability"):
        raise ParameterError(
            f"{path}: 'probability' adds up numbers without noise, which differential privacy does "
            "not allow. Leave it out; the sign of a decision value needs none."
        )
    if "prepare" in content and not found.ranges:
        raise ParameterError(
            f"{path}: under differential privacy a column's range must not be found by looking at "
            "rows. Write what every column may hold, such as age = [0, 120] or "
            'ward = ["north", "south"], under [privacy.ranges].'
        )
    is_summed = "prepare" in content or content.get("class_weight") == "balanced"
    if is_summed != bool(found.preparation):
        found = replace(found, preparation=PREPARATION if is_summed else 0.0)
    for task, lines in content["tasks"].items():
        if is_summed and len(lines.get("labels", ())) != 2:
            raise ParameterError(
                f"{path}: under differential privacy nobody is told which labels were found; write "
                f"those of task {task!r} as labels = [negative, positive]."
            )
        if "weight" in lines or len(lines.get("labels", ())) > 2:
            raise ParameterError(
                f"{path}: task {task!r} has weights or more than two labels, so that one row may "
                "count several times; differential privacy is proved for rows that count once."
            )
    return found
