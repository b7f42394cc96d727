"""What a node says of its columns and labels before the first round, in words only it can sign."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dtsvm.data import Schema
from dtsvm.runtime.agent.node.agreed import Labelled

__all__ = ["WISHES", "Statement"]

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
