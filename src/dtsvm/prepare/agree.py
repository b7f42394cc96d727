"""Measure, total, agree: each node sums over its own rows, and from the totals all make one plan.

Two sums over the network are enough. The first has counts and sums, the second squares about the
means that follow from the first, so nothing large is subtracted from something as large. Numbers
are divided by a power of two that all agreed on, so every term is below the count of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import ColumnSchema, Kind, Schema
from dtsvm.errors import DataError
from dtsvm.prepare.encode import MEASURED, Encoded
from dtsvm.prepare.plan import MISSING_LEVEL, OTHER_LEVEL, Feature, Plan

__all__ = [
    "Steps",
    "Total",
    "agreeing",
    "measure_counts",
    "measure_spread",
    "run_alone",
    "run_together",
    "scales_of",
]

Vector = NDArray[np.float64]
Total = Callable[[Vector], Vector]
Steps = Generator[Vector, Vector, Plan]


def agreeing(rows: Encoded, min_count: int = 10) -> Steps:
    """Agree on a plan: a generator that gives a node's own sums and is sent the network's.

    Whoever runs it supplies the totals: memory adds, MPI reduces, agents send waves.

    Parameters
    ----------
    rows : Encoded
        The node's own rows, under the schema that all agreed on.
    min_count : int, default=10
        Levels that fewer rows of the network have go together as "(other)".

    Yields
    ------
    ndarray
        What this node adds to a sum.

    Returns
    -------
    Plan
        The same at every node that is sent the same totals.
    """
    counts = _Counts.read(rows.schema, (yield measure_counts(rows)))
    if counts.n_rows < 1:
        raise DataError("No node has rows to prepare features from. Give at least one some rows.")
    means = counts.sums / np.maximum(counts.present, 1)
    first, second = np.split((yield measure_spread(rows, means)), 2)
    squares = second - first**2 / np.maximum(counts.present, 1)
    scales = scales_of(rows.schema)
    variances = squares / counts.n_rows * scales**2
    return _make_plan(rows.schema, counts, means * scales, variances, min_count)


def scales_of(schema: Schema) -> Vector:
    """Return the power of two that each number is divided by, exactly, before it is summed."""
    return np.array([math.ldexp(1.0, column.exponent) for column in schema.of_kind(*MEASURED)])


def measure_counts(rows: Encoded) -> Vector:
    """Sum over a node's rows: 1; by number, values present and their sum; by category, levels."""
    found = []
    for numbers in _scaled(rows):
        n_gaps = _fill_gaps(numbers)
        found.append((float(len(numbers) - n_gaps), numbers.sum()))
    by_level = [
        np.bincount(codes, minlength=len(column.levels) + 1).astype(float)
        for column, codes in zip(rows.schema.of_kind(Kind.CATEGORY), rows.codes, strict=True)
    ]
    present, sums = np.array(found).reshape(-1, 2).T
    return np.concatenate([[float(rows.n_rows)], present, sums, *by_level])


def measure_spread(rows: Encoded, means: Vector) -> Vector:
    """Sum over a node's rows: x − m and (x − m)² by column of numbers, m the network's mean."""
    found = []
    for numbers, mean in zip(_scaled(rows), means, strict=True):
        numbers -= mean
        _fill_gaps(numbers)
        found.append((numbers.sum(), (numbers**2).sum()))
    return np.array(found).reshape(-1, 2).T.reshape(-1)


def _fill_gaps(numbers: Vector) -> int:
    """Put 0 where there is no value; return how often."""
    is_gap = np.isnan(numbers)
    n_gaps = int(np.count_nonzero(is_gap))
    if n_gaps:
        numbers[is_gap] = 0.0
    return n_gaps


def _scaled(rows: Encoded) -> Iterator[Vector]:
    """Give the columns of numbers one by one, which stay in the cache, divided by their scales."""
    return (line / scale for line, scale in zip(rows.numbers, scales_of(rows.schema), strict=True))


def run_alone(steps: Steps, total: Total) -> Plan:
    """Run one node's part; `total` turns its vector into the network's sum.

    Examples
    --------
    >>> from dtsvm.data import frame_records
    >>> from dtsvm.prepare import encode
    >>> rows = frame_records({"age": [60.0, 70.0, None]})
    >>> plan = run_alone(agreeing(encode(rows, rows.schema)), lambda vector: vector)
    >>> plan.names, plan.features[0].mean
    (('age', 'age=(missing)'), 65.0)
    """
    vector = next(steps)
    while True:
        try:
            vector = steps.send(total(vector))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def run_together(nodes: Sequence[Steps]) -> Plan:
    """Run every node's part in one process, adding in the order of the nodes."""
    vectors = [next(steps) for steps in nodes]
    while True:
        total = np.sum(vectors, axis=0)
        try:
            vectors = [steps.send(total) for steps in nodes]
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class _Counts(NamedTuple):
    """The first total, taken apart."""

    n_rows: int
    present: Vector
    sums: Vector
    levels: dict[str, Vector]

    @classmethod
    def read(cls, schema: Schema, total: Vector) -> _Counts:
        n_numbers = len(schema.of_kind(*MEASURED))
        categories = schema.of_kind(Kind.CATEGORY)
        ends = np.cumsum([1, n_numbers, n_numbers, *(len(c.levels) + 1 for c in categories)])
        first, present, sums, *levels = np.split(total, ends[:-1])
        by_name = {c.name: found for c, found in zip(categories, levels, strict=True)}
        return cls(round(float(first[0])), present, sums, by_name)


def _make_plan(
    schema: Schema, counts: _Counts, means: Vector, variances: Vector, min_count: int
) -> Plan:
    place = {column.name: i for i, column in enumerate(schema.of_kind(*MEASURED))}
    features: list[Feature] = []
    notes: list[str] = []
    columns: list[ColumnSchema] = []
    for column in schema:
        if column.name in place:
            i = place[column.name]
            numbers = (int(counts.present[i]), float(means[i]), float(variances[i]))
            made, note = _from_number(column, counts.n_rows, *numbers)
        elif column.kind is Kind.CATEGORY:
            column, made, note = _from_category(column, counts.levels[column.name], min_count)
        else:
            made, note = [], _left_out(column)
        features += made
        notes += [note] if note else []
        # How large numbers are is one node's, and of no more use.
        columns.append(replace(column, sizes=None, levels=column.levels if made else ()))
    if not features:
        why = notes or ["Give columns beside label, task and node."]
        raise DataError(" ".join(["No column is left to make a feature of.", *why]))
    return Plan(Schema(tuple(columns)), tuple(features), tuple(notes), counts.n_rows)


def _from_number(
    column: ColumnSchema, n_rows: int, n_present: int, mean: float, variance: float
) -> tuple[list[Feature], str | None]:
    if not n_present:
        return [], f"Column {column.name!r} has no value at any node and is left out."
    gap = [Feature(column.name, MISSING_LEVEL)] if n_present < n_rows else []
    # What rounding alone can make of a constant.
    noise = n_rows * np.finfo(float).eps
    if variance <= noise * variance + (noise * mean) ** 2:
        tail = "only whether it is missing is used" if gap else "it is left out"
        return gap, f"Column {column.name!r} is {mean:g} wherever it has a value; {tail}."
    scale = float(np.sqrt(variance)) if column.kind is Kind.NUMBER else 0.0
    return [Feature(column.name, None, mean, scale), *gap], None


def _from_category(
    column: ColumnSchema, found: Vector, min_count: int
) -> tuple[ColumnSchema, list[Feature], str | None]:
    by_level = dict(zip([*column.levels, MISSING_LEVEL], found.tolist(), strict=True))
    kept = [level for level, count in by_level.items() if count >= max(min_count, 1)]
    rare = [level for level, count in by_level.items() if count and count < max(min_count, 1)]
    own = tuple(level for level in kept if level != MISSING_LEVEL)
    made = [Feature(column.name, level) for level in kept]
    made += [Feature(column.name, OTHER_LEVEL)] if rare else []
    if len(kept) + len(rare) < 2:
        return (
            column,
            [],
            f"Column {column.name!r} is {[*kept, *rare][0]!r} in every row; it is left out.",
        )
    if len(made) < 2:
        why = f"has no level in {min_count} rows"
        return column, [], f"Column {column.name!r} {why}; it is left out."
    note = None
    if rare:
        note = (
            f"Column {column.name!r}: {len(rare)} of {len(kept) + len(rare)} levels have fewer "
            f"than {min_count} rows and go together as {OTHER_LEVEL}."
        )
    return replace(column, levels=own), made, note


def _left_out(column: ColumnSchema) -> str:
    if column.kind is Kind.EMPTY:
        return f"Column {column.name!r} has no value at any node and is left out."
    if column.kind is Kind.DATE:
        what, remedy = "holds dates or times", "make a number of it"
    else:
        what, remedy = "looks like an identifier", "declare its kind"
    return f"Column {column.name!r} {what} and is left out; {remedy} to use it."
