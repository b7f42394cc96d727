"""Lanes of one batch: where their rows lie, whose they are, and what answers mean for tasks.

An owner is who trains by itself: all tasks of a unit as one, on longer rows, or each of its tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

from dtsvm.select import Candidate, Held, Lift, products

__all__ = ["Batch", "Problem", "Unit", "laid"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Unit(NamedTuple):
    """One lane of one job: which job, its candidate, rows and sides."""

    job: int
    candidate: Candidate
    rows: Ints
    side: Floats


class Problem(NamedTuple):
    """The rows of a batch: which of the choice's, where in X, their labels ±1, whose each is.

    `C` is of every owner; nobody who trains has rows of one class only.
    """

    X: Any
    rows: Ints
    at: Ints
    y: Floats
    owner: Ints
    C: Floats

    def of(self, mine: NDArray[np.bool_]) -> Problem:
        """Return the problem of some rows alone."""
        return self._replace(
            rows=self.rows[mine], at=self.at[mine], y=self.y[mine], owner=self.owner[mine]
        )


class Batch:
    """Units whose rows are as long as each other's.

    Parameters
    ----------
    units : sequence of Unit
        The units; of one kind if they have the same biases and own share.
    lifts : dict
        The longer rows of every kind.
    held : Held
        The rows.
    scale : float
        What C is multiplied by, as rows are in another unit.
    """

    def __init__(
        self, units: Sequence[Unit], lifts: dict[Any, Lift], held: Held, scale: float
    ) -> None:
        self.units, self.held, self.lifts, self.scale = units, held, lifts, scale
        kinds = [unit.candidate.family[:2] for unit in units]
        self.kinds = list(dict.fromkeys(kinds))
        self.kind = np.array([self.kinds.index(kind) for kind in kinds])
        self.is_alone = np.array([unit.candidate.family.is_alone for unit in units])
        self.n_owners = np.where(self.is_alone, held.n_tasks, 1)
        self.side = np.stack([unit.side for unit in units])

    @cached_property
    def first(self) -> Ints:
        """The first owner of every unit."""
        return np.asarray(np.cumsum(self.n_owners) - self.n_owners)

    def problem(self, X: Any) -> Problem:
        """Say who trains on what; `X` has the rows of every kind after those of the one before."""
        held, units = self.held, self.units
        rows = np.concatenate([unit.rows for unit in units])
        unit = np.repeat(np.arange(len(units)), [len(one.rows) for one in units])
        task, alone = held.task[rows], self.is_alone[unit]
        y = held.y[rows] * np.where(alone, 1.0, self.side[unit, task])
        place = np.arange(len(self.kinds)) * len(held.y)  # where a kind's rows begin
        place = place if X is not held.X else np.zeros_like(place)
        prices = np.repeat([one.candidate.C * self.scale for one in units], self.n_owners)
        owner = self.first[unit] + np.where(alone, task, 0)
        found = Problem(X, rows, rows + place[self.kind[unit]], y, owner, prices)
        return found if y.all() else found.of(y != 0)

    def classifiers(self, found: Floats) -> Floats:
        """Return tasks' classifiers (unit, task, p + 1) from owners' (owner, width + 1)."""
        n_tasks, p1 = self.held.n_tasks, self.held.X.shape[1] + 1
        out = np.empty((len(self.units), n_tasks, p1))
        for k, kind in enumerate(self.kinds):
            mine = np.flatnonzero(self.kind == k)
            if self.is_alone[mine[0]]:
                out[mine] = found[self.first[mine, None] + np.arange(n_tasks)]
            else:
                turn = np.where(self.side[mine] < 0, -1.0, 1.0)[:, :, None]
                out[mine] = self.lifts[kind].classifiers(found[self.first[mine]]) * turn
        return out

    def scores(self, problem: Problem, found: Floats) -> Floats:
        """Return xᵀw of every row, by its owner's weights."""
        X, rows, at, _, owner, _ = problem
        held, unit = self.held, np.repeat(np.arange(len(self.units)), self.n_owners)[owner]
        cuts = np.cumsum(np.bincount(held.task, minlength=held.n_tasks))[:-1]
        by_task = np.split(np.argsort(held.task, kind="stable"), cuts)
        place, out = np.zeros(len(self.units), np.int64), np.empty(len(rows))
        for k in np.unique(self.kind[unit]).tolist():
            some, mine = np.flatnonzero(self.kind == k), np.flatnonzero(self.kind[unit] == k)
            place[some] = np.arange(len(some))
            begin = at[mine[0]] - rows[mine[0]]
            each = np.empty((len(held.y), len(some)))  # of every row by every unit of the kind
            looks = by_task if self.is_alone[some[0]] else [np.arange(len(held.y))]
            for t, look in enumerate(looks):
                each[look] = products(X, begin + look, found[self.first[some] + t, :-1])
            out[mine] = each[rows[mine], place[unit[mine]]]
        return out


def laid(parts: list[Any]) -> Any:
    """Put rows of several kinds under each other."""
    if len(parts) == 1:
        return parts[0]
    return (
        np.concatenate(parts) if isinstance(parts[0], np.ndarray) else vstack(parts, format="csr")
    )
