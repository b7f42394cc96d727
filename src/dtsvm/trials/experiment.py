"""What a figure's module offers: numbers, claims and a picture, each on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dtsvm.trials.intervals import Claim
from dtsvm.trials.repeats import Repeats
from dtsvm.trials.tables import Table

__all__ = ["Experiment"]


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper.

    Parameters
    ----------
    name : str
        What the command line and the files call it.
    title : str
        One line for the report.
    caption : str
        What was done, and how the paper was read where it is open.
    parameters : dict
        The numbers of the paper's caption.
    n_repeats, n_quick : int
        Repeats in each regime, and when in a hurry.
    run : callable
        Repeats to table: numbers only.
    judge : callable
        Table of one regime to claims.
    draw : callable
        Table to a matplotlib figure: picture only.
    numbers : str, optional
        Another experiment whose numbers this one draws.
    """

    name: str
    title: str
    caption: str
    parameters: dict[str, Any]
    n_repeats: int
    n_quick: int
    run: Callable[[Repeats], Table]
    judge: Callable[[Table], list[Claim]]
    draw: Callable[[Table], Any]
    numbers: str = ""

    @property
    def source(self) -> str:
        """The experiment whose numbers these are: its own unless `numbers` names another."""
        return self.numbers or self.name
