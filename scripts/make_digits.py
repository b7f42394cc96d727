"""Make the bundled digits from the original MNIST files; the same files give the same bytes.

Usage: ``python scripts/make_digits.py MNIST_DIRECTORY [--out src/dtsvm/data/digits.idx.xz]``

The bundle is the four IDX files, cut down to six digits, one after another in one xz stream. Why
this encoding, in bytes an image over 2,000 of the test images:

=====================================  =====  =====  =====
order of the bytes                        xz    bz2   zlib
=====================================  =====  =====  =====
as in IDX (chosen)                     145.8  148.2  166.8
span of ink in each row, then the ink  139.7  144.9  149.5
mask of ink, then the ink              142.1  144.7  151.9
columns first within an image          146.9  150.1      -
zigzag over the rows                   151.5  151.5  172.0
high and low half-bytes apart          153.8  149.5  176.9
ink, black and grey map, then grey     154.9  157.8  173.9
one pixel of all images at a time      161.9  209.2      -
difference to the pixel on the left    175.4  176.7      -
difference to the pixel above          187.1  191.0      -
median edge prediction (JPEG-LS)       189.2  193.7      -
bit planes                             239.7  235.1      -
=====================================  =====  =====  =====

Spans of ink would save 4 %, not enough to pay for a format of our own.
"""

from __future__ import annotations

import argparse
import lzma
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.digits import BUNDLE, Digits, load_mnist

DIGITS = (3, 4, 5, 6, 8, 9)
N_TRAIN_PER_DIGIT = 2300
MAX_BYTES = 3_000_000
# 16 MiB reach over the whole content; lc and pb suit bytes without alignment.
FILTERS = [
    {
        "id": lzma.FILTER_LZMA2,
        "preset": 9 | lzma.PRESET_EXTREME,
        "dict_size": 1 << 24,
        "lc": 4,
        "pb": 0,
    }
]


def select(digits: Digits) -> Digits:
    """Keep all test images of the six digits and the first training images of each."""
    kept = digits.only(DIGITS)
    first = [np.flatnonzero(kept.train_labels == digit)[:N_TRAIN_PER_DIGIT] for digit in DIGITS]
    rows = np.sort(np.concatenate(first))
    return Digits(
        kept.train_images[rows], kept.train_labels[rows], kept.test_images, kept.test_labels
    )


def to_idx(array: NDArray[np.integer]) -> bytes:
    """Write one array as IDX."""
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def encode(digits: Digits) -> bytes:
    """Write the four arrays one after another and compress them."""
    parts: list[NDArray[np.integer]] = [
        digits.train_images.reshape(-1, 28, 28),
        digits.train_labels,
        digits.test_images.reshape(-1, 28, 28),
        digits.test_labels,
    ]
    return lzma.compress(b"".join(to_idx(part) for part in parts), filters=FILTERS)


def main() -> None:
    """Make the bundle and say how large it is."""
    default = Path(__file__).parents[1] / "src" / "dtsvm" / "data" / BUNDLE
    parser = argparse.ArgumentParser(description="Make the bundled digits.")
    parser.add_argument("directory", type=Path, help="where the four MNIST files are")
    parser.add_argument("--out", type=Path, default=default)
    options = parser.parse_args()
    chosen = select(load_mnist(options.directory))
    raw = encode(chosen)
    if len(raw) > MAX_BYTES:
        raise SystemExit(f"Error: {len(raw)} bytes is over the limit of {MAX_BYTES}.")
    options.out.write_bytes(raw)
    print(f"{options.out}: {chosen}, {len(raw)} bytes")


if __name__ == "__main__":
    main()
