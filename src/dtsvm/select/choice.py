"""What was chosen for a task, how good that is, and the sentence a person needs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dtsvm.select.choosing import Chosen

__all__ = ["Choice", "Rate", "describe", "difference", "rate"]

Z = 1.959963984540054  # of a 95 % interval
MOST_NAMED = 3
SHOWN = 0.005  # a family with a smaller share is not listed
SURE = 0.75  # three to one: how much of the company of a task must be turned to say that it is
ROUNDING = 1e-9  # shares that differ by less are the same


class Rate(NamedTuple):
    """A share of rows with its 95 % limits."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Choice:
    """A task's choice.

    Parameters
    ----------
    task : hashable
        The task.
    n_rows : int
        Its rows in the network.
    weights : dict of str to float
        The share of each family in its classifier, largest first; shares below 0.5 % are left out.
    C : float
        Geometric mean of C over its candidates, by their shares.
    is_turned : bool
        Whether it is turned round: three quarters of its company must say so.
    is_aside : bool
        Whether it makes so many held-out errors that its labels may be drawn by lot: the others
        train without its rows.
    company : tuple
        The tasks it trains with, those that have rows and are not set aside; empty if more than
        half of it trains alone.
    alone, chosen : Rate
        Share of held-out rows labelled wrong: by the best of training alone, and as chosen. Folds
        repeat the task's shares of labels, and weights were chosen on the same rows: with ten or
        twenty rows both are some points lower than on new rows.
    difference : Rate
        Chosen minus alone, paired.
    n_labels : int
        How many labels its rows have.
    label : optional
        Where a task has more than two labels, which of them this choice tells from the rest.
    """

    task: Hashable
    n_rows: int
    weights: dict[str, float]
    C: float
    is_turned: bool
    is_aside: bool
    company: tuple[Hashable, ...]
    alone: Rate
    chosen: Rate
    difference: Rate
    n_labels: int = 2
    label: Any = None

    @property
    def sentence(self) -> str:
        """Say it to a person."""
        name = self.task if self.label is None else f"{self.task} (label {self.label})"
        if self.n_rows == 0:
            return f"{name} has no rows; it takes what the others have in common."
        if self.n_labels == 1:
            rows = f"{self.n_rows:,} row{'s' * (self.n_rows > 1)}"
            return f"{name} has {rows} of one label only; how well it is told cannot be known."
        alone = f"{100 * self.alone.value:.1f} % alone"
        if self.is_aside:
            return f"{name} errs as often as a coin would, unlike others, which train without it."
        if not self.company:
            return f"{name} trains alone; {alone}."
        side = ", turned round" if self.is_turned else ""
        chosen = f"{100 * self.chosen.value:.1f} % together"
        doubt = "" if self.is_told_apart else f" ({self.n_rows:,} rows cannot tell)"
        return f"{name} trains with {_named(self.company)}{side}; {alone}, {chosen}{doubt}."

    @property
    def is_told_apart(self) -> bool:
        """Whether held-out errors show, at 95 %, which of alone and as chosen is better."""
        return not self.difference.low <= 0.0 <= self.difference.high

    def __str__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON; names of tasks as they are, what is not known as None."""
        plain = {
            name: [None if math.isnan(v) else v for v in value]
            if isinstance(value, Rate)
            else value
            for name, value in vars(self).items()
        }
        named = {
            "task": _plain(self.task),
            "label": _plain(self.label),
            "company": [_plain(task) for task in self.company],
        }
        return {**plain, **named, "sentence": self.sentence}


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name


def rate(wrong: float, n: float) -> Rate:
    """Return a share with Wilson's interval; of no rows, nothing is known.

    Examples
    --------
    >>> from dtsvm.select import rate
    >>> [round(x, 3) for x in rate(1, 10)]
    [0.1, 0.018, 0.404]
    """
    if n <= 0:
        return Rate(float("nan"), 0.0, 1.0)
    p = wrong / n
    centre = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * float(np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))) / (1 + Z**2 / n)
    return Rate(p, min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half)))


def difference(only_chosen: float, only_alone: float, n: float) -> Rate:
    """Return chosen minus alone, paired, with Agresti and Min's interval (half a row a cell).

    Examples
    --------
    >>> from dtsvm.select import difference
    >>> [round(x, 3) for x in difference(1, 6, 50)]
    [-0.1, -0.2, 0.007]
    """
    if n <= 0:
        return Rate(float("nan"), -1.0, 1.0)
    b, c, m = only_chosen + 0.5, only_alone + 0.5, n + 2.0
    centre = (b - c) / m
    half = Z * float(np.sqrt(max((b + c) - (b - c) ** 2 / m, 0.0))) / m
    value = (only_chosen - only_alone) / n
    return Rate(value, max(-1.0, centre - half), min(1.0, centre + half))


def _named(company: Sequence[Any]) -> str:
    if len(company) > MOST_NAMED:
        return f"{len(company)} other tasks"
    names = [str(task) for task in company]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def describe(chosen: Chosen, tasks: Sequence[Any]) -> list[Choice]:
    """Say what was chosen, task by task."""
    return [_choice(chosen, tasks, t) for t in range(len(tasks))]


def _choice(chosen: Chosen, tasks: Sequence[Any], t: int) -> Choice:
    share, has_turned = chosen.found.weights[t], bool((chosen.side < 0).any())
    families: dict[str, float] = {}
    for m in np.flatnonzero(share).tolist():
        family = chosen.candidates[m].family  # where nobody is turned, twice the same
        name = str(family._replace(is_turned=family.is_turned and has_turned))
        families[name] = families.get(name, 0.0) + float(share[m])
    shown = {name: part for name, part in families.items() if part >= SHOWN}
    turned = sum(share[m] for m, c in enumerate(chosen.candidates) if c.family.is_turned)
    alone = families.get("alone", 0.0)
    n, wrong_alone, wrong, only_alone, only_chosen = chosen.found.wrong[t].tolist()
    prices = np.log([c.C for c in chosen.candidates])
    return Choice(
        task=tasks[t],
        n_rows=int(n),
        weights=dict(sorted(shown.items(), key=lambda item: -item[1])),
        C=float(np.exp(share @ prices)),
        is_turned=bool(chosen.side[t] < 0 and turned > SURE * (1 - alone) - ROUNDING > 0),
        is_aside=bool(chosen.aside[t]),
        company=_company(chosen, tasks, t) if alone <= 0.5 else (),
        alone=rate(wrong_alone, n),
        chosen=rate(wrong, n),
        difference=difference(only_chosen, only_alone, n),
        n_labels=int(chosen.n_labels[t]),
    )


def _company(chosen: Chosen, tasks: Sequence[Any], t: int) -> tuple[Hashable, ...]:
    is_there = (chosen.found.wrong[:, 0] > 0) & ~chosen.aside
    return tuple(tasks[s] for s in np.flatnonzero(is_there).tolist() if s != t)
