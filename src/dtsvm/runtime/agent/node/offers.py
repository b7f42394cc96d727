"""What neighbours say was agreed on before a node came: two of them alike, where it has two.

A newcomer cannot add up anew what the others did. It can ask a second neighbour, and see whether
what it is offered fits its own columns and its own node.toml.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from dtsvm.data import Schema, agree_schemas
from dtsvm.errors import DtsvmError
from dtsvm.runtime.agent.node.agreed import Agreed, Labelled

__all__ = ["Offers", "check_fit"]


@dataclass
class Offers:
    """The newest offer of every neighbour."""

    by: dict[str, Agreed] = field(default_factory=dict)

    def put(self, peer: str, agreed: Agreed) -> None:
        """Keep what a neighbour offers."""
        self.by[peer] = agreed

    def best(self, least: int) -> Agreed | None:
        """Return what most neighbours say, if so many do; None while too few have said anything.

        Examples
        --------
        >>> offers = Offers({"b": Agreed(generation=1)})
        >>> offers.best(2) is None, offers.best(1).generation
        (True, 1)
        >>> offers.put("c", Agreed(generation=2))
        >>> offers.best(1)
        Traceback (most recent call last):
        ...
        dtsvm.errors.DtsvmError: Nodes b, c do not say the same. Ask their owners who is right, and
        'dtsvm tell' this one to 'unlink' the other, or write the right neighbours into node.toml.
        """
        said = {peer: json.dumps(one.to_dict(), sort_keys=True) for peer, one in self.by.items()}
        ranked = Counter(said.values()).most_common(2)
        if len(ranked) > 1 and ranked[1][1] == ranked[0][1]:
            raise DtsvmError(
                f"Nodes {', '.join(sorted(said))} do not say the same. Ask their owners who is "
                "right, and 'dtsvm tell' this one to 'unlink' the other, or write the right "
                "neighbours into node.toml."
            )
        if not ranked or ranked[0][1] < least:
            return None
        return next(one for peer, one in self.by.items() if said[peer] == ranked[0][0])


def check_fit(
    agreed: Agreed, labels: Mapping[str, Labelled], own: Schema, *, is_raw: bool, is_sparse: bool
) -> None:
    """Refuse what a node's own node.toml and columns contradict.

    Parameters
    ----------
    agreed : Agreed
        What is offered.
    labels : mapping of str to Labelled
        The node's labels, by task.
    own : Schema
        The node's columns.
    is_raw : bool
        Whether its numbers are taken as they are.
    is_sparse : bool
        Whether its features are CSR.
    """
    if (agreed.plan is None) != is_raw:
        raise DtsvmError("[prepare] must stand in every node.toml, or in none.")
    for task, mine in labels.items():
        theirs = agreed.classes.get(task)
        if mine.given is not None and theirs is not None and mine.given != theirs:
            raise DtsvmError(
                f"Task {task!r} has labels {list(theirs)!r} there, and {list(mine.given)!r} in "
                "node.toml here."
            )
    if agreed.plan is None:
        return
    if agreed.plan.is_centred == is_sparse:
        raise DtsvmError(f"sparse is {str(is_sparse).lower()} here, and not there.")
    if own.columns:
        agree_schemas({"elsewhere": agreed.plan.schema, "here": own}, "impute")
