"""Bytes in: a file or standard input, gzipped or not, in any Unicode encoding, to text."""

from __future__ import annotations

import gzip
import sys
import unicodedata
import zlib
from pathlib import Path

from dtsvm.errors import DataError

__all__ = ["STDIN", "read_text"]

STDIN = Path("-")
_GZIP = b"\x1f\x8b"
# What is sometimes given the name of a CSV file.
_NO_TEXT = {
    b"PK\x03\x04": "a zip archive or a spreadsheet. Unzip it, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet. Save it as CSV",
    b"PAR1": "Parquet. Give its name the suffix .parquet",
}
# Longest first: the mark of UTF-32-LE begins with that of UTF-16-LE.
_MARKS = [
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
]


def read_text(path: Path) -> str:
    """Read a text file; ``-`` is standard input.

    Gzip is recognised by its first bytes, UTF-16 and UTF-32 by their byte-order mark or by their
    zeros; anything else must be UTF-8.
    """
    data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    if data.startswith(_GZIP):
        data = _unzip(path, data)
    if not data:
        raise DataError(f"{path} is empty. Give a file with rows.")
    for mark, what in _NO_TEXT.items():
        if data.startswith(mark):
            raise DataError(f"{path} is no text but {what}.")
    encoding = _encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _undecodable(path, data, error) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{path}, line {line}: a NUL byte; is this text? Save it as UTF-8.")
    # é is one character on most machines and e with an accent on some; names must be the same.
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _unzip(path: Path, data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} is gzip, but cut short or damaged ({str(error).rstrip('.')}). Copy it again."
        ) from error


def _encoding(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    sample = data[:400]
    evens, odds = sample[0::2].count(0), sample[1::2].count(0)
    if odds > len(sample) // 4 and not evens:
        return "utf-16-le"
    if evens > len(sample) // 4 and not odds:
        return "utf-16-be"
    return "utf-8"


def _undecodable(path: Path, data: bytes, error: UnicodeDecodeError) -> DataError:
    if error.encoding != "utf-8":
        return DataError(f"{path} is not whole {error.encoding.upper()} text. Save it as UTF-8.")
    line = data.count(b"\n", 0, error.start) + 1
    return DataError(
        f"{path}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8 text. "
        "Save the file as UTF-8."
    )
