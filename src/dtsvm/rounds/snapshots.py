"""A leap along the slow directions of the iteration, at checks: reduced-rank extrapolation.

Late rounds repeat themselves: what the links hold moves along a few slow directions, each round by
a little less. Seven snapshots z₀ … z₆ of what all links hold, evenly taken over the last rounds
before a check, show these directions. The leap goes to the mixture

    z ← Σ γᵢ zᵢ,   i = 1 … 6,   Σ γᵢ = 1,   that makes ‖Σ γᵢ (zᵢ − zᵢ₋₁)‖ smallest

(Eddy, 1979; Mešina, 1977). An agent needs its own snapshots and γ; γ needs 21 inner products,
summed over all links along with what penalties are balanced by. Checks are finitely many and from
any z the iteration converges to the same answer, so a leap can change the speed alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.problem.settings import Settings
from dtsvm.rounds.plan import Plan
from dtsvm.rounds.tables import Tables

__all__ = ["Snapshots"]

Floats = NDArray[np.float64]
CONSTANTS = compiled.constants()
N_SNAPSHOTS = int(CONSTANTS["STEPS"]) + 1
NONE_TAKEN = np.full(N_SNAPSHOTS, -1, np.int64)
NO_ROOM = np.zeros((N_SNAPSHOTS, 0, 2, 0))


class Snapshots:
    """Snapshots of z and x since the last change, and leaps decided but not yet made."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.arrays: dict[str, NDArray[Any]] | None = None  # ages, z and x
        self._leaps: dict[int, Floats] = {}  # γ by set
        self._record: tuple[Any, bool, Any] = (0, False, None)  # of which arrays, how warm

    def forget(self) -> None:
        """Begin anew: who is here has changed."""
        self.arrays = None
        self._leaps.clear()

    def make_room(self, age: int, n: int, is_warm: bool, settings: Settings) -> None:
        """Make room for what the next `n` rounds leave, if they leave anything.

        Who has chosen a penalty gets the plain iteration.
        """
        if self.arrays is not None or (settings.task_penalty, settings.node_penalty) != (
            "auto",
            "auto",
        ):
            return
        earliest = age if is_warm else max(age, int(CONSTANTS["FIRST_LEAP"]) - 1)
        check = compiled.next_check(earliest, is_warm)
        if age + n < compiled.snapshot_plan(check, is_warm)[0]:
            return
        p1 = self.tables.n_features + 1
        self.arrays = {
            "ages": NONE_TAKEN.copy(),
            "z": np.zeros((N_SNAPSHOTS, self.tables.ends.capacity, 2, p1)),
            "x": np.zeros((N_SNAPSHOTS, self.tables.agents.capacity, 2, p1)),
        }

    def record(self, is_warm: bool) -> Any:
        """View the snapshots as compiled code takes them."""
        arrays, was_warm, record = self._record
        if arrays is not self.arrays or was_warm != is_warm:
            record = self._view(is_warm)
            self._record = (self.arrays, is_warm, record)
        return record

    def _view(self, is_warm: bool) -> Any:
        if self.arrays is None:
            return compiled.Past(NONE_TAKEN.copy(), NO_ROOM, NO_ROOM, is_warm)
        return compiled.Past(self.arrays["ages"], self.arrays["z"], self.arrays["x"], is_warm)

    def is_whole(self, age: int, is_warm: bool) -> bool:
        """Whether every snapshot before the last check was taken when it was due."""
        check = compiled.last_check(age, is_warm)
        return bool(compiled.is_whole(self.record(is_warm), check))

    def plan_leap(self, s: int, gamma: Floats) -> None:
        """Let set s leap when penalties are next renewed."""
        self._leaps[s] = np.ascontiguousarray(gamma, dtype=np.float64)

    def leap(self, plan: Plan, record: Any) -> bool:
        """Make the leaps that were decided; return whether there were any.

        x leaps along so that z keeps its multipliers under a new penalty; `kernel.renew` brings
        back what agents found.
        """
        leaps, self._leaps = self._leaps, {}
        if self.arrays is None or not leaps:
            return False
        compiled.keep_estimates(plan.agents, record)
        for s, gamma in leaps.items():
            compiled.apply_leap(s, gamma, plan.sets, record, plan.agents, plan.ends)
        return True
