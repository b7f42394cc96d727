"""A session on disk: one npz file, written whole or not at all, read back bit for bit."""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.files import digest_of, write_atomically
from dtsvm.data.shares import map_npz
from dtsvm.errors import DataError, ModelFileError
from dtsvm.problem import Settings, TaskModel
from dtsvm.problem.questions import Question
from dtsvm.rounds import Info, Membership, Status
from dtsvm.svm.engines import members_of, run_by
from dtsvm.svm.holding import Holding
from dtsvm.svm.presence import Event

__all__ = ["from_bytes", "load", "resume", "save", "to_bytes"]

FORMAT, VERSION = "dtsvm session", 8
Arrays = dict[str, NDArray[Any]]
BROKEN = (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError)
# What must be as it was, and what is said if it is not.
SAME = {"settings": "other settings", "options": "other settings",
        "classes": "other labels", "members": "another network or other tasks",
        "n_features": "other features"}  # fmt: skip
WEIGHTS = ("coef", "intercept", "common_coef", "specific_coef")


def save(live: Holding, path: str | PathLike[str], *, has_features: bool = True) -> None:
    """Write a session: rows, λ, edge states, history, and who is here.

    Without features it can only be gone on with where the same rows are.
    """
    if live._need_rows()[1].has_all_rows:
        try:
            write_atomically(path, to_bytes(live, has_features=has_features))
        except OSError as error:
            raise ModelFileError(
                f"{path} cannot be written: {error.strerror or error}. Choose another place."
            ) from error
        return
    from dtsvm.svm.ranked import rows_at_ranks, write_at_ranks

    members, memory = live._need_rows()
    known, mine = rows_at_ranks(members, memory)
    owners = list(members.state.row_slots)
    arrays = _arrays(live, ("agents", "ends"), owners, has_features) | known
    if not has_features:
        mine = {name: piece for name, piece in mine.items() if not name.startswith("matrix.")}
        del arrays["matrix.free"]
    write_at_ranks(path, memory.comm, arrays, mine)  # type: ignore[attr-defined]


def to_bytes(live: Holding, *, has_features: bool = True) -> bytes:
    """Return a session as the content of its file."""
    live._need_all_rows("Pickling a session")
    members, _ = live._need_rows()
    owners = list(members.state.row_slots)
    tables = ("rows", "agents", "ends", *(["matrix"] if has_features else []))
    arrays = _arrays(live, tables, owners, has_features)
    arrays["row_owner"] = np.repeat(owners, [len(members.state.row_slots[a]) for a in owners])
    arrays["row_slot"] = np.concatenate([np.zeros(0, np.int32), *members.state.row_slots.values()])
    arrays["digest"] = np.frombuffer(digest_of(arrays), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _arrays(
    live: Holding, tables: tuple[str, ...], owners: list[int], has_features: bool
) -> Arrays:
    """What a session's file holds beside rows that are elsewhere."""
    members, memory = live._need_rows()
    arrays: Arrays = {"history": memory.history.array()}
    every = _tables(members)
    for name in tables:
        arrays.update({f"{name}.{key}": values for key, values in every[name].dump().items()})
    if (past := members.state.snapshots.arrays) is not None:
        arrays.update({f"past.{key}": value for key, value in past.items()})
    head = {"format": FORMAT, "version": VERSION, "owners": owners, "has_features": has_features,
            **_to_json(_describe(live))}  # fmt: skip
    arrays["head"] = np.frombuffer(json.dumps(head, default=_refuse_label).encode(), np.uint8)
    return arrays


def load(live: Holding, path: str | PathLike[str]) -> None:
    """Fill a new session with what `save` wrote."""
    arrays = _read(path)
    if live._engine == "mpi":
        _fill(live, arrays, path)
        return
    _fill(live, {name: np.array(values) for name, values in arrays.items()}, path)


def from_bytes(live: Holding, content: bytes, path: str | PathLike[str]) -> None:
    """Fill a new session with a file's content."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except BROKEN as error:
        raise _damaged(path) from error
    _fill(live, _checked(arrays, path), path)


def _fill(live: Holding, arrays: Arrays, path: str | PathLike[str]) -> None:
    head = _from_json(json.loads(arrays["head"].tobytes()))
    if not head.get("has_features", True):
        raise ModelFileError(
            f"{os.fspath(path)!r} keeps a training without its rows: go on with the same command "
            "on the same files."
        )
    live._settings = Settings(**head["settings"])
    live._options, live._carrier = head["options"], head["carrier"]
    live._may_split, live._is_checked = head["may_split"], head["is_checked"]
    live.events = [Event(*event) for event in head["events"]]
    live._classes = {task: tuple(labels) for task, labels in head["classes"]}
    live._questions = {task: list(asked) for task, asked in head["questions"]}
    live._finished = {kept["task"]: _kept(kept) for kept in head["finished"]}
    live._members = members = _restore_members(live, head, arrays)
    live._memory = run_by(live._engine)(members.state, **live._carrier)
    live._memory.restore(head["memory"], np.array(arrays["history"]))
    if head["info"] is not None:
        live.info = Info(**{**head["info"], "status": Status(head["info"]["status"])})


def resume(live: Holding, path: str | PathLike[str]) -> None:
    """Go on from what `save` wrote of a session with the same rows, settings and network."""
    arrays = _read(path)
    head = json.loads(arrays["head"].tobytes())
    members, memory = live._need_rows()
    now = json.loads(json.dumps(_to_json(_describe(live)), default=_refuse_label))
    for key, what in SAME.items():
        if head[key] != now[key]:
            raise ModelFileError(
                f"{os.fspath(path)!r} keeps a training with {what}: remove it to begin anew."
            )
    rows = members.state.tables.rows
    owner, slot = arrays["row_owner"], arrays["row_slot"]
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=members.state.tables.agents.capacity))
    for agent, mine in members.state.row_slots.items():
        theirs = slot[order[ends[agent - 1] if agent else 0 : ends[agent]]]
        is_here = members.state.is_here(agent)
        if is_here and not _are_same(members.state.tables, mine, arrays, theirs):
            raise ModelFileError(
                f"{os.fspath(path)!r} keeps a training on other rows: remove it to begin anew."
            )
        for name in ("dual", "until") if is_here else ():
            rows.open(name)[mine] = arrays[f"rows.{name}"][theirs]
    _restore_numbers(members, arrays)
    memory.restore(head["memory"], np.array(arrays["history"]))


def _are_same(tables: Any, mine: NDArray[Any], arrays: Arrays, theirs: NDArray[Any]) -> bool:
    """Whether rows here are those in a file, as far as it says."""
    if len(mine) != len(theirs):
        return False
    weight = arrays["rows.weight"][theirs] if "rows.weight" in arrays else 1.0
    return bool((tables.weights(mine) == weight).all()) and all(
        np.array_equal(tables.rows[name][mine], arrays[f"rows.{name}"][theirs])
        for name in ("y", "norms")
    )


def _describe(live: Holding) -> dict[str, Any]:
    members, memory = live._need_rows()
    return {
        "settings": asdict(live._settings),
        "options": live._options,
        "carrier": live._carrier,
        "may_split": live._may_split,
        "is_checked": live._is_checked,
        "events": [list(event) for event in live.events],
        "classes": [[task, list(labels)] for task, labels in live._classes.items()],
        "questions": list(live._questions.items()),
        "finished": [_flat(kept) for kept in live._finished.values()],
        "members": members.describe(),
        "n_features": members.state.n_features,
        "memory": memory.describe(),
        "info": asdict(live.info) if live.info else None,
    }


def _restore_members(live: Holding, head: dict[str, Any], arrays: Arrays) -> Membership:
    personal = head["options"]["personal"]
    members = members_of(live._engine, None, live._settings, (head["n_features"], float, personal))
    _restore_numbers(members, arrays)
    members.restore(head["members"])
    if live._engine == "mpi":
        from dtsvm.svm.ranked import take_rows

        take_rows(members, arrays, head["owners"])
        return members
    for name in ("matrix", "rows"):
        _tables(members)[name].restore(_part(arrays, name))
    slots, owner = arrays["row_slot"].astype(np.int32), arrays["row_owner"]
    tables = members.state.tables
    tables.row_slots = {a: slots[owner == a] for a in head["owners"]}
    return members


def _restore_numbers(members: Membership, arrays: Arrays) -> None:
    """Take over agents, link ends and snapshots; what follows from them is derived anew."""
    for name in ("agents", "ends"):
        _tables(members)[name].restore(_part(arrays, name))
    if "past.z" in arrays:
        past = {key: np.array(arrays[f"past.{key}"]) for key in ("ages", "z", "x")}
        members.state.snapshots.arrays = past


def _part(arrays: Arrays, name: str) -> Arrays:
    prefix = f"{name}."
    return {k[len(prefix) :]: np.array(arrays[k]) for k in arrays if k.startswith(prefix)}


def _tables(members: Membership) -> dict[str, Any]:
    tables = members.state.tables
    named = {"matrix": tables.matrix, "rows": tables.rows}
    return {**named, "agents": tables.agents, "ends": tables.ends}


def _read(path: str | PathLike[str]) -> Arrays:
    """Map a file's arrays into memory, and check every bit."""
    try:
        arrays = map_npz(Path(path))
    except FileNotFoundError:
        raise ModelFileError(f"There is no file {os.fspath(path)!r}.") from None
    except BROKEN as error:
        raise _damaged(path) from error
    if arrays is None:
        raise _damaged(path)
    return _checked(arrays, path)


def _checked(arrays: Arrays, path: str | PathLike[str]) -> Arrays:
    if "head" not in arrays or "digest" not in arrays:
        raise ModelFileError(f"{os.fspath(path)!r} is not a saved session.")
    if arrays.pop("digest").tobytes() != digest_of(arrays):
        raise _damaged(path)
    head = json.loads(arrays["head"].tobytes())
    if head.get("format") != FORMAT or head.get("version") != VERSION:
        raise ModelFileError(
            f"{os.fspath(path)!r} holds {head.get('format')!r} version {head.get('version')!r}; "
            f"this program reads {FORMAT!r} version {VERSION}."
        )
    return arrays


def _damaged(path: str | PathLike[str]) -> ModelFileError:
    return ModelFileError(
        f"{os.fspath(path)!r} is damaged or is not a saved session; take an older copy."
    )


def _flat(kept: TaskModel) -> dict[str, Any]:
    """Return a finished task as lists."""
    nodes = [[node, own.tolist()] for node, own in kept.nodes.items()]
    arrays = {name: getattr(kept, name).tolist() for name in WEIGHTS}
    return {"task": kept.task, "classes": list(kept.classes), "nodes": nodes, **arrays}


def _kept(flat: dict[str, Any]) -> TaskModel:
    coef, intercept, common, specific = (np.array(flat[name]) for name in WEIGHTS)
    nodes = {node: np.array(own) for node, own in flat["nodes"]}
    classes = tuple(flat["classes"])
    return TaskModel(flat["task"], classes, coef, intercept, common, specific, nodes)


def _to_json(value: Any) -> Any:
    """Mark questions: JSON would make lists of them, which name nothing."""
    if isinstance(value, Question):
        return {"task": value.task, "label": value.label}
    if isinstance(value, dict):
        return {name: _to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"task", "label"}:
            return Question(value["task"], value["label"])
        return {name: _from_json(item) for name, item in value.items()}
    return [_from_json(item) for item in value] if isinstance(value, list) else value


def _refuse_label(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise DataError(
        f"A session with the label {value!r} cannot be saved: use strings or numbers as labels."
    )
