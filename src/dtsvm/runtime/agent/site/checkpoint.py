"""A node on disk: λ, estimates, edge states, levels and later rows; no pickle, read back whole.

Rows that the configuration names are not repeated: their digest tells whether they are the same.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.files import digest_of
from dtsvm.errors import ModelFileError
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.refuse import MOST_COUNT

__all__ = ["Told", "dump", "kept_round", "read_told", "repaired", "restore"]

FORMAT, VERSION = "dtsvm agent", 5
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Told:
    """What a node's owner told it, beyond its configuration.

    Parameters
    ----------
    linked : dict of str to str
        Neighbours and their addresses.
    unlinked : tuple of str
        Neighbours of the configuration that it talks to no more.
    left : tuple of str
        Tasks of the configuration that have left.
    """

    linked: dict[str, str] = field(default_factory=dict)
    unlinked: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def dump(
    node: Node,
    n_first: dict[str, int],
    told: Told | None = None,
    change: dict[str, Any] | None = None,
) -> bytes:
    """Return a checkpoint.

    Parameters
    ----------
    node : Node
        The node.
    n_first : dict
        How many rows of each task the configuration gives.
    told : Told, optional
        What else its owner told it.
    change : dict, optional
        A change that is about to be made: `said` of tasks that train together, or `rows` as
        (task, X, y).
    """
    told, change = told or Told(), change or {}
    tasks, arrays = _rows(node, n_first, told, change.get("rows"))
    edges = node.ends.edge_states()
    arrays["penalty"] = np.array([penalty for penalty, _ in edges.values()]).reshape(-1, 2)
    shape = (-1, 2, node.n_features + 1)
    arrays["edge_state"] = np.array([z for _, z in edges.values()]).reshape(shape)
    said = change.get("said", node.presence.said)
    head = {
        "format": FORMAT,
        "version": VERSION,
        "name": node.name,
        "network": node.network,
        "incarnation": node.presence.incarnation,
        "round": node.round,
        "n_told": node.presence.told + bool(change),
        "tasks": tasks,
        "said": [[*pair, *words] for pair, words in sorted(said.items())],
        "linked": told.linked,
        "unlinked": told.unlinked,
        "left": told.left,
        "edges": list(edges),
        "levels": node.balancer.levels(),
    }
    return _pack(head, arrays)


def _rows(
    node: Node, n_first: dict[str, int], told: Told, more: Any
) -> tuple[list[dict[str, Any]], Arrays]:
    """Return the tasks and their arrays; a digest stands for rows of the configuration."""
    arrays: Arrays = {}
    tasks = []
    held = {task: h for task, h in sorted(node.holdings.items()) if task not in told.left}
    for i, (task, holding) in enumerate(held.items()):
        tables = node.state.tables
        X, y = tables.rows_of(holding.slot)
        dual = tables.rows["dual"][tables.row_slots[holding.slot]]
        n = n_first.get(task, 0)
        tasks.append(
            {"task": task, "n_first": n, "first": digest_of({"X": X[:n], "y": y[:n]}).hex()}
        )
        if more and more[0] == task:
            X, y = np.concatenate([X, more[1]]), np.concatenate([y, more[2]])
            dual = np.concatenate([dual, np.zeros(len(more[2]))])
        arrays[f"X{i}"], arrays[f"y{i}"], arrays[f"dual{i}"] = X[n:], y[n:], dual
        arrays[f"estimate{i}"] = node.state.estimate(holding.slot)
    return tasks, arrays


def restore(node: Node, content: bytes, where: str = "The checkpoint") -> None:
    """Take over what `dump` returned into a node that has entered its tasks with its first rows."""
    arrays = _read(content, where)
    head = json.loads(arrays["head"].tobytes())
    _check_head(node, head, arrays, where)
    presence = node.presence
    presence.incarnation = max(presence.incarnation, head["incarnation"] + 1)
    presence.told = presence.restored = head["n_told"]
    for i, kept in enumerate(head["tasks"]):
        if kept["task"] in node.holdings:
            _restore_task(node, kept, arrays, i)
    said = {(one, other): (stamp, is_so) for one, other, stamp, is_so in head["said"]}
    node.say({**presence.said, **said})
    node.round = head["round"]
    node.balancer.remembered = {g: np.array(level) for g, level in head["levels"].items()}
    node.ends.remembered = {
        (task, other, to): (arrays["penalty"][k], arrays["edge_state"][k])
        for k, (task, other, to) in enumerate(head["edges"])
    }


def _check_head(node: Node, head: dict[str, Any], arrays: Arrays, where: str) -> None:
    if head["name"] != node.name or head["network"] != node.network:
        raise ModelFileError(
            f"{where} belongs to node {head['name']!r} of another network or name; "
            "take it away to begin anew."
        )
    if arrays["edge_state"].shape[2] != node.n_features + 1:
        raise ModelFileError(
            f"{where} has rows of {arrays['edge_state'].shape[2] - 1} features, but the data has "
            f"{node.n_features}; take it away to begin anew."
        )
    if max(head["incarnation"], head["round"]) >= MOST_COUNT - 1:
        raise ModelFileError(f"{where} has counted too far; begin to count anew: dtsvm repair.")
    numbers = [arrays[name] for name in arrays if name not in ("head", "digest")]
    if not all(np.isfinite(some).all() for some in numbers):
        raise ModelFileError(
            f"{where} has numbers that are not finite; keep the rows alone: dtsvm repair."
        )


def read_told(content: bytes, where: str = "The checkpoint") -> Told:
    """Return what a node's owner told it, beyond its configuration."""
    head = json.loads(_read(content, where)["head"].tobytes())
    return Told(dict(head["linked"]), tuple(head["unlinked"]), tuple(head["left"]))


def kept_round(content: bytes, where: str = "The checkpoint") -> int:
    """Return the round at which `dump` was called; refuse a damaged checkpoint."""
    return int(json.loads(_read(content, where)["head"].tobytes())["round"])


def repaired(
    content: bytes, where: str = "The checkpoint", *, with_left: bool = False
) -> tuple[bytes, int]:
    """Return a checkpoint that counts and trains anew, and how many later rows it keeps.

    `with_left` lets tasks that have left begin again.
    """
    arrays = _read(content, where)
    head = json.loads(arrays["head"].tobytes())
    head.update(round=0, incarnation=0, edges=[], levels={})
    head.update({"left": []} if with_left else {})
    n_rows = 0
    for i in range(len(head["tasks"])):
        n_rows += len(arrays[f"y{i}"])
        for name in (f"dual{i}", f"estimate{i}"):
            arrays[name] = np.zeros_like(arrays[name])
    arrays["penalty"], arrays["edge_state"] = arrays["penalty"][:0], arrays["edge_state"][:0]
    return _pack(head, arrays), n_rows


def _pack(head: dict[str, Any], arrays: Arrays) -> bytes:
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    arrays["digest"] = np.frombuffer(digest_of(arrays), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _restore_task(node: Node, kept: dict[str, Any], arrays: Arrays, i: int) -> None:
    state, slot = node.state, node.holdings[kept["task"]].slot
    X, y = state.tables.rows_of(slot)
    is_same = len(y) == kept["n_first"] and digest_of({"X": X, "y": y}).hex() == kept["first"]
    if len(arrays[f"y{i}"]):
        node.add_rows(kept["task"], arrays[f"X{i}"], arrays[f"y{i}"])
    # If the data file was changed λ begins anew; the estimate is still a good start.
    state.iterates.begin_at(slot, arrays[f"estimate{i}"], arrays[f"dual{i}"] if is_same else None)


def _read(content: bytes, where: str) -> Arrays:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if arrays.pop("digest").tobytes() != digest_of(arrays):
            raise ValueError("digest")
        head = json.loads(arrays["head"].tobytes())
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise ModelFileError(
            f"{where} is damaged; take it away to begin anew, or put back a copy."
        ) from error
    if head.get("format") != FORMAT or head.get("version") != VERSION:
        raise ModelFileError(
            f"{where} holds {head.get('format')!r} version {head.get('version')!r}; "
            f"this program reads {FORMAT!r} version {VERSION}."
        )
    return arrays
