"""The columns of a node by name, kind and unit, and what several nodes agree on before training."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dtsvm.data.kinds import KIND_WORDS, Kind, join_kinds
from dtsvm.data.sizes import Sizes, are_exponents, join_sizes, refuse_other_sizes
from dtsvm.errors import DataError, ParameterError, did_you_mean

__all__ = ["ColumnSchema", "Schema", "absent_remedy", "agree_schemas", "split_unit"]

_WITH_UNIT = re.compile(r"(?P<name>.*\S)\s*(?:\[(?P<square>[^\[\]]+)\]|\((?P<round>[^()]+)\))")
MOST_SHOWN = 3


def split_unit(header: str) -> tuple[str, str | None]:
    """Split a column's heading into its name and its unit, if it has one.

    Examples
    --------
    >>> split_unit("creatinine (mg/dl)"), split_unit("age")
    (('creatinine', 'mg/dl'), ('age', None))
    """
    found = _WITH_UNIT.fullmatch(header)
    return (found["name"], found["square"] or found["round"]) if found else (header, None)


@dataclass(frozen=True)
class ColumnSchema:
    """One column: its name, what it holds, and in which unit.

    Attributes
    ----------
    name : str
        Its name, without the unit.
    kind : Kind
        What it holds.
    unit : str or None
        The unit its heading gives.
    levels : tuple of str
        The different texts of a yes/no column or of categories, sorted.
    exponent : int
        Numbers are below 2 to this power.
    sizes : Sizes or None
        How large one node's numbers are; None if they are few, or if their kind was declared.

    Examples
    --------
    >>> ColumnSchema("age", Kind.NUMBER, "years", exponent=7).to_dict()
    {'name': 'age', 'kind': 'number', 'unit': 'years', 'levels': [], 'exponent': 7}
    """

    name: str
    kind: Kind
    unit: str | None = None
    levels: tuple[str, ...] = ()
    exponent: int = 0
    sizes: Sizes | None = None

    @property
    def words(self) -> str:
        """What the column holds, for a sentence."""
        shown = ", ".join(self.levels[:MOST_SHOWN]) + (
            ", …" if len(self.levels) > MOST_SHOWN else ""
        )
        return KIND_WORDS[self.kind] + (f" ({shown})" if shown else "")

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        found = {
            "name": self.name,
            "kind": str(self.kind),
            "unit": self.unit,
            "levels": list(self.levels),
            "exponent": self.exponent,
        }
        return found if self.sizes is None else {**found, "sizes": list(self.sizes)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ColumnSchema:
        """Read what `to_dict` wrote; a ValueError for sizes that no numbers have."""
        unit, exponent = content["unit"], int(content["exponent"])
        sizes = Sizes(*map(int, content["sizes"])) if content.get("sizes") else None
        if not are_exponents(exponent, *(sizes or ())):
            raise ValueError(f"column {str(content['name'])[:40]!r} is larger than numbers are")
        return cls(
            str(content["name"]),
            Kind(content["kind"]),
            None if unit is None else str(unit),
            tuple(str(level) for level in content["levels"]),
            exponent,
            sizes,
        )


@dataclass(frozen=True)
class Schema:
    """The columns of one node, or those that several agreed on, in order.

    Attributes
    ----------
    columns : tuple of ColumnSchema
        The columns that may be features; labels, tasks and nodes are not among them.

    Examples
    --------
    >>> schema = Schema((ColumnSchema("age", Kind.NUMBER), ColumnSchema("ward", Kind.CATEGORY)))
    >>> schema.names, str(schema["ward"].kind)
    (('age', 'ward'), 'category')
    """

    columns: tuple[ColumnSchema, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)

    @functools.cached_property
    def _by_name(self) -> dict[str, ColumnSchema]:
        return {column.name: column for column in reversed(self.columns)}

    def __getitem__(self, name: str) -> ColumnSchema:
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[ColumnSchema]:
        return iter(self.columns)

    def of_kind(self, *kinds: Kind) -> tuple[ColumnSchema, ...]:
        """Return the columns of these kinds, in order."""
        return tuple(column for column in self.columns if column.kind in kinds)

    def declare(self, kinds: Mapping[str, str]) -> Schema:
        """Return the schema with some columns' kinds as declared instead of found.

        Examples
        --------
        >>> found = Schema((ColumnSchema("ward", Kind.NUMBER),))
        >>> str(found.declare({"ward": "category"})["ward"].kind)
        'category'
        """
        for name, kind in kinds.items():
            if name not in self:
                raise ParameterError(
                    f"There is no column {name!r} to declare as {kind!r}. "
                    f"{did_you_mean(name, self.names)}"
                )
            if kind not in DECLARABLE:
                raise ParameterError(f"Unknown kind {kind!r}. {did_you_mean(kind, DECLARABLE)}")
        return Schema(
            tuple(
                replace(column, kind=Kind(kinds[column.name]), sizes=None)
                if column.name in kinds
                else column
                for column in self
            )
        )

    def to_dict(self) -> list[dict[str, Any]]:
        """Return it as plain JSON values."""
        return [column.to_dict() for column in self]

    @classmethod
    def from_dict(cls, content: list[dict[str, Any]]) -> Schema:
        """Read what `to_dict` wrote; a ValueError for what is no schema."""
        found = cls(tuple(ColumnSchema.from_dict(entry) for entry in content))
        if len(found._by_name) < len(found.columns):
            raise ValueError("a column comes twice")
        return found


DECLARABLE = (Kind.NUMBER, Kind.YES_NO, Kind.CATEGORY, Kind.DATE, Kind.ID)


def agree_schemas(nodes: Mapping[str, Schema], missing_columns: str = "refuse") -> Schema:
    """Find the schema that fits every node, or refuse by name what does not go together.

    Parameters
    ----------
    nodes : mapping of str to Schema
        The schema of each node. The first node's order of columns is everybody's.
    missing_columns : {"refuse", "impute"}
        Whether a column that some node lacks is refused, or taken as missing in all its rows.

    Returns
    -------
    Schema
        The kinds that fit all, and the levels that occur at any node.

    Examples
    --------
    >>> north = Schema((ColumnSchema("creatinine", Kind.NUMBER),))
    >>> agree_schemas({"north": north, "south": Schema(())})
    Traceback (most recent call last):
    ...
    dtsvm.errors.DataError: Node south has no column 'creatinine'; north has it as a number. Add it,
    or let it be filled in with missing_columns = "impute" (--missing-columns impute).
    """
    if missing_columns not in ("refuse", "impute"):
        raise ParameterError(
            f"The 'missing_columns' parameter must be 'refuse' or 'impute'. "
            f"Got {missing_columns!r} instead."
        )
    names = dict.fromkeys(name for schema in nodes.values() for name in schema.names)
    return Schema(tuple(_agree_column(name, nodes, missing_columns) for name in names))


def _agree_column(name: str, nodes: Mapping[str, Schema], missing_columns: str) -> ColumnSchema:
    owners = {node: schema[name] for node, schema in nodes.items() if name in schema}
    first, agreed = next(iter(owners.items()))
    if missing_columns == "refuse":
        for node, schema in nodes.items():
            if name not in schema:
                raise DataError(_absent(name, node, schema, first, agreed))
    for node, column in owners.items():
        agreed = _join(node, column, first, agreed)
    _refuse_shares(owners)
    units = {node: column.unit for node, column in owners.items() if column.unit}
    sizes = {node: column.sizes for node, column in owners.items() if column.sizes}
    refuse_other_sizes(name, sizes, units)
    return agreed


def _refuse_shares(owners: Mapping[str, ColumnSchema]) -> None:
    """Refuse a column that is 97 % at one node and 0.97 at another."""
    with_sign = [n for n, one in owners.items() if one.unit in ("%", "‰") and one.exponent > 1]
    for node, column in owners.items():
        is_number = column.kind is Kind.NUMBER and column.unit is None
        if with_sign and is_number and column.exponent <= 1:
            other = owners[with_sign[0]]
            raise DataError(
                f"Node {with_sign[0]} has {column.name!r} in {other.unit}; {node} has it without a "
                "unit, and below 2. Write it alike: in percent, or as shares of one without "
                "the sign."
            )


def _absent(name: str, node: str, schema: Schema, owner: str, column: ColumnSchema) -> str:
    remedy = absent_remedy(name, schema.names)
    return f"Node {node} has no column {name!r}; {owner} has it as {column.words}. {remedy}"


def absent_remedy(name: str, names: Iterable[str]) -> str:
    """Say what to do where a column is absent among those of these names.

    Examples
    --------
    >>> absent_remedy("age", ["Age", "ward"])
    "Is it the column 'Age'? Then rename it."
    """
    by_lower = {one.lower(): one for one in names}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    if close:
        return f"Is it the column {by_lower[close[0]]!r}? Then rename it."
    return (
        'Add it, or let it be filled in with missing_columns = "impute" (--missing-columns impute).'
    )


def _join(node: str, column: ColumnSchema, first: str, agreed: ColumnSchema) -> ColumnSchema:
    kind = join_kinds(agreed.kind, column.kind)
    if kind is None:
        raise DataError(
            f"Node {node} has {column.name!r} as {column.words}; {first} has it as "
            f"{agreed.words}. Write it alike, or declare its kind."
        )
    if None not in (column.unit, agreed.unit) and column.unit != agreed.unit:
        raise DataError(
            f"Node {node} has {column.name!r} in {column.unit}; {first} has it in {agreed.unit}. "
            "Convert one of them."
        )
    levels = tuple(sorted({*agreed.levels, *column.levels}))
    exponent = max(agreed.exponent, column.exponent)
    sizes = join_sizes(agreed.sizes, column.sizes) if kind is Kind.NUMBER else None
    return ColumnSchema(column.name, kind, agreed.unit or column.unit, levels, exponent, sizes)
