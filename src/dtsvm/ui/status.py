"""`dtsvm status`: how agents are, those of this machine and those that a network reaches."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

import click

from dtsvm.data.tables import require_file
from dtsvm.errors import NetworkError
from dtsvm.ui.agent import need_extra
from dtsvm.ui.show import choosing_words, print_table, short

with contextlib.suppress(ImportError):  # said when the command is called
    from dtsvm.runtime.agent.process.control import ask

__all__ = ["status"]

SECONDS = 5.0
ASK_SECONDS = 0.3  # between looks at what has been answered
COLUMNS = ["node", "state", "tasks", "privacy", "round", "residual", "gap", "links", "refused"]


@click.command()
@click.argument("configs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--network", is_flag=True, help="Ask all nodes that the first one's links reach.")
@click.option(
    "--seconds", type=click.FloatRange(0.1, 600.0), default=SECONDS, show_default=True,
    help="How long each node has to answer.",
)  # fmt: skip
def status(configs: tuple[Path, ...], network: bool, seconds: float) -> None:
    """Show agents, a row each: those of these node.toml files.

    With --network: all nodes of the network, asked by the running agent of one
    node.toml along its links. Answers are sealed for that node; who says
    status = [] in its node.toml does not answer.

    \b
    dtsvm status site/*/node.toml
    dtsvm status site/hospital-a/node.toml --network --seconds 2
    """  # noqa: D301
    need_extra()
    for path in configs:
        require_file(path)
    folders = [path.absolute().parent for path in configs]
    if network and len(folders) > 1:
        raise click.UsageError("--network asks through one agent: name one node.toml.")
    if network:
        _show_network(*asyncio.run(_ask_network(folders[0], seconds)))
        return
    found = asyncio.run(_ask_all(folders, seconds))
    print_table(COLUMNS, [_line(*each) for each in found], text_columns=4)
    for _, one in found:
        _say_trouble(one)


def _say_trouble(found: dict[str, Any]) -> None:
    for neighbour, reason in found.get("reasons", {}).items():
        click.echo(f"{found['node']} refused node {neighbour}: {reason}")
    for sentence in found.get("apart", []):
        click.echo(f"{found['node']}: {sentence}")
    if found.get("trouble"):
        click.echo(f"{found['node']} is {found['trouble']}")


async def _ask_all(folders: list[Path], seconds: float) -> list[tuple[str, dict[str, Any]]]:
    """Ask all at once; who does not answer in time has no status."""
    questions = [ask(folder, seconds, command="status") for folder in folders]
    found = await asyncio.gather(*questions, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException) and not isinstance(one, NetworkError | OSError):
            raise one
    names = [folder.name for folder in folders]
    return [(n, s if isinstance(s, dict) else {}) for n, s in zip(names, found, strict=True)]


def _line(name: str, found: dict[str, Any]) -> list[str]:
    if not found:
        return [name, "not running", *[""] * 7]
    tasks = ", ".join(f"{task} ({rows})" for task, rows in found["tasks"].items())
    return [found["node"], _state(found), tasks, _privacy(found["privacy"]), *_numbers(found)]


def _numbers(found: dict[str, Any]) -> list[str]:
    """Word round, residual, gap, links and refusals; what is not known is a dash."""
    shown = [found["residual"], found["gap"]]
    return [
        "–" if found["round"] is None else f"{found['round']:,}",
        *("–" if number is None else short(number) for number in shown),
        f"{len(found['present'])} of {len(found['neighbours'])}",
        "–" if found["refused"] is None else f"{found['refused']:,}",
    ]


def _state(found: dict[str, Any]) -> str:
    """Word what a node does."""
    choosing = found.get("choosing")
    if choosing is None or found["is_settled"]:
        return "settled" if found["is_settled"] else "training"
    return choosing_words(choosing)


def _privacy(found: dict[str, Any]) -> str:
    if found["level"] != "dp":
        return str(found["level"])
    C = f", C = {found['C']:g}" if "C" in found else ""
    every = found["left"] + found["spent"]
    return f"dp, ε ≤ {found['epsilon']:g}{C}, {found['left']:,} of {every:,} messages left"


# The whole network


async def _ask_network(
    folder: Path, seconds: float
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Ask through one agent; return its status, the answers, and who did not answer."""
    until = time.monotonic() + seconds
    mine = await ask(folder, seconds, command="status")
    answer = await ask(folder, seconds, command="ask", is_first=True)
    while answer["silent"] and time.monotonic() < until:
        await asyncio.sleep(min(ASK_SECONDS, max(until - time.monotonic(), 0.01)))
        answer = await ask(folder, seconds, command="ask")
    return mine, answer["answers"], answer["silent"]


def _show_network(mine: dict[str, Any], answers: dict[str, Any], silent: list[str]) -> None:
    found = {**answers, mine["node"]: {**mine, "tasks": list(mine["tasks"])}}
    columns = [name for name in COLUMNS if name != "privacy"]
    lines = {name: _told(name, one) for name, one in found.items()}
    lines |= {name: [name, "no answer", *[""] * 6] for name in silent}
    print_table(columns, [line for _, line in sorted(lines.items())], text_columns=3)
    for _, one in sorted(found.items()):
        _say_trouble(one)


def _told(name: str, found: dict[str, Any]) -> list[str]:
    if found.get("is_silent"):
        return [name, "does not say", *[""] * 6]
    return [name, _state(found), ", ".join(found["tasks"]), *_numbers(found)]
