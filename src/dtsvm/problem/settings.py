"""What a user may choose about the problem and the iteration, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Self

from dtsvm.errors import ParameterError, did_you_mean

__all__ = ["Penalty", "Settings"]

Penalty = float | Literal["auto"]


@dataclass(frozen=True)
class Settings:
    """The problem's weights and the iteration's constants.

    Parameters
    ----------
    C : float
        Price of a row's hinge loss.
    common_reg, specific_reg : float
        Regularisation ε₁ of the common part and ε₂ of the specific parts.
    task_penalty, node_penalty : float or "auto"
        Penalties η₁ on links inside a node and η₂ on links across the network.
    relaxation : float
        κ in (0, 1); ½ is the paper's iteration.
    local : {"tracking", "exact"}
        How well an agent solves its own problem in a round: just ahead of what the neighbours
        change, or to machine precision as the paper assumes.
    tol : float
        Training stops at a certified relative gap of ¾ of it, when linked agents agree to 0.4 √tol.
    bias : {"task", "common", "mixed"}
        A free bias a task; one for all tasks of a group; or a free common one and a specific one
        that is regularised as a constant feature of the features' mean square would be.

    Examples
    --------
    >>> from dtsvm.problem import Settings
    >>> Settings(C=0.5).relaxation
    0.8
    """

    C: float = 1.0
    common_reg: float = 1.0
    specific_reg: float = 1.0
    task_penalty: Penalty = "auto"
    node_penalty: Penalty = "auto"
    relaxation: float = 0.8
    local: Literal["tracking", "exact"] = "tracking"
    tol: float = 1e-4
    bias: Literal["task", "common", "mixed"] = "task"

    @classmethod
    def checked(cls, owner: str, **values: Any) -> Self:
        """Make settings from unchecked values; refuse with a sentence that names `owner`."""
        for name in ("C", "common_reg", "specific_reg", "tol"):
            if name in values:
                values[name] = positive(owner, name, values[name])
        for name in ("task_penalty", "node_penalty"):
            if name in values and not _is_auto(values[name]):
                values[name] = positive(owner, name, values[name], "a positive float or 'auto'")
        kappa = values.get("relaxation", cls.relaxation)
        if not _is_real(kappa) or not 0 < kappa < 1:
            raise refusal(owner, "relaxation", "a float between 0 and 1, both excluded", kappa)
        if "local" in values:
            choice(owner, "local", values["local"], ("tracking", "exact"))
        if "bias" in values:
            choice(owner, "bias", values["bias"], ("task", "common", "mixed"))
        return cls(**values)


def positive(owner: str, name: str, value: Any, what: str = "a positive float") -> float:
    """Return `value` as a float, or refuse it."""
    if not _is_real(value) or not 0 < value < float("inf"):
        raise refusal(owner, name, what, value)
    return float(value)


def count(owner: str, name: str, value: Any) -> int:
    """Return `value` as a positive int, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, (int, Integral)) or value < 1:
        raise refusal(owner, name, "a positive int", value)
    return int(value)


def choice(owner: str, name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not one of `choices`."""
    if value not in choices:
        raise ParameterError(
            f"Unknown '{name}' of {owner}: {value!r}. {did_you_mean(value, list(choices))}"
        )


def refusal(owner: str, name: str, what: str, value: Any) -> ParameterError:
    """Word the one sentence for every bad parameter."""
    return ParameterError(
        f"The '{name}' parameter of {owner} must be {what}. Got {value!r} instead."
    )


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _is_real(value: Any) -> bool:
    return isinstance(value, (float, int, Real)) and not isinstance(value, bool)
