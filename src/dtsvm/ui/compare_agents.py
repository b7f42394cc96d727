"""`dtsvm compare` of running agents: what the network found, alone, together and as chosen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dtsvm.errors import NetworkError
from dtsvm.ui.agent import need_extra
from dtsvm.ui.show import print_json, print_table, share

__all__ = ["compare_agents"]

SECONDS = 5.0
WAYS = ("alone", "together", "chosen")


def compare_agents(configs: Sequence[Path], as_json: bool) -> None:
    """Print what agents chose: a line a task, and under it one for each of these nodes."""
    need_extra()
    from dtsvm.runtime.agent.process.control import ask  # an extra

    folders = [path.absolute().parent for path in configs]
    found = [asyncio.run(ask(folder, SECONDS, command="status")) for folder in folders]
    for one in found:
        _check(one)
    tasks = [_entry(found, k) for k in range(len(found[0]["choosing"]["choices"]))]
    if as_json:
        print_json({"tasks": tasks})
        return
    print_table(["task", "node", "rows", *WAYS], _lines(tasks), text_columns=2)
    click.echo()
    for one in tasks:
        click.echo(one["sentence"])


def _check(status: dict[str, Any]) -> None:
    if "choosing" not in status:
        raise NetworkError(
            f"Node {status['node']} does not choose: compare rows before training with "
            "'dtsvm compare FILES --label COLUMN'."
        )
    if not status["choosing"]["is_done"]:
        raise NetworkError(
            f"Node {status['node']} is still choosing; 'dtsvm status' says how far it is."
        )


def _entry(found: list[dict[str, Any]], k: int) -> dict[str, Any]:
    """Put a task's choice together, with what the rows of every node asked say of it."""
    choosing = found[0]["choosing"]
    nodes = []
    for one in found:
        here = one["choosing"]["compared"][k]["here"]
        n = here["rows"]
        if n:
            nodes.append({"node": one["node"], "rows": n, **{way: here[way] / n for way in WAYS}})
    return {**choosing["choices"][k], "together": choosing["compared"][k]["together"],
            "nodes": nodes}  # fmt: skip


def _lines(tasks: list[dict[str, Any]]) -> list[list[str]]:
    lines = []
    for one in tasks:
        name = one["task"] if one["label"] is None else f"{one['task']} ({one['label']})"
        cells = [_cell(one[way]) for way in WAYS]
        lines.append([name, "all", f"{one['n_rows']:,}", *cells])
        for node in one["nodes"]:
            own = [share(node[way]) for way in WAYS]
            lines.append(["", node["node"], f"{node['rows']:,}", *own])
    return lines


def _cell(rate: list[float | None]) -> str:
    """Word a share and its 95 % limits."""
    value, low, high = rate
    if value is None or low is None or high is None:
        return "–"
    return f"{share(value)} ({100 * low:.0f}–{100 * high:.0f})"
