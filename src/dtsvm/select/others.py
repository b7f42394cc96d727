"""What other nodes can honestly have added to a sum of choosing: a total outside that is not used.

Terms are masked, so nobody sees another's. But whoever has a total knows its own term, and the rest
must be what rows can say: counts are whole and no more than there are rows, tables of margins count
every row once for each candidate, decision values are no larger than classifiers and rows allow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import NetworkError
from dtsvm.select.base_rates import label_weights
from dtsvm.select.margins import GRID, read_scales
from dtsvm.select.stretch import MOST_CHANGE

__all__ = ["Others", "believing", "joined", "parted"]

Floats = NDArray[np.float64]
ROUNDING = 1e-6
LARGE = 2.0**40  # no term of a sum is larger


class Others:
    """Ranges of the others' part of every sum.

    Parameters
    ----------
    claimed : tuple of float
        The most rows, and the largest Σ‖x‖² in `unit`, that they say to have.
    unit : float
        In which squares are summed.
    n_tasks : int
        Tasks that are asked about.
    is_weighted : bool
        Whether rows count by their weights.

    Examples
    --------
    >>> import numpy as np
    >>> others = Others((10.0, 40.0))
    >>> others.meet(np.array([8.0, 4.0]), np.array([20.0, 9.0]))
    >>> others.counts(np.array([2.0]), np.array([8.0]))
    Traceback (most recent call last):
    ...
    dtsvm.errors.NetworkError: In choosing, the sum of counts is none that honest nodes have
    together: some node lies. Find it, and revoke or unlink it; then all choose anew.
    """

    def __init__(
        self,
        claimed: tuple[float, float] = (np.inf, np.inf),
        unit: float = 1.0,
        n_tasks: int = 1,
        *,
        is_weighted: bool = False,
    ) -> None:
        self.claimed, self.unit, self.is_weighted = claimed, unit, is_weighted
        self.n_tasks = n_tasks
        self._mass = np.zeros(n_tasks)  # for how much the others' rows count in tables
        self.n = self.square = np.inf  # rows of others, and Σ‖x‖² of all
        self._longest = self._bias = 0.0  # of all classifiers so far

    def meet(self, mine: Floats, total: Floats, n_rows: float | None = None) -> None:
        """Take the first sum: Σ‖x‖² and rows; from them all other ranges follow.

        `n_rows` of the others' rows are asked about; all by default.
        """
        squares, n = (total - mine).tolist()
        most_rows, most_square = self.claimed
        little = ROUNDING * (1.0 + float(mine[0]))
        is_good = float(n).is_integer() and 0 <= n <= most_rows and -little <= squares
        _want("rows", is_good and squares <= most_square * (1 + ROUNDING) + little)
        _want("rows", n > 0 or squares <= little)
        asked = n if n_rows is None else float(n_rows)
        _want("rows", asked.is_integer() and 0 <= asked <= n)
        self.n, self.square = asked, self.unit * float(total[0])

    def know(self, classifiers: Floats) -> None:
        """Take trained classifiers, the bias last: decision values cannot be beyond them."""
        length = np.linalg.norm(classifiers[..., :-1], axis=-1).max(initial=0.0)
        self._longest = max(self._longest, float(length))
        self._bias = max(self._bias, float(np.abs(classifiers[..., -1]).max(initial=0.0)))

    def counts(self, mine: Floats, total: Floats) -> None:
        """Refuse counts that are not whole, below zero, or more than the others have rows."""
        rest = total - mine
        if self.is_weighted:
            is_good = (rest >= -ROUNDING * (1.0 + mine)).all() and (rest <= self.claimed[0]).all()
        else:
            is_good = ((rest == np.round(rest)) & (rest >= 0) & (rest <= self.n)).all()
        _want("counts", bool(is_good))

    def rows(self, mine: Floats, total: Floats) -> None:
        """Refuse rows by lane, label and task, their squares and weights: (lane, 4, task)."""
        self.counts_of_rows(mine[:, :2], total[:, :2])
        rest = (total - mine)[:, 2:]
        little = ROUNDING * (1.0 + np.abs(mine[:, 2:]))
        is_even = self.is_weighted or bool(
            (np.abs(rest[:, 1] - (total - mine)[:, :2].sum(axis=1)) <= little[:, 1]).all()
        )
        _want("rows", bool((rest >= -little).all()) and is_even)

    def counts_of_rows(self, mine: Floats, total: Floats) -> None:
        """Refuse counts of rows, which are whole whatever rows weigh."""
        rest = total - mine
        _want("counts", bool(((rest == np.round(rest)) & (rest >= 0) & (rest <= self.n)).all()))

    def bias(self, found: Floats, lengths: Floats) -> None:
        """Refuse a bias beyond where any row's loss bends: |b| ≤ 1 + 2 ‖w‖ √Σ‖x‖².

        Rows may have been made longer, to at most twice their length and that of all rows.
        """
        most = (1.0 + 2.0 * lengths * np.sqrt(self.square)) * 1.001
        _want("biases", bool((np.abs(found) <= most).all()))

    def check(self, mine: Floats, total: Floats) -> None:
        """Refuse a total of `choosing`; what it is of can be told by its shape."""
        rest = total - mine
        if mine.ndim == 1:
            self._check_scales(rest, total)
        elif mine.ndim == 3 and mine.shape[2] == 3:
            self._check_information(mine, rest)
        elif mine.ndim == 3:
            self._check_tables(rest)
        elif mine.shape[1] == 5:
            self._check_errors(mine, total)
        else:
            self.counts(mine, total)

    def _check_scales(self, rest: Floats, total: Floats) -> None:
        """Σ|f(x)| ≤ √n ‖w‖ √Σ‖x‖² + 2n |b| of every candidate, rows by task and label, and rows.

        A bias may have been stretched, to at most twice what it was trained to be.
        """
        sums, labels, n = np.split(rest, [len(rest) - 2 * self.n_tasks - 1, len(rest) - 1])
        bias = (1.0 + MOST_CHANGE) * self._bias
        most = np.sqrt(self.n * self.square) * self._longest + self.n * bias
        least = -ROUNDING * (1.0 + most)
        is_good = n[0] == self.n and bool((sums >= least).all())
        if self.is_weighted:
            is_good &= bool((labels >= -ROUNDING * (1.0 + total[-1])).all())
        else:
            are_whole = (labels == np.round(labels)) & (labels >= 0)
            is_good &= bool((sums <= most - least).all() and are_whole.all()) and labels.sum() == n
        _want("decision values", bool(is_good))
        _, counts, unit = read_scales(total, self.n_tasks)
        self._mass = (unit * labels.reshape(self.n_tasks, 2) * label_weights(counts)).sum(axis=1)

    def _check_information(self, mine: Floats, rest: Floats) -> None:
        """Fisher information is a Gram matrix; what follows from it and a gradient is bounded."""
        one, other, both = rest[:, 0, 0], rest[:, 1, 1], rest[:, 0, 1]
        little = ROUNDING * (1.0 + np.abs(mine).max(initial=0.0))
        is_gram = (both**2 <= (one + little) * (other + little) * (1.0 + ROUNDING)).all()
        is_same = (both == rest[:, 1, 0]).all() and np.isfinite(rest).all()
        is_good = is_gram and is_same and (one >= -little).all() and (other >= -little).all()
        _want("held-out gradients", bool(is_good))

    def _check_tables(self, rest: Floats) -> None:
        """Every candidate's table counts the same rows for as much, wrong ones among them."""
        grid, wrong, rows = rest[:, :, : len(GRID)], rest[:, :, -2], rest[:, :, -1]
        little = ROUNDING * (1.0 + self.n)
        is_all_told = np.abs(grid.sum(axis=2) - self._mass[:, None]) <= little
        are_whole = (rows == np.round(rows)).all() and (wrong == np.round(wrong)).all()
        are_same = (rows == rows[:, :1]).all() and is_all_told.all()
        is_all = rows[:, 0].sum() == self.n
        are_inside = (grid >= -little).all() and ((wrong >= 0) & (wrong <= rows)).all()
        _want("held-out margins", bool(are_whole and are_same and is_all and are_inside))

    def _check_errors(self, mine: Floats, total: Floats) -> None:
        """Rows, errors alone and as chosen, and those of one only: what both have is one number."""
        rows, alone, chosen, only_alone, only_chosen = (total - mine).T
        both = alone - only_alone
        is_good = (both == chosen - only_chosen) & (alone + only_chosen <= rows)
        for part in (both, only_alone, only_chosen):
            is_good &= (part == np.round(part)) & (part >= 0)
        _want("held-out errors", bool(is_good.all()) and rows.sum() == self.n)


def parted(term: Floats) -> Floats:
    """Put how often `LARGE` is in the first number before what is left of it, and the others.

    >>> import numpy as np
    >>> parted(np.array([2.0**41 + 3.0, 7.0])).tolist()
    [2.0, 3.0, 7.0]
    >>> joined(np.array([2.0, 3.0, 7.0])).tolist() == [2.0**41 + 3.0, 7.0]
    True
    """
    return np.array([*divmod(term[0], LARGE), *term[1:]])


def joined(total: Floats) -> Floats:
    """Return the total of terms that were `parted`."""
    return np.array([total[0] * LARGE + total[1], *total[2:]])


def believing(
    steps: Generator[Floats, Floats, Any], check: Callable[[Floats, Floats], None]
) -> Generator[Floats, Floats, Any]:
    """Go through steps that ask for sums; every total is checked before it is used."""
    asked = next(steps)
    while True:
        total = yield asked
        check(asked, total)
        try:
            asked = steps.send(total)
        except StopIteration as end:
            return end.value


def _want(what: str, is_good: bool) -> None:
    if not is_good:
        raise NetworkError(
            f"In choosing, the sum of {what} is none that honest nodes have together: some node "
            "lies. Find it, and revoke or unlink it; then all choose anew."
        )
