"""A session at several ranks on disk: the file of one process, written and read piece by piece.

Rank 0 writes what the others hand it, block after block, so no rank has more than its rows; whoever
reads it, one process or any number of ranks, takes what is its own.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.files import Digest, open_atomically
from dtsvm.rounds import Membership
from dtsvm.runtime.mpi.collect import gather_rows
from dtsvm.runtime.mpi.pieces import pass_on

__all__ = ["rows_at_ranks", "take_rows", "write_at_ranks"]

Arrays = dict[str, NDArray[Any]]
Ints = NDArray[np.int64]
ROW_COLUMNS = ("at", "y", "dual", "norms", "until")


def rows_at_ranks(members: Membership, memory: Any) -> tuple[Arrays, dict[str, Any]]:
    """Return what every rank knows of the rows, and what this one adds to each of their columns.

    Rows are numbered one rank's after the other's, agent by agent.
    """
    state: Any = members.state
    comm = memory.comm
    memory.share_all()
    used = state.tables.agents.used
    rank = state.ranks(used)
    own, order = used[rank == comm.rank], used[np.argsort(rank, kind="stable")]
    tables = state.tables
    own_counts = np.array([len(tables.row_slots[a]) for a in own.tolist()])
    counts = gather_rows(comm, own_counts).astype(np.int64)
    slots = tables.slots_of(own)
    places, index = np.unique(tables.rows["at"][slots], return_inverse=True)
    first = int(gather_rows(comm, np.array([len(places)]))[: comm.rank].sum())
    mine: dict[str, Any] = {f"rows.{name}": tables.rows[name][slots] for name in ROW_COLUMNS}
    mine["rows.at"] = index.astype(np.int64) + first
    if gather_rows(comm, np.array([float("weight" in tables.rows)])).any():
        mine["rows.weight"] = tables.weights(slots)
    mine["rows.is_used"] = np.ones(len(slots), bool)
    mine |= _features(tables.matrix, places, comm)
    known: Arrays = {
        "row_owner": np.repeat(order, counts),
        "row_slot": np.arange(int(counts.sum())),
        "matrix.free": np.zeros(0, np.int64),
    }
    return known, mine


def _features(matrix: Any, places: Ints, comm: Any) -> dict[str, Any]:
    """Return this rank's features: an array's rows, or a CSR matrix's arrays."""
    is_sparse = bool(gather_rows(comm, np.array([float(matrix.is_sparse)])).any())
    if not is_sparse:
        return {"matrix.X": _Blocks(matrix.X, places)}
    rows = matrix.X[places] if len(places) else None
    lengths = np.diff(rows.indptr) if rows is not None else np.zeros(0, np.int64)
    every = np.cumsum(gather_rows(comm, lengths)).astype(np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), every])
    none = np.zeros(0)
    return {
        "matrix.starts": starts if comm.rank == 0 else starts[:0],
        "matrix.values": none if rows is None else rows.data,
        "matrix.columns": (none if rows is None else rows.indices).astype(np.int32),
    }


class _Blocks:
    """Some rows of an array, taken when they are asked for."""

    def __init__(self, X: NDArray[Any], places: Ints) -> None:
        self.X, self.places = X, places
        self.dtype, self.shape = X.dtype, (len(places), X.shape[1])

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, some: slice) -> NDArray[Any]:
        return np.asarray(self.X[self.places[some]])


def write_at_ranks(
    path: str | PathLike[str], comm: Any, known: Arrays, mine: dict[str, Any]
) -> None:
    """Write arrays that every rank has, and those that are the ranks' pieces put together."""
    names = sorted([*known, *mine])
    total = Digest()
    if comm.rank:
        for name in names:
            if name in mine:
                for _ in pass_on(comm, mine[name]):
                    pass
        comm.Barrier()
        return
    with open_atomically(path) as file, zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for name in names:
            whole = known[name] if name in known else mine[name]
            n = len(whole)
            blocks: Iterator[NDArray[Any]] = iter([whole])
            if name in mine:
                n, *_ = next(counted := pass_on(comm, whole))
                blocks = counted
            shape = (int(n), *whole.shape[1:])
            total.begin(name, whole.dtype, shape)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _write_head(member, whole.dtype, shape)
                for block in blocks:
                    content = np.ascontiguousarray(block, whole.dtype)
                    total.update(content)
                    member.write(content.tobytes())
        with archive.open("digest.npy", "w") as member:
            found = np.frombuffer(total.result(), np.uint8)
            _write_head(member, found.dtype, found.shape)
            member.write(found.tobytes())
    comm.Barrier()


def _write_head(member: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    about = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(member, about)


def take_rows(members: Membership, arrays: Arrays, owners: list[int]) -> None:
    """Take this rank's agents' rows out of a file that was mapped into memory."""
    state: Any = members.state
    owner, slot = np.asarray(arrays["row_owner"]), np.asarray(arrays["row_slot"])
    state.place_by_rows(owner)
    tables = state.tables
    tables.row_slots = {a: np.zeros(0, np.int32) for a in owners}
    here = state.ranks(owner) == state.comm.rank
    mine, theirs = owner[here], slot[here]
    places, at = np.unique(arrays["rows.at"][theirs], return_inverse=True)
    tables.matrix.restore(_taken(arrays, places))
    if "rows.weight" in arrays:
        tables.rows.add("weight", 1.0)
    slots = tables.rows.take(len(mine))
    for name in (*ROW_COLUMNS, "weight") if "weight" in tables.rows else ROW_COLUMNS:
        values = at if name == "at" else arrays[f"rows.{name}"][theirs]
        tables.rows.open(name)[slots] = values
    order = np.argsort(mine, kind="stable")
    ends = np.cumsum(np.bincount(mine, minlength=max(owners, default=0) + 1))
    for a in np.unique(mine).tolist():
        tables.row_slots[a] = slots[order[ends[a - 1] if a else 0 : ends[a]]]


def _taken(arrays: Arrays, places: Ints) -> Arrays:
    free = np.zeros(0, np.int64)
    if "matrix.X" in arrays:
        return {"X": np.array(arrays["matrix.X"][places]), "free": free}
    starts = np.asarray(arrays["matrix.starts"])
    lengths = (starts[1:] - starts[:-1])[places]
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    index = np.repeat(starts[places] - ends[:-1], lengths) + np.arange(ends[-1])
    return {
        "values": np.array(arrays["matrix.values"][index]),
        "columns": np.array(arrays["matrix.columns"][index]),
        "starts": ends,
        "free": free,
    }
