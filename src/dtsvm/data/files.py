"""Files out: replaced whole or not at all, and arrays that show whether they were damaged."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

__all__ = ["Digest", "digest_of", "open_atomically", "write_atomically"]


class Digest:
    """A checksum of named arrays that come one after the other, sorted by name, in blocks."""

    def __init__(self) -> None:
        self._total = hashlib.sha256()

    def begin(self, name: str, dtype: Any, shape: tuple[int, ...]) -> None:
        """Go on to the next array."""
        self._total.update(f"{name} {dtype} {shape}".encode())

    def update(self, block: NDArray[Any]) -> None:
        """Add some of its rows."""
        if block.size:
            self._total.update(np.ascontiguousarray(block).reshape(-1).view(np.uint8).data)

    def result(self) -> bytes:
        """Return the checksum."""
        return self._total.digest()


def digest_of(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a checksum of named arrays: their names, types, shapes and every bit."""
    total = Digest()
    for name in sorted(arrays):
        values = arrays[name]
        total.begin(name, values.dtype, values.shape)
        total.update(values)
    return total.result()


def write_atomically(
    path: str | PathLike[str], content: bytes, *, is_private: bool = False
) -> None:
    """Replace a file by its new content in one step that a crash cannot halve.

    A private file is readable by its owner only; others have the mode the umask gives.
    """
    with open_atomically(path, is_private=is_private) as file:
        file.write(content)


@contextmanager
def open_atomically(path: str | PathLike[str], *, is_private: bool = False) -> Iterator[BinaryIO]:
    """Give a file to write, which replaces the one that is there once all is written.

    A link keeps pointing where it did. A device or a pipe, as /dev/stdout, is written to.
    """
    target = os.fspath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as device:
            yield device
        return
    target = os.path.realpath(target)
    folder = os.path.dirname(os.path.abspath(target))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(target)}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
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
