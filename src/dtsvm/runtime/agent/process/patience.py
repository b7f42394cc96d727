"""How long a round waits for those it has not heard."""

from __future__ import annotations

from dtsvm.runtime.agent.node.node import Node

__all__ = ["Patience"]

LONGEST = 3.0  # times `round_seconds` that a round may last
MOST_CREDIT = 10.0  # times `round_seconds` that others may last longer


class Patience:
    """Waits `round_seconds` for a silent neighbour, and longer for one that is heard but behind.

    Its messages may have been lost, or it waits for another that is gone; without it all that is
    measured from round to round would begin anew. What a round lasts longer, others must have been
    shorter: so whoever withholds what it should say makes rounds last `round_seconds` on average
    over rounds and no longer, but for the credit at the start; ten quick rounds may be followed by
    as many long ones as use up what they earned.

    Parameters
    ----------
    node : Node
        Who waits.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self._allowed = node.timing.round_seconds
        self._credit = self._most = MOST_CREDIT * self._allowed

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
        longest = min(LONGEST * timing.round_seconds, timing.round_seconds + self._credit)
        return not is_behind or seconds >= longest

    def earn(self, seconds: float) -> None:
        """Count a round that lasted so long."""
        self._credit = min(max(self._credit + self._allowed - seconds, 0.0), self._most)
