"""Numbers of new rows against those that features were agreed from: cm here and m there."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.sizes import APART
from dtsvm.prepare.encode import MEASURED, Encoded
from dtsvm.prepare.plan import Feature, Plan

__all__ = ["other_units"]

SURE = 6.0  # standard errors
MOST_NAMED = 5


def other_units(plan: Plan, rows: Encoded, path: object) -> str | None:
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
    >>> other_units(plan, encode(rows, plan.schema), "new.csv")
    "new.csv has 'height' from 162 to 171; trained on were 1.72 ± 0.066, all below 2. Convert it
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
                f"{path} has {feature.column!r} from {_short(present.min())} to "
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
