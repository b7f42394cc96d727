"""Measurements that need a process of their own: `python -m benchmarks.cases.<case> '{…}'`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.results import ROOT

__all__ = ["answer", "ask", "peak_bytes", "reset_peak", "resident_bytes"]


def ask(case: str, question: dict[str, Any], seconds: float) -> dict[str, Any] | None:
    """Run a case's worker; None if it takes longer than so many seconds."""
    command = [sys.executable, "-m", f"benchmarks.cases.{case}", json.dumps(question)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def answer(work: Callable[..., dict[str, Any]]) -> None:
    """Be the worker: read the question, print the answer."""
    print(json.dumps(work(**json.loads(sys.argv[1]))))


def resident_bytes() -> int:
    """Return what the process holds in memory now."""
    return _status("VmRSS")


def peak_bytes() -> int:
    """Return the most it has held since `reset_peak`."""
    return _status("VmHWM")


def reset_peak() -> None:
    """Forget the peak so far (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {name}.")
