"""What is tried: families of problems, from a task alone to one classifier for all, times C."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dtsvm.errors import ParameterError, did_you_mean
from dtsvm.problem.settings import positive

__all__ = [
    "ALL",
    "ALONE",
    "LEVELS",
    "SMALL",
    "Candidate",
    "Family",
    "candidates",
    "read_families",
    "reference_of",
]

BIASES = ("task", "common", "mixed")
LEVELS = (0.1, 1.0, 10.0, 100.0)  # C times the mean squared length of a row


class Family(NamedTuple):
    """One way of training: which biases, how much is a task's own, and on which side it stands.

    Parameters
    ----------
    bias : {"task", "common", "mixed"}
        A free bias a task, one for all, or a free common one and a regularised one a task.
    share : float
        θ from 0 to 1, the share of the task's own weights: with θ = 1 and a bias a task it trains
        alone, with θ = 0 all tasks have the same weights.
    is_turned : bool
        Whether tasks that look the other way are turned round before they share.

    Examples
    --------
    >>> from dtsvm.select import Family
    >>> Family("mixed", 0.6, True).is_alone
    False
    """

    bias: str
    share: float
    is_turned: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether a task has no company in it."""
        return self.bias == "task" and self.share == 1.0

    def __str__(self) -> str:
        if self.is_alone:
            return "alone"
        if self.bias == "common" and self.share == 0.0:
            name = "one for all"
        else:
            name = f"own share {self.share:g}, bias {self.bias}"
        return f"{name}, turned" if self.is_turned else name


class Candidate(NamedTuple):
    """A family at one C."""

    family: Family
    C: float


ALONE = (Family("task", 1.0),)
_TOGETHER = (("task", 0.02), ("task", 0.6), ("common", 0.0), ("mixed", 0.02), ("mixed", 0.6))
ALL = ALONE + tuple(Family(bias, share, turned) for turned in (False, True)
                    for bias, share in _TOGETHER)  # fmt: skip
SMALL = (
    *ALONE,
    Family("task", 0.02),
    Family("task", 0.6),
    Family("common", 0.0),
    Family("mixed", 0.6),
    Family("task", 0.02, True),
    Family("task", 0.6, True),
    Family("mixed", 0.6, True),
)
NAMED = {"all": ALL, "small": SMALL, "alone": ALONE}


def read_families(owner: str, chosen: Any) -> tuple[Family, ...]:
    """Return the families that `chosen` names; a list must contain the one that trains alone."""
    if isinstance(chosen, str):
        if chosen not in NAMED:
            raise ParameterError(
                f"Unknown 'candidates' of {owner}: {chosen!r}. {did_you_mean(chosen, list(NAMED))}"
            )
        return NAMED[chosen]
    if not isinstance(chosen, Iterable):
        raise _refused(owner, chosen)
    families = tuple(dict.fromkeys(_read_family(owner, entry) for entry in chosen))
    if not any(family.is_alone for family in families):
        raise ParameterError(
            f"The 'candidates' of {owner} must contain ('task', 1.0), a task alone: it tells which "
            "tasks to turn round and what company is worth."
        )
    return families


def _read_family(owner: str, entry: Any) -> Family:
    values = tuple(entry) if isinstance(entry, Sequence) and not isinstance(entry, str) else ()
    if not 2 <= len(values) <= 3 or values[0] not in BIASES:
        raise _refused(owner, entry)
    share = values[1]
    is_share = isinstance(share, (int, float)) and not isinstance(share, bool) and 0 <= share <= 1
    if not is_share:
        raise ParameterError(
            f"A candidate's own share must be a number from 0 to 1. Got {share!r} in {entry!r}."
        )
    return Family(str(values[0]), float(share), bool(values[2]) if len(values) == 3 else False)


def _refused(owner: str, entry: Any) -> ParameterError:
    return ParameterError(
        f"The 'candidates' parameter of {owner} must be 'all', 'small', 'alone' or a list of "
        f"(bias, own share, turned), bias one of {', '.join(BIASES)}. Got {entry!r} instead."
    )


def candidates(
    families: Sequence[Family],
    *,
    n_tasks: int,
    mean_square: float,
    C: float | Iterable[float] | None = None,
    owner: str = "DTSVMCV",
) -> list[Candidate]:
    """Return families × C; of families that are the same problem with one task, one stays.

    Parameters
    ----------
    families : sequence of Family
        The families.
    n_tasks : int
        How many tasks there are.
    mean_square : float
        Mean squared length of a row; C is 0.1, 1, 10 and 100 over it, unless `C` is given.
    C : float or iterable of float, optional
        The values to try instead.
    owner : str
        Whom a refusal speaks of.

    Examples
    --------
    >>> from dtsvm.select import ALL, candidates
    >>> len(candidates(ALL, n_tasks=5, mean_square=2.0))
    44
    >>> [c.C for c in candidates(ALL, n_tasks=1, mean_square=2.0)]
    [0.05, 0.5, 5.0, 50.0]
    """
    if C is None:
        prices = [level / (mean_square or 1.0) for level in LEVELS]
    else:
        given = list(C) if isinstance(C, Iterable) else [C]
        prices = sorted({positive(owner, "C", value, "positive floats") for value in given})
    if not prices:
        raise ParameterError(f"The 'C' parameter of {owner} must name at least one value.")
    if n_tasks == 1:
        families = [family for family in families if family.is_alone]
    return [Candidate(family, price) for family in families for price in prices]


def reference_of(some: Sequence[Candidate], mean_square: float) -> int:
    """Return the candidate that trains alone at C times the mean squared row nearest to 1."""
    distance = [
        abs(np.log(c.C * (mean_square or 1.0))) if c.family.is_alone else np.inf for c in some
    ]
    return int(np.argmin(distance))
