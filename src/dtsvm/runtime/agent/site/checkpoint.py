"""A node on disk: λ, estimates, edge states, levels and later rows; no pickle, read back whole.

Rows that the configuration names are not repeated: their digest tells whether they are the same.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.files import digest_of
from dtsvm.errors import ModelFileError
from dtsvm.runtime.agent.node.ledger import Level
from dtsvm.runtime.agent.node.node import Node

__all__ = ["dump", "kept_round", "restore"]

FORMAT, VERSION = "dtsvm agent", 3
Arrays = dict[str, NDArray[Any]]


def dump(node: Node, n_first: dict[str, int]) -> bytes:
    """Return a checkpoint; `n_first` says how many rows of each task the configuration gives."""
    arrays: Arrays = {}
    tasks = []
    for i, (task, holding) in enumerate(sorted(node.holdings.items())):
        tables = node.state.tables
        X, y = tables.rows_of(holding.slot)
        n = n_first.get(task, 0)
        tasks.append(
            {"task": task, "n_first": n, "first": digest_of({"X": X[:n], "y": y[:n]}).hex()}
        )
        arrays[f"X{i}"], arrays[f"y{i}"] = X[n:], y[n:]
        arrays[f"dual{i}"] = tables.rows["dual"][tables.row_slots[holding.slot]]
        arrays[f"estimate{i}"] = node.state.estimate(holding.slot)
    edges = node.ends.edge_states()
    arrays["penalty"] = np.array([penalty for penalty, _ in edges.values()]).reshape(-1, 2)
    shape = (-1, 2, node.n_features + 1)
    arrays["edge_state"] = np.array([z for _, z in edges.values()]).reshape(shape)
    head = {
        "format": FORMAT,
        "version": VERSION,
        "name": node.name,
        "network": node.network,
        "incarnation": node.incarnation,
        "round": node.round,
        "tasks": tasks,
        "couples": sorted(node.roster.couples),
        "edges": list(edges),
        "levels": node.ledger.levels,
    }
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    arrays["digest"] = np.frombuffer(digest_of(arrays), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def restore(node: Node, content: bytes, where: str = "The checkpoint") -> None:
    """Take over what `dump` returned into a node that has entered its tasks with its first rows."""
    arrays = _read(content, where)
    head = json.loads(arrays["head"].tobytes())
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
    node.incarnation = max(node.incarnation, head["incarnation"] + 1)
    for i, kept in enumerate(head["tasks"]):
        if kept["task"] in node.holdings:
            _restore_task(node, kept, arrays, i)
    node.roster.merge([], [(one, other) for one, other in head["couples"]])
    node.round = head["round"]
    levels = {
        group: Level(decided, weights, bias, tail, tuple(leap))
        for group, (decided, weights, bias, tail, leap) in head["levels"].items()
    }
    node.ledger.merge(levels, [])
    node.ends.remembered = {
        (task, other, to): (arrays["penalty"][k], arrays["edge_state"][k])
        for k, (task, other, to) in enumerate(head["edges"])
    }


def kept_round(content: bytes, where: str = "The checkpoint") -> int:
    """Return the round at which `dump` was called; refuse a damaged checkpoint."""
    return int(json.loads(_read(content, where)["head"].tobytes())["round"])


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
