"""A node as a member of the network: the tasks it holds, its links, and what it knows of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import boxes
from dtsvm.problem import Settings
from dtsvm.rounds import State
from dtsvm.runtime.agent.node.ends import Ends
from dtsvm.runtime.agent.node.holdings import Holding, Holdings
from dtsvm.runtime.agent.node.identity import Identity, Nameless, Signer
from dtsvm.runtime.agent.node.lanes import Lane, candidate_name, is_main
from dtsvm.runtime.agent.node.mail import Mail
from dtsvm.runtime.agent.node.names import check_link, check_unlink
from dtsvm.runtime.agent.node.pack import Pieces
from dtsvm.runtime.agent.node.presence import Presence, Said
from dtsvm.runtime.agent.node.refuse import MOST_COUNT
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.privacy.veil import Veil

__all__ = ["Member"]

Floats = NDArray[np.float64]


@dataclass
class Member:
    """One node of the network.

    Parameters
    ----------
    name : str
        The node's name.
    neighbours : list of str
        Who may talk to it.
    n_features : int
        Length of a row.
    settings : Settings
        The same at every node.
    network : int
        The network's id.
    began : int
        A number that grows with every start of the node, such as the time.
    now : float
        Seconds of any clock that only goes forward.
    personal : bool
        Whether different tasks of a group are linked across the network.
    timing : Timing
        How long it waits.
    identity : Identity
        What it signs with; without one, nobody has to sign anything.
    columns : str
        What rows are made of; the same at every node.
    veil : Veil
        What stands between its rows and its messages; the same level at every node.
    chooses : bool
        Whether the network chooses C by itself; so do all nodes, or none.
    """

    name: str
    neighbours: list[str]
    n_features: int
    settings: Settings
    network: int
    began: int
    now: float = 0.0
    personal: bool = False
    timing: Timing = field(default_factory=Timing)
    identity: Identity = field(default_factory=Nameless)
    columns: str = ""
    veil: Veil = field(default_factory=Veil)
    chooses: bool = False

    def __post_init__(self) -> None:
        self.state = State(self.n_features, self.settings)
        self.roster = Roster()
        self.mail = {name: Mail() for name in self.neighbours}
        self.post = boxes.Post(self.mail, self.identity.most, MOST_COUNT - 1)
        self.veil.check(self.settings)
        privacy = self.veil.privacy
        norm = privacy.norm if privacy.level == "dp" else None
        self._held = Holdings(self.name, self.state, norm)
        self.holdings: dict[str, Holding] = self._held.tasks
        self.ends = Ends(self.state, self.veil)
        self.presence = Presence(
            self.name, self.network, self.began, self.roster, self.post, self._held,
            self.timing, self.identity, self.now,
        )  # fmt: skip
        self._announce(self.now)

    def _wake(self) -> None:
        """Go on training."""
        self.post.calm = 0
        self.post.is_settled = self.post.is_quiet = False

    # What is held here

    def enter(
        self,
        task: str,
        X: Any = None,
        y: Floats | Sequence[Lane] | None = None,
        labels: Sequence[Any] | None = None,
        weight: Floats | None = None,
    ) -> None:
        """Let a task begin here, perhaps without rows.

        `y` is ±1 of every row, or the lanes of a task that has several; `labels` are the negative
        and the positive label, or all. Neighbours that know a task's labels must have the same.
        """
        self.veil.weigh(weight)
        self._held.enter(task, None if X is None else self.veil.clip(X), y, labels, weight)
        slots = [self.holdings[lane].slot for lane in self._held.lanes(task)]
        self.veil.share(slots, self.state.tables.agents["C"][slots].tolist())
        self._announce(self.now)

    def add_rows(
        self, task: str, X: Any, y: Floats | Sequence[Lane], weight: Floats | None = None
    ) -> None:
        """Give a task more rows, and wake everybody up."""
        self.veil.weigh(weight)
        self._held.add_rows(task, self.veil.clip(X), y, weight)
        self._announce(self.now, is_news=True)

    def leave_task(self, task: str) -> None:
        """Let a task go; what stays forgets it at once."""
        names = self._held.lanes(task)
        self._held.leave(task)
        for name in names:
            self.ends.forget(name)
        self._announce(self.now)

    def couple(self, tasks: list[str]) -> None:
        """Let tasks, here and everywhere, train together."""
        self.say(self.presence.coupled(tasks))

    def decouple(self, task: str) -> None:
        """Let a task, here and everywhere, train alone."""
        self.say(self.presence.decoupled(task))

    def say(self, said: Said) -> None:
        """Say this of tasks that train together."""
        self.presence.said = said
        self._announce(self.now, is_news=True)

    def link(self, neighbour: str) -> None:
        """Accept one more neighbour."""
        self.check_link(neighbour)
        self.mail.setdefault(neighbour, Mail())
        self._announce(self.now)

    def check_link(self, neighbour: str) -> None:
        """Refuse a neighbour that this node cannot have."""
        check_link(self.name, neighbour, {*self.roster.entries, *self.mail})

    def check_unlink(self, neighbour: str) -> None:
        """Refuse to unlink who is no neighbour."""
        check_unlink(self.name, neighbour, self.mail)

    def unlink(self, neighbour: str) -> bytes:
        """Talk to a neighbour no more; return the last message to it."""
        self.check_unlink(neighbour)
        mail = self.mail.pop(neighbour)
        self._announce(self.now)
        self.mail[neighbour] = mail
        last = self._messages({})[neighbour]
        del self.mail[neighbour]
        return last

    def leave(self) -> dict[str, bytes]:
        """Leave politely: return the last messages."""
        self.presence.has_left = True
        self._announce(self.now)
        return self.hello(self.now)

    def hello(self, now: float) -> dict[str, bytes]:
        """Return a sign of life for every neighbour."""
        raise NotImplementedError

    def _messages(self, told: dict[str, Pieces]) -> dict[str, bytes]:
        raise NotImplementedError

    def barred(self, now: float) -> dict[str, float]:
        """Return the neighbours that are not listened to, and for how many seconds more."""
        left = {name: mail.barred_until - now for name, mail in self.mail.items()}
        return {name: seconds for name, seconds in left.items() if seconds > 0}

    @property
    def tasks(self) -> list[str]:
        """The tasks held here."""
        return self._held.names

    def lanes(self, task: str, *, main: bool = False) -> list[str]:
        """Return the names of a task's lanes, or of those that answer for it; refuse others."""
        return self._held.lanes(task, main=main)

    def holding(self, task: str) -> Holding:
        """Return a lane's place here, or refuse."""
        return self._held.holding(task)

    def n_rows(self, task: str) -> int:
        """How many rows of a task are held here."""
        return self.state.n_rows(self.holding(self.lanes(task)[0]).slot)

    def estimate(self, task: str) -> Floats:
        """Return the common and the specific part of the agent here."""
        return self.veil.shown(self.state, self.holding(self.chosen(task)).slot)

    def chosen(self, lane: str) -> str:
        """Return the lane that answers for a main lane: its own, or that of the chosen C."""
        return candidate_name(lane, self.veil.choice or 0) if is_main(lane) else lane

    def decision(self, task: str) -> Floats:
        """Return u = w₀ + w_t of the agent here, the bias last."""
        return np.asarray(self.estimate(task).sum(axis=0))

    # Who is there

    def _announce(self, now: float, *, is_news: bool = False) -> None:
        """Renew the node's own entry if something in it has changed."""
        self.now = now
        ahead = max((m.newest for m in self.mail.values() if m.heard_at is not None), default=0)
        round_ = ahead if ahead > self.round + 1 else self.round  # who was away goes on there
        if self.presence.announce(now, round_, is_news=is_news):
            self._wake()

    def may_begin(self, now: float) -> bool:
        """Whether everybody is here, or has been waited for long enough."""
        self._announce(now)
        return self.presence.may_begin(now, self.round)

    @property
    def present(self) -> list[str]:
        """The neighbours heard and hearing."""
        return self.post.present

    @property
    def round(self) -> int:
        """The round it is in, or was in last."""
        return self.post.round

    @round.setter
    def round(self, round_: int) -> None:
        self.post.round = round_

    @property
    def calm(self) -> int:
        """For how many turns it has been calm, and all around."""
        return self.post.calm

    @property
    def is_settled(self) -> bool:
        """Whether all that it knows of is certified, and there is nothing to do."""
        return self.post.is_settled

    @is_settled.setter
    def is_settled(self, is_settled: bool) -> None:
        self.post.is_settled = is_settled

    @property
    def residual(self) -> float:
        """The worst one at the end of the last round."""
        return self.post.residual

    @residual.setter
    def residual(self, residual: float) -> None:
        self.post.residual = residual

    @property
    def heard(self) -> list[str]:
        """The neighbours heard in the last round."""
        return self.post.heard

    @property
    def has_left(self) -> bool:
        """Whether it has left politely."""
        return self.presence.has_left

    def tell_owner(self) -> None:
        """Count a change that is acknowledged to the node's owner."""
        self.presence.told += 1
        self._announce(self.now)

    def renew(self, ca: bytes, certificate: bytes, key: bytes, revoked: frozenset[int]) -> None:
        """Sign with another certificate; forget all nodes whose own are good no more."""
        if isinstance(self.identity, Signer):
            self.identity.renew(ca, certificate, key, revoked)
        self.drop_bad()
        self._announce(self.now)

    def drop_bad(self) -> None:
        """Forget all nodes whose certificates are good no more: revoked, or expired by now."""
        for name, entry in list(self.roster.entries.items()):
            if name != self.name and self.identity.objection(name, entry.certificate):
                self.roster.drop(name)
                if name in self.mail:  # with another certificate it counts from its own start
                    self.mail[name] = Mail()
