"""`dtsvm demo`: a live page, or a real network on this machine, one node killed and back."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dtsvm.errors import MissingExtraError, NetworkError
from dtsvm.problem import Network
from dtsvm.ui.demo_digits import (
    SETTINGS,
    Comparison,
    compare,
    deal_digits,
    simulate,
    task_lines,
    write_files,
)
from dtsvm.ui.demo_sites import sites
from dtsvm.ui.network import SHAPES
from dtsvm.ui.show import print_table, share, short
from dtsvm.ui.watch import page_options, show_page
from dtsvm.ui.watch_table import Watch

if TYPE_CHECKING:
    from dtsvm.ui.page.scene import Scene

try:
    from dtsvm.runtime.agent.node.node import Timing
    from dtsvm.runtime.agent.process.children import Children, free_addresses
    from dtsvm.runtime.agent.site.checkpoint import kept_round
    from dtsvm.runtime.agent.site.folders import make_site

    IS_INSTALLED = True
except ImportError:  # said when a command is called, so that 'dtsvm --help' works without
    IS_INSTALLED = False

__all__ = ["demo"]

LOOK_SECONDS = 0.2
ROUNDS_BEFORE = 30  # what the node to be killed has in its checkpoint at least
EVICT_SECONDS = 3.0


@click.group()
def demo() -> None:
    """See it work on this machine: a network of agents, or files to try things on.

    \b
    dtsvm demo page
    dtsvm demo network --nodes 6
    dtsvm demo sites --out sites/
    """  # noqa: D301


demo.add_command(sites)


@demo.command("network")
@click.option("--nodes", type=click.IntRange(2, 50), default=6, show_default=True,
              help="How many nodes; each is a process.")  # fmt: skip
@click.option("--topology", type=click.Choice(SHAPES), default="ring", show_default=True,
              help="How they are linked.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Seed of the rows.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path),
              help="Folder to make.  [default: a temporary one, which stays]")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=1), default=180.0, show_default=True,
              help="Give up after so long.")  # fmt: skip
def network_(nodes: int, topology: str, seed: int, out: Path | None, seconds: float) -> None:
    """Run a real network on this machine, and kill a node of it.

    Every node is a process with its own rows of digits; neighbours talk over TCP with mutual TLS
    on free ports of loopback. One is killed (kill -9), the others go on, it comes back from its
    checkpoint. When all have settled, their risks are shown beside those of a simulation on the
    very same rows. It takes about half a minute.

    \b
      dtsvm demo network
      dtsvm demo network --nodes 4 --topology line --out site/
    """  # noqa: D301
    if not IS_INSTALLED:
        raise MissingExtraError(
            "The demo's agents need protobuf and cryptography, which are not installed. "
            'Install them with: pip install "dtsvm[agent]"'
        )
    names = [f"node-{i + 1}" for i in range(nodes)]
    graph = Network.named(topology, names)
    site = out or Path(tempfile.mkdtemp(prefix="dtsvm-demo-"))
    timing = Timing(
        start_seconds=seconds, evict_seconds=EVICT_SECONDS, round_seconds=0.5,
        checkpoint_seconds=0.5,
    )  # fmt: skip
    address = dict(zip(names, free_addresses(nodes), strict=True))
    make_site(site, graph, address, task_lines(), SETTINGS, timing)
    dealt = deal_digits(names, seed)
    write_files(site, dealt)
    click.echo(f"{nodes} nodes, {topology}, in {site}")
    with _ended_by_signals(), Children(site) as children, Watch(names) as watch:
        story = _Story(children, watch, names, time.monotonic() + seconds)
        story.meet()
        story.lose_and_revive(_dispensable(graph))
        story.settle()
        simulation = simulate(graph, dealt)
        found = compare(site, simulation, dealt)
        story.part()
    _report(found, int(simulation.info_.n_rounds))
    _what_next(site, names[0])


@demo.command("page")
@click.option("--nodes", type=click.IntRange(2, 200), default=12, show_default=True,
              help="How many nodes.")  # fmt: skip
@click.option("--topology", type=click.Choice(("mesh", *SHAPES)), default="mesh",
              show_default=True, help="How they are linked.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Seed of links, rows and lost messages.")  # fmt: skip
@click.option("--speed", type=click.FloatRange(0.1, 1000), default=30.0, show_default=True,
              help="Rounds a second.")  # fmt: skip
@page_options
def page_(nodes: int, topology: str, seed: int, speed: float, **page: Any) -> None:
    """Change a network by hand, and see it go to the optimum of those present.

    A live session on the bundled digits, drawn in the browser: kill nodes, bring them back, add
    some, link and unlink them, couple tasks, lose messages, poison a node.

    \b
      dtsvm demo page
      dtsvm demo page --nodes 30 --topology grid --port 8080 --no-open
    """  # noqa: D301

    def make() -> Scene:
        from dtsvm.ui.page.demo import DemoNetwork, mesh

        names = [str(i + 1) for i in range(nodes)]
        network = mesh(names, seed) if topology == "mesh" else Network.named(topology, names)
        return DemoNetwork(network, seed, speed)

    show_page(make, **page)


def _dispensable(graph: Network) -> str:
    """Return a node without which the others still hear each other: a farthest one."""
    reached = [graph.nodes[0]]
    for node in reached:
        reached += [other for other in graph.neighbours(node) if other not in reached]
    return str(reached[-1])


class _Story:
    """What happens to the network, in order."""

    def __init__(self, children: Children, watch: Watch, names: list[str], deadline: float) -> None:
        self.children, self.watch = children, watch
        self.names, self.deadline = names, deadline
        self.statuses: dict[str, dict[str, Any]] = {}

    def meet(self) -> None:
        """Start everybody, and wait for the first round."""
        for name in self.names:
            self.children.start(name)
        self.watch.say(f"{len(self.names)} agents start, each a process; they meet, then train.")
        self._wait("begin", lambda: self._all(self.names, lambda s: s["round"] > 0))

    def lose_and_revive(self, name: str) -> None:
        """Kill a node once it has a checkpoint, let the others go on, bring it back."""
        checkpoint = self.children.site / name / "checkpoint.npz"
        self._wait("write a checkpoint", lambda: self._kept(checkpoint) >= ROUNDS_BEFORE)
        self.children.kill(name)
        self.watch.mark(name, "killed")
        lost_at = self.statuses.pop(name)["round"]
        others = [other for other in self.names if other != name]
        before = max(self.statuses[other]["round"] for other in others)
        self.watch.say(
            f"{name} is killed (kill -9) at round {lost_at:,}. The others keep what they know of "
            f"it for {EVICT_SECONDS:.0f} s, then go on without it."
        )
        self._wait(
            f"go on without {name}",
            lambda: self._all(
                others,
                lambda s: s["round"] > before and s["nodes"] == len(others) and s["is_settled"],
            ),
        )  # fmt: skip
        after = min(self.statuses[other]["round"] for other in others)
        self.watch.say(f"The others went on from round {before:,} to {after:,} and settled.")
        kept = self._kept(checkpoint)
        self.children.start(name)
        self.watch.mark(name, "starting")
        self.watch.say(
            f"{name} is started again and goes on from its checkpoint of round {kept:,}."
        )

    def settle(self) -> None:
        """Wait until all are together and settled."""
        n = len(self.names)
        self._wait(
            "settle", lambda: self._all(self.names, lambda s: s["is_settled"] and s["nodes"] == n)
        )
        last = max(status["round"] for status in self.statuses.values())
        self.watch.say(f"All {n} nodes have settled, the last at round {last:,}.")

    def part(self) -> None:
        """Let everybody leave politely."""
        self.children.leave()
        for name in self.names:
            self.watch.mark(name, "left")
        self.watch.say(f"All {len(self.names)} nodes have left politely.")

    @staticmethod
    def _kept(checkpoint: Path) -> int:
        return kept_round(checkpoint.read_bytes(), str(checkpoint)) if checkpoint.exists() else 0

    def _all(self, names: list[str], is_so: Callable[[dict[str, Any]], bool]) -> bool:
        return all(name in self.statuses and is_so(self.statuses[name]) for name in names)

    def _wait(self, what: str, condition: Callable[[], bool]) -> None:
        """Look and show until something is so; refuse an agent's death and too long a wait."""
        while True:
            self.children.check()
            self.statuses.update(self.children.statuses())
            self.watch.show(self.statuses)
            if condition():
                return
            if time.monotonic() > self.deadline:
                raise NetworkError(
                    f"The nodes did not {what} in time. Give them longer with --seconds, or look "
                    f"at their logs: {self.children.site}/*/agent.log"
                )
            time.sleep(LOOK_SECONDS)


def _report(found: list[Comparison], n_rounds: int) -> None:
    """Print the risks of the network beside the simulation's."""
    tasks = list(found[0].network)
    columns = [
        "test error of",
        *(f"{task} {who}" for task in tasks for who in ("here", "simulated")),
    ]
    lines = []
    for one in found:
        risks = [r for t in tasks for r in (one.network[t], one.simulation[t])]
        lines.append([one.node, *map(share, risks), short(one.distance)])
    click.echo()
    print_table([*columns, "classifiers differ by"], lines)
    click.echo(
        f"\nThe simulation took {n_rounds:,} rounds in one process on the same rows. At most, a "
        f"risk differs by {share(max(one.risk_distance for one in found))} and a classifier by "
        f"{short(max(one.distance for one in found))} of its length."
    )


def _what_next(site: Path, name: str) -> None:
    click.echo(f"\nThe network is in {site}; its agents go on from there:")
    for command in (
        f"dtsvm agent {site / name / 'node.toml'}      # one shell a node",
        f"dtsvm status {site}/*/node.toml",
        f"dtsvm inspect {site / name / 'model.json'}",
        f"dtsvm evaluate {site / name / 'model.json'} {site / 'test.csv'} --task task",
    ):
        click.echo(f"  {command}")


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let a closed terminal or a polite kill unwind the stack, so that no child stays behind."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {sign: signal.signal(sign, end) for sign in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
