"""What a node has spent of its privacy: on disk before a message leaves, whatever happens then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dtsvm.data.files import write_atomically
from dtsvm.errors import NetworkError
from dtsvm.problem import Privacy

__all__ = ["Budget"]


class Budget:
    """Counts the messages that may still tell something new of the rows.

    Parameters
    ----------
    privacy : Privacy
        The level, which must be "dp".
    path : Path, optional
        Where it is kept; without one it lasts as long as the process.

    Examples
    --------
    >>> from dtsvm.problem import Privacy
    >>> budget = Budget(Privacy("dp", rounds=2))
    >>> [budget.spend() for _ in range(3)]
    [True, True, False]
    """

    def __init__(self, privacy: Privacy, path: Path | None = None) -> None:
        self.privacy, self.path = privacy, path
        self.spent = self._read() if path is not None and path.exists() else 0

    @property
    def left(self) -> int:
        """Messages that may still be sent."""
        return max(self.privacy.rounds - self.spent, 0)

    def spend(self) -> bool:
        """Pay for one message; False if nothing is left. It is on disk when this returns."""
        if not self.left:
            return False
        if self.path is not None:
            self._write(self.spent + 1)
        self.spent += 1
        return True

    def _write(self, spent: int) -> None:
        assert self.path is not None
        content = json.dumps({**self.privacy.describe(), "spent": spent}).encode()
        try:
            write_atomically(self.path, content, is_private=True)
        except OSError as error:
            raise NetworkError(
                f"{self.path} cannot be written: {error.strerror}. Nothing was sent; make room and "
                "try again."
            ) from error

    def _read(self) -> int:
        assert self.path is not None
        try:
            kept: dict[str, Any] = json.loads(self.path.read_bytes())
            spent = kept.pop("spent")
            is_count = isinstance(spent, int) and spent >= 0
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise self._refusal("cannot be read") from error
        if not is_count:
            raise self._refusal(f"says that {spent!r} messages were sent")
        if kept != self.privacy.describe():
            raise self._refusal(f"was begun with {kept} instead of {self.privacy.describe()}")
        return int(spent)

    def _refusal(self, what: str) -> NetworkError:
        return NetworkError(
            f"The privacy budget {self.path} {what}, so nobody knows what was told of these rows. "
            "Go back to the settings it was begun with; only new rows may have a new budget."
        )
