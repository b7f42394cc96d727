"""Images to rows: principal components of the digits, and random draws of the paper's tasks."""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import eigsh

from dtsvm.data.digits import Digits
from dtsvm.errors import DataError, ParameterError, did_you_mean

__all__ = ["DigitDraw", "DigitFeatures"]

_BLOCK = 8192
_REMEDIES = {
    "training": "Ask for fewer, or load the original files: load_mnist(path).",
    "test": "Ask for fewer.",
}


class DigitDraw(NamedTuple):
    """Rows of one task, drawn at random; the first digit of the pair is +1, the second -1."""

    X_train: NDArray[np.float64]
    y_train: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


class DigitFeatures:
    """The digits as a few principal components, ready for many random draws.

    The components are those of all training images in `digits`, computed once; test images have
    no part in them. Each component's largest entry in size is positive, so its sign is settled.

    Parameters
    ----------
    digits : Digits
        The images, from `load_mnist`.
    n_components : int, default=10
        How many principal components to keep.
    scale : float, default=1.0
        What the components of pixels/255 are multiplied by. It decides how strong a given C is.

    Attributes
    ----------
    mean : ndarray of shape (784,)
        The mean training image, in pixels/255.
    components : ndarray of shape (n_components, 784)
        The principal directions, unit length, largest variance first.

    Examples
    --------
    >>> from dtsvm.data import load_mnist
    >>> features = DigitFeatures(load_mnist(), n_components=10, scale=0.2)
    >>> X_train, y_train, X_test, y_test = features.draw("3v6", 40, 1800, rng=0)
    >>> X_train.shape, X_test.shape, int(y_train.sum())
    ((40, 10), (1800, 10), 0)
    """

    def __init__(self, digits: Digits, n_components: int = 10, scale: float = 1.0) -> None:
        most = min(digits.train_images.shape) - 1
        if not isinstance(n_components, int | np.integer) or not 1 <= n_components <= most:
            raise ParameterError(
                "The 'n_components' parameter of DigitFeatures must be an integer "
                f"from 1 to {most}. Got {n_components!r} instead."
            )
        if not (math.isfinite(scale) and scale > 0):
            raise ParameterError(
                "The 'scale' parameter of DigitFeatures must be a positive float. "
                f"Got {scale!r} instead."
            )
        self.n_components = int(n_components)
        self.scale = float(scale)
        self.mean, self.components = _principal_axes(digits.train_images, self.n_components)
        self._train = self._by_digit(digits.train_images, digits.train_labels)
        self._test = self._by_digit(digits.test_images, digits.test_labels)

    def transform(self, images: ArrayLike) -> NDArray[np.float64]:
        """Turn images into features: scale · (pixels/255 - mean) · componentsᵀ.

        Parameters
        ----------
        images : array-like of shape (n_images, 784)
            Pixels from 0 to 255.

        Returns
        -------
        ndarray of shape (n_images, n_components)
            The features.
        """
        pixels = np.asarray(images)
        # In blocks: all of MNIST as floats would take half a gigabyte.
        blocks = [pixels[i : i + _BLOCK] for i in range(0, len(pixels), _BLOCK)]
        axes = self.scale * self.components.T
        parts = [block @ (axes / 255) - self.mean @ axes for block in blocks]
        return np.concatenate(parts) if parts else np.empty((0, self.n_components))

    def labels(self, pair: str) -> tuple[int, int]:
        """Name the two digits of a pair.

        Parameters
        ----------
        pair : str
            Two digits with a v between them, like "3v6".

        Returns
        -------
        tuple of int
            The digit that is +1, and the digit that is -1.
        """
        match = re.fullmatch(r"([0-9])v([0-9])", str(pair))
        if match is None or match[1] == match[2]:
            raise ParameterError(
                f"Unknown pair {pair!r}. Write two different digits with a v between them, "
                "the positive one first: '3v6'."
            )
        for digit in match.groups():
            if int(digit) not in self._train or int(digit) not in self._test:
                held = ", ".join(str(held) for held in sorted(self._train))
                raise DataError(
                    f"Task {pair} needs images of {digit}, but only {held} are loaded. "
                    "All ten digits are in the original files: load_mnist(path)."
                )
        return int(match[1]), int(match[2])

    def draw(
        self,
        pair: str,
        n_train: int | None = None,
        n_test: int | None = None,
        *,
        draw: Literal["stratified", "random"] | tuple[int, int] = "stratified",
        rng: np.random.Generator | int | None = None,
    ) -> DigitDraw:
        """Draw training and test rows of one task, without repetition, in random order.

        Parameters
        ----------
        pair : str
            The two digits, the positive one first: "3v6", "5v4", "8v9".
        n_train, n_test : int, optional
            How many rows to draw; by default all there are.
        draw : {"stratified", "random"} or (int, int), default="stratified"
            "stratified": as many rows of one digit as of the other (the first has one more when
            the number is odd). "random": rows drawn regardless of their digit. Two counts: that
            many training rows of the first digit and of the second; test rows are stratified.
        rng : numpy Generator or int, optional
            The source of randomness, or its seed.

        Returns
        -------
        DigitDraw
            X_train, y_train, X_test, y_test, with y in {-1, +1}.

        Notes
        -----
        Where a stratified test set asks for more of one digit than there are, the other digit
        makes up the number: 1,800 test rows of "5v4" are 892 of 5, all that MNIST has, and 908
        of 4. Training rows are never filled up so.

        Examples
        --------
        >>> from dtsvm.data import load_mnist
        >>> features = DigitFeatures(load_mnist(digits=[3, 6]))
        >>> y = features.draw("3v6", draw=(2, 10), rng=0).y_train
        >>> int((y == 1).sum()), int((y == -1).sum())
        (2, 10)
        """
        rng = np.random.default_rng(rng)
        positive, negative = self.labels(pair)
        train = (self._train[positive], self._train[negative])
        test = (self._test[positive], self._test[negative])
        train_counts = _train_counts(pair, train, n_train, draw, rng)
        test_counts = _test_counts(pair, test, n_test, draw, rng)
        return DigitDraw(*_pick(train, train_counts, rng), *_pick(test, test_counts, rng))

    def _by_digit(
        self, images: NDArray[np.uint8], labels: NDArray[np.int64]
    ) -> dict[int, NDArray[np.float64]]:
        X = self.transform(images)
        return {int(digit): X[labels == digit] for digit in np.unique(labels)}


_TwoClasses = tuple[NDArray[np.float64], NDArray[np.float64]]


def _principal_axes(
    images: NDArray[np.uint8], n_components: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of pixels/255 and the leading eigenvectors of their covariance."""
    n, n_pixels = images.shape
    mean = images.mean(axis=0)
    # Sums of products of whole pixels are exact in float64, so no machine's order of adding shows.
    products = np.zeros((n_pixels, n_pixels))
    for start in range(0, n, _BLOCK):
        block = images[start : start + _BLOCK].astype(np.float64)
        products += block.T @ block
    covariance = products / n - np.outer(mean, mean)
    # Lanczos from a fixed start: dense eigh takes seconds when its threads share their cores.
    _, vectors = eigsh(covariance, k=n_components, v0=np.ones(n_pixels))
    axes = vectors[:, ::-1].T
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1, keepdims=True), axis=1)
    return mean / 255, np.ascontiguousarray(axes * np.sign(largest))


def _train_counts(
    pair: str,
    rows: _TwoClasses,
    n: int | None,
    draw: str | tuple[int, int],
    rng: np.random.Generator,
) -> tuple[int, int]:
    """How many training rows of each class to draw; refuse more than there are."""
    if isinstance(draw, str):
        counts = _split(pair, "training", rows, n, draw, rng)
    else:
        counts = _explicit(draw, n)
    for count, held, which in zip(counts, rows, ("first", "second"), strict=True):
        if count > len(held):
            raise DataError(
                f"Task {pair} has {len(held)} training images of its {which} digit, "
                f"but {count} were asked for. {_REMEDIES['training']}"
            )
    return counts


def _test_counts(
    pair: str,
    rows: _TwoClasses,
    n: int | None,
    draw: str | tuple[int, int],
    rng: np.random.Generator,
) -> tuple[int, int]:
    """How many test rows of each class to draw; one class makes up for the other."""
    how = draw if isinstance(draw, str) else "stratified"
    first, second = _split(pair, "test", rows, n, how, rng)
    total = first + second
    first = min(max(first, total - len(rows[1])), len(rows[0]))
    return first, total - first


def _split(
    pair: str, part: str, rows: _TwoClasses, n: int | None, how: str, rng: np.random.Generator
) -> tuple[int, int]:
    n_first, n_second = len(rows[0]), len(rows[1])
    if how not in ("stratified", "random"):
        raise ParameterError(f"Unknown draw {how!r}. {did_you_mean(how, ['stratified', 'random'])}")
    if n is None:
        return n_first, n_second
    if n < 0:
        raise ParameterError(f"The number of {part} rows must not be negative. Got {n} instead.")
    if n > n_first + n_second:
        raise DataError(
            f"Task {pair} has {n_first + n_second} {part} images, but {n} were asked for. "
            f"{_REMEDIES[part]}"
        )
    if how == "stratified":
        return n - n // 2, n // 2
    first = int(rng.hypergeometric(n_first, n_second, n))
    return first, n - first


def _explicit(counts: tuple[int, int], n: int | None) -> tuple[int, int]:
    if len(counts) != 2 or min(counts) < 0:
        raise ParameterError(f"draw must be two counts, like (2, 10). Got {counts!r} instead.")
    if n is not None and sum(counts) != n:
        raise ParameterError(f"draw={counts!r} sums to {sum(counts)}, but n_train is {n}.")
    return int(counts[0]), int(counts[1])


def _pick(
    rows: _TwoClasses, counts: tuple[int, int], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    chosen = [
        held[rng.choice(len(held), count, replace=False)]
        for held, count in zip(rows, counts, strict=True)
    ]
    order = rng.permutation(sum(counts))
    y = np.repeat(np.array([1, -1], dtype=np.int64), counts)
    return np.concatenate(chosen)[order], y[order]
