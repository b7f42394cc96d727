"""The command line: one module a family of commands, loaded when its command is called."""

import click

from dtsvm import __version__
from dtsvm.cli.group import LazyGroup

__all__ = ["main"]

COMMANDS = {
    "train": "dtsvm.cli.train:train",
    "predict": "dtsvm.cli.predict:predict",
    "evaluate": "dtsvm.cli.evaluate:evaluate",
    "inspect": "dtsvm.cli.inspect:inspect",
    "live": "dtsvm.cli.live:live",
    "reproduce": "dtsvm.cli.reproduce:reproduce",
    "demo": "dtsvm.cli.demo:demo",
    "network": "dtsvm.cli.network:network",
    "agent": "dtsvm.cli.agent:agent",
    "tell": "dtsvm.cli.agent:tell",
    "status": "dtsvm.cli.agent:status",
}


@click.group(cls=LazyGroup, commands_at=COMMANDS)
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
@click.version_option(__version__, prog_name="dtsvm")
def main(debug: bool) -> None:
    """Train related classifiers over a network that has no centre.

    Every node keeps its rows; only decision variables travel, and only between neighbours.

    \b
    A first round trip:
      dtsvm train rows.csv --label sick --task disease --node clinic --network ring
      dtsvm inspect model.json
      dtsvm predict model.json new.csv --task-name flu
    """  # noqa: D301
