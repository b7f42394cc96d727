"""Most messages differ from the one before in their round and numbers alone; the rest was checked.

A message that was checked whole leaves a pattern behind: its bytes, with holes where its round and
its numbers are. What a later one of the same length has in the holes is checked anew; all else is
the same, byte for byte, and says what it said before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dtsvm.kernel import boxes
from dtsvm.runtime.agent.node.refuse import NUMBER, News, Told
from dtsvm.runtime.agent.node.roster import Pair

__all__ = ["Letter", "Pattern", "read_varint"]

ROUND, VALUES, NUMBERS = 6, 11, 6  # fields of a message, and of a value in it
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
Letter = News | boxes.Numbers  # what a message told, read whole or by a pattern
Field = tuple[int, int, int]  # its number, and where its content begins and ends


class Hole(NamedTuple):
    """Where numbers are, and for whom."""

    begin: int
    end: int
    pair: Pair
    shape: tuple[int, ...]
    penalty: bytes


class Pattern(boxes.Like):
    """What is the same in many messages of a neighbour.

    Parameters
    ----------
    known : (int, int)
        Roster and sums for which it was checked.
    data : bytes
        The message that was checked.
    round_at : (int, int)
        Where its round is.
    holes : list of Hole
        Where its numbers are.
    """

    def __init__(
        self, known: tuple[int, int], data: bytes, round_at: tuple[int, int], holes: list[Hole]
    ) -> None:
        self.holes = holes
        self.at = np.array([hole[:2] for hole in holes], np.int64).reshape(-1, 2)
        super().__init__(known, data, round_at, self.at)

    @classmethod
    def of(cls, data: bytes, message: Any, news: News, known: tuple[int, int]) -> Pattern | None:
        """Return the pattern of a message that was checked; None if it says more than numbers."""
        has_news = message.HasField("roster") or message.said_settings
        has_sums = any(one.up or one.down for one in message.sums)
        if has_news or has_sums or any(told.check for told in news.values.values()):
            return None
        if sys.byteorder != "little":
            return None  # numbers cannot be copied as they come
        try:
            round_, numbers = _places(data)
        except (IndexError, ValueError):
            return None
        if len(numbers) != len(message.values):
            return None
        holes = [
            Hole(*place, pair, told.numbers.shape, told.penalty)
            for place, (pair, told) in zip(numbers, news.values.items(), strict=True)
        ]
        return cls(known, data, round_, holes)

    def told(self, numbers: boxes.Numbers) -> dict[Pair, Told]:
        """Return what `News` has: the values by (the sender's task, the receiver's task)."""
        out = {}
        for (begin, end, pair, shape, penalty), square in zip(
            self.holes, numbers.squares, strict=True
        ):
            found = np.frombuffer(numbers.data[begin:end], NUMBER).reshape(shape)
            out[pair] = Told(found, penalty, 0, square)
        return out


def _places(data: bytes) -> tuple[tuple[int, int], list[tuple[int, int]]]:
    """Return where a message's round is, and the numbers of each of its values."""
    rounds, numbers = [], []
    for number, begin, end in _fields(data, 0, len(data)):
        if number == ROUND:
            rounds.append((begin, end))
        if number == VALUES:
            inside = [(i, j) for field, i, j in _fields(data, begin, end) if field == NUMBERS]
            (only,) = inside  # said twice, the last would count
            numbers.append(only)
    (one,) = rounds
    return one, numbers


def _fields(data: bytes, at: int, end: int) -> Iterator[Field]:
    """Walk through the fields of a message that protobuf has decoded."""
    while at < end:
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == VARINT:
            _, after = read_varint(data, at)
        elif kind == LENGTH:
            length, at = read_varint(data, at)
            after = at + length
        elif kind in (FIXED64, FIXED32):
            after = at + (8 if kind == FIXED64 else 4)
        else:
            raise ValueError("no field of ours")
        yield tag >> 3, at, after
        at = after


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of protobuf's, seven bits a byte, the lowest first, and where it ends.

    >>> read_varint(bytes([0xAC, 0x02]), 0)
    (300, 2)
    """
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
