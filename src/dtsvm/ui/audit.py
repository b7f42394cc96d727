"""`dtsvm audit`: what a node's neighbours could learn, tried on a copy of it in memory."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from dtsvm.errors import DataError, MissingExtraError
from dtsvm.problem import Privacy
from dtsvm.problem.privacy import LEVELS
from dtsvm.svm.model_file import save_model
from dtsvm.ui.show import WIDTH, print_json, print_table

try:
    from dtsvm.runtime.agent.audit.attacks import FEW
    from dtsvm.runtime.agent.audit.trial import Outcome, Target, around, split
    from dtsvm.runtime.agent.audit.trial import audit as attack
    from dtsvm.runtime.agent.node.agreed import Agreed
    from dtsvm.runtime.agent.site.columns import begin_preparing
    from dtsvm.runtime.agent.site.config import Config, read_config
    from dtsvm.runtime.agent.site.site import Site
    from dtsvm.runtime.privacy.budget import Budget
    from dtsvm.runtime.privacy.sums import NoisySums

    IS_INSTALLED = True
except ImportError:  # said when the command is called, so that 'dtsvm --help' works without
    IS_INSTALLED = False

__all__ = ["audit"]


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--level", type=click.Choice(LEVELS), help="Try another level of privacy.")
@click.option("--rows", "most", type=int, default=200, show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def audit(config: Path, level: str | None, most: int, as_json: bool) -> None:
    """Try what neighbours could learn of the rows in CONFIG, a node.toml.

    A copy of the node is attacked in memory, among as many neighbours as it has: by one that lies,
    by one that only listens, and by a reader of the model. Nothing is sent, nothing is written.
    Each task is tried as if it were alone. That an attack fails proves nothing.

    \b
    dtsvm audit site/hospital-a/node.toml
    dtsvm audit site/hospital-a/node.toml --level dp
    """  # noqa: D301
    if not IS_INSTALLED:
        raise MissingExtraError(
            "An audit needs protobuf and cryptography, which are not installed. "
            'Install them with: pip install "dtsvm[agent]"'
        )
    chosen = read_config(config)
    privacy = chosen.privacy if level is None else replace(chosen.privacy, level=level)  # type: ignore[arg-type]
    n_neighbours = max(len(chosen.neighbours), 1)
    found = {task: _try(chosen, block, n_neighbours, privacy, most)
             for task, block in _blocks(chosen).items()}  # fmt: skip
    if as_json:
        tasks = {task: [_plain(one) for one in outcomes] for task, outcomes in found.items()}
        print_json({"privacy": privacy.describe(), "neighbours": n_neighbours, "tasks": tasks})
    else:
        _print(chosen.name, n_neighbours, privacy, found)
        if chosen.chooses and privacy.level != "dp":
            _say(
                "The network chooses C, by many trainings of these rows: neighbours see more than "
                "was tried here. Write a number for C under [settings] to keep it to one."
            )


def _blocks(config: Config) -> dict[str, Any]:
    """Return the rows of every task as the node would train on them."""
    site = Site(config, save_model, None, _agreed(config))
    tables = site.node.state.tables
    first = {task: site.node.holding(site.node.lanes(task)[0]) for task in site.node.tasks}
    found = {task: tables.rows_of(holding.slot) for task, holding in first.items()}
    found = {task: block for task, block in found.items() if len(block[1])}
    if not found:
        raise DataError(f"{config.path}: no task has rows, so there is nothing to learn.")
    return found


def _agreed(config: Config) -> Agreed | None:
    """What the network agreed on if it is here, or what the node's own rows would give."""
    if not config.agrees:
        return None
    preparing = begin_preparing(config, None)
    if preparing.noise is not None:  # nothing leaves, so nothing is paid for
        preparing.noise = NoisySums(Budget(config.privacy))
    while preparing.agreed is None and not preparing.trouble:
        preparing.step(is_late=True)
    if preparing.trouble:
        raise DataError(f"{config.path}: {preparing.trouble}")
    return preparing.agreed


def _try(
    config: Config, block: Any, n_neighbours: int, privacy: Privacy, most: int
) -> list[Outcome]:
    X, y = block[0][:most], block[1][:most]
    members, others = split(X, y)
    return attack(Target(members, others, around(n_neighbours), config.settings, privacy))


def _plain(one: Outcome) -> dict[str, Any]:
    return {**asdict(one), "advantage": None if math.isnan(one.advantage) else one.advantage}


def _print(name: str, n: int, privacy: Privacy, found: dict[str, list[Outcome]]) -> None:
    neighbours = "1 neighbour" if n == 1 else f"{n} neighbours"
    _say(f"Node {name}, {neighbours}, privacy: {privacy.level}. {privacy.meaning}")
    for task, outcomes in found.items():
        click.echo()
        columns = [f"task {task}", "rows read", "membership", "rounds"]
        print_table(columns, [_line(one) for one in outcomes])
        click.echo()
        for words in _words(outcomes):
            _say(words)
    click.echo()
    _say(_membership(max(one.n_rows for outcomes in found.values() for one in outcomes)))
    if privacy.level != "dp" and any(one.n_read for some in found.values() for one in some):
        _say(
            'Only level = "dp" under [privacy] stops who lies, at a price in accuracy: '
            "docs/privacy.md."
        )


def _say(text: str) -> None:
    click.echo(click.wrap_text(text, WIDTH))


def _line(one: Outcome) -> list[str]:
    advantage = "–" if math.isnan(one.advantage) else f"{one.advantage:.2f}"
    return [one.attack, f"{one.n_read:,} of {one.n_rows:,}", advantage, f"{one.rounds:,}"]


def _words(outcomes: list[Outcome]) -> list[str]:
    found = []
    for one in outcomes:
        if one.n_read:
            share = f"{one.n_read} of {one.n_rows} rows" if one.n_read < one.n_rows else "every row"
            who = one.attack[0].upper() + one.attack[1:]
            found.append(f"{who} reads {share} to the last digits, labels aside.")
    rest = [one.attack for one in outcomes if not one.n_read]
    if rest:
        *some, last = rest
        who = f"{', '.join(some)} and {last}" if some else last
        who = who[0].upper() + who[1:]
        found.append(f"{who} read no row in this way; another attack may come further.")
    return found


def _membership(n: int) -> str:
    """Say what the figures mean; by luck two samples of n are so far apart once in twenty."""
    if n < FEW:
        return f"Membership is tried where a task has {2 * FEW} rows or more."
    luck = 1.36 * math.sqrt(2.0 / n)
    return (
        "The copy has half of a task's rows. Membership is how well an attacker tells them from "
        f"the other half: 1 is always, 0 is guessing, and up to {luck:.2f} may be luck."
    )
