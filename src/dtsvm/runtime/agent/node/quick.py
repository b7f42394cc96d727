"""Rounds in which nothing but numbers is due: a node's way through them in one go."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from dtsvm.kernel import boxes
from dtsvm.runtime.agent.node.balance import Balancer
from dtsvm.runtime.agent.node.bounds import Bounds
from dtsvm.runtime.agent.node.certifier import Certifier
from dtsvm.runtime.agent.node.ends import Ends
from dtsvm.runtime.agent.node.outbox import ROUND_TAG, Outbox
from dtsvm.runtime.agent.node.presence import Presence

__all__ = ["Quick"]


@dataclass
class Quick:
    """Says for how long nothing else is due, and ends and begins rounds meanwhile.

    Parameters
    ----------
    quiet : Quiet
        Does it.
    post, certifier, balancer, presence, ends, outbox
        The node's own, asked when something is due in them.
    """

    quiet: boxes.Quiet
    post: boxes.Post
    certifier: Certifier
    balancer: Balancer
    presence: Presence
    ends: Ends
    outbox: Outbox

    def expect(
        self, now: float, ages: tuple[int, int], width: int, bounds: dict[str, Bounds]
    ) -> None:
        """Look for how long nothing is due.

        `ages` are the round of the network's last change and the age of the next snapshot, `width`
        is how far the farthest node is, and `bounds` are what values may be. Calm changes nothing
        before all are calm, nor once it is counted no further.
        """
        post, (changed_in, snapshot_at) = self.post, ages
        is_calm = post.calm >= post.most_calm
        if not (is_calm or post.calm < width) or not post.residual < inf:
            return
        self.count()
        age = post.round - changed_in
        idle = self.certifier.n_idle(is_calm), self.balancer.next_age - age - 1
        n = min(*idle, snapshot_at - age)
        is_waiting = self.certifier.is_waiting(now) or self.balancer.is_waiting(now)
        steps = self.ends.steps
        calm = (post.most_calm, post.most_calm) if is_calm else (0, width - 1)
        if n > 0 and steps and not is_waiting:
            self.quiet.expect(
                (int(min(post.round + n, post.last)), self.presence.timing.evict_seconds),
                (*calm, self.certifier.residual_tol),
                (-changed_in, self.presence.announced),
                (self.ends.ways, bounds),
                steps,
                self.outbox.frames,
            )

    def turn(self, now: float) -> dict[str, bytes] | None:
        """End a round and begin the next; return what is told, None if something is due."""
        return self.quiet.turn(now, ROUND_TAG)

    def count(self) -> None:
        """Have the certifier know of the rounds that went by without it."""
        self.certifier.n_rounds += self.quiet.n
        self.quiet.n = 0
