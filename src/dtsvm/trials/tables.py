"""What an experiment leaves behind: named columns, and the same bytes in a CSV every time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Table"]

Cell = str | int | float


class Table:
    """Rows under named columns; immutable.

    Parameters
    ----------
    columns : sequence of str
        Names, in the order of the CSV's header.
    rows : iterable of tuples
        One value a column.

    Examples
    --------
    >>> from dtsvm.trials.tables import Table
    >>> risks = Table(["repeat", "method", "risk"], [(0, "DSVM", 7.5), (1, "DSVM", 8.5)])
    >>> risks.where(method="DSVM")["risk"].mean()
    np.float64(8.0)
    >>> print(risks.csv())
    repeat,method,risk
    0,DSVM,7.500000
    1,DSVM,8.500000
    """

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        self.columns = tuple(columns)
        turned = list(zip(*rows, strict=True)) or [()] * len(self.columns)
        self._arrays = {
            name: np.array(values) for name, values in zip(self.columns, turned, strict=True)
        }

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._arrays[column]

    def __len__(self) -> int:
        return len(self._arrays[self.columns[0]])

    def where(self, **values: Cell) -> Table:
        """Keep the rows that have these values."""
        is_kept = np.ones(len(self), bool)
        for column, value in values.items():
            is_kept &= self._arrays[column] == value
        kept = Table(self.columns, [])
        kept._arrays = {name: array[is_kept] for name, array in self._arrays.items()}
        return kept

    def levels(self, column: str) -> list[Any]:
        """Return the different values of a column, in order of appearance."""
        return list(dict.fromkeys(self._arrays[column].tolist()))

    def by_repeat(self, column: str = "risk", per: str | None = None) -> NDArray[np.float64]:
        """Return a column as (repeat,) or (repeat, level of `per`); several rows are averaged."""
        repeat = np.unique(self["repeat"], return_inverse=True)[1]
        level = (
            np.zeros_like(repeat) if per is None else np.unique(self[per], return_inverse=True)[1]
        )
        shape = (repeat.max(initial=-1) + 1, level.max(initial=-1) + 1)
        total, count = np.zeros(shape), np.zeros(shape)
        np.add.at(total, (repeat, level), self[column])
        np.add.at(count, (repeat, level), 1.0)
        mean = total / count
        return mean[:, 0] if per is None else mean

    def csv(self) -> str:
        """Return the table as CSV text, six decimals, empty where nothing was measured."""
        columns = [[_written(value) for value in self[name].tolist()] for name in self.columns]
        lines = [",".join(self.columns), *map(",".join, zip(*columns, strict=True))]
        return "\n".join(lines)

    def write(self, path: Path) -> None:
        """Write the CSV; the bytes do not depend on the platform."""
        path.write_bytes((self.csv() + "\n").encode())


def _written(value: Cell) -> str:
    if isinstance(value, float):
        return "" if isnan(value) else f"{value:.6f}"
    text = str(value)
    return f'"{text}"' if "," in text else text
