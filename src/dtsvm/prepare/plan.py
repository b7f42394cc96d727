"""What was agreed: which features are made of which columns, and how; stored with the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack

from dtsvm.data import Kind, Schema
from dtsvm.errors import ModelFileError
from dtsvm.prepare.encode import MEASURED, Encoded

__all__ = ["MISSING_LEVEL", "OTHER_LEVEL", "Feature", "Plan", "apply_plan", "apply_sparsely"]

MISSING_LEVEL, OTHER_LEVEL = "(missing)", "(other)"
BLOCK = 1 << 12  # rows whose features are made in one go, in the cache


@dataclass(frozen=True)
class Feature:
    """One feature: a column's value, whether it is missing, or whether it has a certain level.

    Attributes
    ----------
    column : str
        The column it is made of.
    level : str or None
        The level it marks; None if it is the column's value.
    mean : float
        What fills a gap; for numbers it is subtracted too.
    scale : float
        What numbers are divided by, their standard deviation; 0 for what is not scaled.

    Examples
    --------
    >>> Feature("ward", "A").name, Feature("age").name
    ('ward=A', 'age')
    """

    column: str
    level: str | None = None
    mean: float = 0.0
    scale: float = 0.0

    @property
    def name(self) -> str:
        """The feature's name: its column, and the level it marks."""
        return self.column if self.level is None else f"{self.column}={self.level}"


@dataclass(frozen=True)
class Plan:
    """How columns become features, the same at every node.

    Attributes
    ----------
    schema : Schema
        The columns; of categories only the levels that have a feature of their own.
    features : tuple of Feature
        The features, in order.
    notes : tuple of str
        A sentence for every column that was left out, wholly or in part.
    n_rows : int
        How many rows of the network it was agreed from.
    is_centred : bool
        Whether the mean is taken from numbers; if not, features can be sparse.
    """

    schema: Schema
    features: tuple[Feature, ...]
    notes: tuple[str, ...]
    n_rows: int
    is_centred: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The features' names."""
        return tuple(feature.name for feature in self.features)

    def original(
        self, coef: NDArray[np.float64], intercept: float
    ) -> tuple[NDArray[np.float64], float]:
        """Return weights by the columns' own units: Σ w (x − m)/s + b = Σ (w/s) x + (b − Σ w m/s).

        Gaps count as filled with the mean. What is not scaled keeps its weight.
        """
        scale = np.array([feature.scale or 1.0 for feature in self.features])
        is_shifted = [bool(feature.scale) and self.is_centred for feature in self.features]
        means = np.array([feature.mean for feature in self.features])
        shift = np.where(is_shifted, means, 0.0)
        weights = np.asarray(coef, float) / scale
        return weights, float(intercept - weights @ shift)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "n_rows": self.n_rows,
            "is_centred": self.is_centred,
            "columns": self.schema.to_dict(),
            "features": [
                {"column": f.column, "level": f.level, "mean": f.mean, "scale": f.scale}
                for f in self.features
            ],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Plan:
        """Read what `to_dict` wrote, or refuse what does not fit together."""
        try:
            schema = Schema.from_dict(content["columns"])
            features = tuple(_feature(entry) for entry in content["features"])
            notes = tuple(str(note) for note in content["notes"])
            is_centred = bool(content.get("is_centred", True))
            plan = cls(schema, features, notes, int(content["n_rows"]), is_centred)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(f"A preparation is damaged ({error}). Train again.") from error
        strange = next((f for f in features if f.column not in schema), None)
        if strange or not features or len(set(plan.names)) != len(features):
            raise ModelFileError("A preparation's features do not fit its columns. Train again.")
        return plan


def _feature(entry: Mapping[str, Any]) -> Feature:
    mean, scale = float(entry["mean"]), float(entry["scale"])
    if not (np.isfinite(mean) and np.isfinite(scale) and scale >= 0):
        raise ValueError(f"a mean of {mean} and a scale of {scale}")
    level = entry["level"]
    return Feature(str(entry["column"]), None if level is None else str(level), mean, scale)


def apply_plan(
    plan: Plan, rows: Encoded, out: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Make features: gaps filled with the mean, numbers (x − mean)/scale, levels 1 or 0.

    Parameters
    ----------
    plan : Plan
        What was agreed.
    rows : Encoded
        Rows under the plan's schema.
    out : ndarray of shape (n_rows, n_features), optional
        Where to put the features.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        The features.
    """
    X = np.empty((rows.n_rows, len(plan.features))) if out is None else out
    for first in range(0, rows.n_rows, BLOCK):
        some = X[first : first + BLOCK]
        for j, values in enumerate(_columns(plan, rows.cut(first, first + BLOCK))):
            some[:, j] = values
    return X


def apply_sparsely(plan: Plan, rows: Encoded) -> csr_matrix:
    """Make the same features as CSR, a column at a time, so that they are never all dense."""
    parts = [csr_matrix(values.astype(np.float64)[:, None]) for values in _columns(plan, rows)]
    return csr_matrix(hstack(parts, format="csr"))


def _columns(plan: Plan, rows: Encoded) -> Iterator[NDArray[Any]]:
    """Give the features one by one."""
    measured = {c.name: i for i, c in enumerate(plan.schema.of_kind(*MEASURED))}
    coded = {c.name: i for i, c in enumerate(plan.schema.of_kind(Kind.CATEGORY))}
    for feature in plan.features:
        if feature.column in measured:
            values = rows.numbers[measured[feature.column]]
            yield _from_numbers(feature, values, plan.is_centred)
        else:
            levels = plan.schema[feature.column].levels
            yield _from_codes(plan, feature, levels, rows.codes[coded[feature.column]])


def _from_numbers(feature: Feature, values: NDArray[np.float64], is_centred: bool) -> NDArray[Any]:
    is_gap = np.isnan(values)
    if feature.level is not None:
        return is_gap
    filled = np.where(is_gap, feature.mean, values) if is_gap.any() else values
    if not feature.scale:
        return filled
    return (filled - feature.mean if is_centred else filled) / feature.scale


def _from_codes(
    plan: Plan, feature: Feature, levels: tuple[str, ...], codes: NDArray[np.int64]
) -> NDArray[Any]:
    if feature.level == MISSING_LEVEL:
        return np.equal(codes, len(levels))
    if feature.level != OTHER_LEVEL:
        return np.equal(codes, levels.index(str(feature.level)))
    # Gaps too rare for a feature of their own are among the others.
    has_gaps = Feature(feature.column, MISSING_LEVEL).name in plan.names
    return np.less(codes, 0) if has_gaps else np.isin(codes, (-1, len(levels)))
