"""What goes wrong at one node: survived, counted, logged, and said when it is asked how it is."""

from __future__ import annotations

import logging
import time

from dtsvm.runtime.agent.node.names import shown
from dtsvm.runtime.agent.node.node import Node

__all__ = ["Trouble", "have_descriptors"]

log = logging.getLogger(__name__)
LOG_SECONDS, ALARM_SECONDS = 60.0, 3600.0  # between lines about one thing
DESCRIPTORS = 4096


class Trouble:
    """Counts errors, and notices when a node is alone or gets nowhere.

    Parameters
    ----------
    node : Node
        The node that is watched.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.failures = 0
        self._logged_at: dict[str, float] = {}
        self._best = float("inf")  # residual since the roster last changed
        self._roster = 0
        self._better_at = self._company_at = time.monotonic()
        self._words = ""
        self._alarmed_at = 0.0

    def survive(self, doing: str, error: Exception) -> None:
        """Count an error, and log it once a minute."""
        self.failures += 1
        now = time.monotonic()
        if now - self._logged_at.get(doing, -LOG_SECONDS) >= LOG_SECONDS:
            self._logged_at[doing] = now
            log.error(
                "Node %s goes on after an error in %s (%d so far): %s %s",
                self.node.name, doing, self.failures, type(error).__name__, shown(error),
                exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
            )  # fmt: skip

    def watch(self, now: float) -> None:
        """Look how the node is doing; raise an alarm line if it does badly for long."""
        node, seconds = self.node, self.node.timing.alarm_seconds
        if node.present or not node.mail:
            self._company_at = now
        if node.roster.digest != self._roster:
            self._roster, self._best, self._better_at = node.roster.digest, float("inf"), now
        if node.residual < 0.9 * self._best or node.is_settled:
            self._best, self._better_at = node.residual, now
        before, self._words = self._words, ""
        if now - self._company_at > seconds:
            self._words = f"alone: no neighbour was heard for {seconds:.0f} s"
        elif now - self._better_at > seconds:
            self._words = f"stalled: no better residual than {self._best:.1e} for {seconds:.0f} s"
        is_due = bool(self._words) and now - self._alarmed_at > ALARM_SECONDS
        if self._words and (is_due or not before):
            self._alarmed_at = now
            log.warning("ALARM node %s is %s.", node.name, self._words)

    def words(self) -> str:
        """Return what is wrong, or nothing."""
        return self._words


def have_descriptors() -> None:
    """Let the process open many more files than its links need, so that some are always left."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
