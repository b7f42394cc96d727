"""What coupled tasks have in common: they share what they learn about the same question only."""

from __future__ import annotations

from collections.abc import Iterable

from dtsvm.runtime.agent.node.lanes import aspect
from dtsvm.runtime.agent.node.names import ABOUT
from dtsvm.runtime.agent.node.roster import Roster

__all__ = ["share_nothing"]

ANEW = (
    " Tasks of two labels and of more share what they learn if every node.toml has them under "
    "couple, with [prepare], when the network begins."
)


def share_nothing(roster: Roster, tasks: Iterable[str]) -> list[str]:
    """Return a sentence for every task that is coupled with others and asks nothing they ask.

    A task of two labels asks one question, one of more labels one a label. They were made when the
    network began; those of tasks that are coupled later may have nothing in common.
    """
    lanes = roster.main_lanes(roster.entries)
    asked = {task: {aspect(name) for name in names} for task, names in lanes.items()}
    said = []
    for task in sorted({*tasks} & {*asked}):
        group = roster.group(task)
        others = [t for t in sorted(asked) if t != task and roster.group(t) == group]
        if others and not any(asked[task] & asked[other] for other in others):
            known = {"": "which of two it is"}
            about = ", ".join(sorted(known.get(one, one.lstrip(ABOUT)) for one in asked[task]))
            remedy = ANEW if any("" in asked[one] for one in (task, *others)) else ""
            said.append(
                f"Task {task} shares nothing with {', '.join(others)}: of its labels it asks "
                f"{about}, and they do not.{remedy}"
            )
    return said
