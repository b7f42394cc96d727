"""How much neighbours and readers may learn about a row: a level that all nodes agree on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from dtsvm.problem.settings import choice, count, positive, refusal

__all__ = ["LEVELS", "Privacy"]

LEVELS = ("none", "masked", "dp")
SHARES = ("preparation", "choosing", "probability")  # of a budget, for what is not a last round
MOST_CANDIDATES = 8  # each is one more training that is paid for
MEANING = {
    "none": (
        "Rows do not travel, but they are not protected: a neighbour that lies can read every "
        "row of a node, and one that only listens some of them."
    ),
    "masked": (
        "Sums over the network are masked, links begin at hidden numbers and move by hidden "
        "amounts: a neighbour that follows the protocol and pools with nobody has read no row of "
        "a node with two or more neighbours. One that lies still can read every row."
    ),
}


@dataclass(frozen=True)
class Privacy:
    """The level of privacy of a network; the same at every node.

    Parameters
    ----------
    level : {"none", "masked", "dp"}
        Nothing beyond rows staying where they are; sums masked and links begun at hidden numbers;
        or differential privacy for a row, whatever the neighbours do.
    epsilon, delta : float
        Under "dp", what a node may spend on one row in its whole life.
    rounds : int
        Under "dp", how many rounds that is spread over: more rounds, more noise in each. Where C is
        chosen, half as many come before, in which all candidates train.
    norm : float
        Under "dp", rows longer than this are shortened to it.
    weight : float
        Under "dp", no row may weigh more: noise grows in proportion.
    ranges : mapping
        Under "dp", what columns may hold, known without a look at any row: the least and the
        largest number, or a list of texts. Other columns are left out.
    preparation : float
        Under "dp", the share of the budget for sums before the first round; it is 0 where nothing
        is prepared.
    candidates : tuple of float
        Under "dp", the values of C that are chosen from; none where C is written down.
    choosing : float
        Under "dp", the share of the budget for choosing; it is 0 where C is written down.
    probability : float
        Under "dp", the share of the budget for probabilities; it is 0 where there are none.
    evaluations : int
        Under "dp", how often rows that are held out may be counted; they have a budget of their
        own, for nobody trains on them.

    Examples
    --------
    >>> from dtsvm.problem import Privacy
    >>> Privacy("dp", epsilon=1.0).describe()["epsilon"]
    1.0
    >>> Privacy().describe()
    {'level': 'none'}
    """

    level: Literal["none", "masked", "dp"] = "none"
    epsilon: float = 3.0
    delta: float = 1e-5
    rounds: int = 20
    norm: float = 1.0
    weight: float = 1.0
    ranges: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)
    preparation: float = 0.0
    candidates: tuple[float, ...] = ()
    choosing: float = 0.0
    probability: float = 0.0
    evaluations: int = 1

    @classmethod
    def checked(cls, owner: str, **values: Any) -> Self:
        """Make a level from unchecked values; refuse with a sentence that names `owner`."""
        if "level" in values:
            choice(owner, "level", values["level"], LEVELS)
        for name in ("epsilon", "delta", "norm", "weight", *SHARES):
            if name in values:
                values[name] = positive(owner, name, values[name])
        if values.get("delta", 0.5) >= 1:
            raise refusal(owner, "delta", "a float between 0 and 1", values["delta"])
        for name in ("rounds", "evaluations"):
            if name in values:
                values[name] = count(owner, name, values[name])
        for name in SHARES:
            if sum(values.get(one, 0.0) for one in SHARES) >= 1 and name in values:
                raise refusal(owner, name, "a share that leaves some for rounds", values[name])
        values["ranges"] = _ranges(owner, values.get("ranges", {}))
        values["candidates"] = _candidates(owner, values.get("candidates", ()))
        return cls(**values)

    def describe(self) -> dict[str, Any]:
        """Return the level as status, model files and neighbours are told it."""
        if self.level != "dp":
            return {"level": self.level}
        found = {
            "level": self.level, "epsilon": self.epsilon, "delta": self.delta,
            "rounds": self.rounds, "norm": self.norm, "evaluations": self.evaluations,
        }  # fmt: skip
        found |= {name: getattr(self, name) for name in SHARES if getattr(self, name)}
        if self.weight != 1.0:
            found["weight"] = self.weight
        if self.candidates:
            found["candidates"] = list(self.candidates)
        if self.ranges:
            found["ranges"] = {name: list(some) for name, some in sorted(self.ranges.items())}
        return found

    @property
    def share(self) -> float:
        """The share of the budget that is left for rounds of the classifier that is told."""
        return 1.0 - self.preparation - self.choosing - self.probability

    @property
    def first_rounds(self) -> int:
        """Rounds in which all candidates train, before one of them is chosen."""
        return (self.rounds + 1) // 2 if self.candidates else 0

    @property
    def meaning(self) -> str:
        """One or two sentences for a person."""
        if self.level != "dp":
            return MEANING[self.level]
        return (
            f"Whatever its neighbours do, what a node tells changes by a factor of at most "
            f"exp({self.epsilon:g}), but for a chance of {self.delta:g}, if one of its rows is "
            f"replaced; rows are shortened to length {self.norm:g}."
        )


def _candidates(owner: str, given: Any) -> tuple[float, ...]:
    values = tuple(given) if isinstance(given, list | tuple) else (given,)
    found = tuple(positive(owner, "candidates", value) for value in values)
    if len(set(found)) != len(found) or len(found) == 1 or len(found) > MOST_CANDIDATES:
        raise refusal(owner, "candidates", f"2 to {MOST_CANDIDATES} different values of C", given)
    return tuple(sorted(found, reverse=True))


def _ranges(owner: str, given: Any) -> dict[str, tuple[Any, ...]]:
    if not isinstance(given, Mapping):
        raise refusal(owner, "ranges", "a table of columns", given)
    found = {}
    for name, some in given.items():
        values = tuple(some) if isinstance(some, list | tuple) else ()
        is_text = all(isinstance(one, str) for one in values) and len(set(values)) == len(values)
        is_range = len(values) == 2 and all(
            isinstance(one, int | float) and not isinstance(one, bool) and abs(one) < 1e100
            for one in values
        )
        if not (is_range and values[0] < values[1]) and not (is_text and len(values) > 1):
            raise refusal(
                owner, f"ranges.{name}", "[least, largest] or a list of different texts", some
            )
        found[str(name)] = tuple(map(float, values)) if is_range else tuple(sorted(values))
    return found
