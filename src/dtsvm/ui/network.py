"""`dtsvm network`: a folder a node, with its configuration, certificate and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dtsvm.errors import MissingExtraError, NetworkError
from dtsvm.problem import Network
from dtsvm.problem.settings import positive, refusal

try:
    from dtsvm.runtime.agent.node.names import check_address, check_name
    from dtsvm.runtime.agent.site.certificates import make_request, revoke, sign
    from dtsvm.runtime.agent.site.config import (
        Common,
        PrepareConfig,
        TaskConfig,
        read_config,
        to_toml,
    )
    from dtsvm.runtime.agent.site.folders import make_site, write_folder

    IS_INSTALLED = True
except ImportError:  # said when a command is called, so that 'dtsvm --help' works without
    IS_INSTALLED = False

__all__ = ["network"]

SHAPES = ("ring", "complete", "line", "star", "grid")


@click.group()
def network() -> None:
    """Make the folders of a real network: one node a folder, for one machine each.

    \b
    dtsvm network new ring --nodes a b c --out site/ --task flu --label sick
    dtsvm network add site d --link b --listen 127.0.0.1:7004
    dtsvm network request ~/d d
    dtsvm network sign site d.csr --out d.pem
    dtsvm network revoke site site/c/node.pem
    """  # noqa: D301
    if not IS_INSTALLED:
        raise MissingExtraError(
            "A network needs protobuf and cryptography, which are not installed. "
            'Install them with: pip install "dtsvm[agent]"'
        )


@network.command()
@click.argument("shape", type=click.Choice(SHAPES))
@click.option("--nodes", multiple=True, required=True, metavar="NAME", help="A node; repeat it.")
@click.argument("more", nargs=-1, metavar="[NAME]...")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to make.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Host of every address.")
@click.option("--port", default=47001, show_default=True, help="The first node's port.")
@click.option("--task", default="task", show_default=True, help="The task to write down.")
@click.option("--data", default="rows.csv", show_default=True, help="Its file in each folder.")
@click.option("--label", default="label", show_default=True, help="Its label column.")
@click.option(
    "--C",
    "C",
    help="Price of a row's loss. By default 'auto': the network chooses it, and which tasks train "
    "together.",
)
@click.option("--raw", is_flag=True, help="Take numbers as they are: no [prepare] in node.toml.")
@click.option("--weight", metavar="COLUMN", help="The column of rows' weights.")
@click.option("--balanced", is_flag=True, help="Weigh labels by how rare they are in the network.")
@click.option("--probability", is_flag=True, help="Fit probabilities, too; training takes longer.")
def new(
    shape: str,
    nodes: tuple[str, ...],
    more: tuple[str, ...],
    out: Path,
    host: str,
    port: int,
    task: str,
    data: str,
    label: str,
    C: str | None,
    raw: bool,
    weight: str | None,
    balanced: bool,
    probability: bool,
) -> None:
    """Make a folder for each node of a new network, and a CA of its own.

    \b
      dtsvm network new ring --nodes hospital-a hospital-b hospital-c --out site/

    The addresses are on this machine: edit them in each node.toml, then copy each folder to its
    machine. Keep OUT/ca.key to yourself: whoever has it can let nodes in.
    """  # noqa: D301
    names = [check_name(name) for name in (*nodes, *more)]
    graph = Network.named(shape, names)
    address = {name: f"{host}:{port + i}" for i, name in enumerate(names)}
    price = _price(C)
    lines = {task: {"data": data, "label": label, **({"weight": weight} if weight else {})}}
    make_site(
        out, graph, address, lines, {"C": price}, prepare=None if raw else PrepareConfig(),
        class_weight="balanced" if balanced else None, probability=probability,
    )  # fmt: skip
    click.echo(f"{len(names)} nodes in {out}: put each node's rows at its {data}, then start")
    for name in names:
        click.echo(f"  dtsvm agent {out / name / 'node.toml'}")


@network.command()
@click.argument("site", type=click.Path(path_type=Path, exists=True))
@click.argument("name")
@click.option("--link", "links", multiple=True, required=True, help="A neighbour; repeat it.")
@click.option("--listen", required=True, metavar="HOST:PORT", help="Where it will listen.")
@click.option(
    "--request",
    type=click.Path(path_type=Path, exists=True),
    help="Sign this request of 'dtsvm network request' instead of making a key.",
)
def add(site: Path, name: str, links: tuple[str, ...], listen: str, request: Path | None) -> None:
    """Make the folder of a newcomer, and write its line into its neighbours' files in SITE.

    Agents that run already are told with 'dtsvm tell … link'.
    """
    check_name(name)
    check_address(listen)
    taken = {path.name.casefold() for path in site.iterdir()}
    if name.casefold() in taken:
        raise NetworkError(f"{site / name} exists already. Choose another name.")
    configs = {other: read_config(site / other / "node.toml") for other in links}
    first = next(iter(configs.values()))
    tasks = {t: _task_lines(c) for t, c in first.tasks.items()}
    around = {other: config.listen for other, config in configs.items()}
    identity = f"{first.network:016x}"
    couple = "all" if first.couple == (tuple(first.tasks),) else first.couple
    text = to_toml(
        name, identity, listen, around, tasks, first.shared,
        Common(
            first.timing, couple, first.personal, first.prepare, first.class_weight,
            first.probability,
        ),
    )  # fmt: skip
    write_folder(site, name, text, request)
    for other, config in configs.items():
        text = config.path.read_text(encoding="utf-8")
        line = f'[neighbours]\n"{name}" = "{listen}"\n'
        config.path.write_text(text.replace("[neighbours]\n", line, 1), encoding="utf-8")
        click.echo(f"{config.path}: added {name} = {listen}; if its agent runs, tell it:")
        click.echo(f"  dtsvm tell {site / other / 'node.toml'} link {name} {listen}")
    click.echo(f"Put the newcomer's rows into {site / name}, then start")
    click.echo(f"  dtsvm agent {site / name / 'node.toml'}")


@network.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("name")
def request(folder: Path, name: str) -> None:
    """Make a key in FOLDER, at the node's own site, and a request to sign for it.

    The key stays in FOLDER. Send node.csr to whoever has the authority, put the node.pem that comes
    back beside it. With a key there already, the request renews its certificate; a running agent
    takes the new one up by itself.
    """
    check_name(name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = make_request(folder, name)
    click.echo(f"Send {path} to be signed:")
    click.echo(f"  dtsvm network sign SITE {path.name} --out node.pem")


@network.command(name="sign")
@click.argument("site", type=click.Path(path_type=Path, exists=True))
@click.argument("csr", type=click.Path(path_type=Path, exists=True))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Certificate to write.")
def sign_(site: Path, csr: Path, out: Path) -> None:
    """Sign a request with the authority of SITE; look at its name before you do."""
    name = sign(site, csr, out)
    click.echo(f"{out}: node {name!r}. Send it back, with {site / 'ca.pem'}.")


@network.command(name="revoke")
@click.argument("site", type=click.Path(path_type=Path, exists=True))
@click.argument("certificates", nargs=-1, required=True, type=click.Path(path_type=Path))
def revoke_(site: Path, certificates: tuple[Path, ...]) -> None:
    """Let the nodes with these CERTIFICATES in no more.

    Copy the list that is written to every node's folder; running agents take it up by themselves.
    """
    path = revoke(site, list(certificates))
    click.echo(f"{path}: put it into every node's folder.")


def _price(text: str | None) -> float | str:
    """Return a number, or "auto": the network chooses."""
    if text in (None, "auto"):
        return "auto"
    try:
        return positive("dtsvm network new", "--C", float(str(text)))
    except ValueError:
        raise refusal("dtsvm network new", "--C", "'auto' or a positive float", text) from None


def _task_lines(task: TaskConfig) -> dict[str, Any]:
    data = task.data.name if task.data else None
    given = {"data": data, "label": task.label, "labels": task.labels, "weight": task.weight}
    return {key: value for key, value in given.items() if value is not None}
