"""`dtsvm watch`: agents or a saved session, on a page in the browser or as a table here."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dtsvm.data.tables import require_file
from dtsvm.errors import MissingExtraError
from dtsvm.ui.watch_table import Watch

if TYPE_CHECKING:
    from dtsvm.ui.page.scene import Scene

__all__ = ["page_options", "show_page", "watch"]

LOOK_SECONDS = 0.3


def page_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that shows a page."""
    for option in (
        click.option("--open/--no-open", "is_opened", default=None,
                     help="Open the browser.  [default: on a terminal]"),
        click.option("--port", type=click.IntRange(0, 65535), default=0,
                     help="Port to serve at.  [default: any free one]"),
        click.option("--host", default="127.0.0.1", show_default=True,
                     help="Address to serve at; any but loopback lets other machines look."),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command()
@click.argument("configs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--session", type=click.Path(path_type=Path),
              help="A saved session instead of agents; the page follows the file.")  # fmt: skip
@click.option("--control", is_flag=True,
              help="Let the page tell agents to leave, and tasks to train together.")  # fmt: skip
@click.option("--text", is_flag=True, help="A table in this terminal instead of a page.")
@page_options
def watch(
    configs: tuple[Path, ...], session: Path | None, control: bool, text: bool, **page: Any
) -> None:
    """Watch agents, or a saved session, until Ctrl-C.

    CONFIGS are the node.toml files of agents on this machine. The page is served on loopback to
    whoever has the address printed; it changes nothing unless started with --control.

    \b
      dtsvm watch site/*/node.toml
      dtsvm watch site/*/node.toml --text
      dtsvm watch --session state.npz
    """  # noqa: D301
    if bool(configs) == bool(session):
        raise click.UsageError("Name the node.toml files of agents, or a --session, and not both.")
    if session and (control or text):
        raise click.UsageError("A saved session is shown on a page that only looks.")
    for path in configs:
        require_file(path)
    folders = [path.absolute().parent for path in configs]
    if text:
        _need_agents()
        _watch_table(folders)
    else:
        show_page(lambda: _scene(session, folders, control), **page)


def show_page(make: Callable[[], Scene], *, host: str, port: int, is_opened: bool | None) -> None:
    """Serve what `make` returns until Ctrl-C, and say where."""
    try:
        from dtsvm.ui.page.serve import Served, is_loopback, open_port, serve
    except ImportError as error:
        raise MissingExtraError(
            "The page needs starlette and uvicorn, which are not installed. "
            'Install them with: pip install "dtsvm[page]"'
        ) from error
    with contextlib.closing(open_port(host, port)) as taken:
        scene = make()
        served = Served(host, taken.getsockname()[1], secrets.token_urlsafe(16))
        click.echo(f"{scene.title}: {served.address}")
        if not is_loopback(host):
            click.echo(
                "Other machines can reach this page; whoever has the address sees it, and what it "
                "shows travels unencrypted.",
                err=True,
            )
        click.echo("Ctrl-C ends it.")
        if sys.stdout.isatty() if is_opened is None else is_opened:
            click.launch(served.address)
        serve(scene, taken, served)


def _scene(session: Path | None, folders: list[Path], control: bool) -> Scene:
    if session is not None:
        from dtsvm.ui.page.saved import SavedSession

        return SavedSession(session)
    _need_agents()
    from dtsvm.ui.page.agents import Agents

    return Agents(folders, can_change=control)


def _need_agents() -> None:
    try:
        import dtsvm.ui.page.agents  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "Agents need protobuf and cryptography, which are not installed. "
            'Install them with: pip install "dtsvm[agent]"'
        ) from error


def _watch_table(folders: list[Path]) -> None:
    """Show the agents in a table that stays in place, or as lines, until Ctrl-C."""
    from dtsvm.ui.page.agents import ask_all

    names = [folder.name for folder in folders]
    with contextlib.suppress(KeyboardInterrupt), Watch(names) as table:
        while True:
            found = {folder.name: status for folder, status in
                     asyncio.run(ask_all(folders)).items()}  # fmt: skip
            for name in names:
                if name not in found:
                    table.mark(name, "not running")
            table.show(found)
            time.sleep(LOOK_SECONDS)
