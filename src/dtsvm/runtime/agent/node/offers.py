"""What neighbours say was agreed on before a node came, and who vouches for it.

A newcomer cannot add up anew what the others did. It can see who signed it, ask a second neighbour,
and look whether what it is offered fits its own columns, rows and node.toml.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dtsvm.data import Kind, Records, Schema, agree_schemas
from dtsvm.errors import DtsvmError
from dtsvm.prepare import Plan, encode
from dtsvm.prepare.encode import MEASURED, Encoded, join
from dtsvm.runtime.agent.node.agreed import MOST_LABELS, Agreed, Labelled

__all__ = ["Offers", "check_fit", "check_rows"]

Who = Callable[[Agreed], frozenset[str]]
ENOUGH = 10  # rows before they say anything of the network's
FAR, NEAR = 100.0, 1e-4  # standard deviations that rows may be away from a mean, and must be apart


@dataclass
class Offers:
    """The newest offer of every neighbour."""

    by: dict[str, Agreed] = field(default_factory=dict)

    def put(self, peer: str, agreed: Agreed) -> None:
        """Keep what a neighbour offers."""
        self.by[peer] = agreed

    def best(self, least: int, who: Who = lambda agreed: frozenset()) -> Agreed | None:
        """Return what most nodes stand behind, if so many do; None while too few have.

        Those who hand something over stand behind it, and those who signed it: `who` returns them.

        Examples
        --------
        >>> offers = Offers({"b": Agreed(generation=1)})
        >>> offers.best(2) is None, offers.best(1).generation
        (True, 1)
        >>> offers.best(2, lambda agreed: frozenset("bd")).generation
        1
        >>> offers.put("c", Agreed(generation=2))
        >>> offers.best(1)
        Traceback (most recent call last):
        ...
        dtsvm.errors.DtsvmError: Nodes b, c do not say the same. Ask their owners who is right, and
        'dtsvm tell' this one to 'unlink' the other, or write the right neighbours into node.toml.
        """
        ranked = self._ranked(who)
        if len(ranked) > 1 and len(ranked[1][1]) == len(ranked[0][1]):
            raise DtsvmError(
                f"Nodes {', '.join(sorted(self.by))} do not say the same. Ask their owners who is "
                "right, and 'dtsvm tell' this one to 'unlink' the other, or write the right "
                "neighbours into node.toml."
            )
        if not ranked or len(ranked[0][1]) < least:
            return None
        return ranked[0][0]

    def words(self, least: int, who: Who) -> str:
        """Say for how many more to vouch a newcomer waits, if its owner wants several."""
        ranked = self._ranked(who)
        if not ranked or len(ranked[0][1]) >= least:
            return ""
        behind = ", ".join(sorted(ranked[0][1]))
        return (
            f"Only {behind} vouches for what the network agreed on; vouchers = {least} in "
            "node.toml. It waits for more."
        )

    def _ranked(self, who: Who) -> list[tuple[Agreed, frozenset[str]]]:
        """Return what is offered with who stands behind it, the most first."""
        found: dict[str, tuple[Agreed, frozenset[str]]] = {}
        for peer, one in self.by.items():
            text = json.dumps(one.to_dict(), sort_keys=True)
            _, behind = found.get(text, (one, who(one)))
            found[text] = one, behind | {peer}
        return sorted(found.values(), key=lambda one: -len(one[1]))


def check_fit(
    agreed: Agreed,
    labels: Mapping[str, Labelled],
    own: Schema,
    *,
    is_raw: bool,
    is_sparse: bool,
    most_labels: int = MOST_LABELS,
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
    most_labels : int
        How many labels a task may have here.
    """
    for task, several in agreed.classes.items():
        if len(several) > most_labels:
            raise DtsvmError(
                f"Task {task!r} has {len(several)} labels there, and may have {most_labels} here."
            )
    if (agreed.plan is None) != is_raw:
        raise DtsvmError("[prepare] must stand in every node.toml, or in none.")
    for task, mine in labels.items():
        theirs = agreed.classes.get(task)
        if mine.given is not None and theirs is not None and mine.given != theirs:
            raise DtsvmError(
                f"Task {task!r} has labels {list(theirs)!r} there, and {list(mine.given)!r} in "
                "node.toml here."
            )
    found = agreed.strange(labels)
    if found is not None:
        task, label = found
        raise DtsvmError(
            f"Task {task!r} has labels {list(agreed.classes[task])!r} in the network; rows "
            f"here have {label!r}, too. Agree anew with 'dtsvm tell NODE prepare' at a node "
            "that trains, or take the rows away."
        )
    if agreed.plan is None:
        return
    if agreed.plan.is_centred == is_sparse:
        raise DtsvmError(f"sparse is {str(is_sparse).lower()} here, and not there.")
    if own.columns:
        agree_schemas({"elsewhere": agreed.plan.schema, "here": own}, "impute")


def check_rows(plan: Plan | None, parts: Sequence[Records]) -> None:
    """Refuse means, scales and categories that a node's own rows contradict.

    Sites differ, but not so that rows are a hundred standard deviations away from the network's
    mean, or that no number here is worth a ten-thousandth of its scale.
    """
    if plan is None or not parts:
        return
    rows = join(plan.schema, [encode(part, plan.schema, "impute") for part in parts])
    if rows.n_rows < ENOUGH:
        return
    tail = (
        "Write it as the others do, or, if they do as you do, ask a second node what was agreed: "
        "the one that told it may lie."
    )
    away = _away(plan, rows)
    for name, found in away.items():
        if found > FAR:
            raise DtsvmError(
                f"Column {name!r} is {found:.0f} standard deviations away from the network's mean, "
                f"on the average of the rows here. {tail}"
            )
    if away and max(away.values()) < NEAR:
        raise DtsvmError(
            f"The network's scales are more than {1 / NEAR:.0f} times those of the rows here "
            f"({', '.join(list(away)[:3])}). {tail}"
        )
    for column, codes in zip(plan.schema.of_kind(Kind.CATEGORY), rows.codes, strict=True):
        is_used = any(feature.column == column.name for feature in plan.features)
        if is_used and column.levels and (codes == -1).all():
            raise DtsvmError(f"No category of {column.name!r} here is one of the network's. {tail}")


def _away(plan: Plan, rows: Encoded) -> dict[str, float]:
    """Return how many standard deviations rows are away from each mean: √ of the mean square."""
    place = {column.name: i for i, column in enumerate(plan.schema.of_kind(*MEASURED))}
    found = {}
    for feature in plan.features:
        if feature.scale and feature.level is None:
            values = rows.numbers[place[feature.column]]
            known = values[np.isfinite(values)]
            if len(known) >= ENOUGH and np.ptp(known) > 0:
                off = (known - feature.mean) / feature.scale
                found[feature.column] = float(np.sqrt(np.square(off).mean()))
    return found
