"""Rows checked at the door: numbers, finite, of the right width and count."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, validate_data

from dtsvm.data.cells import is_none
from dtsvm.data.columns import LARGEST
from dtsvm.data.labels import are_labels, known_labels
from dtsvm.data.spellings import refuse_twice
from dtsvm.errors import DataError
from dtsvm.svm.company import Alone

__all__ = [
    "company_rows",
    "company_weights",
    "counted_rows",
    "estimator_rows",
    "row_weights",
    "session_rows",
]

DTYPES = [np.float64, np.float32]
# What NumPy and scikit-learn say of what is no number.
UNCONVERTED = (
    "could not convert",
    "array element with a sequence",
    "a real number",
    "Complex data",
    "could not be promoted",
)


def estimator_rows(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    accept_sparse: bool = True,
    is_first: bool = True,
) -> Any:
    """Check what a fit or a prediction is given, as scikit-learn does, in our sentences.

    Returns (X, y), or X alone when there is no y; X is not copied if it need not be. What comes
    after the first must have as many features.
    """
    _refuse_frame(X)
    fits = not isinstance(y, str)
    if fits and _length(X) != _length(y) > 0:
        raise DataError(f"X has {_length(X)} rows, but y has {_length(y)}.")
    y = known_labels(y) if fits else y
    is_plain = fits and is_first and type(y) is np.ndarray and y.ndim == 1
    if is_plain and _is_clean(X) and are_labels(y):
        _note_width(estimator, X.shape[1])
        _check_finite(X)
        return X, y
    options: dict[str, Any] = {
        "dtype": DTYPES, "ensure_all_finite": False,
        "accept_sparse": "csr" if accept_sparse else False,
        "accept_large_sparse": True,
    }  # fmt: skip
    try:
        if not fits:
            rows = validate_data(estimator, X, reset=False, **options)
            _check_finite(rows)
            return rows
        rows, labels = validate_data(estimator, X, y, reset=is_first, order="C", **options)
    except (TypeError, ValueError) as error:
        raise _refused(error, X) from error
    rows = _canonical(rows)
    _check_finite(rows)
    return rows, labels


def company_rows(company: Alone, estimator: Any, X: Any, y: Any, is_first: bool) -> Any:
    """Check what a fit is given; a process whose nodes have no rows may have none."""
    empty = company.shape(X)
    if empty is None:
        return estimator_rows(estimator, X, y, is_first=is_first)
    _note_width(estimator, empty.shape[1])
    return empty, np.zeros(0)


def _is_clean(X: Any) -> bool:
    """Whether scikit-learn's checks would find nothing and change nothing."""
    return bool(
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in DTYPES
        and X.flags.c_contiguous
        and min(X.shape) > 0
    )


def _note_width(estimator: Any, n_features: int) -> None:
    """Note what a fit on an array without names says of its columns."""
    estimator.n_features_in_ = n_features
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def session_rows(X: ArrayLike | None, n_features: int | None) -> Any:
    """Check rows that enter a session; None is no rows."""
    if X is None:
        if n_features is None:
            raise DataError("The first agent has no rows: say how long a row is with n_features=….")
        return np.zeros((0, n_features))
    _refuse_frame(X)
    try:
        rows = _canonical(
            check_array(
                X, dtype=DTYPES, ensure_min_samples=0, ensure_all_finite=False, accept_sparse="csr"
            )
        )
    except (TypeError, ValueError) as error:
        raise _refused(error, X) from error
    _check_finite(rows)
    if n_features is not None and rows.shape[1] != n_features:
        raise DataError(
            f"X has {rows.shape[1]} features, but the session's rows have {n_features}."
        )
    return rows


def row_weights(weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Check what each row's loss is multiplied by; None is 1 for all."""
    if weight is None:
        return None
    try:
        found = np.asarray(weight, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must be numbers, one a row ({error}).") from error
    if found.ndim == 0:
        found = np.full(n_rows, float(found))
    if found.ndim != 1:
        raise DataError(
            f"sample_weight must be one number a row, got an array of shape {found.shape}: "
            "Sample weights must be 1D array or scalar."
        )
    if len(found) != n_rows:
        raise DataError(f"X has {n_rows} rows, but sample_weight has {len(found)}.")
    bad = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if len(bad):
        raise DataError(
            f"sample_weight of row {bad[0]} is {found[bad[0]]:g}; weights are finite and not "
            "negative."
        )
    return found


def company_weights(
    company: Alone, weight: ArrayLike | None, n_rows: int
) -> NDArray[np.float64] | None:
    """Check what each row's loss is multiplied by: 1 where only other processes say."""
    found = row_weights(weight, n_rows)
    is_weighted = company.largest(float(found is not None))
    return np.ones(n_rows) if found is None and is_weighted else found


def counted_rows(
    weight: NDArray[np.float64] | None, n_rows: int, company: Alone
) -> NDArray[np.int64] | None:
    """Return which rows count, None if all do; refuse weights of which all are 0."""
    at = None if weight is None or weight.all() else np.flatnonzero(weight)
    if not company.largest(n_rows if at is None else len(at)):
        raise DataError(
            "The sample_weight of all rows is zero; a classifier needs rows that count."
        )
    return at


def _canonical(rows: Any) -> Any:
    """Return CSR rows that name no column twice."""
    if not issparse(rows):
        return rows
    found: Any = rows
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    return found


def _refuse_large(rows: Any) -> None:
    with np.errstate(invalid="ignore"):
        large = np.argwhere(np.isfinite(rows) & (np.abs(rows) > LARGEST))
    if len(large):
        i, j = large[0].tolist()
        raise DataError(
            f"X contains {rows[i, j]:g} in row {i}, column {j}, beyond ±{LARGEST:g}; use a larger "
            "unit."
        )


def _check_finite(rows: Any) -> None:
    if issparse(rows):
        _check_finite_values(rows)
        return
    with np.errstate(over="ignore", invalid="ignore"):
        # One pass without a mask as large as the rows; what cannot be squared is not finite here.
        # Not a product of BLAS: its threads would stay awake beside the first rounds.
        if math.isfinite(np.einsum("ij,ij->", rows, rows)):
            return
    _refuse_large(rows)
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        i, j = bad[0].tolist()
        value = "NaN" if np.isnan(rows[i, j]) else str(rows[i, j])
        raise DataError(
            f"X contains {value} in row {i}, column {j}; fill in or drop such rows first."
        )


def _check_finite_values(rows: Any) -> None:
    bad = np.flatnonzero(~np.isfinite(rows.data))
    if len(bad):
        i = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1
        value = rows.data[bad[0]]
        raise DataError(
            f"X contains {'NaN' if np.isnan(value) else value} in row {i}, column "
            f"{rows.indices[bad[0]]}; fill in or drop such rows first."
        )


def _refuse_frame(X: Any) -> None:
    """Refuse dates, which NumPy takes for numbers, and frames that have a name twice."""
    types: Any = getattr(X, "dtypes", None)
    if hasattr(types, "items"):
        refuse_twice(types.index)
        pairs = types.items()
    elif isinstance(types, list):
        pairs = zip(X.columns, types, strict=True)
    else:
        pairs = enumerate([getattr(X, "dtype", None)])
    for name, dtype in pairs:
        is_polars = hasattr(dtype, "is_temporal")
        if dtype.is_temporal() if is_polars else getattr(dtype, "kind", None) in ("m", "M"):
            raise DataError(
                f"X has dates or durations in column {name!r} where numbers are expected; make "
                "numbers of them, or drop such columns first."
            )


def _refused(error: Exception, X: Any) -> Exception:
    """Word what NumPy says of text or other things; pass scikit-learn's sentences on."""
    said = str(error)
    columns = getattr(X, "columns", None)
    if columns is None or not any(words in said for words in UNCONVERTED):
        columns = ()
    for name in columns:
        for value in X[name]:
            if not _is_number(value):
                return DataError(
                    f"X contains {_worded(value)} in column {name!r} where a number is expected; "
                    "encode or drop such columns first."
                )
    if said.startswith("could not convert string to float: "):
        return DataError(
            f"X contains the text {said.split(': ', 1)[1]} where a number is expected; encode or "
            "drop such columns first."
        )
    return error


def _worded(value: Any) -> str:
    if isinstance(value, str | bytes):
        return f"the text {value!r}"
    return "several values in one cell" if hasattr(value, "__len__") else repr(value)


def _is_number(value: Any) -> bool:
    try:
        if not is_none(value):
            float(value)
    except (TypeError, ValueError):
        return False
    return True


def _length(values: Any) -> int:
    """Return the number of rows, or 0 where scikit-learn should word the refusal."""
    shape = getattr(values, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 0
    return len(values) if hasattr(values, "__len__") else 0
