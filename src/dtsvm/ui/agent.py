"""`dtsvm agent`, `tell` and `status`: one node of a real network, and talking to it."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import signal
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dtsvm.data import read_rows
from dtsvm.data.labels import begin_classes, check_labels, signs
from dtsvm.errors import DataError, MissingExtraError, NetworkError
from dtsvm.svm.model_file import save_model
from dtsvm.ui.show import print_table, short

try:
    from dtsvm.runtime.agent.node.model import node_model
    from dtsvm.runtime.agent.node.node import Node
    from dtsvm.runtime.agent.process.process import Process, ask
    from dtsvm.runtime.agent.process.transport import Transport
    from dtsvm.runtime.agent.site.checkpoint import restore
    from dtsvm.runtime.agent.site.config import Config, TaskConfig, read_config

    IS_INSTALLED = True
except ImportError:  # said when a command is called, so that 'dtsvm --help' works without
    IS_INSTALLED = False

__all__ = ["agent", "status", "tell"]

Classes = tuple[Any, Any]
Block = tuple[NDArray[np.float64], NDArray[np.float64]]


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--log-json", is_flag=True, help="Log JSON lines instead of text.")
@click.option("--insecure", is_flag=True, help="No certificates; on loopback only.")
@click.option("--rounds", type=int, help="Compute so many rounds and no more; keep answering.")
def agent(config: Path, log_json: bool, insecure: bool, rounds: int | None) -> None:
    """Run one node of a network; Ctrl-C leaves it politely.

    CONFIG is the node.toml that 'dtsvm network new' wrote. The node's model and checkpoint are
    written beside it; started again, the node goes on from its checkpoint.

    \b
    dtsvm agent site/hospital-a/node.toml
    dtsvm agent site/hospital-a/node.toml --log-json
    """  # noqa: D301
    _need_extra()
    _set_up_log(log_json)
    chosen = read_config(config)
    credentials = None if insecure else chosen.credentials()
    asyncio.run(_run(chosen, credentials, rounds))


def _need_extra() -> None:
    if not IS_INSTALLED:
        raise MissingExtraError(
            "Agents need grpcio, protobuf and cryptography, which are not installed. "
            'Install them with: pip install "dtsvm[agent]"'
        )


async def _run(config: Config, credentials: Any, rounds: int | None) -> None:
    site = _Site(config)
    node = site.node
    transport = Transport(
        config.name,
        config.listen,
        config.neighbours,
        credentials,
        lambda peer, data: process.hear(peer, data),
    )
    process = Process(
        node, transport, config.folder, site.n_first, site.write_model,
        {"rows": site.tell_rows}, rounds,
    )  # fmt: skip
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, process.stop)
    await process.run()


class _Site:
    """A node with its files: rows in, models out."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.classes: dict[str, Classes] = {}
        self.feature_names: tuple[str, ...] | None = None
        blocks = {task: self._read_first(task, given) for task, given in config.tasks.items()}
        lengths = {X.shape[1] for X, _ in blocks.values() if X.shape[1]}
        if len(lengths) != 1:
            raise DataError(f"{config.path}: its tasks' rows have lengths {sorted(lengths)}.")
        self.n_first = {task: len(y) for task, (_, y) in blocks.items()}
        self.node = self._make_node(lengths.pop(), blocks)
        checkpoint = config.folder / "checkpoint.npz"
        if checkpoint.exists():
            restore(self.node, checkpoint.read_bytes(), str(checkpoint))

    def _make_node(self, n_features: int, blocks: dict[str, Block]) -> Node:
        config = self.config
        node = Node(
            config.name, list(config.neighbours), n_features, config.settings, config.network,
            time.time_ns() // 1000, time.monotonic(), config.personal, config.timing,
        )  # fmt: skip
        for task, (X, y) in blocks.items():
            node.enter(task, X, y, self.classes[task])
        for group in config.couple:
            if len(group) > 1:
                node.couple(list(group))
        return node

    def _read_first(self, task: str, given: TaskConfig) -> Block:
        if given.data is None:
            self.classes[task] = begin_classes(task, None, given.labels)
            return np.zeros((0, len(given.features or ()))), np.zeros(0)
        rows = read_rows(given.data, label=given.label, features=given.features)
        self.classes[task] = begin_classes(task, rows.y, given.labels)
        self.feature_names = rows.feature_names
        return rows.X, self._signs(task, rows.y, len(rows.X))

    def _signs(self, task: str, labels: Any, n_rows: int) -> NDArray[np.float64]:
        check_labels(n_rows, labels, task, self.classes[task])
        return signs(labels, self.classes[task])

    def tell_rows(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Add the rows of a file to a task."""
        tasks = list(self.node.holdings)
        task = asked.get("task") or (tasks[0] if len(tasks) == 1 else None)
        if task is None:
            raise DataError(f"Say which task with --task: {', '.join(tasks)}.")
        self.node.holding(task)
        label = self.config.tasks[task].label
        rows = read_rows(asked["file"], label=label, features=self.feature_names)
        self.node.add_rows(task, rows.X, self._signs(task, rows.y, len(rows.X)))
        return {"said": f"Task {task!r} has {len(rows.X)} more rows."}

    def write_model(self, node: Node) -> None:
        """Write the node's classifiers as 'dtsvm train' would."""
        if node.holdings:
            save_model(
                node_model(node, self.classes),
                self.config.model,
                feature_names=self.feature_names,
                label=next(iter(self.config.tasks.values())).label,
            )


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("words", nargs=-1, required=True)
@click.option("--task", help="The task meant, for 'leave' and 'rows add'.")
def tell(config: Path, words: tuple[str, ...], task: str | None) -> None:
    """Tell a running agent something.

    \b
      dtsvm tell node.toml status
      dtsvm tell node.toml leave [--task flu]
      dtsvm tell node.toml couple flu cold
      dtsvm tell node.toml rows add more.csv [--task flu]
      dtsvm tell node.toml link NODE HOST:PORT
    """  # noqa: D301
    _need_extra()
    folder = config.absolute().parent
    answer = asyncio.run(ask(folder, **_asked(words, task)))
    said = answer.get("said")
    click.echo(said if said else json.dumps(answer, indent=2))


def _asked(words: tuple[str, ...], task: str | None) -> dict[str, Any]:
    match words:
        case ("status",):
            return {"command": "status"}
        case ("leave",):
            return {"command": "leave", "task": task}
        case ("couple", *tasks):
            return {"command": "couple", "tasks": tasks}
        case ("rows", "add", file):
            return {"command": "rows", "file": str(Path(file).absolute()), "task": task}
        case ("link", name, address):
            return {"command": "link", "name": name, "address": address}
    raise click.UsageError(f"An agent cannot be told {' '.join(words)!r}: see 'dtsvm tell --help'.")


@click.command()
@click.argument("configs", nargs=-1, required=True, type=click.Path(path_type=Path))
def status(configs: tuple[Path, ...]) -> None:
    """Show the agents of these node.toml files, a row each.

    \b
    dtsvm status site/*/node.toml
    """  # noqa: D301
    _need_extra()
    lines = []
    for path in configs:
        folder = path.absolute().parent
        try:
            found = asyncio.run(ask(folder, command="status"))
        except NetworkError:
            lines.append([folder.name, "not running", "", "", "", "", ""])
            continue
        tasks = ", ".join(f"{task} ({rows})" for task, rows in found["tasks"].items())
        lines.append([
            found["node"],
            "settled" if found["is_settled"] else "training",
            tasks,
            f"{found['round']:,}",
            short(found["residual"]),
            f"{len(found['present'])} of {len(found['neighbours'])}",
            str(found["refused"]),
        ])  # fmt: skip
    columns = ["node", "state", "tasks (rows)", "round", "residual", "neighbours", "refused"]
    print_table(columns, lines, text_columns=3)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return one JSON object a line."""
        entry = {"time": round(record.created, 3), "level": record.levelname.lower()}
        found = getattr(record, "status", None)
        entry.update(found if found else {"message": record.getMessage()})
        plain = {
            k: None if isinstance(v, float) and not math.isfinite(v) else v
            for k, v in entry.items()
        }
        return json.dumps(plain)


def _set_up_log(is_json: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s  %(message)s", "%H:%M:%S")
    handler.setFormatter(_JsonLines() if is_json else text)
    root = logging.getLogger("dtsvm")
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False
