"""What a node has spent of its privacy: on disk before a message leaves, whatever happens then."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.files import write_atomically
from dtsvm.errors import NetworkError
from dtsvm.problem import Privacy

__all__ = ["SUMS", "Budget"]

Floats = NDArray[np.float64]
SUMS = 4  # before the first round there are at most three; one may be lost with the process
_LOCK = RLock()  # a long solve pays in a thread of its own, sums are paid for beside it


class Paid(NamedTuple):
    """What the last message was paid from: whether it is of all candidates, and its number."""

    is_first: bool
    number: int


class Budget:
    """Counts what may still tell something new of the rows.

    Parameters
    ----------
    privacy : Privacy
        The level, which must be "dp".
    path : Path, optional
        Where it is kept; without one it lasts as long as the process.
    holdout : float
        The share of rows that nobody trains on: they are paid for apart, so it may never change.
        By default it is what the file says.

    Examples
    --------
    >>> from dtsvm.problem import Privacy
    >>> budget = Budget(Privacy("dp", rounds=2))
    >>> [budget.spend() for _ in range(3)]
    [True, True, False]
    """

    def __init__(
        self, privacy: Privacy, path: Path | None = None, holdout: float | None = None
    ) -> None:
        self.privacy, self.path, self.holdout = privacy, path, holdout
        self.spent = 0
        self.choice: int | None = None  # which candidate trains on; the first if there is one only
        self.counts: dict[str, int] = {}  # of sums of each kind
        self.told: dict[str, list[float]] = {}  # noise and all, to be told again
        self.refresh()
        self.paid = Paid(self.is_comparing, self.spent)

    @property
    def left(self) -> int:
        """Messages that may still be sent."""
        return max(self.privacy.first_rounds + self.privacy.rounds - self.spent, 0)

    @property
    def is_comparing(self) -> bool:
        """Whether nothing has been chosen yet, where something is to be."""
        return bool(self.privacy.candidates) and self.choice is None

    @property
    def may_tell(self) -> bool:
        """Whether a message may be paid for now: between the first rounds and a choice, none."""
        return self.left > (self.privacy.rounds if self.is_comparing else 0)

    def spend(self) -> bool:
        """Pay for one message; False if nothing is left. It is on disk when this returns."""
        with _LOCK:
            self.refresh()
            if not self.may_tell:
                return False
            self._write(spent=self.spent + 1)
            self.paid = Paid(self.is_comparing, self.spent)
            return True

    def choose(self, candidate: int) -> None:
        """Go on with one candidate, for ever; what first rounds were left is given up."""
        with _LOCK:
            self.refresh()
            if self.is_comparing:
                spent = max(self.spent, self.privacy.first_rounds)
                self._write(choice=candidate, spent=spent)

    def tell(
        self, kind: str, name: str, most: int, make: Callable[[], Floats], *,
        is_repeated: bool = False,
    ) -> Floats:  # fmt: skip
        """Return what is told of a sum: what was told before under this name, or else a new one.

        Parameters
        ----------
        kind : str
            What it is paid from.
        name : str
            Under which it is kept.
        most : int
            How many of this kind may be made, ever.
        make : callable
            Makes it from the rows, with its noise; called when it is paid for.
        is_repeated : bool
            Whether the last of this kind is told again when no more may be made.
        """
        with _LOCK:
            self.refresh()
            return self._tell(kind, name, most, make, is_repeated)

    def _tell(
        self, kind: str, name: str, most: int, make: Callable[[], Floats], is_repeated: bool
    ) -> Floats:
        last = f"{kind}: last"
        if self.counts.get(kind, 0) >= most and is_repeated and last in self.told:
            name = last
        if name in self.told:
            return np.array(self.told[name])
        if self.counts.get(kind, 0) >= most:
            raise NetworkError(
                f"The budget for {kind} is spent: {most} sums were begun at this node, and what "
                "they told does not fit, or was lost when its process ended. Only new rows may "
                "have a new budget."
            )
        self._write(counts={**self.counts, kind: self.counts.get(kind, 0) + 1})
        found = make()
        self._write(told={**self.told, name: found.tolist(), last: found.tolist()})
        return found

    def refresh(self) -> None:
        """Know what is on disk: sums and messages of a node are paid from one file."""
        if self.path is not None and self.path.exists():
            self._read()

    def _write(self, **change: Any) -> None:
        new = {
            "spent": self.spent, "choice": self.choice, "counts": self.counts, "told": self.told,
            **change,
        }  # fmt: skip
        if self.path is not None:
            about = {"privacy": self.privacy.describe(), "holdout": self.holdout}
            content = json.dumps({**about, **new}).encode()
            try:
                write_atomically(self.path, content, is_private=True)
            except OSError as error:
                raise NetworkError(
                    f"{self.path} cannot be written: {error.strerror}. Nothing was sent; make room "
                    "and try again."
                ) from error
        self.spent, self.choice = new["spent"], new["choice"]
        self.counts, self.told = new["counts"], new["told"]

    def _read(self) -> None:
        assert self.path is not None
        try:
            kept: dict[str, Any] = json.loads(self.path.read_bytes())
            spent, counts, told = kept["spent"], dict(kept["counts"]), dict(kept["told"])
            begun, choice = dict(kept["privacy"]), kept.get("choice")
            held = kept.get("holdout")
            told = {str(name): [float(v) for v in some] for name, some in told.items()}
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise self._refusal("cannot be read") from error
        for number in (spent, *counts.values()):
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise self._refusal(f"says that {number!r} messages were sent")
        if begun != self.privacy.describe():
            raise self._refusal(f"was begun with {begun} instead of {self.privacy.describe()}")
        if self.holdout is None:
            self.holdout = held
        if held != self.holdout:
            raise self._refusal(f"was begun with holdout = {held} instead of {self.holdout}")
        if choice is not None and choice not in range(len(self.privacy.candidates)):
            raise self._refusal(f"says that candidate {choice!r} was chosen")
        self.spent, self.choice, self.counts, self.told = spent, choice, counts, told

    def _refusal(self, what: str) -> NetworkError:
        return NetworkError(
            f"The privacy budget {self.path} {what}, so nobody knows what was told of these rows. "
            "Go back to the settings it was begun with; only new rows may have a new budget."
        )
