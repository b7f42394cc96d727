"""Some nodes' rows of a file, a block at a time: what one process of several reads and keeps.

Parquet is read by batches of rows, and groups of rows whose statistics show none of the nodes are
passed over; npz that was not compressed is mapped into memory, and only the nodes' rows are
touched. CSV is read whole and then cut down.
"""

from __future__ import annotations

import importlib
import mmap
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.columns import require_values
from dtsvm.data.schema import split_unit
from dtsvm.data.tables import Table, arrow_columns, arrow_table, npz_table, read_table, require_file
from dtsvm.errors import DataError, did_you_mean

__all__ = [
    "BLOCK_ROWS",
    "Room",
    "count_nodes",
    "count_rows",
    "join_places",
    "map_npz",
    "read_blocks",
    "read_column",
]

BLOCK_ROWS = 1 << 14
PAGE_BYTES = 1 << 16  # of a column read ahead; without it a whole group's column is


def count_nodes(path: Path, node: str | None) -> dict[Any, int] | None:
    """Count every node's rows, reading the column that names them alone; None if there is none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "rows.npz")
    >>> np.savez(path, X=np.eye(3), y=[0, 1, 0], node=["a", "b", "a"])
    >>> count_nodes(path, None)
    {'a': 2, 'b': 1}
    >>> folder.cleanup()
    """
    found: dict[Any, int] = {}
    for values in _node_values(path, node):
        names, counts = np.unique(values, return_counts=True)
        for name, count in zip(names.tolist(), counts.tolist(), strict=True):
            found[name] = found.get(name, 0) + count
    return found or None


def read_blocks(path: Path, node: str | None, wanted: Collection[Any] | None) -> Iterator[Table]:
    """Read the rows of some nodes, or all, in the order of the file; blocks may be empty.

    Parameters
    ----------
    path : Path
        A CSV, Parquet or npz file.
    node : str or None
        The column that names nodes; of npz, by default ``node``.
    wanted : collection, optional
        The nodes; all rows by default.

    Yields
    ------
    Table
        Some rows.
    """
    file = _open(path)
    if file is None:
        yield from _cut(read_table(path), node, wanted)
        return
    if isinstance(file, Table):
        yield from _mapped_blocks(file, node, wanted)
        return
    with file:
        first = 0
        for group in range(file.num_row_groups):
            if _may_have(file, group, node, wanted):
                for table in _batches(path, file, first, row_groups=[group]):
                    yield from _cut(table, node, wanted)
            first += file.metadata.row_group(group).num_rows


def _batches(path: Path, file: Any, first: int = 0, **asked: Any) -> Iterator[Table]:
    """Read some of a Parquet file by blocks of rows, the first of which is given."""
    for batch in file.iter_batches(BLOCK_ROWS, use_threads=False, **asked):
        places = range(first, first + batch.num_rows)
        yield replace(arrow_table(path, arrow_columns(batch)), places=places)
        first = places.stop


def read_column(path: Path, name: str) -> Table | None:
    """Read one column of a Parquet file, or map that of an npz file; None of what is read whole."""
    file = _open(path)
    if file is None:
        return None
    if isinstance(file, Table):
        return replace(file, columns={name: file.columns[name]}, candidates=(name,), roles={})
    with file:
        heads = [head for head in file.schema_arrow.names if name in (head, split_unit(head)[0])]
        return arrow_table(path, arrow_columns(file.read(columns=heads[:1], use_threads=False)))


def count_rows(path: Path) -> int | None:
    """Count a file's rows where that takes no reading of them; else None."""
    file = _open(path)
    if file is None:
        return None
    if isinstance(file, Table):
        return file.n_rows
    with file:
        return int(file.metadata.num_rows)


def join_places(tables: Sequence[Table]) -> Sequence[int] | NDArray[Any] | None:
    """Say where the rows of several blocks are in their file, in little memory."""
    some = [table.places for table in tables]
    known = [places for places in some if places is not None]
    if len(known) < len(some):
        return None
    ends = [(int(places[0]), int(places[-1]) + 1) for places in known]
    n_rows = sum(len(places) for places in known)
    if ends[-1][1] - ends[0][0] == n_rows:  # places grow from row to row
        return range(ends[0][0], ends[-1][1])
    dtype = np.min_scalar_type(ends[-1][1])
    return np.concatenate([np.asarray(places, dtype) for places in known])


class Room:
    """Arrays for all rows of some parts, filled block by block, where their number is known."""

    def __init__(self, counts: list[int | None]) -> None:
        self._n = None if None in counts or not counts else sum(n or 0 for n in counts)
        self._arrays: dict[str, NDArray[Any]] = {}
        self._ends: dict[str, int] = {}

    def put(self, name: str, block: Any) -> Any:
        """Copy rows to their place and return them there; what does not fit in is returned."""
        if self._n is None or not isinstance(block, np.ndarray) or block.dtype.kind not in "biuf":
            return block
        dtype = np.dtype(float) if block.ndim == 2 else block.dtype
        whole = self._arrays.setdefault(name, np.empty((self._n, *block.shape[1:]), dtype))
        end = self._ends.get(name, 0)
        into = whole[end : end + len(block)]
        if into.shape != block.shape or into.dtype != dtype:
            return block
        into[:] = block
        self._ends[name] = end + len(block)
        return into

    def filled(self, name: str) -> Any:
        """Return an array if all rows are in it; else None."""
        return self._arrays.get(name) if self._ends.get(name) == self._n else None


def _open(path: Path) -> Any:
    """Return a Parquet file to read in batches, a mapped npz table, or None: to be read whole."""
    suffix = path.suffix.lower()
    if suffix not in (".parquet", ".npz"):
        return None
    require_file(path)
    if suffix == ".npz":
        return _mapped_table(path)
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        return None
    try:
        return parquet.ParquetFile(path, buffer_size=PAGE_BYTES)
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise DataError(f"{path} cannot be read as Parquet: {reason}. Write it again.") from error


def _node_values(path: Path, node: str | None) -> Iterator[NDArray[Any]]:
    file = _open(path)
    if file is None:
        table = read_table(path)
        if node is not None:
            yield require_values(table, _known(table, node), "node")
    elif isinstance(file, Table):
        name = file.roles.get("node") if node is None else _known(file, node)
        if name is not None:
            yield require_values(file, name, "node")
    elif node is not None:
        with file:
            names = file.schema_arrow.names
            if node not in names:
                raise _strange(path, node, names)
            for table in _batches(path, file, columns=[node]):
                yield require_values(table, node, "node")


def _known(table: Table, node: str) -> str:
    if node not in table.columns:
        raise _strange(table.path, node, list(table.columns))
    return node


def _strange(path: Path, node: str, names: list[str]) -> DataError:
    return DataError(f"{path} has no column {node!r} for the node. {did_you_mean(node, names)}")


def _cut(table: Table, node: str | None, wanted: Collection[Any] | None) -> Iterator[Table]:
    """Give the rows of the nodes that are wanted."""
    name = node if node is not None else table.roles.get("node")
    if wanted is None or name is None:
        yield table
        return
    values = require_values(table, _known(table, name), "node")
    is_wanted = np.isin(values, np.array(list(wanted)))
    yield table if is_wanted.all() else table.take(np.flatnonzero(is_wanted))


def _may_have(file: Any, group: int, node: str | None, wanted: Collection[Any] | None) -> bool:
    """Whether a group of rows may have some of the nodes, as far as its statistics say."""
    if wanted is None or node is None or not len(wanted):
        return wanted is None or node is None
    about = file.metadata.row_group(group)
    for j in range(about.num_columns):
        column = about.column(j)
        if column.path_in_schema == node:
            found = column.statistics
            if found is None or not found.has_min_max:
                return True
            try:
                return any(found.min <= name <= found.max for name in wanted)
            except TypeError:
                return True
    return True


# npz


def _mapped_table(path: Path) -> Table | None:
    """Return an npz file's columns mapped into memory; None if it was compressed."""
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path} is not an npz file. Write it with numpy.savez.")
    arrays = map_npz(path)
    return None if arrays is None or "X" not in arrays else npz_table(path, arrays)


def map_npz(path: Path) -> dict[str, NDArray[Any]] | None:
    """Map the arrays of an npz file into memory; None if it was compressed."""
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(path) as members:
        infos = members.infolist()
    for info in infos:
        is_stored = info.compress_type == zipfile.ZIP_STORED
        mapped = _map_member(path, info) if is_stored else None
        if mapped is None:
            return None
        arrays[info.filename.removesuffix(".npy")] = mapped
    return arrays


def _map_member(path: Path, info: zipfile.ZipInfo) -> NDArray[Any] | None:
    """Map one array where it lies in the file; None where it cannot be."""
    with open(path, "rb") as stream:
        stream.seek(info.header_offset + 26)
        lengths = np.frombuffer(stream.read(4), "<u2")
        stream.seek(info.header_offset + 30 + int(lengths.sum()))
        try:
            version = np.lib.format.read_magic(stream)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, is_fortran, dtype = read(stream)
        except (ValueError, KeyError):
            return None
        offset = stream.tell()
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if dtype.hasobject or is_fortran or offset + size > path.stat().st_size:
        return None
    if not size:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", offset, shape)


def _mapped_blocks(table: Table, node: str | None, wanted: Any) -> Iterator[Table]:
    """Copy the rows of some nodes out of mapped columns, and let go of the pages they were on."""
    name = node if node is not None else table.roles.get("node")
    mine = np.arange(table.n_rows)
    if wanted is not None and name is not None:
        values = require_values(table, _known(table, name), "node")
        mine = np.flatnonzero(np.isin(values, np.array(list(wanted))))
    maps = _maps(table)
    for first in range(0, len(mine), BLOCK_ROWS):
        yield table.take(mine[first : first + BLOCK_ROWS])
        for one in maps:
            one.madvise(mmap.MADV_DONTNEED)


def _maps(table: Table) -> list[mmap.mmap]:
    """The mappings that a table's columns are views of."""
    found = {}
    for cells in table.columns.values():
        base: Any = cells
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        if isinstance(base, mmap.mmap):
            found[id(base)] = base
    return list(found.values())
