"""Files out: replaced whole or not at all, and arrays that show whether they were damaged."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["digest_of", "write_atomically"]


def digest_of(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a checksum of named arrays: their names, types, shapes and every bit."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        values = arrays[name]
        total.update(f"{name} {values.dtype} {values.shape}".encode())
        total.update(np.ascontiguousarray(values).tobytes())
    return total.digest()


def write_atomically(
    path: str | PathLike[str], content: bytes, *, is_private: bool = False
) -> None:
    """Replace a file by its new content in one step that a crash cannot halve.

    A private file is readable by its owner only; others have the mode the umask gives.
    """
    target = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(target))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(target)}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if not is_private:
            os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)  # the rename itself must outlive a power cut
    finally:
        os.close(directory)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
