"""What the data allow: no honest neighbour sends more, whatever it has been told.

The objective at zero is C · rows, so the answer and what trains towards it stay near

    ε₁/2 ‖w₀‖² + Σ_t (A_t/A) ε₂/2 ‖w_t‖² ≤ C n,

and links carry no more multiplier than all rows together have, C Σ ‖x̃ᵢ‖. Iterates overshoot; so
what is refused is a hundred times that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import Settings
from dtsvm.runtime.agent.node.team import Team

__all__ = ["Bounds"]

Floats = NDArray[np.float64]
SLACK = 100.0
LARGER = 10.0  # a row than the mean


class Bounds(NamedTuple):
    """How large x and multipliers can be: of the weights as a vector, and of the bias."""

    weights: float
    bias: float
    pull: float
    bias_pull: float

    @classmethod
    def of(cls, team: Team, settings: Settings, n_features: int) -> Bounds:
        """Return what one group's data allow."""
        n = sum(team.members)
        least = min(settings.common_reg, settings.specific_reg / n)
        weights = float(np.sqrt(2.0 * team.weight / least))
        row = LARGER * float(np.sqrt(team.square * n_features))
        return cls(
            SLACK * weights,
            SLACK * (1.0 + weights * row),
            SLACK * team.weight * row,
            SLACK * team.weight,
        )

    def allows(self, q: Floats, penalty: Floats) -> bool:
        """Whether q = 2ρx − z, part by part with the bias last, is one that the data allow."""
        length = _length(q)
        most = 3.0 * float(penalty[0]) * self.weights + self.pull
        most_bias = 3.0 * float(penalty[1]) * self.bias + self.bias_pull
        return bool((length <= most).all() and (np.abs(q[..., -1]) <= most_bias).all())

    def most(self, penalty: Floats) -> float:
        """Return a length of q, all parts as one vector, up to which all are allowed."""
        rho, rho_bias = penalty.tolist()
        most = 3.0 * rho * self.weights + self.pull
        return float(min(most, 3.0 * rho_bias * self.bias + self.bias_pull))

    def allow_check(self, x: Floats, z: Floats, penalty: Floats) -> bool:
        """Whether x and z, told for a check, are ones that the data allow: each, not only q."""
        return self.allow_estimate(x) and self.allows(z, penalty)

    def allow_flow(self, squared: float, n_ends: int) -> bool:
        """Whether links can carry so much: at rest no more than all rows together have."""
        return bool(squared <= 2 * n_ends * (self.pull / SLACK) ** 2)

    def most_told(self, penalty: Floats) -> tuple[float, float]:
        """Return ten times what q is without noise where nothing overshoots: a weight, the bias."""
        rho, rho_bias = penalty.tolist()
        weight = 3.0 * rho * LARGER * self.weights + self.pull  # the pull has that factor
        return weight / SLACK, LARGER * (3.0 * rho_bias * self.bias + self.bias_pull) / SLACK

    @property
    def most_estimate(self) -> float:
        """A length of an estimate, all parts as one vector, up to which all are allowed."""
        return min(self.weights, self.bias)

    def allow_offset(self, offset: Floats) -> bool:
        """Whether links that are gone can have left so much, part by part with the bias last."""
        is_near = (_length(offset) <= 2.0 * self.pull / SLACK).all()
        return bool(is_near and (np.abs(offset[..., -1]) <= 2.0 * self.bias_pull / SLACK).all())

    def allow_estimate(self, x: Floats) -> bool:
        """Whether an estimate, part by part with the bias last, is one that the data allow."""
        is_near = (_length(x) <= self.weights).all() and (np.abs(x[..., -1]) <= self.bias).all()
        return bool(is_near)


def _length(parts: Floats) -> Floats:
    """‖w‖ of every part, without its bias; infinite where that is too large for a number."""
    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt((parts[..., :-1] ** 2).sum(axis=-1)))
