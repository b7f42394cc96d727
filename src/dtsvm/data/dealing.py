"""Rows to nodes: which node of the network holds each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dtsvm.errors import DataError, ParameterError, did_you_mean

__all__ = ["deal"]

_WAYS = ("even", "skew", "counts")


def deal(
    y_or_n: ArrayLike | int,
    n_nodes: int,
    *,
    how: Literal["even", "skew", "counts"] = "even",
    alpha: float | None = None,
    counts: Sequence[int] | None = None,
    seed: np.random.Generator | int | None = None,
) -> NDArray[np.int64]:
    """Deal rows to nodes at random.

    Parameters
    ----------
    y_or_n : array-like or int
        The labels, one a row, or just the number of rows ("skew" needs the labels).
    n_nodes : int
        How many nodes there are. A node may end up with no row.
    how : {"even", "skew", "counts"}, default="even"
        "even": the nodes' numbers of rows differ by one at most. "skew": each label's rows are
        divided in proportions drawn from a Dirichlet(`alpha`) distribution. "counts": node v gets
        ``counts[v]`` rows.
    alpha : float, optional
        For "skew": near 0 each label sits at one node, large values come close to even.
    counts : sequence of int, optional
        For "counts": the number of rows of each node.
    seed : numpy Generator or int, optional
        The source of randomness, or its seed.

    Returns
    -------
    ndarray of int64, shape (n_rows,)
        The node of each row, from 0 to ``n_nodes - 1``.

    Examples
    --------
    >>> deal(7, 3, seed=0)
    array([0, 1, 1, 2, 2, 0, 0])
    >>> deal([1, 1, 1, -1, -1, -1], 2, how="skew", alpha=0.01, seed=0)
    array([1, 1, 1, 0, 0, 0])
    >>> deal(6, 3, how="counts", counts=[4, 0, 2], seed=0)
    array([0, 0, 2, 2, 0, 0])
    """
    labels, n_rows = _labels_and_size(y_or_n)
    if isinstance(n_nodes, bool) or not isinstance(n_nodes, int | np.integer) or n_nodes < 1:
        raise ParameterError(
            f"The 'n_nodes' parameter of deal must be a positive integer. Got {n_nodes!r} instead."
        )
    if how not in _WAYS:
        raise ParameterError(f"Unknown way to deal {how!r}. {did_you_mean(how, _WAYS)}")
    _refuse_stray("alpha", alpha, "skew", how)
    _refuse_stray("counts", counts, "counts", how)
    rng = np.random.default_rng(seed)
    if how == "skew":
        return _deal_skewed(labels, n_nodes, alpha, rng)
    if how == "counts":
        sizes = _checked_counts(counts, n_nodes, n_rows)
    else:
        sizes = np.full(n_nodes, n_rows // n_nodes)
        sizes[: n_rows % n_nodes] += 1
    return rng.permutation(np.repeat(np.arange(n_nodes, dtype=np.int64), sizes))


def _labels_and_size(y_or_n: ArrayLike | int) -> tuple[NDArray[np.generic] | None, int]:
    given: NDArray[np.generic] = np.asarray(y_or_n)
    if given.ndim == 1:
        return given, len(given)
    if given.ndim == 0 and np.issubdtype(given.dtype, np.integer) and int(given) >= 0:
        return None, int(given)
    raise DataError(f"deal needs one label a row or the number of rows. Got {y_or_n!r} instead.")


def _refuse_stray(name: str, value: object, owner: str, how: str) -> None:
    if value is not None and how != owner:
        raise ParameterError(f"The {name!r} parameter of deal is for how={owner!r}, not {how!r}.")


def _checked_counts(counts: Sequence[int] | None, n_nodes: int, n_rows: int) -> NDArray[np.int64]:
    sizes = np.asarray([] if counts is None else counts)
    if counts is None or sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ParameterError(
            "The 'counts' parameter of deal must be a list of whole numbers, one a node. "
            f"Got {counts!r} instead."
        )
    if len(sizes) != n_nodes:
        raise DataError(f"counts has {len(sizes)} entries, but there are {n_nodes} nodes.")
    if sizes.sum() != n_rows:
        raise DataError(f"counts sums to {sizes.sum()}, but there are {n_rows} rows.")
    return sizes.astype(np.int64)


def _deal_skewed(
    labels: NDArray[np.generic] | None,
    n_nodes: int,
    alpha: float | None,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    if labels is None:
        raise DataError("Dealing with how='skew' needs the labels, not just the number of rows.")
    if alpha is None or not 0 < alpha < np.inf:
        raise ParameterError(
            f"The 'alpha' parameter of deal must be a positive float. Got {alpha!r} instead."
        )
    nodes = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        shares = rng.dirichlet(np.full(n_nodes, float(alpha)))
        # Rounding the running total, not each share, so that the sizes sum to all rows.
        cuts = np.rint(np.cumsum(shares)[:-1] * len(rows)).astype(np.int64)
        for node, part in enumerate(np.split(rows, cuts)):
            nodes[part] = node
    return nodes
