"""What a run of the benchmarks was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["MissingData", "Settings"]


class MissingData(Exception):
    """A case's data are not on this machine."""


@dataclass(frozen=True)
class Settings:
    """Sizes, repeats, seed, and where data lie."""

    quick: bool = False
    repeats: int = 7
    seed: int = 0
    mnist: Path | None = None
    data: Path | None = None

    def pick(self, full, quick):
        """Return the first for a real run, the second for a quick one."""
        return quick if self.quick else full
