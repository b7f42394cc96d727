"""A saved session, read again whenever its file is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dtsvm.errors import DtsvmError
from dtsvm.svm.session import Session
from dtsvm.ui.page.layout import place_nodes
from dtsvm.ui.page.scene import Scene
from dtsvm.ui.page.sessions import describe_events, describe_settings, describe_world

__all__ = ["SavedSession"]

LOOK_SECONDS = 0.5


class SavedSession(Scene):
    """A `Session` on disk; the page follows the file and changes nothing.

    Parameters
    ----------
    path : Path
        What `Session.save` wrote.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(f"Saved session {path.name}", ["round", "residual", "gap"], False)
        self.path = path
        self._read_at = 0
        self._read()

    def move(self) -> float:
        """Read the file again if it has changed."""
        try:
            if self.path.stat().st_mtime_ns != self._read_at:
                self._read()
        except (OSError, DtsvmError) as error:
            if not self.refused or self.refused[-1] != str(error):
                self.refuse(str(error))
        return LOOK_SECONDS

    def describe(self) -> dict[str, Any]:
        """Return the session as it was saved."""
        live = self.live
        last = self.records.rows[-1] if self.records.rows else [0, None, None]
        places = place_nodes(live.nodes, live.network)
        return {
            "state": "saved",
            "round": live.round,
            "residual": last[1],
            "gap": last[2],
            "events": describe_events(live.events),
            "settings": describe_settings(live),
            **describe_world(live, places, {}),
        }

    def _read(self) -> None:
        self.live = Session.load(self.path)
        self._read_at = self.path.stat().st_mtime_ns
        history = self.live.history
        residual = np.maximum(history["primal_residual"], history["dual_residual"])
        self.records.rows, self.records.dropped = [], 0
        for row in zip(history["round"], residual, history["gap"], strict=True):
            self.records.add([float(value) for value in row])
        self.version += 1
