"""What makes a node that chooses doubt its totals: impossible ones, and ones told to it alone."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dtsvm.errors import DtsvmError

__all__ = ["Doubts"]

log = logging.getLogger(__name__)


def _digest(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


@dataclass
class Doubts:
    """Whether what was summed can be used.

    Totals are all nodes' alike. Whoever hands them down a tree could tell each child others; so
    neighbours tell each other a digest of all answers so far, and compare question by question.

    Examples
    --------
    >>> import numpy as np
    >>> one, other = Doubts(), Doubts()
    >>> one.note(np.array([1.0])), other.note(np.array([2.0]))
    (None, None)
    >>> one.differ("b", 1, one.digest), one.differ("b", 1, other.digest)
    (False, True)
    """

    why: str = ""  # nothing is used until the network changes
    n_lies: int = 0  # how often
    _answers: list[int] = field(default_factory=lambda: [_digest(b"")])

    def begin(self) -> bool:
        """Begin anew; return whether there was a doubt."""
        had_doubt, self.why, self._answers = bool(self.why), "", [_digest(b"")]
        return had_doubt

    @property
    def digest(self) -> int:
        """What neighbours are told of all answers so far."""
        return self._answers[-1]

    def note(self, answer: Any) -> None:
        """Take the answer to the next question: a total, or that something was trained."""
        said = answer.tobytes() if isinstance(answer, np.ndarray) else b"trained"
        self._answers.append(_digest(self.digest.to_bytes(8, "little") + said))

    def differ(self, neighbour: str, position: int, digest: int) -> bool:
        """Whether a neighbour at this question was told other totals than this node."""
        if not digest or position >= len(self._answers) or digest == self._answers[position]:
            return False
        self._say(
            f"In choosing, node {neighbour} was told other totals than this node: some node lies. "
            "Find it, and revoke or unlink it; then all choose anew."
        )
        return True

    def stop(self, error: Exception) -> None:
        """Say that a total cannot be used."""
        is_said = isinstance(error, DtsvmError)
        self._say(str(error) if is_said else f"A sum made no sense ({type(error).__name__}).")

    def _say(self, why: str) -> None:
        if why != self.why:
            self.why, self.n_lies = why, self.n_lies + 1
            log.warning("%s", why)
