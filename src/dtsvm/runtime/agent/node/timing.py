"""How long a node waits for what."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Timing"]


@dataclass(frozen=True)
class Timing:
    """How long a node waits, in seconds.

    Parameters
    ----------
    round_seconds : float
        For a neighbour's message of a round; then it is simply not heard.
    start_seconds : float
        For everybody to be there before the first round.
    evict_seconds : float
        For a silent neighbour; then it is gone, until it is heard again.
    heartbeat_seconds : float
        Between signs of life while there is nothing else to say.
    checkpoint_seconds : float
        At most, between checkpoints while training; soon after a rest they are more often.
    alarm_seconds : float
        Alone, or without a better residual, before an alarm is raised.
    """

    round_seconds: float = 1.0
    start_seconds: float = 30.0
    evict_seconds: float = 30.0
    heartbeat_seconds: float = 0.5
    checkpoint_seconds: float = 5.0
    alarm_seconds: float = 300.0
