"""Frames whose columns say task and node: those columns taken out, the rest left as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DataError, did_you_mean
from dtsvm.problem import Columns

__all__ = ["frame_columns", "take_column"]


def take_column(
    X: Any, column: str | None, what: str, *, is_needed: bool
) -> tuple[Any, NDArray[Any] | None]:
    """Return a frame without a column, and that column's values.

    Parameters
    ----------
    X : frame or array
        A frame of pandas or polars; anything else is returned as it is.
    column : str or None
        The column to take out; None takes nothing.
    what : {"task", "node"}
        What it says of each row.
    is_needed : bool
        Whether to refuse rows that have no such column.
    """
    if column is None:
        return X, None
    names = list(getattr(X, "columns", ()))
    if column in names:
        rest = X[[name for name in names if name != column]]
        return rest, np.asarray(X[column])
    if not is_needed:
        return X, None
    if not names:
        raise DataError(
            f"X is {_kind(X)}, but {what}_column={column!r} needs a frame; "
            f"give one of pandas or polars, or say {what}=…."
        )
    raise DataError(
        f"X has no column {column!r}, which names each row's {what}. {did_you_mean(column, names)}"
    )


def frame_columns(estimator: Any) -> tuple[Columns, bool]:
    """Return the columns' names if the rows came with names, and whether they did."""
    names = getattr(estimator, "feature_names_in_", None)
    return Columns(None if names is None else tuple(map(str, names))), names is not None


def _kind(X: Any) -> str:
    return "an array" if isinstance(X, np.ndarray) else f"a {type(X).__name__}"
