"""What happened, a row a round, and how training ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["HISTORY", "History", "Info", "Status"]

HISTORY = np.dtype(
    [
        ("round", np.int64),
        ("primal_residual", float),
        ("dual_residual", float),
        ("objective", float),
        ("gap", float),
        ("sweeps", np.int64),
        ("messages_sent", np.int64),
        ("bytes_sent", np.int64),
    ]
)


class Status(StrEnum):
    """How training ended.

    Examples
    --------
    >>> from dtsvm.rounds import Status
    >>> Status.CONVERGED == "converged"
    True
    """

    CONVERGED = "converged"
    MAX_ROUNDS = "max_rounds"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Info:
    """How training ended, and how good the answer provably is.

    Attributes
    ----------
    status : Status
        converged, max_rounds, time_limit or interrupted.
    n_rounds : int
        Rounds done; in a session, since it began. Likewise messages, bytes and seconds.
    objective : float
        The one objective at the network's averaged answer.
    gap : float
        The objective is at most this share above what training on the pooled rows could reach.
    primal_residual, dual_residual : float
        How much linked agents still disagree, and still move, relative to their size.
    messages_sent, bytes_sent : int
        What crossed network links; the payload's bytes.
    seconds : float
        Time spent in rounds.
    """

    status: Status
    n_rounds: int
    objective: float
    gap: float
    primal_residual: float
    dual_residual: float
    messages_sent: int
    bytes_sent: int
    seconds: float


class History:
    """Rows of `HISTORY`, appended in blocks; `n_rounds` says how many rounds there were."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.void]] = []
        self.n_rounds = 0

    def append(self, block: NDArray[np.void]) -> None:
        """Add the rounds of one block."""
        if len(block):
            self._blocks.append(block)
            self.n_rounds = int(block["round"][-1])

    @property
    def last(self) -> NDArray[np.void]:
        """The last round, as an array of one row or none."""
        return self._blocks[-1][-1:] if self._blocks else np.zeros(0, HISTORY)

    def array(self) -> NDArray[np.void]:
        """Return all rounds as one structured array."""
        if not self._blocks:
            return np.zeros(0, HISTORY)
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0]
