"""Preparation: raw columns in, features out, as a scikit-learn transformer without a centre."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dtsvm.data import Records, frame_records
from dtsvm.errors import DataError
from dtsvm.prepare.agree import agreeing, run_together
from dtsvm.prepare.encode import encode
from dtsvm.prepare.plan import Plan
from dtsvm.prepare.prepared import Prepared, check_parameters

__all__ = ["Preparation"]


class Preparation(TransformerMixin, BaseEstimator):
    """Raw columns to features, from sums over the network and nothing else.

    Numbers: gaps filled with the network's mean, scaled to unit variance. Yes/no, true/false and
    0/1: one and zero, gaps filled with the share of ones. Categories: a feature a level, rare
    levels together, and what was never seen among them. A feature more where a number or yes/no
    is missing. Dates, identifiers and constants are left out, and `notes_` says so.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        Columns whose kind is declared: "number", "yes/no", "category", "date" or "id". Others are
        found from their values.
    min_count : int, default=10
        Levels that fewer rows of the network have go together as "(other)".
    missing_columns : {"refuse", "impute"}, default="refuse"
        What to do with rows that lack a column: refuse them, or take it as missing.
    sparse : bool, default=False
        Whether features are CSR. Numbers then keep their mean, as without it zeros would be few.

    Attributes
    ----------
    plan_ : Plan
        What was agreed: columns, features, means and scales.
    notes_ : tuple of str
        A sentence for every column that was left out or changed.
    n_features_in_ : int
        How many columns there were.

    Examples
    --------
    >>> from dtsvm import Preparation
    >>> rows = {"age": [60.0, 70.0, None, 80.0], "smoker": ["yes", "no", "no", "yes"]}
    >>> made = Preparation().fit(rows, node=["north", "north", "south", "south"])
    >>> made.get_feature_names_out().tolist()
    ['age', 'age=(missing)', 'smoker']
    >>> made.transform({"smoker": ["no"], "age": [70.0]}).tolist()
    [[0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        *,
        kinds: Mapping[str, str] | None = None,
        min_count: int = 10,
        missing_columns: str = "refuse",
        sparse: bool = False,
    ) -> None:
        self.kinds = kinds
        self.min_count = min_count
        self.missing_columns = missing_columns
        self.sparse = sparse

    def fit(self, X: Any, y: Any = None, *, node: ArrayLike | None = None) -> Self:
        """Agree on a plan.

        Parameters
        ----------
        X : data frame, mapping of columns, matrix or Records
            Rows of all nodes.
        y : ignored
            Labels play no part.
        node : array-like of shape (n_rows,), optional
            Each row's node. It says who adds up what; the plan is that of the pooled rows.

        Returns
        -------
        self
            With `plan_` and `notes_` set.
        """
        self.check()
        records = self._records(X)
        rows = encode(records, records.schema)
        parts = [rows.take(mine) for mine in _by_node(node, rows.n_rows)]
        plan = run_together([agreeing(part, self.min_count) for part in parts])
        return self._keep(replace(plan, is_centred=not self.sparse))

    def transform(self, X: Any) -> Any:
        """Return the features of raw rows, whose columns are found by name; CSR if `sparse`.

        Warns, with a `StrangeRowsWarning`, of columns that seem to be in another unit or to have
        other categories than those trained on.
        """
        # Above it are this method, scikit-learn's that surrounds it, and who called that.
        return self._prepared().transform(X, stacklevel=4)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the features' names."""
        check_is_fitted(self, "plan_")
        return np.array(self.plan_.names, object)

    def to_dict(self) -> dict[str, Any]:
        """Return a fitted preparation as plain JSON values."""
        return self._prepared().to_dict()

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Preparation:
        """Read what `to_dict` wrote."""
        made = Prepared.from_dict(content)
        return cls.from_plan(
            made.plan, min_count=made.min_count, missing_columns=made.missing_columns,
            sparse=made.sparse,
        )  # fmt: skip

    @classmethod
    def from_plan(cls, plan: Plan, **parameters: Any) -> Preparation:
        """Return a preparation that a network has agreed on already."""
        return cls(**parameters)._keep(plan)

    def _records(self, X: Any) -> Records:
        if isinstance(X, Records):
            return X
        return frame_records(X, self.kinds)

    def _keep(self, plan: Plan) -> Self:
        self.plan_ = plan
        self.notes_ = plan.notes
        self.n_features_in_ = len(plan.schema.columns)
        self.feature_names_in_ = np.array(plan.schema.names, object)
        return self

    def check(self) -> None:
        """Refuse parameters out of their range."""
        check_parameters(self.min_count, self.missing_columns)

    def _prepared(self) -> Prepared:
        check_is_fitted(self, "plan_")
        return Prepared(self.plan_, self.min_count, self.missing_columns, self.sparse)


def _by_node(node: ArrayLike | None, n_rows: int) -> list[NDArray[np.int64]]:
    if node is None:
        return [np.arange(n_rows)]
    names = np.asarray(node)
    if names.shape != (n_rows,):
        raise DataError(f"X has {n_rows} rows, but node has {names.size}.")
    levels = dict.fromkeys(names.tolist())
    return [np.flatnonzero(names == level) for level in levels]
