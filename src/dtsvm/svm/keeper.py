"""A fit that is kept on disk while it runs, and goes on from there when it is started again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dtsvm.svm.checkpoint import resume, save
from dtsvm.svm.session import Session

__all__ = ["Keeper"]


@dataclass
class Keeper:
    """Keeps a session's numbers, not its rows, in a file.

    Parameters
    ----------
    path : Path
        The file: read before training if it is there, written while and after it.
    seconds : float
        How long training goes on before it is written again.
    """

    path: Path
    seconds: float

    def begin(self, session: Session) -> None:
        """Go on from what is kept, if something is, and keep what follows."""
        _, memory = session._need_rows()
        session._place_relays_or_refuse()
        if self.path.exists():
            resume(session, self.path)
        due = memory._now() + self.seconds

        def between() -> None:
            nonlocal due
            if memory._now() >= due:
                self.end(session)
                due = memory._now() + self.seconds

        memory.between = between

    def end(self, session: Any) -> None:
        """Write the file."""
        save(session, self.path, has_features=False)
