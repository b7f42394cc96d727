"""When a settled node goes on: what its neighbours say is not what it settled with."""

from __future__ import annotations

from dtsvm.runtime.agent.node.answers import Answers

__all__ = ["Waking"]

MOST_WAITING = 20  # rounds that a neighbour may go on beside a settled node
FAR = 4.0  # residuals at which a settled node goes on, beside that at which it was calm


class Waking(Answers):
    """A node that looks up, though settled, when that is asked for."""

    def _look_up(self, peer: str) -> None:
        """Go on, though settled, if what a neighbour says asks for that."""
        if self.certifier.is_called or self._is_far(peer):
            self.certifier.doubt()
            self._wake()
            return
        mail = self.mail[peer]
        if not mail.is_settled and mail.newest > self.round + MOST_WAITING:
            self._wake()  # at a new level it waits for newer values

    def _is_far(self, peer: str) -> bool:
        """Whether values that came while settled are not those that this node settled with.

        Two nodes may settle apart while the link between them is cut; the first sign of life
        after it heals has to wake them.
        """
        mail = self.mail[peer]
        news = mail.letters.get(mail.newest)
        if self.state.is_stale or news is None or self.veil.is_noisy:
            return False
        return self.ends.distance(peer, news) > FAR * self.certifier.residual_tol
