"""What the paper leaves unsaid about its rows, decided in two ways, each for all figures alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dtsvm.data import DigitDraw, DigitFeatures, load_mnist

__all__ = ["PAPER", "REGIMES", "STANDARD", "TASK_1", "TASK_2", "TASK_3", "Regime", "load_features"]

TASK_1, TASK_2, TASK_3 = "3v6", "5v4", "8v9"

Draw = Literal["stratified", "random"] | tuple[int, int]


@dataclass(frozen=True)
class Regime:
    """How digits become rows where the paper does not say.

    Parameters
    ----------
    name : str
        What the command line and the tables call it.
    scale : float
        What the ten principal components of pixels/255 are multiplied by.
    labels : {"random", "stratified"}
        How labels fall where a caption does not say that they are balanced.
    words : str
        One sentence for the report.

    Examples
    --------
    >>> from dtsvm.trials.regimes import STANDARD, load_features
    >>> rows = STANDARD.draw(load_features(), "3v6", 12, 100, np.random.default_rng(0))
    >>> rows.X_train.shape, int(rows.y_train.sum())
    ((12, 10), 0)
    """

    name: str
    scale: float
    labels: Literal["random", "stratified"]
    words: str

    def draw(
        self,
        features: DigitFeatures,
        task: str,
        n_train: int,
        n_test: int,
        rng: np.random.Generator,
        draw: Draw | None = None,
    ) -> DigitDraw:
        """Draw rows of one task; `draw` is what the caption says of the labels, if it does."""
        rows = features.draw(task, n_train, n_test, draw=draw or self.labels, rng=rng)
        return rows._replace(X_train=self.scale * rows.X_train, X_test=self.scale * rows.X_test)


PAPER = Regime(
    "paper",
    0.2,
    "random",
    "Principal components of pixels/255 times 0.2; labels as they fall, unless a caption says "
    "balanced. Chosen to come near Table 1, then kept for all figures; other choices come as near "
    "(python -m dtsvm.trials.search lists 240).",
)
STANDARD = Regime(
    "standard",
    1.0,
    "stratified",
    "Principal components of pixels/255 as they are; as many rows of one digit as of the other.",
)
REGIMES = {regime.name: regime for regime in (PAPER, STANDARD)}


def load_features() -> DigitFeatures:
    """Load the bundled digits as ten principal components, unscaled."""
    return DigitFeatures(load_mnist(), n_components=10)
