"""Files in: one CSV, Parquet or npz file to named columns, which `columns` gives their types."""

from __future__ import annotations

import importlib
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dtsvm.data.delimited import read_csv_text
from dtsvm.data.text import STDIN
from dtsvm.errors import DataError, MissingExtraError, did_you_mean

__all__ = [
    "Cells",
    "Table",
    "arrow_columns",
    "arrow_table",
    "file_stem",
    "npz_table",
    "read_table",
    "require_file",
]

MOST_COLUMNS = 2**24  # of CSR rows: each has a name
LONG = 10**15  # of 16 digits: an identifier
CSR = {"data", "indices", "indptr", "shape"}  # what scipy.sparse.save_npz writes

# Text straight from a CSV file, or values that already have a type.
Cells = tuple[str, ...] | NDArray[Any]


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of one file.

    Attributes
    ----------
    path : Path
        The file.
    columns : dict of str to Cells
        All columns, in the order of the file.
    candidates : tuple of str
        The columns that may be features.
    n_rows : int
        How many rows there are.
    lines : sequence of int
        The line of each row in the file; empty where a file has no lines.
    roles : dict of str to str
        The columns whose role ("task", "node") their name alone settles, as in npz.
    units : dict of str to str
        The units of columns whose heading gave one, once names and units are told apart.
    matrix : CSR, optional
        The candidates of an npz file with CSR rows, which are no `columns` then.
    places : sequence of int, optional
        Where each row is in the file, from 0, if these are some of its rows.
    """

    path: Path
    columns: dict[str, Cells]
    candidates: tuple[str, ...]
    n_rows: int
    lines: Sequence[int] = ()
    roles: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    matrix: Any = None
    places: Sequence[int] | NDArray[Any] | None = None

    def place(self, row: int) -> str:
        """Name the place of a row, counted from 0, for an error message."""
        if self.lines:
            return f"{self.path}, line {self.lines[row]}"
        return f"{self.path}, row {(row if self.places is None else int(self.places[row])) + 1}"

    def take(self, index: NDArray[np.int64]) -> Table:
        """Return some of the rows."""
        rows = index.tolist()
        columns: dict[str, Cells] = {
            name: tuple(cells[i] for i in rows) if isinstance(cells, tuple) else cells[index]
            for name, cells in self.columns.items()
        }
        lines = [self.lines[i] for i in rows] if self.lines else ()
        matrix = None if self.matrix is None else self.matrix[index]
        places = index if self.places is None else np.asarray(self.places)[index]
        return replace(
            self, columns=columns, n_rows=len(rows), lines=lines, matrix=matrix, places=places
        )


def read_table(path: Path) -> Table:
    """Read a file into columns, by its suffix.

    Parameters
    ----------
    path : Path
        A ``.csv``, ``.tsv``, ``.parquet`` or ``.npz`` file; CSV may be gzipped (``.csv.gz``), and
        ``-`` is CSV from standard input.

    Returns
    -------
    Table
        Its columns, with at least one row.
    """
    reader = _reader_for(path)
    try:
        if path != STDIN:
            require_file(path)
        table = reader(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise DataError(f"{path} does not fit into memory. Split it, or use fewer rows.") from error
    if table.n_rows == 0:
        raise DataError(f"{path} has columns but no rows. Give a file with rows.")
    return table


def file_stem(path: Path) -> str:
    """Return a file's name without its suffixes, which names its node.

    Examples
    --------
    >>> file_stem(Path("sites/north.csv.gz")), file_stem(Path("-"))
    ('north', 'stdin')
    """
    if path == STDIN:
        return "stdin"
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def _reader_for(path: Path) -> Callable[[Path], Table]:
    if path == STDIN:
        return _read_csv
    is_zipped = path.suffix.lower() == ".gz"
    suffix = Path(path.stem).suffix if is_zipped else path.suffix
    reader = _READERS.get(suffix.lower())
    if reader is None:
        if path.is_dir():
            raise DataError(f"{path} is a folder. Name the files in it.")
        remedy = _REMEDIES.get(path.suffix.lower()) or did_you_mean(path.suffix, _READERS)
        raise DataError(f"{path} has the unsupported suffix {path.suffix!r}. {remedy}")
    if is_zipped and reader is not _read_csv:
        raise DataError(f"{path}: only CSV is read from gzip. Unzip it first.")
    return reader


def require_file(path: Path) -> None:
    """Refuse a path that is no file with something in it."""
    if not path.exists():
        raise DataError(f"There is no file {path}. Check the path.")
    if not path.is_file():
        raise DataError(f"{path} is not a file. Name the files to read.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty. Give a file with rows.")


def _read_csv(path: Path) -> Table:
    columns, lines = read_csv_text(path)
    return Table(path, dict(columns), tuple(columns), len(lines), lines)


def _read_parquet(path: Path) -> Table:
    readers = {"pyarrow.parquet": _arrow_columns, "polars": _polars_columns}
    for name, read in readers.items():
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        return arrow_table(path, _read_with(read, library, path))
    raise MissingExtraError(
        f"Reading {path} needs pyarrow or polars, and neither is installed. "
        'Install them with: pip install "dtsvm[frames]"'
    )


def arrow_table(path: Path, columns: dict[str, Cells]) -> Table:
    """Return the columns of a Parquet file, or of some of its rows, as a table."""
    # pandas stores an index that is not just 0, 1, 2 … as a column of this name.
    names = tuple(c for c in columns if not re.fullmatch(r"__index_level_\d+__", c))
    n_rows = len(next(iter(columns.values()))) if columns else 0
    return Table(path, columns, names, n_rows)


_ColumnReader = Callable[[Any, Path], dict[str, Cells]]


def _read_with(read: _ColumnReader, library: ModuleType, path: Path) -> dict[str, Cells]:
    try:
        return read(library, path)
    except OSError:
        raise
    # Each library has its own tree of exceptions, and neither may be imported here by name.
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise DataError(f"{path} cannot be read as Parquet: {reason}. Write it again.") from error


def _arrow_columns(parquet: Any, path: Path) -> dict[str, Cells]:
    # ParquetFile, not read_table: the latter makes columns of folders called name=value.
    with parquet.ParquetFile(path) as file:
        return arrow_columns(file.read())


def arrow_columns(table: Any) -> dict[str, Cells]:
    """Return the columns of an Arrow table or batch of rows as arrays."""
    if len(set(table.column_names)) < len(table.column_names):
        raise ValueError("two columns have the same name")
    columns: dict[str, Cells] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        is_coded = hasattr(column.type, "value_type") and hasattr(column.type, "index_type")
        plain = column.cast(column.type.value_type) if is_coded else column
        # A batch is refused what would be a copy unless it may make one.
        options = {"zero_copy_only": False} if hasattr(plain, "offset") else {}
        columns[name] = _exact(np.asarray(plain.to_numpy(**options)), plain.type, plain.to_pylist)
    return columns


def _exact(values: NDArray[Any], kind: Any, as_list: Callable[[], list[Any]]) -> NDArray[Any]:
    """Return long whole numbers with gaps as they were: floats, which have gaps, round them."""
    is_float = values.dtype.kind == "f" and "int" in str(kind).lower()
    if not is_float or not np.fmax.reduce(np.abs(values), initial=0.0) >= LONG:
        return values
    return np.array(as_list(), object)


def _polars_columns(polars: Any, path: Path) -> dict[str, Cells]:
    frame = polars.read_parquet(path, hive_partitioning=False, glob=False)
    return {c.name: _exact(np.asarray(c.to_numpy()), c.dtype, c.to_list) for c in frame}


def _read_npz(path: Path) -> Table:
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path} is not an npz file. Write it with numpy.savez.")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: _array(path, file, name) for name in file.files}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path} is damaged ({error}). Write it with numpy.savez.") from error
    return npz_table(path, arrays)


def npz_table(path: Path, arrays: dict[str, NDArray[Any]]) -> Table:
    """Return the arrays of an npz file as a table: the columns of X by their names, and others."""
    X = arrays.pop("X", None)
    matrix = _csr(path, arrays) if X is None and arrays.keys() >= CSR else None
    if matrix is not None:
        names = _feature_names(path, arrays.pop("feature_names", None), matrix.shape[1])
        roles: dict[str, str] = {role: role for role in ("task", "node") if role in arrays}
        given: dict[str, Cells] = {**arrays}
        return Table(path, given, names, matrix.shape[0], roles=roles, matrix=matrix)
    if X is None or X.ndim != 2:
        found = "has no array 'X'" if X is None else f"has an array 'X' of shape {X.shape}"
        raise DataError(f"{path} {found}. Store the features as X, one row a sample.")
    names = _feature_names(path, arrays.pop("feature_names", None), X.shape[1])
    roles = {role: role for role in ("task", "node") if role in arrays}
    columns: dict[str, Cells] = {name: X[:, j] for j, name in enumerate(names)}
    for name in arrays.keys() & columns.keys():
        raise DataError(f"{path} has both a feature and an array called {name!r}. Rename one.")
    return Table(path, {**columns, **arrays}, names, len(X), roles=roles)


def _csr(path: Path, arrays: dict[str, NDArray[Any]]) -> Any:
    """Take the arrays of CSR rows out of a file's; refuse what is none."""
    data, indices, indptr, shape = (
        arrays.pop(name) for name in ("data", "indices", "indptr", "shape")
    )
    kind = arrays.pop("format", None)
    arrays.pop("_is_array", None)
    try:
        if kind is not None and kind.item() not in (b"csr", "csr"):
            raise ValueError(f"its format is {kind.item()!r}")
        if shape.shape != (2,) or data.dtype.kind not in "fiub":
            raise ValueError("its shape is no pair, or its values are no numbers")
        if shape[1] > MOST_COLUMNS:
            raise ValueError(f"it claims {int(shape[1]):,} columns, more than {MOST_COLUMNS:,}")
        found = csr_array((data.astype(np.float64), indices, indptr), shape=tuple(shape.tolist()))
        found.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(
            f"{path} holds CSR rows that cannot be read: {str(error).rstrip('.')}. Write data, "
            "indices, indptr and shape of a scipy.sparse.csr_array with numpy.savez."
        ) from error
    if not np.isfinite(found.data).all():
        row = int(
            np.searchsorted(found.indptr, np.flatnonzero(~np.isfinite(found.data))[0], "right")
        )
        raise DataError(f"{path}, row {row}: a value is not finite. Give every row numbers.")
    found.sum_duplicates()
    return found


def _array(path: Path, file: Any, name: str) -> NDArray[Any]:
    try:
        _check_claim(path, file, name)
        return np.asarray(file[name])
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, SyntaxError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path}, array {name!r} cannot be read: {str(error).rstrip('.')}. "
            "Save plain arrays of numbers or strings with numpy.savez."
        ) from error


def _check_claim(path: Path, file: Any, name: str) -> None:
    """Refuse an array whose header claims more bytes than the file holds."""
    member = f"{name}.npy" if f"{name}.npy" in file.zip.namelist() else name
    with file.zip.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version > (2, 0):
            return
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(stream)
    claimed, held = math.prod(shape) * dtype.itemsize, file.zip.getinfo(member).file_size
    if not dtype.hasobject and claimed > held:
        raise DataError(
            f"{path}, array {name!r} claims {claimed:,} bytes, but the file holds {held:,}. "
            "Write it again with numpy.savez."
        )


def _feature_names(path: Path, given: NDArray[Any] | None, n_features: int) -> tuple[str, ...]:
    if given is None:
        return tuple(f"x{j}" for j in range(n_features))
    names = tuple(str(name) for name in given.ravel())
    if len(set(names)) != n_features or len(names) != n_features:
        raise DataError(
            f"{path}: X has {n_features} columns, but feature_names has "
            f"{len(set(names))} different names."
        )
    return names


_SPREADSHEET = "Save it as CSV in the program that made it."
_REMEDIES = {
    ".xlsx": _SPREADSHEET,
    ".xls": _SPREADSHEET,
    ".ods": _SPREADSHEET,
    ".zip": "Unzip it first.",
    ".txt": "If it has rows and columns, rename it to .csv.",
}
_READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".npz": _read_npz,
}
