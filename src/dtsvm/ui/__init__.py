"""The command line: one module a family of commands, loaded when its command is called."""

import click

from dtsvm import __version__
from dtsvm.ui.group import LazyGroup

__all__ = ["main"]

COMMANDS = {
    "train": "dtsvm.ui.train:train",
    "compare": "dtsvm.ui.compare:compare",
    "predict": "dtsvm.ui.predict:predict",
    "evaluate": "dtsvm.ui.evaluate:evaluate",
    "inspect": "dtsvm.ui.inspect:inspect",
    "live": "dtsvm.ui.live:live",
    "reproduce": "dtsvm.ui.reproduce:reproduce",
    "demo": "dtsvm.ui.demo:demo",
    "network": "dtsvm.ui.network:network",
    "agent": "dtsvm.ui.agent:agent",
    "tell": "dtsvm.ui.agent:tell",
    "status": "dtsvm.ui.status:status",
    "watch": "dtsvm.ui.watch:watch",
    "repair": "dtsvm.ui.agent:repair",
    "audit": "dtsvm.ui.audit:audit",
}


# One of several ranks does these for all; agents and what speaks to them may be one each.
ALONE = {"compare", "predict", "evaluate", "inspect", "live", "reproduce", "demo", "network"}


@click.group(cls=LazyGroup, commands_at=COMMANDS, alone=ALONE)
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
@click.version_option(__version__, prog_name="dtsvm")
def main(debug: bool) -> None:
    """Train related classifiers over a network that has no centre.

    Every node keeps its rows; only decision variables travel, and only between neighbours.

    \b
    A first round trip:
      dtsvm train rows.csv --label sick --task disease --node site --network ring
      dtsvm inspect model.json
      dtsvm predict model.json new.csv --task-name flu
    """  # noqa: D301
