"""One node: its agents' arithmetic and what it knows of the others. No sockets, no clock.

A runtime calls, again and again,

    hello()        while the neighbours are being met, and as a heartbeat while settled
    begin()        solve, and return what each neighbour is to be told
    take()         for every message that arrives, whenever it does
    is_complete()  whether all that are waited for have been heard
    finish()       take in what was heard; who was not heard leaves its edge state as it was
    is_balancing() whether to say hello and wait a little before the next round
    turn()         instead of finish() and begin(), where nothing is due but numbers

In lock-step, that is when `finish` always waits for `is_complete` and `begin` for `is_balancing`,
the iterates are those of `runtime.memory`, bit for bit.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from math import inf

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import boxes, compiled
from dtsvm.rounds.agreement import revise, take_snapshot
from dtsvm.runtime.agent.node.adapt import adapt
from dtsvm.runtime.agent.node.apart import Apart
from dtsvm.runtime.agent.node.balance import Balancer
from dtsvm.runtime.agent.node.bounds import Bounds
from dtsvm.runtime.agent.node.certifier import Certifier
from dtsvm.runtime.agent.node.guarding import Guarding
from dtsvm.runtime.agent.node.handover import Handover
from dtsvm.runtime.agent.node.inbox import Inbox
from dtsvm.runtime.agent.node.mail import MOST_ODD
from dtsvm.runtime.agent.node.outbox import Outbox
from dtsvm.runtime.agent.node.pack import Packer, Pieces
from dtsvm.runtime.agent.node.pattern import Letter
from dtsvm.runtime.agent.node.quick import Quick
from dtsvm.runtime.agent.node.scaling import Scaler
from dtsvm.runtime.agent.node.seldom import Seldom
from dtsvm.runtime.agent.node.summing import Summing
from dtsvm.runtime.agent.node.timing import Timing

__all__ = ["Node", "Timing"]

log = logging.getLogger(__name__)
Floats = NDArray[np.float64]
MOST_LEAD = 1000  # rounds that a change of the network may be ahead of a node to be believed


class Node(Guarding):
    """One node of the network; its parameters are those of `Member`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sums = Summing(self.name, self.roster, self.identity)
        self.balancer = Balancer(self.name, self.state, self.sums, self.ends)
        is_mixed = self.settings.bias == "mixed" and not self.veil.is_noisy
        self.scaler = Scaler(self.state, self.sums, is_mixed)
        self.handover = Handover(self.state, self.sums)
        self.balancer.on_renewal = self.handover.renew
        self.certifier = Certifier(self.state, self.sums, self.veil, self.timing.round_seconds)
        self._packer = Packer(self.ends, lambda task: self.roster.group(task))
        told = {"personal": self.personal, "columns": self.columns}
        if self.veil.privacy.level != "none":
            told["privacy"] = self.veil.privacy.describe()
        told |= {"C": "auto"} if self.chooses else {}
        shared = json.dumps({**asdict(self.settings), **told}, sort_keys=True)
        self.inbox = Inbox(
            self.name, self.network, shared, self.n_features + 1, self.identity,
            self.presence.remember, self.roster, self.sums, self.holdings, self.mail, self.post,
        )  # fmt: skip
        self.outbox = Outbox(self.name, self.network, shared, self.roster, self.sums, self.post)
        self.refused = self.inbox.refused
        quiet = boxes.Quiet(self.post, self.state, self.sums, self.tell)
        known = self.certifier, self.balancer, self.presence, self.ends, self.outbox
        self._quick = Quick(quiet, self.post, *known)
        self._begin_counting()

    def _begin_counting(self) -> None:
        self.messages_sent = self.bytes_sent = 0  # as the runtime counts them
        self._told: dict[str, Pieces] = {}  # values of the last round, by neighbour
        self._adapted: int | None = None
        self._followed = -1  # sums as last looked at
        self._changed_in = self._width = 0  # round of the network's last change; its radius
        self._coming = 0  # the check for which ends are measured in this round, or 0
        self._snapshot_at = 0  # of that age or later
        self._bounds: dict[str, Bounds] = {}  # by task
        self._apart, self._anew = Apart(), Seldom()

    # The network

    def leave_task(self, task: str) -> None:
        """Let a task go; what stays forgets it at once."""
        for name in self.lanes(task):
            self.balancer.forget(self.holding(name).slot)
        super().leave_task(task)

    def _adapt(self) -> None:
        """Rebuild links and global numbers after the roster changed."""
        self._quick.count()
        teams = adapt(self.name, self.roster, self.holdings, self.ends, self.personal)
        self.sums.begin(teams)
        self.post.begun = self.sums.begun
        self.balancer.begin(teams)
        self.certifier.begin(teams)
        self.scaler.begin(teams)
        self.handover.begin(teams, self.roster.has_offsets and not self.veil.is_noisy)
        reached = self.roster.distances(self.name)
        self._changed_in = self.roster.last_change(reached, self.round + MOST_LEAD)
        groups = zip(self.roster.grouped(self.holdings), teams, strict=True)
        self._bounds = {
            task: Bounds.of(team, self.settings, self.n_features)
            for tasks, team in groups
            for task in tasks
        }
        slots = ((self.holdings[task].slot, one) for task, one in self._bounds.items())
        self.ends.limit({slot: one.most_estimate for slot, one in slots})
        self._width, self._snapshot_at = max(reached.values()), 0
        self.post.most_calm = 2 * self._width + 1  # nobody is farther from anybody than 2 widths
        self._adapted = self.roster.digest
        self._apart.n_rounds = 0
        self._wake()

    def take_choice(self, candidate: int) -> None:
        """Train on with one of several candidates for C, for ever."""
        self.veil.choose(candidate)
        lanes = {self.chosen(lane) for task in self.tasks for lane in self.lanes(task, main=True)}
        self.certifier.doubt([self.holdings[lane].slot for lane in lanes])
        self._wake()

    # A round

    def begin(self, now: float) -> dict[str, bytes]:
        """Solve every agent's own problem; return what each neighbour is to be told."""
        self.open(now)
        self.solve()
        return self.tell()

    def open(self, now: float) -> None:
        """Begin a round with those who are here now."""
        self.now = now
        self._look_around(now)
        self.post.go_on()
        self.post.is_quiet = False
        if self._adapted != self.roster.digest:
            self._adapt()
        has_new_level = self.sums.changes != self._followed and self._follow_sums()
        if self.state.is_stale or has_new_level:
            self.ends.prepare() if self.state.is_stale else self.ends.pull_anew()
            self.residual = inf
        self.state.age, self.state.before = max(self._age - 1, 0), self._changed_in
        self._coming = self.balancer.coming(self._age)

    @property
    def _age(self) -> int:
        """Rounds since the network last changed, this one too: the same at every node."""
        return self.post.round - self._changed_in

    def _follow_sums(self) -> bool:
        """Let totals that have come take effect; return whether there is a new level."""
        self._followed = self.sums.changes
        for late in (self.scaler, self.handover):
            if late.has_news:
                late.apply()
                self.certifier.doubt()
        return self.balancer.has_news and self.balancer.apply()

    def solve(self) -> None:
        """X = argmin …, for every agent here; the only part of a round that takes long."""
        self.ends.solve()

    def tell(self) -> dict[str, bytes]:
        """Return what each neighbour is to be told."""
        self._told = self._packer.pack()
        if self._coming:
            self._told = self._packer.measured(self._coming, self._age, self.balancer.wants)
        messages = self._messages(self._told)
        if not self._coming:
            ages = self._changed_in, self._snapshot_at
            self._quick.expect(self.now, ages, self._width, self._bounds)
        return messages

    def turn(self, now: float) -> dict[str, bytes] | None:
        """Finish a round and begin the next in one go; None if something else is due first.

        All have been heard that are waited for. It is `finish`, then `begin`, bit for bit.
        """
        self.now = now
        return self._quick.turn(now)

    def hello(self, now: float) -> dict[str, bytes]:
        """Return a sign of life for every neighbour, with the last values."""
        self._look_around(now)
        self.follow()
        return self.again(now)

    def again(self, now: float) -> dict[str, bytes]:
        """Return what neighbours were told last, for those that may have missed it."""
        self._announce(now)
        wants, age = self.balancer.wants, self._age  # x and z are long: only to who lacks them
        if age != self.balancer.check:
            return self._messages(self._told)
        return self._messages({n: data for n, data in self._told.items() if wants(n, age)})

    def _messages(self, told: dict[str, Pieces]) -> dict[str, bytes]:
        post = self.post
        standing = post.calm, post.is_settled
        return self.outbox.messages(self.presence.incarnation, standing, post.round, told)

    def is_complete(self) -> bool:
        """Whether every neighbour that is waited for has been heard this round."""
        return self.post.is_complete()

    def finish(self, now: float) -> None:
        """Take in what was heard, and see whether all is calm."""
        if self.state.is_stale:  # a task left or rows came while waiting: the round is void
            return
        post, check = self.post, self._coming
        post.heard, rest = post.open_letters(self.ends.ways, self._bounds, compiled.hear_numbers)
        for name, news in rest:
            if self._hear(name, news, check, now):
                post.heard.append(name)
                self.mail[name].is_heard = True
        self.residual, are_short = self.ends.take_in()
        if not are_short:
            self._check_estimates()
        if self.residual < inf:
            self._apart.n_rounds = 0
        else:
            self._agree_anew(post.present, now)
        if check or self._age >= self._snapshot_at:
            self._grow_older(check, now)
        self.state.age = max(self._age, 0)
        if self.residual > self.certifier.residual_tol:
            post.calm = 0
        else:
            post.count_calm()
        is_calm = (post.calm > self._width or self.veil.is_noisy) and self._is_calm
        self._quick.count()
        self.certifier.look(is_calm, now + self.timing.round_seconds)
        post.is_settled = is_calm and self._is_at_rest

    def _hear(self, name: str, news: Letter, check: int, now: float) -> bool:
        """Have what a neighbour told taken in, if the data allow it; return whether."""
        bare = news if isinstance(news, boxes.Numbers) and not self.veil.is_noisy else None
        if bare is not None and self.ends.hear_numbers(name, bare, self._bounds):
            self.mail[name].n_odd = 0
            return True
        if not self._is_allowed(name, news, now):
            return False
        self._measure(name, news, check)
        self.ends.hear(name, news)
        return True

    def _is_allowed(self, name: str, news: Letter, now: float) -> bool:
        """Whether the data allow what a neighbour told; who goes on so is barred for a while."""
        mail, why = self.mail[name], "its values are larger than the data allow"
        if self.ends.is_allowed(name, news, self._bounds):
            mail.n_odd = 0
            return True
        mail.n_odd += 1
        if mail.n_odd > MOST_ODD:
            why += f"; it is barred for {mail.bar(now):.0f} s"
        self.inbox.complain(name, why, now)
        return False

    def _check_estimates(self) -> None:
        """Begin anew if an estimate is one that the data do not allow, or not finite."""
        for task, bounds in self._bounds.items():
            x = self.state.estimate(self.holdings[task].slot)
            is_near = self.veil.is_noisy or bounds.allow_estimate(x)
            if not (np.isfinite(x).all() and is_near):
                if self._anew.is_worth_a_line(self.now):
                    words = "Node %s begins anew: its estimates had left all bounds (%d so far)."
                    log.warning(words, self.name, self._anew.n)
                agents = [holding.slot for holding in self.holdings.values()]
                self.ends.begin_anew(agents)
                self.balancer.doubt(agents)
                self.residual = inf
                return

    def _agree_anew(self, present: list[str], now: float) -> None:
        """Have all agree on levels anew if a neighbour is heard for long, but at another one."""
        around = [self.mail[name] for name in present]
        if any(mail.is_late or mail.roster_digest != self.roster.digest for mail in around):
            return
        n_rounds = self._apart.lasts_too_long(self._width, now)
        if n_rounds:
            why = f"its penalties were others for {n_rounds} rounds; all agree on them anew"
            for name in self.ends.unused():
                self.inbox.complain(name, why, now)
            self._announce(now, is_news=True)

    def _grow_older(self, check: int, now: float) -> None:
        """Take a snapshot or begin a check if it is time."""
        if self._age == self.state.age + 1:
            self._snapshot_at = take_snapshot(self.state)
        self.state.age = max(self._age, 0)
        if check and check != self.balancer.check:
            revise(self.state, check)
            self.state.pull_anew()
            self.balancer.open(check, now + self.timing.round_seconds)
        if check:
            self.balancer.tally()

    def _measure(self, name: str, news: Letter, check: int) -> None:
        if check:
            self.balancer.note(self.ends.compare(name, news, check), check)

    def is_balancing(self, now: float) -> bool:
        """Whether a sum is under way that everybody near waits for."""
        if now >= self.certifier.until and now >= self.balancer.until:
            return False
        is_certifying = self.certifier.is_waiting(now)
        if is_certifying:
            self.follow()
            is_certifying = self.certifier.is_waiting(now)
        is_resting = self.state.is_stale or self.is_settled
        if is_resting or not (is_certifying or self.balancer.is_waiting(now)):
            return False
        if any(self._goes_on(name) for name in self.present):
            return False
        if self.balancer.check:
            for name in self.present:
                for news in self.mail[name].letters.values():
                    self._measure(name, news, self.balancer.check)
            self.balancer.tally()
        return is_certifying or self.balancer.is_waiting(now)

    def _goes_on(self, name: str) -> bool:
        """Whether a neighbour does not wait for a sum, and has not got it either."""
        mail = self.mail[name]
        is_ahead = mail.newest > self.round and not self.sums.is_on_its_way(name)
        return mail.is_late or mail.is_settled or is_ahead

    def follow(self) -> None:
        """Use totals of certificates that have come; no solve may be running."""
        if not self.state.is_stale and self._adapted == self.roster.digest:
            self.certifier.follow()
            self.is_settled = self.is_settled or self._is_at_rest

    @property
    def _is_at_rest(self) -> bool:
        return self._is_calm and self.certifier.is_good and self.veil.is_done

    @property
    def _is_calm(self) -> bool:
        """Whether all are calm, as far as can be told; noise never is, and ends by its budget."""
        if self.calm <= self._width:
            return self.veil.is_noisy
        is_known = self.scaler.is_known and self.handover.is_known  # all that it depends on
        return self.veil.is_noisy or is_known

    def take_numbers(self, peer: str, data: bytes, now: float) -> bool | None:
        """Keep a message that differs from the sender's last in its round and numbers alone.

        Returns whether all have been heard now that are waited for; None if it is no such message.
        """
        post = self.post
        heard = post.take_numbers(peer, data, now)
        if heard == boxes.UNLIKE:
            return None
        if post.is_settled:
            self._look_up(peer)
            return post.is_complete()
        return heard == boxes.COMPLETE

    def take(self, peer: str, data: bytes, now: float) -> bool:
        """Check a message from the neighbour at the other end of a link, and keep it."""
        return self.take_numbers(peer, data, now) is not None or self.take_whole(peer, data, now)

    def take_whole(self, peer: str, data: bytes, now: float) -> bool:
        """Check a message in all that it says, and keep it."""
        is_new = peer in self.mail and self.mail[peer].heard_at is None
        before = self.roster.digest
        has_total = self.inbox.take(peer, data, now)
        self.post.most = self.identity.most  # the clock goes on
        if has_total is None:
            return False
        has_changed = self.roster.digest != before
        if has_changed or (has_total and self._has_news):
            self._wake()  # its neighbours' links pull differently now
        elif self.is_settled:
            self._look_up(peer)
        if has_changed or is_new:
            self._announce(now)
        return True

    @property
    def _has_news(self) -> bool:
        """Whether a total has come that changes what is computed."""
        return self.balancer.has_news or self.scaler.has_news or self.handover.has_news
