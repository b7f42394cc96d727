"""A node on disk: λ, estimates, edge states and levels; no pickle, read back whole.

Rows are not repeated: they are in the files that the configuration names, and in copies of those
that were added later. A digest tells whether they are the same.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.files import digest_of
from dtsvm.errors import ModelFileError
from dtsvm.runtime.agent.node.lanes import is_main
from dtsvm.runtime.agent.node.node import Node

__all__ = [
    "Told", "dump", "kept_round", "read_told", "repaired", "restore", "retold", "told_before",
]  # fmt: skip

FORMAT, VERSION = "dtsvm agent", 6
NEVER = -1  # the generation of a node that has not agreed on anything yet
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
    later : tuple of (str, str, int)
        Task, file and number of the rows that were added later.
    generation : int
        How often all have agreed anew; iterates of another generation mean nothing.
    """

    linked: dict[str, str] = field(default_factory=dict)
    unlinked: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    later: tuple[tuple[str, str, int], ...] = ()
    generation: int = 0

    def neighbours(self, given: dict[str, str]) -> dict[str, str]:
        """Return the neighbours that are left, and their addresses; `given` are configured."""
        every = {**given, **self.linked}
        return {name: address for name, address in every.items() if name not in self.unlinked}

    def but(self, change: dict[str, Any]) -> Told:
        """Return what a node was told, with one thing more."""
        if "linked" in change:
            name, address = change["linked"]
            rest = tuple(other for other in self.unlinked if other != name)
            return replace(self, linked={**self.linked, name: address}, unlinked=rest)
        if "unlinked" in change:
            name = change["unlinked"]
            linked = {other: a for other, a in self.linked.items() if other != name}
            return replace(self, linked=linked, unlinked=(*self.unlinked, name))
        if "left" in change:
            return replace(self, left=(*self.left, change["left"]))
        if "later" in change:
            return replace(self, later=(*self.later, change["later"]))
        return self


def told_before(folder: Path) -> Told:
    """Return what a node's owner told it before it was last stopped."""
    path = folder / "checkpoint.npz"
    return read_told(path.read_bytes(), str(path)) if path.exists() else Told()


def dump(node: Node, told: Told | None = None, change: dict[str, Any] | None = None) -> bytes:
    """Return a checkpoint.

    Parameters
    ----------
    node : Node
        The node.
    told : Told, optional
        What else its owner told it.
    change : dict, optional
        A change that is about to be made, such as what is `said` of tasks that train together.
    """
    told, change = told or Told(), change or {}
    tasks, arrays = _tasks(node, told)
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
        "later": told.later,
        "generation": told.generation,
        "edges": list(edges),
        "spent": node.veil.status().get("spent", 0),
        "levels": node.balancer.levels(),
    }
    return _pack(head, arrays)


def _tasks(node: Node, told: Told) -> tuple[list[dict[str, Any]], Arrays]:
    """Return the tasks and the numbers of their lanes; a digest stands for the rows."""
    arrays: Arrays = {}
    tasks = []
    tables = node.state.tables
    for task in sorted(node.tasks):
        if task in told.left:
            continue
        n = node.n_rows(task)
        lanes = {name: node.holdings[name].slot for name in node.lanes(task)}
        first = len(arrays) // 2
        tasks.append(
            {"task": task, "n": n, "rows": _digest(node, task, n), "lanes": [*lanes], "at": first}
        )
        for i, slot in enumerate(lanes.values(), first):
            arrays[f"dual{i}"] = tables.rows["dual"][tables.row_slots[slot]]
            arrays[f"estimate{i}"] = node.veil.shown(node.state, slot)
    return tasks, arrays


def _digest(node: Node, task: str, n: int) -> str:
    """Tell the first n rows of a task, and their labels."""
    tables = node.state.tables
    slots = [node.holdings[name].slot for name in node.lanes(task) if is_main(name)]
    X, _ = tables.rows_of(slots[0])
    rows = {"X": X[:n]} if isinstance(X, np.ndarray) else _sparse(X[:n])
    sides = {f"y{k}": tables.rows_of(slot)[1][:n] for k, slot in enumerate(slots)}
    return digest_of({**rows, **sides}).hex()


def _sparse(X: Any) -> Arrays:
    return {"data": X.data, "indices": X.indices.astype(np.int64), "indptr": X.indptr}


def restore(node: Node, content: bytes, where: str = "The checkpoint", generation: int = 0) -> None:
    """Take over what `dump` returned into a node that has entered its tasks with all their rows.

    What was found in another generation is left: features or weights are others now.
    """
    arrays = _read(content, where)
    head = json.loads(arrays["head"].tobytes())
    if head["generation"] != generation:
        head.update(tasks=[], edges=[], levels={}, round=0)  # all meet anew
        arrays["edge_state"] = np.zeros((0, 2, node.n_features + 1))
    _check_head(node, head, arrays, where)
    node.veil.recall(head.get("spent", 0))
    presence = node.presence
    presence.incarnation = max(presence.incarnation, head["incarnation"] + 1)
    presence.told = presence.restored = head["n_told"]
    for kept in head["tasks"]:
        if kept["task"] in node.tasks:
            _restore_task(node, kept, arrays)
    said = {(one, other): (stamp, is_so) for one, other, stamp, is_so in head["said"]}
    node.say({**presence.said, **said})
    node.round = head["round"]
    node.balancer.remembered = {g: np.array(level) for g, level in head["levels"].items()}
    node.ends.remembered = {
        (task, other, to): (arrays["penalty"][k], arrays["edge_state"][k])
        for k, (task, other, to) in enumerate(head["edges"])
    }
    presence.linked = {other for _, other, _ in head["edges"]}


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
    if max(head["incarnation"], head["round"], head["n_told"]) >= node.identity.latest():
        raise ModelFileError(f"{where} has counted too far; begin to count anew: dtsvm repair.")
    numbers = [arrays[name] for name in arrays if name not in ("head", "digest")]
    if not all(np.isfinite(some).all() for some in numbers):
        raise ModelFileError(
            f"{where} has numbers that are not finite; keep the rows alone: dtsvm repair."
        )


def read_told(content: bytes, where: str = "The checkpoint") -> Told:
    """Return what a node's owner told it, beyond its configuration."""
    head = json.loads(_read(content, where)["head"].tobytes())
    later = tuple((task, file, n) for task, file, n in head["later"])
    linked, unlinked, left = dict(head["linked"]), tuple(head["unlinked"]), tuple(head["left"])
    return Told(linked, unlinked, left, later, head["generation"])


def retold(content: bytes | None, told: Told, name: str, network: int) -> bytes:
    """Return a checkpoint of a node that was told something else; it may have none yet."""
    head: dict[str, Any] = {
        "format": FORMAT, "version": VERSION, "name": name, "network": network, "incarnation": 0,
        "round": 0, "n_told": 0, "tasks": [], "said": [], "generation": NEVER, "edges": [],
        "spent": 0, "levels": {},
    }  # fmt: skip
    arrays: Arrays = {"penalty": np.zeros((0, 2)), "edge_state": np.zeros((0, 2, 1))}
    if content is not None:
        arrays = _read(content, "The checkpoint")
        head = json.loads(arrays["head"].tobytes())
    head.update(
        linked=told.linked, unlinked=told.unlinked, left=told.left, later=told.later,
        n_told=head["n_told"] + 1,
    )  # fmt: skip
    return _pack(head, arrays)


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
    n_rows = sum(n for _, _, n in head["later"])
    for name in arrays:
        if name.startswith(("dual", "estimate")):
            arrays[name] = np.zeros_like(arrays[name])
    arrays["penalty"], arrays["edge_state"] = arrays["penalty"][:0], arrays["edge_state"][:0]
    return _pack(head, arrays), n_rows


def _pack(head: dict[str, Any], arrays: Arrays) -> bytes:
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    arrays["digest"] = np.frombuffer(digest_of(arrays), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _restore_task(node: Node, kept: dict[str, Any], arrays: Arrays) -> None:
    """Let lanes go on; those that were not there, and λ of other rows, begin anew."""
    state, n = node.state, kept["n"]
    n_now = node.n_rows(kept["task"])
    is_same = n_now >= n and _digest(node, kept["task"], n) == kept["rows"]
    for i, name in enumerate(kept["lanes"], kept["at"]):
        if name in node.holdings:
            slot, dual = node.holdings[name].slot, arrays[f"dual{i}"]
            n_new = state.n_rows(slot) - len(dual)
            if is_same and n_new >= 0:
                state.iterates.begin_at(
                    slot, arrays[f"estimate{i}"], np.append(dual, np.zeros(n_new))
                )
            else:  # the estimate is still a good start
                state.iterates.begin_at(slot, arrays[f"estimate{i}"])


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
