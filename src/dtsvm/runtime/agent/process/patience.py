"""How long a round waits for those it has not heard."""

from __future__ import annotations

from dtsvm.runtime.agent.node.node import Node

__all__ = ["Patience"]

LONGEST = 3.0  # times `round_seconds`
MOST_CREDIT, EARNED = 8.0, 0.125  # rounds that may wait so long, and what a quick round adds


class Patience:
    """Waits `round_seconds` for a silent neighbour, and longer for one that is heard but behind.

    Its messages may have been lost, or it waits for another that is gone; without it all that is
    measured from round to round would begin anew. Waiting so long takes credit, and only rounds
    that last less than half of `round_seconds` earn any: so whoever withholds what it should say
    makes rounds last `round_seconds` on average and no longer, but for the few of the first credit.

    Parameters
    ----------
    node : Node
        Who waits.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self._credit = MOST_CREDIT
        self._extended = -1.0  # when the round began that may last longer

    def is_over(self, begun: float, now: float) -> bool:
        """Whether a round that began then has waited long enough."""
        node, seconds = self.node, now - begun
        timing = node.timing
        around = [node.mail[name] for name in node.present]
        if all(mail.is_settled for mail in around):
            return seconds >= timing.heartbeat_seconds  # they give no more than signs of life
        if seconds < timing.round_seconds:
            return False
        latest = now - timing.round_seconds
        is_behind = any(
            mail.lacks(node.round) and mail.heard_at is not None and mail.heard_at > latest
            for mail in around
            if not (mail.is_late or mail.is_settled)
        )
        if not is_behind or seconds >= LONGEST * timing.round_seconds:
            return True
        if self._extended != begun:
            if self._credit < 1.0:
                return True
            self._credit, self._extended = self._credit - 1.0, begun
        return False

    def earn(self, seconds: float) -> None:
        """Count a round that lasted so long."""
        if seconds < 0.5 * self.node.timing.round_seconds:
            self._credit = min(self._credit + EARNED, MOST_CREDIT)
