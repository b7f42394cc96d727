"""How lanes ended, put together: the longest, the worst, and everything sent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dtsvm.rounds import Info, Status
from dtsvm.runtime.apart import Ended

__all__ = ["join_lanes", "sum_ends"]

NOTHING = Info(Status.CONVERGED, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0)


def sum_ends(ends: Sequence[Ended], spent: float) -> Info:
    """One end for problems that are trained side by side: the longest, the worst, all bytes."""
    if not ends:
        return NOTHING
    are_good, n_rounds, objective, gap, messages, payload = zip(*ends, strict=True)
    status = Status.CONVERGED if all(are_good) else Status.MAX_ROUNDS
    return Info(
        status, max(n_rounds), sum(objective), max(gap), np.nan, np.nan, sum(messages),
        sum(payload), spent,
    )  # fmt: skip


def join_lanes(infos: Sequence[Info]) -> Info:
    """One end for a candidate's lanes."""
    late = [info.status for info in infos if info.status is not Status.CONVERGED]
    return Info(
        late[0] if late else Status.CONVERGED, max(info.n_rounds for info in infos),
        sum(info.objective for info in infos), max(info.gap for info in infos), np.nan, np.nan,
        sum(info.messages_sent for info in infos), sum(info.bytes_sent for info in infos),
        sum(info.seconds for info in infos),
    )  # fmt: skip
