"""Numbers that only their sum shows: 128-bit fixed point, plus masks that cancel in the total.

A term travels as an integer modulo 2¹²⁸ with 80 bits behind the point: it holds what a double holds
between 2⁻⁸⁰ and 2⁴⁶, squares of small residuals and losses of many rows alike, and sums are exact,
so that every node sees the same bits whatever the order. Each pair of masked nodes shares a secret;
for each sum both stretch it to the same mask, the lower name adds it and the other subtracts it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

__all__ = ["MOST", "WIDTH", "add", "decode", "encode", "mask", "masked", "pairs"]

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]  # (n, 2): the low and the high half of every number
FRACTION = 80  # bits behind the point
WIDTH = 16  # bytes of a number
MOST = 2.0**40  # no term is larger
FEW = 64  # nodes that can all be masked with each other


def encode(values: Floats) -> Words:
    """Return numbers as fixed point; what is too large or not finite is refused.

    >>> import numpy as np
    >>> decode(encode(np.array([1.5, -0.25]))).tolist()
    [1.5, -0.25]
    """
    flat = np.asarray(values, np.float64).ravel()
    if not (np.abs(flat) <= MOST).all():
        raise ValueError(f"a term of a sum is above {MOST:.1e} or not finite")
    part, exponent = np.frexp(np.abs(flat))
    whole = np.ldexp(part, 53).astype(np.uint64)  # 53 bits, exact
    shift = exponent.astype(np.int64) - 53 + FRACTION
    words = np.stack(_shifted(whole, shift), axis=1)
    return np.where((flat < 0.0)[:, None], _negative(words), words)


def _shifted(whole: Words, shift: NDArray[np.int64]) -> tuple[Words, Words]:
    """Return both halves of whole · 2^shift, rounded down; shift is at most 68."""
    down = np.clip(-shift, 0, 63).astype(np.uint64)
    up = np.clip(shift, 0, 63).astype(np.uint64)
    far = np.clip(shift - 64, 0, 63).astype(np.uint64)
    spill = np.where(up > 0, whole >> (np.uint64(64) - np.maximum(up, np.uint64(1))), np.uint64(0))
    low = np.where(shift >= 64, np.uint64(0), (whole >> down) << up)
    high = np.where(shift >= 64, whole << far, spill)
    is_gone = shift <= -53
    return np.where(is_gone, np.uint64(0), low), np.where(is_gone, np.uint64(0), high)


def decode(words: Words) -> Floats:
    """Return fixed-point numbers as floats."""
    is_negative = words[:, 1] >> np.uint64(63) == 1
    size = np.where(is_negative[:, None], _negative(words), words).astype(np.float64)
    value = np.ldexp(size[:, 1], 64 - FRACTION) + np.ldexp(size[:, 0], -FRACTION)
    return np.asarray(np.where(is_negative, -value, value))


def add(one: Words, other: Words) -> Words:
    """Return the sums, modulo 2¹²⁸."""
    low = one[:, 0] + other[:, 0]
    return np.stack([low, one[:, 1] + other[:, 1] + (low < one[:, 0])], axis=1)


def _negative(words: Words) -> Words:
    one = np.broadcast_to(np.array([1, 0], np.uint64), words.shape)
    return add(~words, one)


def mask(secret: bytes, sum_: bytes, n: int) -> Words:
    """Return the n numbers that two nodes with this secret share for this sum and no other."""
    key = HKDF(hashes.SHA256(), 32, salt=None, info=b"dtsvm mask " + sum_).derive(secret)
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(stream.update(bytes(WIDTH * n)), "<u8").reshape(n, 2).astype(np.uint64)


def masked(words: Words, secrets: Iterable[tuple[bytes, bool]], sum_: bytes) -> Words:
    """Return a term as it travels; a secret comes with whether its mask is added."""
    for secret, is_added in secrets:
        shared = mask(secret, sum_, len(words))
        words = add(words, shared if is_added else _negative(shared))
    return words


def pairs(name: str, names: list[str], neighbours: Iterable[str]) -> list[str]:
    """Return with whom a node's terms are masked: everybody; in large networks some are enough.

    Those are its neighbours and the nodes 1, 2, 4, … places before and after it in the alphabet.
    """
    others = [other for other in names if other != name]
    if len(names) <= FEW:
        return others
    place, n = names.index(name), len(names)
    steps = [2**k for k in range(n.bit_length() - 1)]
    near = {names[(place + sign * step) % n] for step in steps for sign in (-1, 1)}
    return sorted((near | set(neighbours)) - {name})
