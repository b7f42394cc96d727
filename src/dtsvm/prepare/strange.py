"""New rows against those that features were agreed from: cm here and m there, Ward and ward."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import Kind
from dtsvm.data.columns import levels_of
from dtsvm.data.sizes import APART
from dtsvm.data.tables import Table
from dtsvm.prepare.encode import MEASURED, Encoded
from dtsvm.prepare.plan import OTHER_LEVEL, Feature, Plan

__all__ = ["other_levels", "other_units"]

SURE = 6.0  # standard errors
MOST_NAMED = 5


def other_units(plan: Plan, rows: Encoded, table: Table) -> str | None:
    """Say which columns seem to be in another unit than they were trained in; None if none does.

    Half of a column's numbers must be 64 times as large as the root mean square of those trained
    on, and nine of ten above all of these; or half 64 times, all 16 times as small, and their mean
    too far from the mean trained on to be chance. 0 and gaps say nothing.

    Examples
    --------
    >>> from dtsvm.data import frame_records
    >>> from dtsvm.prepare import Preparation, encode
    >>> plan = Preparation().fit({"height": [1.62, 1.71, 1.80, 1.75]}).plan_
    >>> rows = frame_records({"height": [162.0, 171.0]})
    >>> other_units(plan, encode(rows, plan.schema), rows.table)
    "X has 'height' from 162 to 171; trained on were 1.72 ± 0.066, all below 2. Convert it
    if it is in another unit."
    """
    place = {column.name: i for i, column in enumerate(plan.schema.of_kind(*MEASURED))}
    found: dict[str, str] = {}
    for feature in plan.features:
        if not feature.scale:
            continue
        values = rows.numbers[place[feature.column]]
        present = values[np.isfinite(values) & (values != 0)]
        most = math.ldexp(1.0, plan.schema[feature.column].exponent)
        if len(present) and (_is_larger(present, feature, most) or _is_smaller(present, feature)):
            found[feature.column] = (
                f"{table.path} has {feature.column!r} from {_short(present.min())} to "
                f"{_short(present.max())}; trained on were {_short(feature.mean)} ± "
                f"{_short(feature.scale)}, all below {_short(most)}"
            )
    if not found:
        return None
    first, *others = found
    named = ", ".join(map(repr, others[:MOST_NAMED]))
    more = f", and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    tail = f" Likewise {named}{more}." if others else ""
    return f"{found[first]}. Convert it if it is in another unit.{tail}"


def other_levels(plan: Plan, rows: Encoded, table: Table) -> str | None:
    """Say which column's categories are mostly none of those trained on; None if no one's are.

    Where rare ones went together in training, what is not known may be one of these, so only
    another spelling of a known one is said.

    Examples
    --------
    >>> from dtsvm.data import frame_records
    >>> from dtsvm.prepare import Preparation, encode
    >>> plan = Preparation().fit({"ward": ["north", "south"] * 10}).plan_
    >>> rows = frame_records({"ward": ["South", "north"]})
    >>> other_levels(plan, encode(rows, plan.schema), rows.table)
    "X has 'South' as 'ward' in 1 of 2 rows; features are made of north, south. Write it alike if
    it is one of these."
    """
    made = {feature.column for feature in plan.features}
    names = {feature.name for feature in plan.features}
    for column, codes in zip(plan.schema.of_kind(Kind.CATEGORY), rows.codes, strict=True):
        if column.name not in made or not (codes < 0).any():
            continue
        unknown = Counter(levels_of(table, column.name)[codes < 0].tolist())
        known = {level.lower() for level in column.levels if len(level) > 1}
        spelled = next((level for level in unknown if level.lower() in known), None)
        may_be_rare = Feature(column.name, OTHER_LEVEL).name in names
        n_given = int((codes != len(column.levels)).sum())
        if spelled or (not may_be_rare and unknown.total() * 2 >= n_given):
            level = spelled or unknown.most_common(1)[0][0]
            shown = ", ".join(column.levels[:MOST_NAMED])
            more = ", …" if len(column.levels) > MOST_NAMED else ""
            return (
                f"{table.path} has {level!r} as {column.name!r} in {unknown[level]} of "
                f"{rows.n_rows} rows; features are made of {shown}{more}. Write it alike if it is "
                "one of these."
            )
    return None


def _short(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.15g}"


def _is_larger(present: NDArray[np.float64], feature: Feature, most: float) -> bool:
    tenth, half = np.quantile(np.abs(present), (0.1, 0.5))
    return bool(half >= 2**APART * _size(feature) and tenth >= most)


def _is_smaller(present: NDArray[np.float64], feature: Feature) -> bool:
    half, most = np.quantile(np.abs(present), (0.5, 1.0))
    size = _size(feature)
    apart = abs(present.mean() - feature.mean) * math.sqrt(len(present))
    is_small = half * 2**APART <= size and most * 2 ** (APART - 2) <= size
    return bool(is_small and apart >= SURE * feature.scale)


def _size(feature: Feature) -> float:
    """The root mean square of the numbers trained on."""
    return math.hypot(feature.mean, feature.scale)
