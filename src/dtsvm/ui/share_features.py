"""One rank's features: columns encoded in blocks of rows, sums agreed, a matrix filled.

Columns are let go of as blocks are made of them, and blocks as features are, so a rank never has
much more than its rows once. Every node's sums are made and added as one process does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import ColumnSchema, Kind, Records, Schema, agree_schemas
from dtsvm.data.kinds import MOST_LEVELS
from dtsvm.data.memory import LARGE_BYTES, give_back
from dtsvm.data.records import table_records
from dtsvm.data.shares import BLOCK_ROWS, Room, join_places, read_blocks, read_column
from dtsvm.data.sizes import Sizes, count_exponents, refuse_other_sizes, sizes_of
from dtsvm.data.tables import Cells, Table, read_table
from dtsvm.prepare import Encoded, Prepared, agreeing, apply_plan, recode
from dtsvm.prepare.encode import MEASURED, encode_parts
from dtsvm.prepare.plan import Plan
from dtsvm.runtime.mpi.collect import gather_rows
from dtsvm.svm.company import Ranks
from dtsvm.ui.training_rows import Choice, refuse_unknown_kinds

__all__ = ["Group", "Part", "agree_schema", "make_features", "read_columns", "regroup"]

HUGE_BYTES = (1 << 22) - (1 << 12)  # of an array for which numpy asks for huge pages


@dataclass(frozen=True)
class Part:
    """What a rank reads of a file: some nodes' rows, or all (None), and how many they are."""

    number: int
    path: Path
    name: str
    wanted: list[Any] | None
    n_rows: int | None
    is_read_whole: bool


@dataclass(frozen=True, eq=False)
class Group:
    """A rank's rows of one file, node after node: its number and name, and the rows in blocks.

    `blocks` is emptied while features are made.
    """

    number: int
    name: str
    block_rows: int
    blocks: list[Encoded]
    y: NDArray[Any]
    task: NDArray[Any] | None
    node: NDArray[Any] | None
    weight: NDArray[np.float64] | None

    def nodes(self) -> list[tuple[Any, int, int]]:
        """Every node's name, its first row, and the one behind its last."""
        if self.node is None:
            return [("", 0, len(self.y))]
        names, firsts = np.unique(self.node, return_index=True)
        ends = [*firsts[1:].tolist(), len(self.y)]
        return list(zip(names.tolist(), firsts.tolist(), ends, strict=True))

    def pieces(self, first: int, end: int) -> list[Encoded]:
        """Rows that follow each other, as they lie in the blocks."""
        size = self.block_rows
        begins = range(first - first % size, end, size)
        return [self.blocks[at // size].cut(max(first - at, 0), end - at) for at in begins]


class NodeRows(Encoded):
    """A node's rows to train on, a line after the other out of the blocks."""

    def __init__(self, schema: Schema, pieces: list[Encoded], mine: NDArray[np.bool_]) -> None:
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "_of", (pieces, None if mine.all() else mine, int(mine.sum())))

    @property
    def n_rows(self) -> int:
        return self._of[2]  # type: ignore[attr-defined, no-any-return]

    @property
    def numbers(self) -> Any:  # type: ignore[override]
        return self._lines("numbers")

    @property
    def codes(self) -> Any:  # type: ignore[override]
        return self._lines("codes")

    def _lines(self, what: str) -> Iterator[NDArray[Any]]:
        pieces, mine, _ = self._of  # type: ignore[attr-defined]
        for some in zip(*(getattr(piece, what) for piece in pieces), strict=True):
            line = some[0] if len(some) == 1 else np.concatenate(some)
            yield line if mine is None else line[mine]


def read_columns(part: Part, choice: Choice) -> Records:
    """Read this rank's rows of a file, or all if it is read whole, and find what columns hold."""
    roles = {name: getattr(choice, name) for name in ("label", "task", "node", "weight")}
    if part.is_read_whole:
        table = read_table(part.path)
    else:
        table = _joined(read_blocks(part.path, choice.node, part.wanted), part.n_rows)
    found = table_records(table, roles, choice.features, choice.kinds or {})
    n_columns, columns = len(table.columns), found.table.columns
    del table
    for name in columns.keys() - {*found.schema.names}:
        del columns[name]  # labels and nodes have been read
    give_back(8 * found.n_rows * n_columns)
    return found


def regroup(part: Part, whole: Records, schema: Schema, missing_columns: str) -> Group:
    """Encode rows, node after node, in blocks; the columns are taken out of `whole`."""
    order = None if whole.node is None else _by_node(part, whole.node)
    n = whole.n_rows if order is None else len(order)
    size = _block_rows(schema)
    cuts = [slice(first, min(first + size, n)) for first in range(0, n, size)]
    parts = cuts if order is None else [order[cut] for cut in cuts]
    blocks = encode_parts(whole, schema, missing_columns, parts, lets_go=True)
    y, task, node, weight = (
        values if values is None or order is None else values[order]
        for values in (whole.y, whole.task, whole.node, whole.weight)
    )
    give_back(8 * n * len(schema.columns))
    assert y is not None
    return Group(part.number, part.name, size, blocks, y, task, node, weight)


def _block_rows(schema: Schema) -> int:
    """How many rows a block has: its numbers are not to lie on huge pages.

    They are filled a column after the other, while the columns are let go of; a huge page would be
    there whole from the first column on.
    """
    return int(np.clip(HUGE_BYTES // (8 * max(len(schema.columns), 1)), 128, BLOCK_ROWS))


def _by_node(part: Part, node: NDArray[Any]) -> NDArray[np.int64] | None:
    """A rank's rows, node after node; None if all lie so already."""
    mine = None
    if part.is_read_whole and part.wanted is not None:
        mine = np.flatnonzero(np.isin(node, np.array(part.wanted)))
        node = node[mine]
    if (node[1:] >= node[:-1]).all():
        return mine
    names, place = np.unique(node, return_inverse=True)
    order = np.argsort(place.astype(np.min_scalar_type(len(names))), kind="stable")
    return order if mine is None else mine[order]


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
    places = join_places(found)
    for name in list(first.columns):
        pieces: Any = [table.columns.pop(name) for table in found]
        whole = room.filled(name)
        columns[name] = np.concatenate(pieces) if whole is None else whole
    n = sum(table.n_rows for table in found)
    return replace(first, columns=columns, n_rows=n, places=places)


def make_features(
    groups: list[Group],
    is_held: list[NDArray[np.bool_]],
    schema: Schema,
    choice: Choice,
    company: Ranks,
) -> tuple[NDArray[np.float64], Prepared]:
    """Agree on features and make them; the groups have no blocks afterwards."""
    _refuse_other_sizes(groups, schema, choice, company)
    keys, rows = [], []
    for group, held in zip(groups, is_held, strict=True):
        for node, first, end in group.nodes():
            keys.append([group.number, node])
            rows.append(NodeRows(schema, group.pieces(first, end), ~held[first:end]))
    plan = _agree_plan(keys, rows, schema, choice, company)
    rows.clear()
    X = np.empty((sum(len(held) for held in is_held), len(plan.features)))
    _fill(X, plan, groups)
    made = Prepared(plan, choice.min_count, choice.missing_columns)
    return X, made


def _fill(X: NDArray[np.float64], plan: Plan, groups: list[Group]) -> None:
    begun = end = 0
    for group in groups:
        while group.blocks:
            block = recode(group.blocks.pop(0), plan.schema)
            apply_plan(plan, block, X[end : end + block.n_rows])
            end += block.n_rows
            del block
            if X[begun:end].nbytes >= LARGE_BYTES // 4:
                give_back(X.nbytes)
                begun = end


def agree_schema(
    files: Sequence[Path], parts: list[Part], found: list[Records], choice: Choice, company: Ranks
) -> Schema:
    """Find what columns hold in all files, at all ranks."""
    missing = choice.missing_columns
    settled = _look_at_whole_columns(files, parts, found, choice, company)
    mine = [
        [part.number, part.name, one.schema.to_dict()]
        for part, one in zip(parts, found, strict=True)
    ]
    every = sorted(chain.from_iterable(company.gather(mine)), key=lambda e: e[0])
    by_name: dict[str, Schema] = {}
    for number, name, said in every:
        here = Schema(tuple(settled.get((number, c.name), c) for c in Schema.from_dict(said)))
        before = by_name.get(name)
        if before is not None:
            here = _together(agree_schemas({name: before, f"{name} ": here}, missing))
        by_name[name] = here
    agreed = agree_schemas(by_name, missing)
    refuse_unknown_kinds(choice, agreed.names)
    return agreed


def _together(schema: Schema) -> Schema:
    """What two ranks find in one file: words too many for categories, though each had few."""
    return Schema(
        tuple(
            replace(column, kind=Kind.ID, levels=())
            if column.kind is Kind.CATEGORY and len(column.levels) > MOST_LEVELS
            else column
            for column in schema
        )
    )


def _look_at_whole_columns(
    files: Sequence[Path], parts: list[Part], found: list[Records], choice: Choice, company: Ranks
) -> dict[tuple[int, str], ColumnSchema]:
    """What a column of whole numbers holds where its file is spread over ranks.

    A count of the rows, 1, 2, 3, or an identifier is not to be told by some of the rows: one rank
    reads the column whole.
    """
    mine = [
        [part.number, name]
        for part, one in zip(parts, found, strict=True)
        if part.wanted is not None and not part.is_read_whole
        for name in one.schema.names
        if _may_count(one.table.columns[name])
    ]
    every = sorted({(i, name) for some in company.gather(mine) for i, name in some})
    said = []
    for i, name in company.turn(every):
        table = read_column(files[i], name)
        assert table is not None
        kinds = {n: kind for n, kind in (choice.kinds or {}).items() if n == name}
        column = table_records(table, {}, None, kinds).schema[name]
        said.append([i, replace(column, sizes=None).to_dict()])
    columns = [(i, ColumnSchema.from_dict(c)) for some in company.gather(said) for i, c in some]
    return {(i, column.name): column for i, column in columns}


def _may_count(cells: Cells) -> bool:
    """Whether all of a column's numbers are whole."""
    if isinstance(cells, tuple) or cells.dtype.kind not in "iuf":
        return False
    blocks = (cells[first : first + BLOCK_ROWS] for first in range(0, len(cells), BLOCK_ROWS))
    return cells.dtype.kind != "f" or all(
        (np.isnan(block) | (block == np.round(block))).all() for block in blocks
    )


def _refuse_other_sizes(
    groups: list[Group], schema: Schema, choice: Choice, company: Ranks
) -> None:
    """Refuse columns in other units at other nodes, where a column names each row's node."""
    columns = [
        (i, column.name)
        for i, column in enumerate(schema.of_kind(*MEASURED))
        if column.kind is Kind.NUMBER and column.name not in (choice.kinds or {})
    ]
    by_node: dict[Any, list[Encoded]] = {}
    for group in groups:
        for name, first, end in group.nodes() if group.node is not None else ():
            by_node.setdefault(name, []).extend(group.pieces(first, end))
    found = []
    for name, pieces in by_node.items():
        counts = ([count_exponents(piece.numbers[i]) for piece in pieces] for i, _ in columns)
        found.append([name, [sizes_of(np.sum(some, axis=0)) for some in counts]])
    every = sorted(chain.from_iterable(company.gather(found)))
    for k, (_, column) in enumerate(columns):
        sizes = {str(name): Sizes(*said[k]) for name, said in every if said[k] is not None}
        refuse_other_sizes(column, sizes, {})


def _agree_plan(
    keys: list[list[Any]], rows: list[NodeRows], schema: Schema, choice: Choice, company: Ranks
) -> Plan:
    """Add up every node's sums, in the order of files and of nodes in them."""
    every = list(chain.from_iterable(company.gather(keys)))
    order = sorted(range(len(every)), key=lambda i: every[i])
    k, m = (len(schema.of_kind(*kinds)) for kinds in (MEASURED, (Kind.CATEGORY,)))
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
