"""What a node says of its columns and labels before the first round, in words only it can sign."""

from __future__ import annotations

import functools
import hashlib
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from dtsvm.data import Schema, agree_schemas
from dtsvm.errors import DtsvmError
from dtsvm.runtime.agent.node.agreed import Labelled
from dtsvm.runtime.agent.node.identity import Identity
from dtsvm.runtime.agent.node.names import check_name, is_task
from dtsvm.runtime.agent.node.refuse import AGREEMENT, MOST_COUNT

__all__ = ["WISHES", "Statement", "agree_columns", "read_statements"]

MOST_LINKS, MOST_GROUPS = 4096, 256  # neighbours; tasks
FAIR_BYTES = 1_500_000  # of a statement, and of several in a message
MANY, OF_MEDIAN = 5000, 20  # columns and texts of a node: so many, or beside the others'
WISHES = {"min_count", "missing_columns", "class_weight", "is_raw", "sparse"}


@dataclass(frozen=True)
class Statement:
    """What one node says of its columns.

    Parameters
    ----------
    name : str
        The node.
    incarnation : int
        Grows with every start of it.
    links : tuple of str
        Its neighbours.
    said : str
        Its schema, its labels, and what it wants of preparation, as JSON.
    agreement, certificate, signature : str
        Its half of a key agreement, who it is, and its signature; in hexadecimal.
    """

    name: str
    incarnation: int
    links: tuple[str, ...]
    said: str
    agreement: str = ""
    certificate: str = ""
    signature: str = ""

    def content(self, network: int) -> bytes:
        """Return what is signed: every other field, in one spelling."""
        fields = [
            "dtsvm columns", network, self.name, self.incarnation, self.links, self.said,
            self.agreement, self.certificate,
        ]  # fmt: skip
        return json.dumps(fields, separators=(",", ":")).encode()

    def signed(self, network: int, identity: Identity) -> Statement:
        """Return the statement as its owner signs it; refuse one that nobody would pass on."""
        one = replace(self, signature=identity.sign(self.content(network)).hex())
        if one.n_bytes > FAIR_BYTES:
            raise DtsvmError(
                f"Columns and categories take {one.n_bytes} bytes; nodes pass on {FAIR_BYTES} at "
                "most. Is a category really a text, or an id?"
            )
        return one

    @functools.cached_property
    def mark(self) -> str:
        """Names these very words: only its owner can say two things in one incarnation."""
        return hashlib.sha256(self.content(0)).hexdigest()

    def is_newer_than(self, other: Statement) -> bool:
        """Whether this one counts; of two of one age all keep the same."""
        return (self.incarnation, self.mark) > (other.incarnation, other.mark)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @functools.cached_property
    def n_bytes(self) -> int:
        """Its length as others pass it on."""
        return len(json.dumps(self.to_dict()))

    @staticmethod
    def some_of(known: Mapping[str, Statement], n_told: int) -> list[Statement]:
        """Return as many statements as are of a fair length together, after so many were told."""
        every = [one for _, one in sorted(known.items())]
        begin = n_told % len(every)
        found: list[Statement] = []
        n_bytes = 0
        for one in every[begin:] + every[:begin]:
            n_bytes += one.n_bytes
            if found and n_bytes > FAIR_BYTES:
                break
            found.append(one)
        return found

    @staticmethod
    def links_of(known: Mapping[str, Statement]) -> list[tuple[str, str]]:
        """Return the links between nodes that both are known, and both name the other."""
        return [
            (one.name, other)
            for one in known.values()
            for other in one.links
            if other in known and one.name in known[other].links
        ]

    @staticmethod
    def digest_of(known: Mapping[str, Statement]) -> str:
        """Return what tells these very statements from others."""
        text = json.dumps(sorted((one.name, one.mark) for one in known.values()))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def schema(self) -> Schema:
        """Its columns."""
        return Schema.from_dict(json.loads(self.said)["columns"])

    @property
    def wishes(self) -> dict[str, Any]:
        """What it wants of preparation, which must be the same everywhere."""
        return {k: v for k, v in json.loads(self.said).items() if k in WISHES}

    @property
    def generation(self) -> int:
        """For the how-manieth agreement it is meant."""
        return int(json.loads(self.said)["generation"])

    @property
    def labels(self) -> dict[str, Labelled]:
        """Its labels, by task."""
        return {t: Labelled.heard(said) for t, said in json.loads(self.said)["labels"].items()}

    @property
    def groups(self) -> list[list[str]]:
        """The tasks that it wants to train together."""
        return [[str(task) for task in group] for group in json.loads(self.said)["groups"]]


def read_statements(
    entries: Sequence[dict[str, Any]], identity: Identity, network: int
) -> list[Statement]:
    """Return what nodes said; a ValueError for what no node says, or did not sign.

    Statements whose certificate is good no more, or that are too young for the clock here, are left
    out: the sender may not know that yet.
    """
    found = (_read(entry, identity, network) for entry in entries)
    return [one for one in found if one is not None]


def _read(entry: dict[str, Any], identity: Identity, network: int) -> Statement | None:
    one = Statement(**{**entry, "links": tuple(check_name(n) for n in entry["links"])})
    check_name(one.name)
    if type(one.incarnation) is not int or not 0 <= one.incarnation < MOST_COUNT:
        raise ValueError("a statement of no age")  # all must be able to tell which is newer
    if len(bytes.fromhex(one.agreement)) != AGREEMENT:
        raise ValueError("a statement without its half of the key agreement")
    if one.n_bytes > FAIR_BYTES:
        raise ValueError("a statement that nobody could pass on")
    certificate = bytes.fromhex(one.certificate)
    objection = identity.objection(one.name, certificate)
    if "revoked" in objection or "expired" in objection or one.incarnation > identity.latest():
        return None
    if objection:
        raise ValueError("a statement by a stranger")
    signature = bytes.fromhex(one.signature)
    if not identity.is_signed(certificate, one.content(network), signature):
        raise ValueError("a statement that its node did not sign")
    if len(one.links) >= MOST_LINKS:
        raise ValueError("too many neighbours")
    if not one.wishes.keys() >= WISHES or len(one.groups) > MOST_GROUPS:
        raise ValueError("a statement without wishes")
    if not all(is_task(task) for task in one.labels) or len(one.labels) > MOST_GROUPS:
        raise ValueError("a statement about no tasks")
    _ = one.schema  # refuses what is no schema
    return one


def agree_columns(nodes: Mapping[str, Statement], missing_columns: str, *, is_raw: bool) -> Schema:
    """Return the columns that fit all nodes; refuse by name what does not go together."""
    first = next(iter(nodes.values()))
    for one in nodes.values():
        for name, value in one.wishes.items():
            if value != first.wishes.get(name):
                raise DtsvmError(
                    f"Node {one.name} has {name} = {value!r}; {first.name} has "
                    f"{first.wishes.get(name)!r}. Write the same into every node.toml."
                )
    if is_raw:
        return Schema(())
    found = {name: one.schema for name, one in nodes.items()}
    # A node without rows has no columns, and no say in them.
    schemas = {name: schema for name, schema in found.items() if schema.columns}
    if not schemas:
        raise DtsvmError("No node has rows, so there are no columns to prepare.")
    _refuse_floods(schemas)
    return agree_schemas(schemas, missing_columns)


def _refuse_floods(schemas: Mapping[str, Schema]) -> None:
    """Refuse more columns and categories of one node than all can make features of.

    Everybody's rows get all of them: who names without end takes the others' memory.
    """
    named = {name: sum(1 + len(c.levels) for c in one) for name, one in schemas.items()}
    most = max(MANY, OF_MEDIAN * statistics.median(named.values()))
    for node, n in named.items():
        if n > most:
            raise DtsvmError(
                f"Node {node} names {n} columns and categories, half of the nodes at most "
                f"{statistics.median(named.values()):.0f}. Is a category really a text, or an id? "
                "Then declare its kind as id there; or unlink that node."
            )
