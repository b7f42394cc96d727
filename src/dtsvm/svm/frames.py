"""Frames: columns that say task and node taken out, raw ones prepared as a model's file says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.spellings import refuse_twice
from dtsvm.errors import DataError, did_you_mean
from dtsvm.prepare import Preparation
from dtsvm.problem import Columns

__all__ = ["frame_columns", "prepared", "take_column"]


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
        refuse_twice(names)  # before they are asked for by name
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


def prepared(X: Any, preparation: Mapping[str, Any] | None) -> Any:
    """Make features of a frame of raw columns, if the model says how; an array has them already.

    Parameters
    ----------
    X : frame, mapping of columns or array
        What was given for prediction.
    preparation : mapping or None
        What the model's file says; None if features are the columns as they are.
    """
    is_frame = isinstance(X, Mapping) or hasattr(X, "columns")
    if preparation is None or not is_frame:
        return X
    return Preparation.from_dict(preparation).transform(X)


def frame_columns(estimator: Any) -> tuple[Columns, bool]:
    """Return the columns' names if the rows came with names, and whether they did."""
    names = getattr(estimator, "feature_names_in_", None)
    return Columns(None if names is None else tuple(map(str, names))), names is not None


def _kind(X: Any) -> str:
    return "an array" if isinstance(X, np.ndarray) else f"a {type(X).__name__}"
