"""Sums over rows with noise: preparation, rows of each label, probabilities, rows held out.

A node's part of a sum moves by a bounded amount if one row is replaced, because columns are clipped
to ranges that were written down before anybody looked. A block of numbers that moves by at most S
gets normal noise of size m √k S if the sum has k blocks: all of it together moves by at most
1/m of its noise. The noise of a sum is drawn and paid for once; asked again, a node says the same.
What is told is rounded to a thousandth of its noise (`noise.noised`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Generator

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import ColumnSchema, Kind, Schema
from dtsvm.errors import NetworkError
from dtsvm.prepare import Encoded, Plan
from dtsvm.prepare.agree import scales_of
from dtsvm.problem.sigmoid import BINS
from dtsvm.runtime.privacy.accounting import shared_multiplier
from dtsvm.runtime.privacy.budget import SUMS, Budget
from dtsvm.runtime.privacy.noise import Draw, noised, true_normal
from dtsvm.runtime.privacy.veil import COUNTED

__all__ = ["COARSE", "NoisySums"]

Floats = NDArray[np.float64]
Steps = Generator[Floats, Floats, Plan]
SWAP = math.sqrt(2.0)  # a replaced row leaves one cell and enters another
COARSE = 4  # bins of decision values for each label: the fewer, the less noise
LEAST_VARIANCE = 2.5e-3  # in squares of a range: noise must not make a column large
SURE = 3.0  # standard deviations of the total's noise that missing values must exceed


class NoisySums:
    """A node's parts of sums, each with its noise.

    Parameters
    ----------
    budget : Budget
        What is paid from.
    draw : callable, optional
        Draws standard normal numbers.
    """

    def __init__(self, budget: Budget, draw: Draw = true_normal) -> None:
        self.budget, self.privacy, self._draw = budget, budget.privacy, draw

    # Preparation

    def schema(self) -> Schema:
        """Return the columns that were written down: nothing of it was found in rows."""
        columns = []
        for name, some in sorted(self.privacy.ranges.items()):
            if isinstance(some[0], str):
                columns.append(ColumnSchema(name, Kind.CATEGORY, levels=tuple(some)))
            else:
                most = max(abs(some[0]), abs(some[1]))
                columns.append(ColumnSchema(name, Kind.NUMBER, exponent=math.frexp(most)[1]))
        return Schema(tuple(columns))

    def clipped(self, rows: Encoded) -> Encoded:
        """Return rows inside the ranges; a text that was not written down is missing.

        Columns that neighbours see otherwise are refused: noise is made for those written down.
        """
        if rows.schema != self.schema():
            raise NetworkError(
                "A node has other columns than those under [privacy.ranges] here, which noise is "
                "made for. Write the same ranges into every node.toml."
            )
        low, high = self._range(rows.schema)
        levels = np.array([len(c.levels) for c in rows.schema.of_kind(Kind.CATEGORY)], np.int64)
        codes = np.where(rows.codes < 0, levels[:, None], rows.codes)
        return Encoded(rows.schema, np.clip(rows.numbers, low[:, None], high[:, None]), codes)

    def agreeing(self, rows: Encoded, steps: Steps, n_nodes: int, min_count: int) -> Steps:
        """Take part in `prepare.agreeing` with noise, and make its totals ones that rows can have.

        What is made of totals costs nothing: they have their noise.
        """
        schema = rows.schema
        sizes = self._count_sizes(schema)
        total = yield self._tell(f"counts {_digest(schema)}", next(steps), sizes)
        sure = SURE * self._multiplier * math.sqrt(n_nodes * self._n_blocks(schema))
        counts = self._possible_counts(schema, total, max(float(min_count), sure))
        vector = steps.send(counts)
        name = f"spread {_digest(schema, counts)}"
        total = yield self._tell(name, vector, self._spread_sizes(schema))
        try:
            steps.send(self._possible_spread(schema, total, counts))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        raise AssertionError("preparation makes two sums")

    def classes(self, counts: Floats) -> Floats:
        """Return how many rows have each label, of all tasks."""
        return self._tell("classes", counts, np.full(len(counts), SWAP))

    @property
    def _multiplier(self) -> float:
        chosen = self.privacy
        return shared_multiplier(chosen.epsilon, chosen.delta, chosen.preparation, SUMS)

    def _tell(self, name: str, vector: Floats, sizes: Floats) -> Floats:
        def make() -> Floats:
            return noised(vector, self._multiplier * sizes, self._draw)

        return self.budget.tell("preparation", name, SUMS, make)

    def _range(self, schema: Schema) -> tuple[Floats, Floats]:
        some = [self.privacy.ranges[column.name] for column in schema.of_kind(Kind.NUMBER)]
        both = np.array(some, float).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def _widths(self, schema: Schema) -> Floats:
        low, high = self._range(schema)
        return np.asarray((high - low) / scales_of(schema))

    @staticmethod
    def _n_blocks(schema: Schema) -> int:
        return 2 * len(schema.of_kind(Kind.NUMBER)) + len(schema.of_kind(Kind.CATEGORY))

    def _count_sizes(self, schema: Schema) -> Floats:
        """Rows: known; a column's values present and their sum; the levels of a category."""
        low, high = self._range(schema)
        # With a value missing before or after, the sum moves by the value itself.
        most = np.maximum(high - low, np.maximum(np.abs(low), np.abs(high))) / scales_of(schema)
        levels = [np.full(len(c.levels) + 1, SWAP) for c in schema.of_kind(Kind.CATEGORY)]
        sizes = np.concatenate([[0.0], np.ones(len(most)), most, *levels])
        return np.asarray(sizes * math.sqrt(max(self._n_blocks(schema), 1)))

    def _spread_sizes(self, schema: Schema) -> Floats:
        """Σ (x − m) and Σ (x − m)², x and m in the range."""
        width = self._widths(schema)
        return np.concatenate([width, width**2]) * math.sqrt(max(2 * len(width), 1))

    def _possible_counts(self, schema: Schema, total: Floats, sure: float) -> Floats:
        low, high = (some / scales_of(schema) for some in self._range(schema))
        p, n = len(low), max(float(total[0]), 1.0)
        present = np.clip(total[1 : 1 + p], 1.0, n)
        present = np.where(n - present <= sure, n, np.round(present))
        sums = np.clip(total[1 + p : 1 + 2 * p], low * present, high * present)
        return np.concatenate([[n], present, sums, np.maximum(total[1 + 2 * p :], 0.0)])

    def _possible_spread(self, schema: Schema, total: Floats, counts: Floats) -> Floats:
        first, second = np.split(total, 2)
        width, n = self._widths(schema), counts[0]
        present = counts[1 : 1 + len(width)]
        first = np.clip(first, -width * present, width * present)
        least = first**2 / present + LEAST_VARIANCE * width**2 * n
        return np.concatenate([first, np.maximum(second, least)])

    # Probabilities

    def spread(self, task: str, counts: Callable[[], Floats]) -> Floats:
        """Return `problem.sigmoid.histogram` of each of a task's lanes, (lanes, 2, bins).

        The classifiers are known to all, noise and all, and so is where bins end. A row that weighs
        at most c is in one cell of each of K lanes' counts: if it is replaced, at most c leaves one
        cell and at most c enters another, in each, so that all of them move by at most c √(2K).
        That is made and paid for once; what was lost with a process adds nothing. Rows of different
        tasks are different rows, so each task has the whole share.
        """
        chosen = self.privacy
        multiplier = shared_multiplier(chosen.epsilon, chosen.delta, chosen.probability, 1)

        def make() -> Floats:
            whole = counts()
            size = multiplier * chosen.weight * SWAP * math.sqrt(len(whole))
            return noised(whole.ravel(), np.full(whole.size, size), self._draw)

        kind = f"probabilities of {task}"
        if self.budget.counts.get(kind) and kind not in self.budget.told:
            return np.zeros((0, 2, BINS))
        found = self.budget.tell(kind, kind, 1, make)
        return found.reshape(-1, 2, BINS)

    # Choosing

    def compared(self, errors: Callable[[], Floats], heaviest: float = 1.0) -> Floats:
        """Return what the wrong answers of each candidate weigh together, of all rows here.

        The candidates are known to all, noise and all. No row weighs more than c, so each number
        moves by at most c if one is replaced, and all k of them by at most c √k. That is made and
        paid for once, whatever happens to the network; what was lost with a process adds nothing.
        """
        chosen, kind = self.privacy, "errors"
        share = COUNTED * chosen.choosing
        multiplier = shared_multiplier(chosen.epsilon, chosen.delta, share, 1)
        n = len(chosen.candidates)

        def make() -> Floats:
            size = multiplier * heaviest * math.sqrt(n)
            return noised(errors(), np.full(n, size), self._draw)

        if self.budget.counts.get(kind) and kind not in self.budget.told:
            return np.zeros(n)
        return self.budget.tell(kind, kind, 1, make)

    # Rows held out

    def evaluated(self, task: str, counts: Callable[[], Floats], n_lanes: int = 1) -> Floats:
        """Return counts of decision values of one task's rows, in few bins, half a label's each.

        Of more than two lanes it is the table of what was taken for what. Rows that are held out
        are counted and nothing else, so they have the whole budget.
        """
        chosen = self.privacy
        most = chosen.evaluations
        multiplier = shared_multiplier(chosen.epsilon, chosen.delta, 1.0, most)

        def make() -> Floats:
            whole = counts()
            few = whole if n_lanes > 2 else whole.reshape(2 * COARSE, -1).sum(axis=1)
            few = noised(few, np.full(len(few), multiplier * SWAP), self._draw)
            if n_lanes > 2:
                return few
            out = np.zeros((2 * COARSE, len(whole) // (2 * COARSE)))
            out[:, out.shape[1] // 2] = few
            return out.ravel()

        kind = f"rows of {task} held out"
        name = f"{kind}: {self.budget.counts.get(kind, 0)}"
        return self.budget.tell(kind, name, most, make, is_repeated=True)


def _digest(schema: Schema, *more: Floats) -> str:
    text = repr(schema.to_dict()).encode() + b"".join(one.tobytes() for one in more)
    return hashlib.sha256(text).hexdigest()[:16]
