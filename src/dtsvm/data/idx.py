"""The first step in for images: IDX bytes, the format MNIST is published in, to arrays."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError

__all__ = ["parse_idx", "read_idx"]

# Two zero bytes, 8 for "unsigned byte", then the number of dimensions.
_MAGIC = {1: b"\x00\x00\x08\x01", 3: b"\x00\x00\x08\x03"}
_REMEDY = "Download it again."


def read_idx(path: Path, n_dims: int) -> NDArray[np.uint8]:
    """Read one IDX file of unsigned bytes, gzipped or not.

    Parameters
    ----------
    path : Path
        The file; a name that ends in ``.gz`` is unpacked.
    n_dims : {1, 3}
        1 for labels, 3 for images.

    Returns
    -------
    ndarray of uint8
        Read-only, with `n_dims` axes.
    """
    array, rest = parse_idx(_read_bytes(path), str(path), n_dims)
    if rest:
        raise DataError(f"{path} goes on for {len(rest)} bytes after its last item. {_REMEDY}")
    return array


def parse_idx(raw: bytes, name: str, n_dims: int) -> tuple[NDArray[np.uint8], bytes]:
    r"""Parse the IDX array at the start of `raw`, and hand back what follows it.

    Parameters
    ----------
    raw : bytes
        The content.
    name : str
        What to call it in an error message.
    n_dims : {1, 3}
        1 for labels, 3 for images.

    Returns
    -------
    array : ndarray of uint8
        Read-only, with `n_dims` axes.
    rest : bytes
        The bytes after the array.

    Examples
    --------
    >>> raw = b"\x00\x00\x08\x01" + b"\x00\x00\x00\x03" + bytes([3, 6, 3]) + b"more"
    >>> parse_idx(raw, "labels", 1)
    (array([3, 6, 3], dtype=uint8), b'more')
    """
    start = 4 + 4 * n_dims
    if len(raw) < start:
        raise DataError(f"{name} is truncated: it ends inside its header. {_REMEDY}")
    if raw[:4] != _MAGIC[n_dims]:
        raise DataError(
            f"{name} is not an IDX file of {n_dims}-D unsigned bytes: "
            f"it starts with {raw[:4].hex()}, not {_MAGIC[n_dims].hex()}. {_REMEDY}"
        )
    shape = tuple(int(size) for size in np.frombuffer(raw, dtype=">u4", count=n_dims, offset=4))
    # Python integers: a corrupt header must not overflow into a small size.
    size = 1
    for length in shape:
        size *= length
    if len(raw) < start + size:
        promised = " x ".join(str(length) for length in shape)
        raise DataError(
            f"{name} is truncated: its header promises {promised} bytes, "
            f"but {len(raw) - start} follow. {_REMEDY}"
        )
    array = np.frombuffer(raw, dtype=np.uint8, count=size, offset=start).reshape(shape)
    return array, raw[start + size :]


def _read_bytes(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} cannot be unpacked: {error}. {_REMEDY}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
