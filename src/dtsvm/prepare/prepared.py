"""Raw columns to features by a plan that is agreed: what agents and commands need of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dtsvm.data import Records, frame_records
from dtsvm.data.records import unit_of
from dtsvm.errors import DataError, ParameterError, StrangeRowsWarning
from dtsvm.prepare.encode import Encoded, encode, require_columns
from dtsvm.prepare.plan import Plan, apply_plan, apply_sparsely
from dtsvm.prepare.strange import other_levels, other_units

__all__ = ["Prepared", "check_parameters"]


@dataclass
class Prepared:
    """A plan, and how it is applied; `Preparation` is the same for scikit-learn.

    Parameters
    ----------
    plan : Plan
        What was agreed.
    min_count, missing_columns, sparse
        As of `Preparation`.
    """

    plan: Plan
    min_count: int = 10
    missing_columns: str = "refuse"
    sparse: bool = False

    def transform(self, X: Any, stacklevel: int = 2) -> Any:
        """Return the features of raw rows; warnings point so many callers up."""
        n_columns = len(self.plan.schema.columns)
        records = X if isinstance(X, Records) else frame_records(X, only=True)
        if isinstance(X, np.ndarray) and X.shape[1] > n_columns:  # it has no names
            raise DataError(
                f"X has {X.shape[1]} columns, but features are made of {n_columns}. Give "
                "these alone, or a data frame."
            )
        rows = _read(self.plan, records, self.missing_columns)
        for find in (other_units, other_levels):
            said = find(self.plan, rows, records.table)
            if said:
                warnings.warn(said, StrangeRowsWarning, stacklevel=stacklevel)
        return apply_sparsely(self.plan, rows) if self.sparse else apply_plan(self.plan, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "min_count": self.min_count,
            "missing_columns": self.missing_columns,
            "sparse": self.sparse,
            **self.plan.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Prepared:
        """Read what `to_dict` wrote."""
        min_count = content.get("min_count", 10)
        missing_columns = content.get("missing_columns", "refuse")
        check_parameters(min_count, missing_columns)
        sparse = bool(content.get("sparse", False))
        return cls(Plan.from_dict(content), min_count, missing_columns, sparse)


def check_parameters(min_count: Any, missing_columns: Any) -> None:
    """Refuse parameters out of their range."""
    if type(min_count) is not int or min_count < 1:
        raise ParameterError(
            f"The 'min_count' parameter of Preparation must be a positive int. "
            f"Got {min_count!r} instead."
        )
    if missing_columns not in ("refuse", "impute"):
        raise ParameterError(
            f"The 'missing_columns' parameter of Preparation must be 'refuse' or 'impute'. "
            f"Got {missing_columns!r} instead."
        )


def _read(plan: Plan, records: Records, missing_columns: str) -> Encoded:
    """Read the columns that features are made of; others may be absent, or hold anything."""
    made_of = {feature.column for feature in plan.features}
    columns = [column for column in plan.schema if column.name in made_of]
    if missing_columns == "refuse":
        require_columns(records, columns)
    there = {n: cells for n, cells in records.table.columns.items() if n in made_of}
    for column in columns:
        unit = unit_of(records.table, column.name) if column.name in there else None
        if None not in (unit, column.unit) and unit != column.unit:
            raise DataError(
                f"{records.table.path} has {column.name!r} in {unit}; features are made of it in "
                f"{column.unit}. Convert it."
            )
    used = replace(records, table=replace(records.table, columns=there))
    return encode(used, plan.schema, "impute")
