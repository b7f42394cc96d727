"""Real agents for the scripts beside this one: folders, processes, and what they use."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / part) for part in ("", "runtime/agent")]

from forks import ForkedAgents  # noqa: E402
from meetings import NAMES, SHAPES, cold, make_blocks, make_session  # noqa: E402
from sites import farthest, free_ports, make_site, status, write_rows  # noqa: E402

from dtsvm.errors import NetworkError  # noqa: E402
from dtsvm.runtime.agent.process.process import ask  # noqa: E402

__all__ = [
    "NAMES", "SHAPES", "ForkedAgents", "cold", "farthest", "free_ports", "make_blocks",
    "make_session", "make_site", "processor_seconds", "status", "tell", "uses", "write_rows",
]  # fmt: skip


def tell(folder: Path, node: str, /, **asked: Any) -> dict[str, Any]:
    """Tell an agent something; return its answer, or why it refuses."""
    try:
        return dict(asyncio.run(ask(folder / node, **asked)))
    except NetworkError as error:
        return {"error": str(error)}


def processor_seconds(pid: int) -> float:
    """Return what a process has used of processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def uses(pid: int) -> tuple[float, float, float]:
    """Return a process's memory in MB, its descriptors and its threads."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    n_open = len(os.listdir(f"/proc/{pid}/fd"))
    return int(found["VmRSS"].split()[0]) / 1e3, n_open, int(found["Threads"])
