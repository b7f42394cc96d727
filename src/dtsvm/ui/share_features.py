"""One rank's features: columns kept by groups of whole nodes, sums agreed, a matrix filled.

A group's columns are let go of as soon as its features are made, so a rank never has much more
than its rows once. Every node's sums are made and added as one process does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import Kind, Records, Schema, agree_schemas
from dtsvm.data.memory import LARGE_BYTES, give_back
from dtsvm.data.records import table_records
from dtsvm.data.shares import BLOCK_ROWS, Room
from dtsvm.data.sizes import Sizes, refuse_other_sizes, sizes_of
from dtsvm.data.tables import Cells, Table
from dtsvm.prepare import Encoded, Preparation, agreeing, apply_plan, encode
from dtsvm.prepare.plan import Plan
from dtsvm.runtime.mpi.collect import gather_rows
from dtsvm.svm.company import Ranks
from dtsvm.ui.training_rows import Choice

__all__ = ["Group", "make_features", "regroup"]

Ints = NDArray[np.int64]


class Group(NamedTuple):
    """Some nodes' rows of one file, node after node: its number and name, and the rows."""

    number: int
    name: str
    records: Records


def regroup(
    file: tuple[int, str], tables: Iterable[Table], choice: Choice, n_rows: int | None
) -> list[Group]:
    """Find what columns hold, and put rows into groups of whole nodes, a column at a time."""
    roles = {name: getattr(choice, name) for name in ("label", "task", "node", "weight")}
    whole = table_records(_joined(tables, n_rows), roles, choice.features, choice.kinds or {})
    n_bytes = 8 * whole.n_rows * len(whole.table.columns)
    give_back(n_bytes)
    order, cuts = np.arange(whole.n_rows), [0, whole.n_rows]
    if whole.node is not None:
        names = np.unique(whole.node)
        node = np.searchsorted(names, whole.node).astype(np.min_scalar_type(len(names)))
        order = np.argsort(node, kind="stable")
        ends = np.cumsum(np.bincount(node))
        some = np.unique(np.searchsorted(ends, np.arange(BLOCK_ROWS, ends[-1], BLOCK_ROWS)))
        cuts = np.unique([0, *ends[some], ends[-1]]).tolist()
    parts = [order[a:b] for a, b in pairwise(cuts)]
    columns: list[dict[str, Cells]] = [{} for _ in parts]
    own, cells = whole.table.columns, None
    for name in (column.name for column in whole.schema):
        cells = own.pop(name)
        for index, into in zip(parts, columns, strict=True):
            into[name] = _taken(cells, index)
    del cells
    groups = [
        Group(*file, _records(whole, into, index))
        for index, into in zip(parts, columns, strict=True)
    ]
    del whole, order, parts
    give_back(n_bytes)
    return groups


def _joined(tables: Iterable[Table], n_rows: int | None) -> Table:
    """Put blocks of rows together, letting go of each at once."""
    room = Room([n_rows])
    found = []
    for table in tables:
        if table.n_rows:
            placed = {name: room.put(name, cells) for name, cells in table.columns.items()}
            found.append(replace(table, columns=placed))
    first, *others = found
    if not others:
        return first
    columns: dict[str, Cells] = {}
    for name in list(first.columns):
        pieces: Any = [table.columns.pop(name) for table in found]
        whole = room.filled(name)
        columns[name] = np.concatenate(pieces) if whole is None else whole
    return replace(first, columns=columns, n_rows=sum(table.n_rows for table in found))


def _taken(cells: Cells, index: Ints) -> Cells:
    return tuple(cells[i] for i in index.tolist()) if isinstance(cells, tuple) else cells[index]


def _records(whole: Records, columns: dict[str, Cells], index: Ints) -> Records:
    lines = [whole.table.lines[i] for i in index.tolist()] if whole.table.lines else ()
    table = replace(whole.table, columns=columns, n_rows=len(index), lines=lines)
    y, task, node, weight = (
        None if values is None else values[index]
        for values in (whole.y, whole.task, whole.node, whole.weight)
    )
    return Records(table, whole.schema, y, task, node, weight)


class _Encoded(Encoded):
    """A node's rows, encoded anew whenever they are looked at."""

    def __init__(self, records: Records, index: Ints, schema: Schema, missing: str) -> None:
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "_of", (records, index, missing))

    def _now(self) -> Encoded:
        records, index, missing = self._of  # type: ignore[attr-defined]
        return encode(records.take(index), self.schema, missing)

    @property
    def n_rows(self) -> int:
        return len(self._of[1])  # type: ignore[attr-defined]

    @property
    def numbers(self) -> Any:  # type: ignore[override]
        return self._now().numbers

    @property
    def codes(self) -> Any:  # type: ignore[override]
        return self._now().codes


def make_features(
    groups: list[Group], is_held: list[NDArray[np.bool_]], choice: Choice, company: Ranks
) -> tuple[NDArray[np.float64], Preparation]:
    """Agree on features and make them; `groups` is empty afterwards."""
    missing = choice.missing_columns
    schema = _agree_schema(groups, missing, company)
    _refuse_other_sizes(groups, schema, choice, company)
    keys, rows = [], []
    for group, held in zip(groups, is_held, strict=True):
        for node, index in _nodes(group.records, ~held):
            keys.append([group.number, node])
            rows.append(_Encoded(group.records, index, schema, missing))
    plan = _agree_plan(keys, rows, schema, choice, company)
    X = np.empty((sum(len(held) for held in is_held), len(plan.features)))
    begun = end = 0
    rows.clear()
    while groups:
        records = groups.pop(0).records
        X[end : end + records.n_rows] = apply_plan(plan, encode(records, plan.schema, missing))
        end += records.n_rows
        del records
        if X[begun:end].nbytes >= LARGE_BYTES // 4:
            give_back(X.nbytes)
            begun = end
    made = Preparation.from_plan(plan, min_count=choice.min_count, missing_columns=missing)
    return X, made


def _agree_schema(groups: list[Group], missing: str, company: Ranks) -> Schema:
    mine = {
        group.number: [group.number, group.name, group.records.schema.to_dict()] for group in groups
    }
    every = sorted(chain.from_iterable(company.gather(list(mine.values()))), key=lambda e: e[0])
    by_name: dict[str, Schema] = {}
    for _, name, said in every:
        found = Schema.from_dict(said)
        before = by_name.get(name)
        by_name[name] = (
            found if before is None else agree_schemas({name: before, f"{name} ": found}, missing)
        )
    return agree_schemas(by_name, missing)


def _refuse_other_sizes(
    groups: list[Group], schema: Schema, choice: Choice, company: Ranks
) -> None:
    """Refuse columns in other units at other nodes, where a column names each row's node."""
    columns = [
        (i, column.name)
        for i, column in enumerate(_kinds(schema)[0])
        if column.kind is Kind.NUMBER and column.name not in (choice.kinds or {})
    ]
    by_node: dict[Any, list[tuple[Records, Ints]]] = {}
    for group in groups:
        if group.records.node is not None:
            for name, index in _nodes(group.records, np.full(group.records.n_rows, True)):
                by_node.setdefault(name, []).append((group.records, index))
    found = []
    for name, some in by_node.items():
        each = [encode(records.take(index), schema, choice.missing_columns).numbers
                for records, index in some]  # fmt: skip
        found.append([name, [sizes_of(np.concatenate([one[i] for one in each]))
                             for i, _ in columns]])  # fmt: skip
    every = sorted(chain.from_iterable(company.gather(found)))
    for k, (_, column) in enumerate(columns):
        sizes = {str(name): Sizes(*said[k]) for name, said in every if said[k] is not None}
        refuse_other_sizes(column, sizes, {})


def _nodes(records: Records, mine: NDArray[np.bool_]) -> list[tuple[Any, Ints]]:
    """The rows to train on, node by node, as one process adds them up."""
    if records.node is None:
        return [("", np.flatnonzero(mine))]
    names = np.unique(records.node)
    return [(name.item(), np.flatnonzero(mine & (records.node == name))) for name in names]


def _agree_plan(
    keys: list[list[Any]], rows: list[_Encoded], schema: Schema, choice: Choice, company: Ranks
) -> Plan:
    """Add up every node's sums, in the order of files and of nodes in them."""
    every = list(chain.from_iterable(company.gather(keys)))
    order = sorted(range(len(every)), key=lambda i: every[i])
    k, m = (len(some) for some in _kinds(schema))
    nobody = Encoded(schema, np.empty((k, 0)), np.empty((m, 0), np.int64))
    steps = [agreeing(some, choice.min_count) for some in (nobody, *rows)]
    vectors = [next(one) for one in steps]
    while True:
        width = len(vectors[0])
        mine = np.array(vectors[1:]).reshape(-1, width)
        total = np.sum(gather_rows(company.comm, mine)[order], axis=0)
        try:
            vectors = [one.send(total) for one in steps]
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _kinds(schema: Schema) -> tuple[Any, Any]:
    from dtsvm.prepare.encode import MEASURED

    return schema.of_kind(*MEASURED), schema.of_kind(Kind.CATEGORY)
