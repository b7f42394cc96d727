"""Names from text: what a file or a command line calls a node, task or label, with its own type."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.tables import read_table
from dtsvm.errors import DataError, NetworkError, did_you_mean
from dtsvm.problem import Network

__all__ = ["find_name", "match_names", "read_links"]


def find_name(text: Any, known: Iterable[Any], what: str) -> Any:
    """Return the known name that `text` spells, or refuse it.

    Examples
    --------
    >>> find_name("3", [1, 2, 3], "task")
    3
    """
    choices = list(known)
    found = _match(text, choices)
    if found is None:
        raise DataError(f"Unknown {what} {text!r}. {did_you_mean(text, choices)}")
    return found


def match_names(values: NDArray[Any], known: Iterable[Any]) -> NDArray[Any]:
    """Replace every value that spells a known name by that name; leave others as they are.

    The type of a column depends on all its values, so "1" may come back as 1 from another file.

    Examples
    --------
    >>> import numpy as np
    >>> match_names(np.array([1, 2, 7]), ["1", "2", "b"]).tolist()
    ['1', '2', 7]
    """
    choices = list(known)
    levels, index = np.unique(values, return_inverse=True)
    matched = np.empty(len(levels), object)
    for i, level in enumerate(levels.tolist()):
        found = _match(level, choices)
        matched[i] = level if found is None else found
    return matched[index]


def read_links(path: Path, nodes: Iterable[Any]) -> Network:
    """Read a network from a file of two columns, a link a row.

    Parameters
    ----------
    path : Path
        The file. Its first line names the columns, or is itself a link between two of `nodes`.
    nodes : iterable
        The nodes that hold rows, whose names the file may spell as text. The file may name others.
    """
    known = list(nodes)
    table = read_table(path)
    if len(table.columns) != 2:
        raise NetworkError(
            f"{path} has {len(table.columns)} columns. Give a file of links two: the nodes that "
            "each link joins."
        )
    ends = [[str(value).strip() for value in column] for column in table.columns.values()]
    pairs = list(zip(*ends, strict=True))
    header = tuple(table.columns)
    if all(_match(name, known) is not None for name in header):
        pairs.insert(0, header)
    links = [tuple(_node(text, known) for text in pair) for pair in pairs]
    named = dict.fromkeys(end for link in links for end in link)
    return Network(list(dict.fromkeys([*known, *named])), links)  # type: ignore[arg-type]


def _node(text: str, known: list[Any]) -> Any:
    """A node without rows is a number where the others are numbers."""
    found = _match(text, known)
    if found is not None:
        return found
    are_numbers = bool(known) and all(isinstance(node, int) for node in known)
    return int(text) if are_numbers and text.lstrip("+-").isdigit() else text


def _match(value: Any, known: list[Any]) -> Any:
    for name in known:
        if name == value:
            return name
    return next((name for name in known if str(name) == str(value)), None)
