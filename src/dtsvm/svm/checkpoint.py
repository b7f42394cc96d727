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
from dtsvm.errors import DataError, ModelFileError
from dtsvm.problem import Settings, TaskModel
from dtsvm.problem.questions import Question
from dtsvm.rounds import Info, Membership, Status
from dtsvm.runtime import Memory
from dtsvm.svm.holding import Holding
from dtsvm.svm.presence import Event

__all__ = ["from_bytes", "load", "save", "to_bytes"]

FORMAT, VERSION = "dtsvm session", 6
Arrays = dict[str, NDArray[Any]]
WEIGHTS = ("coef", "intercept", "common_coef", "specific_coef")


def save(live: Holding, path: str | PathLike[str]) -> None:
    """Write a session: rows, λ, edge states, history, and who is here."""
    write_atomically(path, to_bytes(live))


def to_bytes(live: Holding) -> bytes:
    """Return a session as the content of its file."""
    live._need_all_rows("Saving a session")
    members, memory = live._need_rows()
    arrays: Arrays = {"history": memory.history.array()}
    for name, table in _tables(members).items():
        arrays.update({f"{name}.{key}": values for key, values in table.dump().items()})
    if (past := members.state.snapshots.arrays) is not None:
        arrays.update({f"past.{key}": value for key, value in past.items()})
    owners = list(members.state.row_slots)
    arrays["row_owner"] = np.repeat(owners, [len(members.state.row_slots[a]) for a in owners])
    arrays["row_slot"] = np.concatenate([np.zeros(0, np.int64), *members.state.row_slots.values()])
    head = {"format": FORMAT, "version": VERSION, "owners": owners, **_to_json(_describe(live))}
    text = json.dumps(head, default=_refuse_label).encode()
    arrays["head"] = np.frombuffer(text, np.uint8)
    arrays["digest"] = np.frombuffer(digest_of(arrays), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def load(live: Holding, path: str | PathLike[str]) -> None:
    """Fill a new session with what `save` wrote."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise ModelFileError(f"There is no file {os.fspath(path)!r}.") from None
    except OSError as error:
        raise _damaged(path) from error
    from_bytes(live, content, path)


def from_bytes(live: Holding, content: bytes, path: str | PathLike[str]) -> None:
    """Fill a new session with a file's content."""
    arrays = _read(content, path)
    head = _from_json(json.loads(arrays["head"].tobytes()))
    live._settings = Settings(**head["settings"])
    live._options, live._carrier = head["options"], head["carrier"]
    live._may_split, live._is_checked = head["may_split"], head["is_checked"]
    live.events = [Event(*event) for event in head["events"]]
    live._classes = {task: tuple(labels) for task, labels in head["classes"]}
    live._questions = {task: list(asked) for task, asked in head["questions"]}
    live._finished = {kept["task"]: _kept(kept) for kept in head["finished"]}
    live._members = members = _restore_members(head, arrays, live._settings)
    live._memory = Memory(members.state, **live._carrier)
    live._memory.restore(head["memory"], arrays["history"])
    if head["info"] is not None:
        live.info = Info(**{**head["info"], "status": Status(head["info"]["status"])})


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


def _restore_members(head: dict[str, Any], arrays: Arrays, settings: Settings) -> Membership:
    members = Membership(
        head["n_features"],
        settings,
        personal=head["options"]["personal"],
    )
    for name, table in _tables(members).items():
        prefix = f"{name}."
        table.restore({key[len(prefix) :]: arrays[key] for key in arrays if key.startswith(prefix)})
    members.restore(head["members"])
    slots, owner = arrays["row_slot"], arrays["row_owner"]
    tables = members.state.tables
    tables.row_slots = {a: slots[owner == a] for a in head["owners"]}
    if "past.z" in arrays:
        names = ("ages", "z", "x")
        members.state.snapshots.arrays = {key: arrays[f"past.{key}"] for key in names}
    return members


def _tables(members: Membership) -> dict[str, Any]:
    tables = members.state.tables
    named = {"matrix": tables.matrix, "rows": tables.rows}
    return {**named, "agents": tables.agents, "ends": tables.ends}


def _read(content: bytes, path: str | PathLike[str]) -> Arrays:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise _damaged(path) from error
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
