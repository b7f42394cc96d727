"""A session on disk: one npz file, written whole or not at all, read back bit for bit."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Hashable
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.files import digest_of, write_atomically
from dtsvm.errors import DataError, ModelFileError
from dtsvm.problem import Settings
from dtsvm.rounds import Membership
from dtsvm.runtime import Memory
from dtsvm.svm.classifier import LinearClassifier
from dtsvm.svm.presence import Event

if TYPE_CHECKING:
    from dtsvm.svm.session import Session

__all__ = ["load", "save"]

FORMAT, VERSION = "dtsvm session", 5
Arrays = dict[str, NDArray[Any]]


def save(live: Session, path: str | PathLike[str]) -> None:
    """Write a session: rows, λ, edge states, history, and who is here."""
    members, memory = live._need_rows()
    arrays: Arrays = {"history": memory.history.array()}
    for name, table in _tables(members).items():
        arrays.update({f"{name}.{key}": values for key, values in table.dump().items()})
    if (past := members.state.snapshots.arrays) is not None:
        arrays.update({f"past.{key}": value for key, value in past.items()})
    owners = list(members.state.row_slots)
    arrays["row_owner"] = np.repeat(owners, [len(members.state.row_slots[a]) for a in owners])
    arrays["row_slot"] = np.concatenate([np.zeros(0, np.int64), *members.state.row_slots.values()])
    head = {"format": FORMAT, "version": VERSION, "owners": owners, **_describe(live)}
    text = json.dumps(head, default=_refuse_label).encode()
    arrays["head"] = np.frombuffer(text, np.uint8)
    arrays["digest"] = np.frombuffer(digest_of(arrays), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_atomically(path, buffer.getvalue())


def load(live: Session, path: str | PathLike[str]) -> None:
    """Fill a new session with what `save` wrote."""
    arrays = _read(path)
    head = json.loads(arrays["head"].tobytes())
    live._settings = Settings(**head["settings"])
    live._options, live._carrier = head["options"], head["carrier"]
    live._may_split, live._is_checked = head["may_split"], head["is_checked"]
    live.events = [Event(*event) for event in head["events"]]
    live._classes = {task: (low, high) for task, low, high in head["classes"]}
    live._finished = {task: _kept(entries) for task, entries in head["finished"]}
    live._members = members = _restore_members(head, arrays, live._settings)
    live._memory = Memory(members.state, **live._carrier)
    live._memory.restore(head["memory"], arrays["history"])


def _describe(live: Session) -> dict[str, Any]:
    members, memory = live._need_rows()
    finished = [
        [task, [[node, _flat(c)] for node, c in kept.items()]]
        for task, kept in live._finished.items()
    ]
    return {
        "settings": asdict(live._settings),
        "options": live._options,
        "carrier": live._carrier,
        "may_split": live._may_split,
        "is_checked": live._is_checked,
        "events": [list(event) for event in live.events],
        "classes": [[task, *pair] for task, pair in live._classes.items()],
        "finished": finished,
        "members": members.describe(),
        "n_features": members.state.n_features,
        "memory": memory.describe(),
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


def _read(path: str | PathLike[str]) -> Arrays:
    try:
        content = io.BytesIO(Path(path).read_bytes())
        with np.load(content, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ModelFileError(f"There is no file {os.fspath(path)!r}.") from None
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


def _flat(classifier: LinearClassifier) -> dict[str, Any]:
    return {
        "coef": np.asarray(classifier.coef).tolist(),
        "intercept": classifier.intercept,
        "classes": list(classifier.classes_.tolist()),
        "is_finished": classifier.is_finished,
    }


def _kept(entries: list[Any]) -> dict[Hashable | None, LinearClassifier]:
    return {node: LinearClassifier(**values) for node, values in entries}


def _refuse_label(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise DataError(
        f"A session with the label {value!r} cannot be saved: use strings or numbers as labels."
    )
