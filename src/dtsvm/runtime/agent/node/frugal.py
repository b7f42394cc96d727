"""Messages that would take far more room than they have: empty parts without end.

A part of two bytes takes a hundred and more once it is decoded: four megabytes of them took three
hundred. So parts are counted before anything is.
"""

from __future__ import annotations

__all__ = ["is_frugal"]

FEW_BYTES = 100_000  # of which no number of parts takes much room
Inside = tuple[tuple[int, int], ...]


def is_frugal(data: bytes, most: int, inside: Inside = ()) -> bool:
    """Whether a message has few enough parts to be decoded; what is damaged is for the decoder.

    Parameters
    ----------
    data : bytes
        The message.
    most : int
        Its fields, at most.
    inside : tuple
        The field that has more inside and how many that may be, what is inside that, and so on.

    Examples
    --------
    >>> is_frugal(bytes(2) * 60_000, 1000), is_frugal(bytes(2) * 100, 10)
    (False, True)
    """
    return len(data) <= FEW_BYTES or _has_few(data, 0, len(data), most, inside)


def _has_few(data: bytes, at: int, end: int, most: int, inside: Inside) -> bool:
    """Walk over the fields between two places, and into those that have more inside."""
    for _ in range(most):
        if at >= end:
            return True
        tag, at = _number(data, at)
        kind, length = tag & 7, 0
        if kind == 0:
            _, at = _number(data, at)
        elif kind == 2:
            length, at = _number(data, at)
        else:
            length = {1: 8, 5: 4}.get(kind, end)
        if kind == 2 and inside and tag >> 3 == inside[0][0]:
            last = min(at + length, end)
            if not _has_few(data, at, last, inside[0][1], inside[1:]):
                return False
        at += length
    return at >= end


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, the lowest first, and where it ends."""
    found = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        found |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            break
    return found, at
