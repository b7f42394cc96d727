"""Results out: a JSON line each, with the commit, the versions, the machine and the seed."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.settings import Settings

__all__ = ["FOLDER", "ROOT", "keep", "measured", "read"]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(__file__).resolve().parent / "results"
PACKAGES = ("dtsvm", "numpy", "scipy", "cython", "scikit-learn", "osqp", "clarabel", "cvxpy-base")


def measured(
    name: str,
    value: float | None,
    *,
    goal: tuple[Literal["at most", "at least"], float, float | None] | None = None,
    ours: float | None = None,
    rival: float | None = None,
    unit: str = "x",
    sides: str = "s",
    note: str = "",
    **details: Any,
) -> dict[str, Any]:
    """Make a result: `value` in `unit` is judged; `ours` and `rival`, in `sides`, led to it.

    The goal names the target and the dream.

    A value of None means that what was to be measured did not happen: the note says why.
    """
    bound, target, dream = goal or (None, None, None)
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "bound": bound,
        "target": target,
        "dream": dream,
        "ours": ours,
        "rival": rival,
        "sides": sides,
        "note": note,
        "details": details,
    }


def keep(case: str, found: list[dict[str, Any]], settings: Settings, seconds: float) -> None:
    """Append a case's results to its file; quick ones go to a file of their own."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{case}{'.quick' if settings.quick else ''}.jsonl"
    about = {
        "case": case,
        "run": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": settings.quick,
        "seed": settings.seed,
        "repeats": settings.repeats,
        "case_seconds": seconds,
        **_circumstances(),
    }
    with path.open("a") as file:
        for result in found:
            file.write(json.dumps({**about, **result}, default=_plain, ensure_ascii=False) + "\n")


def read() -> dict[str, list[dict[str, Any]]]:
    """Return every case's results of its last run that was not quick; here are others' too."""
    latest: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(FOLDER.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        whole = [line for line in lines if not line.get("quick", True)]
        if whole:
            last = max(line["run"] for line in whole)
            latest[whole[0]["case"]] = [line for line in whole if line["run"] == last]
    return latest


def _circumstances() -> dict[str, Any]:
    return {
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "is_dirty": bool(_git("status", "--porcelain", "--", "src", "benchmarks")),
        "versions": {"python": platform.python_version(), **_versions()},
        "machine": _machine(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _machine() -> str:
    model = platform.processor() or platform.machine()
    if sys.platform == "linux":
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value)
