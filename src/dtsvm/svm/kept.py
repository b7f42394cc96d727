"""A session that can be put away: in a file, or in a pickle."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

from dtsvm.problem import Settings
from dtsvm.problem.settings import choice
from dtsvm.svm.checkpoint import from_bytes, load, save, to_bytes
from dtsvm.svm.engines import ENGINES, check_engine
from dtsvm.svm.holding import Holding

__all__ = ["Kept"]


class Kept(Holding):
    """What writes a session and reads it back."""

    _owner: str

    def save(self, path: str | PathLike[str]) -> None:
        """Write the whole state: a killed process leaves the old file or the new one.

        At several ranks every rank calls it, and rank 0 writes.
        """
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], *, engine: str = "memory") -> Self:
        """Read what `save` wrote and go on from there, bit for bit.

        Who wrote it does not matter: one process, or any number of ranks. With ``engine="mpi"``
        every rank calls it and takes the rows of its own nodes.
        """
        choice(cls.__name__, "engine", engine, ENGINES)
        check_engine(engine)
        live = cls.__new__(cls)
        Holding.__init__(live, None, Settings())
        live._engine = engine
        load(live, path)
        return live

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what `save` would write, and nothing of compiled code."""
        if self._members is None:
            return self.__dict__
        return {"saved": to_bytes(self), "_owner": self._owner}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "saved" not in state:
            self.__dict__.update(state)
            return
        Holding.__init__(self, None, Settings())
        self._owner = state["_owner"]
        from_bytes(self, state["saved"], "a pickled session")
