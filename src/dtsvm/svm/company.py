"""Who trains with this process: nobody, or other ranks that have rows of their own.

What a fit must know of all rows (tasks, nodes, labels, who holds what) is agreed here, before the
first round. Every rank makes the same calls, with all rows or with rows of its own nodes alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from dtsvm.errors import DataError
from dtsvm.problem import Network

__all__ = ["Alone", "Ranks", "find_company", "mean_square", "present"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Levels = tuple[list[Any], Ints]
DENSE = 1 << 12


class Alone:
    """All rows are in this process: everything is as it is found here."""

    is_alone = True
    size = 1

    def gather(self, value: Any) -> list[Any]:
        """Return what every process says; the value is plain, as in JSON."""
        return [value]

    def turn(self, jobs: list[Any]) -> list[Any]:
        """Return this process's part of jobs that any could do."""
        return jobs

    def add(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the sum over all processes."""
        return numbers

    def largest(self, number: float) -> float:
        """Return the largest that a process says."""
        return number

    def stack(self, rows: Floats) -> Floats:
        """Put the rows of all processes one after the other."""
        return rows

    def total(self, node: Ints, vectors: Floats) -> Floats:
        """Add up vectors, (node, …), in the order of the nodes, each of which is at one process."""
        return np.asarray(sum(vectors[1:], start=vectors[0]))

    def shape(self, X: Any) -> Any:
        """Return rows of the others' width where there are none here, else None."""
        return None

    def own(self, node: Ints, nodes: list[Any], network: Network) -> Ints | None:
        """Which rows are this process's; None if all are."""
        return None

    def levels(self, found: Levels, name: str) -> Levels:
        """Number values in the same way at every process."""
        return found

    def labels(self, found: list[list[Any]]) -> list[list[Any]]:
        """Join the labels of every task."""
        return found

    def held(self, pairs: NDArray[Any]) -> Ints | None:
        """Join who holds what, as numbers; None if there is nobody else."""
        return None

    def distinct(self, numbers: NDArray[Any]) -> Ints:
        """Return the different numbers that occur at any process, ascending; none is below 0."""
        most = int(numbers.max(initial=0))
        if most > 8 * len(numbers) + DENSE:
            return np.unique(numbers)
        is_there = np.zeros(most + 1, bool)  # quicker than to sort where they lie close
        is_there[numbers] = True
        return is_there.nonzero()[0]

    def sum_rows(self, node: Ints, values: Floats) -> float:
        """Add up a number a row, node after node: the same bits wherever nodes are."""
        nodes = np.unique(node)
        sums = np.bincount(node, values)[nodes].astype(np.float64)
        return float(self.total(nodes, sums))


class Ranks(Alone):
    """The ranks of an MPI program."""

    is_alone = False

    def __init__(self, comm: Any) -> None:
        self.comm, self.size = comm, comm.size

    def gather(self, value: Any) -> list[Any]:
        """Return what every rank says, in their order."""
        from dtsvm.runtime.mpi.collect import gather_json

        return gather_json(self.comm, value)

    def turn(self, jobs: list[Any]) -> list[Any]:
        """Deal jobs to the ranks in turn."""
        return jobs[self.comm.rank :: self.comm.size]

    def add(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the sum over all ranks."""
        found = np.ascontiguousarray(numbers)
        self.comm.Allreduce(found.copy(), found)
        return found

    def largest(self, number: float) -> float:
        """Return the largest that a rank says."""
        return float(max(self.gather(float(number))))

    def stack(self, rows: Floats) -> Floats:
        """Put the rows of all ranks one after the other."""
        from dtsvm.runtime.mpi.collect import gather_rows

        return gather_rows(self.comm, rows)

    def total(self, node: Ints, vectors: Floats) -> Floats:
        """Add up vectors in the order of the nodes, wherever they are."""
        order = np.argsort(self.stack(node.astype(np.float64)), kind="stable")
        return super().total(node, self.stack(vectors)[order])

    def shape(self, X: Any) -> Any:
        """Refuse rows that are not alike; give a rank without rows the others' width."""
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
        n, width = [*map(int, shape), 1][:2]
        dtype = "float32" if getattr(X, "dtype", None) == np.float32 else "float64"
        said = self.gather([n, width, dtype, bool(issparse(X))])
        full = [one[1:] for one in said if one[0]]
        for rank, one in enumerate(said):
            if one[0] and one[1:] != full[0]:
                here, there = map(_words, (one[1:], full[0]))
                raise DataError(f"Rank {rank} was given rows of {here}, others of {there}.")
        if n or not full:
            return None
        width, dtype, is_sparse = full[0]
        empty = np.zeros((0, width), dtype)
        return csr_array(empty) if is_sparse else empty

    def own(self, node: Ints, nodes: list[Any], network: Network) -> Ints | None:
        """Which rows are this rank's: all if each was given its own, else some nodes'."""
        from mpi4py import MPI

        from dtsvm.runtime.mpi.place import place_nodes

        position = {name: i for i, name in enumerate(network.nodes)}
        place = np.array([position[name] for name in nodes], np.int32)
        mine = np.bincount(place[node], minlength=len(position)).astype(np.int64)
        least, most = np.empty_like(mine), np.empty_like(mine)
        self.comm.Allreduce(mine, least, MPI.MIN)
        self.comm.Allreduce(mine, most, MPI.MAX)
        if not np.array_equal(least, most):
            return None
        rank = place_nodes(mine, network.links.astype(np.int64, copy=False), self.comm.size)
        return np.flatnonzero(rank[place[node]] == self.comm.rank)

    def levels(self, found: Levels, name: str) -> Levels:
        """Number values in the same way at every rank."""
        mine, index = found
        every = list(dict.fromkeys(level for some in self.gather(mine) for level in some))
        try:
            every = sorted(every)
        except TypeError as error:
            raise DataError(f"Ranks give {name} in different types; write it alike.") from error
        if every == mine:
            return found
        place = {level: i for i, level in enumerate(every)}
        return every, np.array([place[level] for level in mine], np.int64)[index]

    def labels(self, found: list[list[Any]]) -> list[list[Any]]:
        """Join the labels of every task."""
        from dtsvm.data.labels import distinct

        several = self.gather(found)
        return [distinct([label for some in several for label in some[t]])
                for t in range(len(found))]  # fmt: skip

    def held(self, pairs: NDArray[Any]) -> Ints | None:
        """Join who holds what."""
        return self.distinct(pairs)

    def distinct(self, numbers: NDArray[Any]) -> Ints:
        """Return the different numbers that occur at any rank."""
        return np.unique(self.stack(np.unique(numbers).astype(np.float64)).astype(np.int64))


def present(found: Levels, company: Alone) -> Levels:
    """Return the names that rows have and whose each row is, where some rows do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.svm.company import Alone, present
    >>> names, index = present((["a", "b", "c"], np.array([2, 0])), Alone())
    >>> names, index.tolist()
    (['a', 'c'], [1, 0])
    """
    names, index = found
    some = company.distinct(index)
    if len(some) == len(names):
        return found
    return [names[k] for k in some.tolist()], np.searchsorted(some, index).astype(index.dtype)


def mean_square(X: Any, node: Ints, others: Alone) -> float:
    """Return the mean squared length of a row over all processes."""
    squares = (
        np.einsum("ij,ij->i", X, X) if isinstance(X, np.ndarray) else X.multiply(X).sum(axis=1)
    )
    n = int(others.add(np.array([X.shape[0]]))[0])
    return others.sum_rows(node, np.asarray(squares, np.float64).ravel()) / n


def find_company(engine: str) -> Alone:
    """Return who trains with this process under an engine."""
    if engine != "mpi":
        return Alone()
    from dtsvm.runtime.mpi.ranks import end_together, world

    comm = world()
    if comm.size == 1:
        return Alone()
    end_together()
    return Ranks(comm)


def _words(rows: list[Any]) -> str:
    width, dtype, is_sparse = rows
    return f"{width} features, {dtype}{' and CSR' if is_sparse else ''}"
