"""Where lanes of a choice stood, for the next time: what no training has had for long goes."""

from __future__ import annotations

from collections.abc import Mapping

from dtsvm.runtime.agent.node.bench import Kept

__all__ = ["Lasting"]

FEW, TIMES = 200, 3  # lanes that are kept at least, and as many times those of the longest choice


class Lasting(dict[str, Kept]):
    """Where lanes stood, by name, those of the last training last.

    Names follow from what all nodes say of their tasks and labels, and so from what a liar says of
    its own. When all begin anew, the oldest are forgotten beyond a few times what one choice has.
    """

    def __init__(self, given: Mapping[str, Kept] | None = None) -> None:
        super().__init__(given or {})
        self._touched: set[str] = set()
        self._most = 0  # that one choice had

    def put(self, found: Mapping[str, Kept]) -> None:
        """Keep where lanes stand now."""
        for name, one in found.items():
            self.pop(name, None)
            self[name] = one
        self._touched |= found.keys()

    def begin(self) -> None:
        """Begin another choice."""
        self._most = max(self._most, len(self._touched))
        self._touched = set()
        for name in list(self)[: max(len(self) - FEW - TIMES * self._most, 0)]:
            del self[name]
