"""Rows to train on at one of several ranks: its own nodes' rows are read and kept, no others.

What must be known of all rows (columns, names, labels, what features are made of) is agreed in the
order in which one process finds it, so the model does not depend on the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from dtsvm.data import Rows
from dtsvm.data.memory import give_back
from dtsvm.data.rows import arrange, different_columns, refuse_other_labels
from dtsvm.data.shares import BLOCK_ROWS, Room, count_nodes, count_rows, read_blocks
from dtsvm.data.spellings import refuse_other_spellings
from dtsvm.errors import DataError
from dtsvm.problem import Network
from dtsvm.runtime.mpi.place import place_nodes
from dtsvm.svm.company import Ranks
from dtsvm.ui.share_features import Part, agree_schema, make_features, read_columns, regroup
from dtsvm.ui.training_rows import Choice, TrainingRows, node_names, rows_held, split_held

__all__ = ["read_share"]

ROLES = ("y", "task", "node", "weight")
Values = dict[str, NDArray[Any] | None]  # by role


def read_share(
    files: Sequence[Path],
    choice: Choice,
    company: Ranks,
    network: Callable[[list[Any]], Network | None],
) -> TrainingRows:
    """Read this rank's nodes' rows; `network` makes the network of their names, None if complete.

    Every rank calls it with the same files.
    """
    parts, has_nodes = _deal(files, choice, company, network)
    if choice.is_raw:
        found = _raw(parts, choice, company)
    else:
        found = _prepared(files, parts, choice, company)
    rows = found.train
    if not has_nodes and len(files) > 1:
        names = [part.name for part, n in zip(parts, found.counts, strict=True) for _ in range(n)]
        rows = replace(rows, node=np.array(names, str))
    give_back(rows.X.nbytes if isinstance(rows.X, np.ndarray) else rows.X.data.nbytes)
    return TrainingRows(*_split(rows, found.is_held), found.preparation, found.notes)


def _split(rows: Rows, is_held: NDArray[np.bool_]) -> tuple[Rows, Rows | None]:
    """Return the rows to train on, moved up to lie side by side, and a copy of those held out."""
    if not (isinstance(rows.X, np.ndarray) and is_held.any()):
        return split_held(rows, is_held)
    kept, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
    test = rows.take(held)
    for first in range(0, len(kept), BLOCK_ROWS):
        some = kept[first : first + BLOCK_ROWS]
        rows.X[first : first + len(some)] = rows.X[some]
    rest = replace(rows, X=np.zeros((len(rows.X), 0))).take(kept)
    return replace(rest, X=rows.X[: len(kept)]), test


# Who reads what


def _deal(
    files: Sequence[Path], choice: Choice, company: Ranks, network: Any
) -> tuple[list[Part], bool]:
    """Deal nodes to ranks by their rows or, where a file is a node, by its size."""
    rank, n_ranks = company.comm.rank, company.comm.size
    mine = [[i, _counts(files[i], choice)] for i in range(rank, len(files), n_ranks)]
    by_file = dict(pair for some in company.gather(mine) for pair in some)
    counted = [by_file[i] for i in range(len(files))]
    has_nodes = any(counts is not None for counts in counted)
    if has_nodes and None in counted:
        silent = files[counted.index(None)]
        raise DataError(f"{silent} has no node for its rows, but other files have. Add it.")
    names = node_names(files, has_nodes)
    refuse_other_spellings(
        ((file, name) for file, some in zip(files, counted, strict=True) for name, _ in some or ()),
        "node",
    )
    weights: dict[Any, int] = {}
    for name, n in chain.from_iterable(counted) if has_nodes else ():
        weights[name] = weights.get(name, 0) + n
    if not has_nodes:
        weights = {name: file.stat().st_size for name, file in zip(names, files, strict=True)}
    here = _own_nodes(weights, company, network)
    parts = []
    for i, (file, name, counts) in enumerate(zip(files, names, counted, strict=True)):
        wanted = [v for v, _ in counts if v in here] if has_nodes else None
        if wanted or (wanted is None and name in here):
            known = count_rows(file)
            n_rows = sum(n for v, n in counts if v in here) if has_nodes else known
            parts.append(Part(i, file, name, wanted, n_rows, is_read_whole=known is None))
    return parts, has_nodes


def _counts(path: Path, choice: Choice) -> list[list[Any]] | None:
    found = count_nodes(path, choice.node)
    return None if found is None else [[name, n] for name, n in found.items()]


def _own_nodes(weights: dict[Any, int], company: Ranks, network: Any) -> set[Any]:
    nodes = sorted(weights)
    made = network(nodes)
    links = np.zeros((0, 2), np.int64)
    if made is not None:
        place = {name: i for i, name in enumerate(nodes)}
        order = np.array([place.get(name, -1) for name in made.nodes], np.int64)
        links = order[np.asarray(made.links, np.int64).reshape(-1, 2)]
        links = links[(links >= 0).all(axis=1)]
    load = np.array([weights[name] for name in nodes], np.int64)
    rank = place_nodes(load, links, company.comm.size).tolist()
    return {name for name, r in zip(nodes, rank, strict=True) if r == company.comm.rank}


# Reading


@dataclass(frozen=True)
class Found:
    """What a rank read: its rows and which are held out, and how many are of each of its parts."""

    train: Rows
    is_held: NDArray[np.bool_]
    counts: list[int]
    notes: tuple[str, ...]
    preparation: Any = None


def _raw(parts: list[Part], choice: Choice, company: Ranks) -> Found:
    """Read numbers as they are."""
    roles = {name: getattr(choice, name) for name in ("label", "task", "node", "weight")}
    blocks: list[list[Any]] = []
    values: list[Values] = []
    said: list[list[Any]] = []
    room = Room([part.n_rows for part in parts])
    for part in parts:
        found = []
        own = Room([part.n_rows])
        for table in read_blocks(part.path, choice.node, part.wanted):
            rows = arrange(table, roles, choice.features)
            if rows.X.shape[0]:
                placed = {role: own.put(role, getattr(rows, role)) for role in ROLES}
                found.append(replace(rows, X=room.put("X", rows.X), **placed))
        blocks.append([rows.X for rows in found])
        values.append(_joined(found, own))
        said.append([part.number, str(part.path), found[0].feature_names, found[0].notes])
    every = sorted(chain.from_iterable(company.gather(said)))
    _, path, names, _ = every[0]
    for _, other, others, _ in every:
        if set(others) != set(names):
            raise DataError(different_columns(Path(path), names, Path(other), others))
    counts = [len(one["y"]) for one in values]  # type: ignore[arg-type]
    columns = _agree(parts, values, company)
    is_plain = all(list(one[2]) == list(names) for one in said)
    X = room.filled("X") if is_plain else None
    if not all(company.gather(X is not None)):
        X = _stacked([one[2] for one in said], blocks, names, company)
    rows = Rows(X, columns["y"], columns["task"], columns["node"], tuple(names), columns["weight"])
    is_held = rows_held(rows, choice, [part.name for part in parts], counts)
    return Found(rows, is_held, counts, tuple(dict.fromkeys(n for e in every for n in e[3])))


def _stacked(own: list[Any], blocks: list[list[Any]], names: list[str], company: Ranks) -> Any:
    """Put blocks one after another, columns in one order, letting go of each at once."""
    sparse = [not isinstance(block, np.ndarray) for some in blocks for block in some]
    said = {one for some in company.gather(sparse) for one in some}
    if len(said) > 1:
        raise DataError("Some files have CSR rows and some have dense ones. Write them alike.")
    if said == {True}:
        every = [block for some in blocks for block in some]
        return vstack(every, format="csr") if every else csr_array((0, len(names)))
    X = np.empty((sum(len(block) for some in blocks for block in some), len(names)))
    end = 0
    for mine, some in zip(own, blocks, strict=True):
        order = [list(mine).index(name) for name in names]
        while some:
            block = some.pop(0)
            X[end : end + len(block)] = block[:, order]
            end += len(block)
    return X


def _joined(found: Sequence[Any], columns: Room) -> Values:
    """Return the columns of all blocks by role, whole numbers as narrow as they may be."""
    values: Values = {}
    for role in ROLES:
        one = columns.filled(role)
        if one is None and getattr(found[0], role) is not None:
            one = np.concatenate([getattr(rows, role) for rows in found])
        values[role] = None if one is None else _narrow(one)
    return values


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "iu" or not len(values):
        return values
    ends = (np.min_scalar_type(int(value)) for value in (values.min(), values.max()))
    return values.astype(np.result_type(*ends), copy=False)


def _prepared(files: Sequence[Path], parts: list[Part], choice: Choice, company: Ranks) -> Found:
    """Read all columns, and make features of them that all ranks agree on."""
    whole = [read_columns(part, choice) for part in parts]
    schema = agree_schema(files, parts, whole, choice, company)
    groups = [regroup(part, whole.pop(0), schema, choice.missing_columns) for part in parts]
    values = [_joined([group], Room([])) for group in groups]
    counts = [len(group.y) for group in groups]
    columns = _agree(parts, values, company)
    is_held = [rows_held(group, choice, [group.name]) for group in groups]
    X, made = make_features(groups, is_held, schema, choice, company)
    rows = Rows(
        X, columns["y"], columns["task"], columns["node"], made.plan.names, columns["weight"]
    )
    held = np.concatenate([np.zeros(0, bool), *is_held])
    return Found(rows, held, counts, made.plan.notes, made)


def _agree(parts: list[Part], values: list[Values], company: Ranks) -> Values:
    """Refuse what does not go together; give labels, tasks and nodes one type at all ranks.

    Takes the columns out of `values`.
    """
    said = [
        [part.number, part.name, str(part.path), _labels(one), _types(one)]
        for part, one in zip(parts, values, strict=True)
    ]
    every = sorted(chain.from_iterable(company.gather(said)), key=lambda entry: entry[0])
    files = {entry[0]: entry[1] for entry in every}
    labels = [_by_file([entry[3] for entry in every if entry[0] == i]) for i in files]
    refuse_other_labels(list(files.values()), labels)
    for k, what in enumerate(("task", "label")):
        names = ((entry[2], name) for entry in every for name in entry[3][k] or ())
        refuse_other_spellings(names, what)
    found: Values = {}
    for role in ROLES:
        types = [entry[4][role] for entry in every]
        if all(one is None for one in types):
            found[role] = None
            continue
        if None in types:
            silent, what = every[types.index(None)][2], "label" if role == "y" else role
            raise DataError(f"{silent} has no {what} for its rows, but other files have. Add it.")
        dtype = np.result_type(*types)
        mine = [one.pop(role).astype(dtype, copy=False) for one in values]  # type: ignore[union-attr]
        found[role] = mine[0] if len(mine) == 1 else np.concatenate([np.zeros(0, dtype), *mine])
    return found


def _labels(values: Values) -> list[Any]:
    """Every task's different labels, as two lists of one length."""
    y, task = values["y"], values["task"]
    assert y is not None
    if task is None:
        return [None, np.unique(y).tolist()]
    pairs = [(t, label) for t in np.unique(task) for label in np.unique(y[task == t]).tolist()]
    return [[t.item() for t, _ in pairs], [label for _, label in pairs]]


def _by_file(said: list[list[Any]]) -> Any:
    """What several ranks say of one file's labels, in the place of its rows."""
    tasks, labels = (list(chain.from_iterable(one[k] or () for one in said)) for k in (0, 1))
    has_tasks = any(one[0] is not None for one in said)
    return SimpleNamespace(y=np.array(labels), task=np.array(tasks) if has_tasks else None)


def _types(values: Values) -> dict[str, str | None]:
    return {role: None if one is None else one.dtype.str for role, one in values.items()}
