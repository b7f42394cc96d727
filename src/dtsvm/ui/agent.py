"""`dtsvm agent`, `tell` and `repair`: one node of a real network, and talking to it."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dtsvm.data.files import write_atomically
from dtsvm.errors import MissingExtraError, NetworkError
from dtsvm.select import choosing_at_node
from dtsvm.svm.model_file import save_model

try:
    from dtsvm.runtime.agent.node.asking import Asking
    from dtsvm.runtime.agent.node.calibrating import Calibrating, Counting
    from dtsvm.runtime.agent.node.electing import Electing
    from dtsvm.runtime.agent.node.preparing import Preparing
    from dtsvm.runtime.agent.node.scoring import Scoring
    from dtsvm.runtime.agent.process.agreement import Calls, agree, ask_generations, route
    from dtsvm.runtime.agent.process.asking import AskLinks, Beside
    from dtsvm.runtime.agent.process.choosing import ChoosingProcess
    from dtsvm.runtime.agent.process.control import ask
    from dtsvm.runtime.agent.process.credentials import Credentials
    from dtsvm.runtime.agent.process.orders import EarlyOrders
    from dtsvm.runtime.agent.process.process import Process
    from dtsvm.runtime.agent.process.scores import CalibrationLinks, ElectionLinks, ScoreLinks
    from dtsvm.runtime.agent.process.stream import Limits
    from dtsvm.runtime.agent.process.transport import Transport
    from dtsvm.runtime.agent.site.checkpoint import repaired, told_before
    from dtsvm.runtime.agent.site.columns import begin_preparing, keep_agreed, keep_told, want_anew
    from dtsvm.runtime.agent.site.config import Config, read_config
    from dtsvm.runtime.agent.site.site import Site

    IS_INSTALLED = True
except ImportError:  # said when a command is called, so that 'dtsvm --help' works without
    IS_INSTALLED = False

__all__ = ["agent", "need_extra", "repair", "tell"]


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
    need_extra()
    _set_up_log(log_json)
    chosen = read_config(config)
    credentials = None if insecure else chosen.credentials()
    asyncio.run(_run(chosen, credentials, rounds))


def need_extra() -> None:
    """Refuse without what agents need, and say how to get it."""
    if not IS_INSTALLED:
        raise MissingExtraError(
            "Agents need protobuf and cryptography, which are not installed. "
            'Install them with: pip install "dtsvm[agent]"'
        )


async def _run(config: Config, credentials: Credentials | None, rounds: int | None) -> None:
    calls = Calls()
    while await _serve(config, credentials, rounds, calls):
        logging.getLogger("dtsvm").info("Node %s agrees anew with all others.", config.name)


async def _serve(
    config: Config, credentials: Credentials | None, rounds: int | None, calls: Calls
) -> bool:
    """Agree, train and serve until the owner ends it; return whether all are to agree anew."""
    identity = credentials.signer if credentials else None
    stopped = _stopped_by_signals()
    preparing = agreed = None
    if config.agrees:
        preparing = await _prepared(config, credentials, stopped)
        agreed = preparing.agreed
        if agreed is None:
            return False
    _say_privacy(config)
    site = Site(config, save_model, identity, agreed, choosing_at_node)
    node = site.node
    transport = Transport(
        config.name,
        config.listen,
        site.neighbours,
        credentials,
        limits=Limits() if site.chooser else Limits(node.inbox.most_bytes),
    )
    who = config.name, config.network, node.roster, node.identity
    scores = ScoreLinks(Scoring(*who, count=site.count), transport)
    aside = _aside(site, transport)
    asking = AskLinks(
        Asking(*who, lambda: process.told(), lambda asker: config.may_ask(asker, node.mail)),
        transport,
    )
    beside: list[Beside] = [scores, asking, *aside]
    anew = _anew(config, preparing, lambda: process.pause())
    commands: dict[str, Any] = {
        "rows": lambda asked: _take_rows(site, anew, asked), "evaluate": scores.answer,
        "prepare": lambda _: anew(None),
        "ask": asking.answer,
    }  # fmt: skip
    parts = (
        node, transport, config.folder, site.keep, site.write_model, commands,
        rounds, config.metrics, config.credentials if credentials else lambda: None,
    )  # fmt: skip
    process = ChoosingProcess(*parts, site.chooser) if site.chooser else Process(*parts)
    transport.on_message = process.hear
    process.hear_other = route(
        preparing, beside, transport,
        lambda peer, generation: process.is_paused
        or (calls.is_allowed(peer, time.monotonic()) and anew(generation)),
    )  # fmt: skip
    process.notes = lambda: preparing.notes if preparing else []
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, process.stop)
    tasks = [asyncio.create_task(one.run()) for one in aside]
    if preparing is not None:
        tasks.append(asyncio.create_task(ask_generations(preparing, transport)))
    try:
        await process.run()
    finally:
        for one in tasks:
            one.cancel()
    return process.is_paused


def _aside(site: Site, transport: Transport) -> list[CalibrationLinks | ElectionLinks]:
    """Return what goes on beside training until it is found: a choice, and probabilities."""
    config, node = site.config, site.node
    who = config.name, config.network, node.roster, node.identity
    found: list[CalibrationLinks | ElectionLinks] = []
    if config.probability:
        fit = (
            Counting(*who, counted=site.counted) if node.veil.is_noisy
            else Calibrating(*who, unseen=site.unseen, C=config.settings.C)
        )  # fmt: skip
        found.append(CalibrationLinks(fit, transport, take=site.take_sigmoids))
    if config.privacy.candidates:
        electing = Electing(
            *who, n_candidates=len(config.privacy.candidates), counted=site.compared,
            chosen=lambda: node.veil.choice,
        )  # fmt: skip
        found.append(ElectionLinks(electing, transport, take=site.take_choice))
    return found


def _anew(
    config: Config, preparing: Preparing | None, pause: Callable[[], None]
) -> Callable[[int | None], dict[str, Any]]:
    """Return what makes a node agree anew with all others, on its owner's or a neighbour's word."""

    def anew(generation: int | None) -> dict[str, Any]:
        if preparing is None:
            raise NetworkError(
                "This network takes numbers as they are, so there is nothing to agree on. Write "
                "[prepare] into every node.toml to have columns prepared."
            )
        wanted = preparing.generation + 1 if generation is None else generation
        want_anew(config, wanted)
        pause()
        return {
            "said": f"All nodes agree anew on columns, labels and weights (agreement {wanted + 1}) "
            "and train anew; models stay as they are until then."
        }

    return anew


def _take_rows(
    site: Site, anew: Callable[[int | None], dict[str, Any]], asked: dict[str, Any]
) -> dict[str, Any]:
    """Add rows; if they are to be agreed on anew, they are on disk before all begin to."""
    if asked.get("is_anew") and site.rows.agreed is None:
        anew(None)  # refuses: nothing is agreed on here
    said = site.tell_rows(asked)
    return {"said": f"{said['said']} {anew(None)['said']}"} if asked.get("is_anew") else said


def _say_privacy(config: Config) -> None:
    privacy, log = config.privacy, logging.getLogger("dtsvm")
    say = log.warning if privacy.level == "none" else log.info
    say("Privacy: %s. %s", privacy.level, privacy.meaning)


def _stopped_by_signals() -> asyncio.Event:
    stopped = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sign, stopped.set)
    return stopped


async def _prepared(
    config: Config, credentials: Credentials | None, stopped: asyncio.Event
) -> Preparing:
    """Agree with the network, if that was not done before; nothing if told to leave meanwhile."""
    identity = credentials.signer if credentials else None

    def links(hear: Callable[[str, bytes], object]) -> Transport:
        around = told_before(config.folder).neighbours(config.neighbours)
        return Transport(config.name, config.listen, around, credentials, hear)

    while True:
        preparing = begin_preparing(config, identity)
        orders = EarlyOrders(preparing, lambda change: keep_told(config, change), stopped)
        if preparing.agreed is None:
            await agree(preparing, links, config.folder, config.timing, orders)
        if not orders.has_changed:
            break
    if preparing.agreed is None:
        return preparing
    keep_agreed(config, preparing)
    log = logging.getLogger("dtsvm")
    for note in preparing.plan.notes if preparing.plan else ():
        log.info(note)
    for note in preparing.notes:
        log.warning("Node %s: %s", config.name, note)
    return preparing


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--tasks", is_flag=True, help="Let tasks that have left begin again, too.")
def repair(config: Path, tasks: bool) -> None:
    """Make a node that went wrong begin anew, with the rows it was given.

    Counters, iterates and levels in its checkpoint are reset; rows that were added later, links and
    what it was told stay. Its agent must not be running.

    \b
    dtsvm repair site/hospital-a/node.toml
    """  # noqa: D301
    need_extra()
    chosen = read_config(config)
    path = chosen.folder / "checkpoint.npz"
    if _is_running(chosen.folder):
        raise NetworkError(f"The agent in {chosen.folder} is running. Let it leave first.")
    if not path.exists():
        click.echo(f"There is no {path}: nothing to repair.")
        return
    content, n_rows = repaired(path.read_bytes(), str(path), with_left=tasks)
    write_atomically(path, content, is_private=True)
    click.echo(f"{path}: counters and iterates begin anew; {n_rows} later rows are kept.")


def _is_running(folder: Path) -> bool:
    try:
        asyncio.run(ask(folder, command="status"))
    except NetworkError:
        return False
    return True


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("words", nargs=-1, required=True)
@click.option("--task", help="The task meant, for 'leave' and 'rows add'.")
@click.option("--anew", is_flag=True, help="For 'rows add': all agree on columns and labels anew.")
def tell(config: Path, words: tuple[str, ...], task: str | None, anew: bool) -> None:
    """Tell a running agent something.

    \b
      dtsvm tell node.toml status
      dtsvm tell node.toml leave [--task flu]
      dtsvm tell node.toml couple flu cold
      dtsvm tell node.toml decouple flu
      dtsvm tell node.toml rows add more.csv [--task flu] [--anew]
      dtsvm tell node.toml link NODE HOST:PORT
      dtsvm tell node.toml unlink NODE
      dtsvm tell node.toml prepare
    """  # noqa: D301
    need_extra()
    folder = config.absolute().parent
    asked = _asked(words, task)
    if anew and asked["command"] != "rows":
        raise click.UsageError("--anew goes with 'rows add'; 'prepare' agrees anew by itself.")
    answer = asyncio.run(ask(folder, **asked, **({"is_anew": True} if anew else {})))
    said = answer.get("said")
    click.echo(said if said else json.dumps(answer, indent=2))


def _asked(words: tuple[str, ...], task: str | None) -> dict[str, Any]:
    match words:
        case ("status",):
            return {"command": "status"}
        case ("prepare",):
            return {"command": "prepare"}
        case ("leave",):
            return {"command": "leave", "task": task}
        case ("couple", *tasks):
            return {"command": "couple", "tasks": tasks}
        case ("decouple", one):
            return {"command": "decouple", "task": one}
        case ("unlink", name):
            return {"command": "unlink", "name": name}
        case ("rows", "add", file):
            return {"command": "rows", "file": str(Path(file).absolute()), "task": task}
        case ("link", name, address):
            return {"command": "link", "name": name, "address": address}
    raise click.UsageError(f"An agent cannot be told {' '.join(words)!r}: see 'dtsvm tell --help'.")


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
