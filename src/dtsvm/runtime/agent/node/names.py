"""Names of nodes and tasks, and addresses: what may be one, and how others' text is shown."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from dtsvm.errors import NetworkError, did_you_mean

__all__ = [
    "ABOUT",
    "MOST_NAME",
    "NODE_NAME",
    "WITHOUT",
    "check_address",
    "check_link",
    "check_name",
    "check_unlink",
    "is_lane",
    "is_task",
    "plain",
    "shown",
]

NODE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,61}[A-Za-z0-9])?")
HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\]")
MOST_NAME, MOST_LANE = 128, 256
ABOUT, WITHOUT = "›", "‹"  # begin what the name of a lane says after its task: see `lanes`
MOST_SHOWN = 80


def check_name(name: Any) -> str:
    """Return a node's name if certificates can carry it."""
    if not isinstance(name, str) or not NODE_NAME.fullmatch(name):
        raise NetworkError(
            f"{name!r} cannot be the name of a node: use up to 63 letters, digits, dots, hyphens."
        )
    return name


def check_address(address: Any) -> str:
    """Return an address if it is host:port."""
    host, _, port = str(address).rpartition(":")
    is_port = port.isascii() and port.isdecimal() and 0 < int(port) < 65_536
    if not is_port or not HOST.fullmatch(host):
        raise NetworkError(f"{address!r} is no address: write host:port, such as 10.0.0.5:47001.")
    return str(address)


def check_link(node: str, neighbour: str, known: Collection[str]) -> None:
    """Refuse a neighbour that a node cannot have; `known` are all others that it knows of."""
    if neighbour == node:
        raise NetworkError(f"Node {node!r} is linked to itself; a link joins two nodes.")
    twins = (n for n in (*known, node) if n.casefold() == neighbour.casefold())
    twin = next(twins, neighbour)
    if twin != neighbour:
        raise NetworkError(
            f"{neighbour!r} differs from node {twin!r} in case only. Choose another name."
        )


def check_unlink(node: str, neighbour: str, around: Collection[str]) -> None:
    """Refuse to unlink who is no neighbour."""
    if neighbour not in around:
        raise NetworkError(
            f"Node {node!r} has no link to {neighbour!r}. {did_you_mean(neighbour, around)}"
        )


def is_task(name: str) -> bool:
    """Whether a task may have this name: short, and nothing in it that means something else."""
    return is_lane(name) and len(name) <= MOST_NAME and not {ABOUT, WITHOUT} & {*name}


def is_lane(name: str) -> bool:
    """Whether a lane may have this name: short, and nothing in it that a terminal obeys."""
    return 0 < len(name) <= MOST_LANE and name.isprintable()


def shown(text: object) -> str:
    r"""Return what somebody else wrote so that it can be logged: quoted, escaped, cut.

    >>> shown("a\tb")
    "'a\\tb'"
    """
    return repr(str(text)[:MOST_SHOWN])


def plain(sentence: str) -> str:
    r"""Return a sentence with somebody else's words in it so that a terminal obeys none of them.

    >>> plain("Node c has 'age' in \x1b[2J.")
    "Node c has 'age' in \\x1b[2J."
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in sentence)
