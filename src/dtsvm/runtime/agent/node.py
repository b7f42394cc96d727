"""One node: its agents' arithmetic and what it knows of the others. No sockets, no clock.

A runtime calls, again and again,

    hello()       while the neighbours are being met, and as a heartbeat while settled
    begin()       solve, and return what each neighbour is to be told
    take()        for every message that arrives, whenever it does
    is_complete() whether all that are waited for have been heard
    finish()      take in what was heard; who was not heard leaves its edge state as it was

In lock-step, that is when `finish` always waits for `is_complete`, the iterates are those of
`runtime.memory`, bit for bit. Penalties are the ones to begin with: balancing them needs sums over
the whole network, and changes the speed only.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dtsvm.errors import DataError, NetworkError, did_you_mean
from dtsvm.problem import Settings
from dtsvm.rounds import State, exchange, local_step, receive, send
from dtsvm.rounds.step import Accuracy, AgentArrays, HalfArrays, RowArrays, tightened
from dtsvm.runtime.agent import wire_pb2 as wire
from dtsvm.runtime.agent.check import PROTOCOL, News, Refused, parse, read_roster, read_values
from dtsvm.runtime.agent.mail import Mail
from dtsvm.runtime.agent.roster import Entry, Roster

__all__ = ["Node", "Timing"]

log = logging.getLogger(__name__)
Floats = NDArray[np.float64]
Key = tuple[str, str, str]  # my task, the neighbour, its task
CALM_SHARE = 0.1  # a node is calm when its residuals are below this share of tol
CALM_MARGIN = 5  # and settles when all have been calm this much longer than the network is wide
REFUSAL_LOG_SECONDS = 60.0


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
        Between checkpoints while training.
    """

    round_seconds: float = 1.0
    start_seconds: float = 30.0
    evict_seconds: float = 30.0
    heartbeat_seconds: float = 0.5
    checkpoint_seconds: float = 5.0


@dataclass
class _Holding:
    """A task that is held here."""

    slot: int
    scale: int


@dataclass
class Node:
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
    incarnation : int
        A number that grows with every start of the node, such as the time.
    now : float
        Seconds of any clock that only goes forward.
    personal : bool
        Whether different tasks of a group are linked across the network.
    """

    name: str
    neighbours: list[str]
    n_features: int
    settings: Settings
    network: int
    incarnation: int
    now: float = 0.0
    personal: bool = False
    timing: Timing = field(default_factory=Timing)

    def __post_init__(self) -> None:
        self.state = State(self.n_features, self.settings)
        self.roster = Roster()
        self.mail = {name: Mail() for name in self.neighbours}
        self.holdings: dict[str, _Holding] = {}
        self.round = 0
        self.calm = 0
        self.residual = float("inf")
        self.is_settled = False
        self.has_left = False
        self.refused: Counter[str] = Counter()
        self.remembered: dict[Key, tuple[Floats, Floats]] = {}  # z from a checkpoint
        self.heard: list[str] = []  # in the last round
        self._heard_since: set[str] = set()
        self._halves: dict[Key, int] = {}
        self._residuals: dict[int, float] = {}  # of each link end when it last heard something
        self._told: dict[str, bytes] = {}  # values of the last round, by neighbour
        self._ends: tuple[list[Key], NDArray[np.int64]] = ([], np.zeros(0, np.int64))
        self._adapted: int | None = None
        self._width = 0
        self._born = self.now
        self._sequence = 0
        self._last_refusal_log: dict[str, float] = {}
        self._settings_digest = _digest({**asdict(self.settings), "personal": self.personal})
        self._announce(self.now)

    # What is held here

    def enter(self, task: str, X: Floats | None = None, y: Floats | None = None) -> None:
        """Let a task begin here, perhaps without rows."""
        if task in self.holdings:
            raise DataError(f"Node {self.name!r} holds task {task!r} already.")
        (slot,) = self.state.add_agents([0], [0]).tolist()
        self.holdings[task] = _Holding(slot, 0)
        if X is not None and y is not None and len(y):
            self.state.add_rows(slot, X, y)
        self._rescale(task)
        self._announce(self.now)

    def add_rows(self, task: str, X: Floats, y: Floats) -> None:
        """Give a task more rows, and wake up."""
        self.state.add_rows(self.holding(task).slot, X, y)
        self._rescale(task)
        self._wake()
        self._announce(self.now)

    def leave_task(self, task: str) -> None:
        """Let a task go; what stays forgets it at once."""
        self.state.remove_agent(self.holding(task).slot)
        del self.holdings[task]
        self._halves = {key: half for key, half in self._halves.items() if key[0] != task}
        self._announce(self.now)

    def couple(self, tasks: list[str]) -> None:
        """Let tasks, here and everywhere, train together."""
        self.roster.couple(tasks)
        self._wake()

    def link(self, neighbour: str) -> None:
        """Accept one more neighbour."""
        if neighbour == self.name:
            raise NetworkError(f"Node {self.name!r} is linked to itself; a link joins two nodes.")
        self.mail.setdefault(neighbour, Mail())
        self._announce(self.now)

    def leave(self) -> dict[str, bytes]:
        """Leave politely: return the last messages."""
        self.has_left = True
        self._announce(self.now)
        return self.hello(self.now)

    def holding(self, task: str) -> _Holding:
        """Return a task's place here, or refuse."""
        if task not in self.holdings:
            raise DataError(
                f"Node {self.name!r} does not hold task {task!r}. "
                f"{did_you_mean(task, self.holdings)}"
            )
        return self.holdings[task]

    def _rescale(self, task: str) -> None:
        """Say how large features are, to the nearest power of two and no better."""
        holding = self.holdings[task]
        slots = self.state.row_slots[holding.slot]
        square = float(self.state.rows["norms"][slots].mean()) if len(slots) else 0.0
        scale = np.log2(square / self.n_features) if square > 0 else 0.0
        holding.scale = int(np.clip(np.round(scale), -100, 100))

    # Who is there

    def _announce(self, now: float) -> None:
        """Renew the node's own entry if something in it has changed."""
        self.now = now
        links = tuple((name, self._is_heard(name, now)) for name in sorted(self.mail))
        tasks = tuple((task, h.scale) for task, h in sorted(self.holdings.items()))
        old = self.roster.entries.get(self.name)
        if old and old.age > (self.incarnation, self._sequence):
            self.incarnation = old.incarnation + 1  # another start of this node knew more
            self._sequence = 0
            old = None
        if old and (old.links, old.tasks, old.has_left) == (links, tasks, self.has_left):
            return
        self._sequence += 1
        self.roster.put(
            Entry(self.name, self.incarnation, self._sequence, self.has_left, tasks, links)
        )
        self._wake()

    def _is_heard(self, name: str, now: float) -> bool:
        mail = self.mail[name]
        if mail.heard_at is None:
            return False
        entry = self.roster.entries.get(name)
        if entry and entry.has_left and entry.incarnation >= mail.incarnation:
            mail.forget()
            return False
        if now - mail.heard_at > self.timing.evict_seconds:
            log.warning(
                "Node %s heard nothing from node %s since round %d (%.0f s); "
                "it goes on without it.",
                self.name, name, mail.newest, now - mail.heard_at,
            )  # fmt: skip
            mail.forget()
            return False
        return True

    def may_begin(self, now: float) -> bool:
        """Whether everybody is here, or has been waited for long enough."""
        self._announce(now)
        if now - self._born > self.timing.start_seconds:
            return True
        everyone_knows = all(m.roster_digest == self.roster.digest for m in self.mail.values())
        return self.roster.is_whole(self.name) and (everyone_knows or self._has_begun_elsewhere())

    def _has_begun_elsewhere(self) -> bool:
        return any(mail.newest > 0 for mail in self.mail.values())

    @property
    def present(self) -> list[str]:
        """The neighbours heard and hearing."""
        return [name for name in self.roster.neighbours(self.name) if name in self.mail]

    def _adapt(self) -> None:
        """Rebuild links and global numbers after the roster changed."""
        if self._adapted == self.roster.digest:
            return
        wanted: dict[Key, bool] = {}
        inside: set[tuple[str, str]] = set()
        for task in self.holdings:
            for (node, other), is_wide in self.roster.around((self.name, task), self.personal):
                if node != self.name:
                    wanted[task, node, other] = is_wide
                elif task < other:
                    inside.add((task, other))
        self._relink(wanted)
        self._link_inside(inside)
        self._rank()
        self._learn()
        self._width = max(self.roster.distances(self.name).values())
        self._adapted = self.roster.digest
        self._wake()

    def _relink(self, wanted: dict[Key, bool]) -> None:
        gone = [key for key in self._halves if key not in wanted]
        if gone:
            self.state.unlink(np.array([self._halves.pop(key) for key in gone], np.int64))
        for key in sorted(wanted):
            if key in self._halves:
                continue
            half = self.state.link_elsewhere(self.holdings[key[0]].slot, wanted[key])
            self._halves[key] = half
            self._residuals[half] = float("inf")
            if key in self.remembered:
                penalty, edge_state = self.remembered.pop(key)
                self.state.halves["penalty"][half] = penalty
                self.state.halves["state"][half] = edge_state

    def _link_inside(self, wanted: set[tuple[str, str]]) -> None:
        halves = self.state.halves
        task_of = {h.slot: task for task, h in self.holdings.items()}
        used = [h for h in halves.used.tolist() if halves["twin"][h] >= 0]
        here = {
            (task_of[int(halves["owner"][h])], task_of[int(halves["owner"][halves["twin"][h]])])
            for h in used
        }
        slots = [
            (self.holdings[a].slot, self.holdings[b].slot)
            for a, b in sorted(wanted)
            if (a, b) not in here
        ]
        if slots:
            one, other = np.array(slots, np.int64).T
            self.state.link(one, other, False, False)

    def _rank(self) -> None:
        names = {name: i for i, name in enumerate(sorted(self.roster.entries))}
        held = {task for name in names for task in self.roster.tasks_at(name)}
        tasks = {task: i for i, task in enumerate(sorted(held | set(self.holdings)))}
        self.state.rank(
            names[self.name],
            {h.slot: tasks[task] for task, h in self.holdings.items()},
            {half: (names[k[1]], tasks[k[2]]) for k, half in self._halves.items()},
        )

    def _learn(self) -> None:
        """Derive A and the penalties to begin with of the agents here from the roster."""
        is_auto = "auto" in (self.settings.task_penalty, self.settings.node_penalty)
        size, start = {}, {}
        for task, holding in self.holdings.items():
            part = self.roster.part((self.name, task), self.personal)
            size[holding.slot] = float(len(part.agents))
            if is_auto:
                start[holding.slot] = part.start(self.settings)
        self.state.know(size, start)

    def _wake(self) -> None:
        self.calm = 0
        self.is_settled = False

    # A round

    def begin(self, now: float) -> dict[str, bytes]:
        """Solve every agent's own problem; return what each neighbour is to be told."""
        self.open(now)
        self.solve()
        return self.tell()

    def open(self, now: float) -> None:
        """Begin a round with those who are here now."""
        self._announce(now)
        self._adapt()
        ahead = max((self.mail[name].newest for name in self.present), default=0)
        self.round = max(self.round + 1, ahead)
        state = self.state
        if state.is_stale:
            state.prepare()
            self._arrays = (state.agent_arrays(), state.row_arrays(), state.half_arrays())
            keys = sorted(self._halves)
            self._ends = (keys, np.array([self._halves[key] for key in keys], np.int64))
            kept = set(self._halves.values())
            self._residuals = {h: r for h, r in self._residuals.items() if h in kept}

    def tell(self) -> dict[str, bytes]:
        """Return what each neighbour is to be told."""
        self._told = self._values()
        return self._messages()

    def solve(self) -> None:
        """X = argmin …, for every agent here; the only part of a round that takes long."""
        state = self.state
        accuracy = Accuracy(*tightened(state.accuracy, state.age))
        _solve_all(state.used, *self._arrays, self.settings.C, accuracy)

    def hello(self, now: float) -> dict[str, bytes]:
        """Return a sign of life for every neighbour, with the last values."""
        self._announce(now)
        return self._messages()

    def has_news_for_somebody(self, since: float) -> bool:
        """Whether a neighbour heard since then has another roster."""
        return any(
            mail.heard_at is not None
            and mail.heard_at > since
            and mail.roster_digest != self.roster.digest
            for mail in self.mail.values()
        )

    def _messages(self) -> dict[str, bytes]:
        head = wire.Message(
            protocol=PROTOCOL,
            network=self.network,
            settings=self._settings_digest,
            sender=self.name,
            incarnation=self.incarnation,
            round=self.round,
            calm=min(self.calm, 2**31),
            is_settled=self.is_settled,
            roster_digest=self.roster.digest,
        ).SerializeToString()
        out = {}
        roster: bytes | None = None
        for name, mail in self.mail.items():
            out[name] = head + self._told.get(name, b"")
            if mail.roster_digest != self.roster.digest:
                if roster is None:
                    roster = wire.Message(roster=self.roster.to_wire()).SerializeToString()
                out[name] += roster
        return out

    def _values(self) -> dict[str, bytes]:
        """Q of every link, by neighbour; protobuf fields may be put one after another."""
        agents, _, halves = self._arrays
        keys, ends = self._ends
        q = np.zeros((len(keys), 2, self.n_features + 1))
        _send_all(ends, agents, halves, q)
        out: dict[str, bytes] = {}
        for i, (task, name, other) in enumerate(keys):
            numbers = q[i, : 2 if task == other else 1].astype("<f8", copy=False).tobytes()
            group = self.roster.group(task)
            value = wire.Value(
                task=task,
                to_task="" if other == task else other,
                group="" if group == task else group,
                numbers=numbers,
            )
            out[name] = out.get(name, b"") + wire.Message(values=[value]).SerializeToString()
        return out

    def is_complete(self) -> bool:
        """Whether every neighbour that is waited for has been heard this round."""
        present = self.present
        waited = [self.mail[n] for n in present if not self._is_excused(self.mail[n])]
        if not waited and present and not self.is_settled:
            return any(self.mail[n].letters for n in present)
        return all(mail.newest >= self.round for mail in waited)

    @staticmethod
    def _is_excused(mail: Mail) -> bool:
        return mail.is_late or mail.is_settled

    def finish(self, now: float) -> None:
        """Take in what was heard, and see whether all is calm."""
        state = self.state
        if state.is_stale:  # a task left or rows came while waiting: the round is void
            return
        kappa = self.settings.relaxation
        agents, _, halves = self._arrays
        residual = 0.0
        for half in state.firsts.tolist():
            residual = max(residual, *exchange(half, agents, halves, kappa, True, True))
        letters = {name: self.mail[name].take(self.round) for name in self.present}
        for name in self.present:
            mail = self.mail[name]
            mail.is_late = mail.newest < self.round and not mail.is_settled
        self._receive(letters, kappa)
        residual = max([residual, *self._residuals.values()])
        for agent in state.used.tolist():
            if agents.norm[agent] > 0.0:
                residual = max(residual, agents.drift[agent] / agents.norm[agent])
        self.heard = [name for name, news in letters.items() if news]
        self.residual = float(residual)
        state.age += 1
        # A neighbour with which no task is shared says nothing but that it is there.
        in_time = [name for name in self.present if self.mail[name].newest >= self.round]
        self._heard_since.update(self.heard, in_time)
        self._count_calm()

    def _receive(self, letters: dict[str, News | None], kappa: float) -> None:
        agents, _, halves = self._arrays
        ends, values = self._heard_ends(letters)
        if len(ends):
            found = _receive_all(ends, agents, halves, values, kappa)
            self._residuals.update(zip(ends.tolist(), found.tolist(), strict=True))

    def _heard_ends(
        self, letters: Mapping[str, News | None]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the link ends that have something to take in, and what."""
        heard, values = [], []
        for (task, name, other), half in zip(*self._ends, strict=True):
            news = letters.get(name)
            q = news.values.get((other, task)) if news else None
            if q is not None:
                heard.append(half)
                # Of a narrow link only the common half is read; the other fills the array.
                values.append(q if len(q) == 2 else np.concatenate([q, q]))
        return np.array(heard, np.int64), np.array(values)

    def _count_calm(self) -> None:
        """C ← 1 + min(c, c of the neighbours) while calm: c turns of calm as far as c links.

        A turn ends when every neighbour has been heard since the last, so that lost messages slow
        it down and do not break it. A settled neighbour has counted far enough and counts no
        further, so it is left out.
        """
        if self.residual > CALM_SHARE * self.settings.tol:
            self.calm = 0
            return
        waited = [name for name in self.present if not self.mail[name].is_settled]
        if all(name in self._heard_since for name in waited):
            self.calm = 1 + min([self.calm, *(self.mail[name].calm for name in waited)])
            self._heard_since.clear()
        self.is_settled = self.calm > 2 * self._width + CALM_MARGIN

    # Messages

    def take(self, peer: str, data: bytes, now: float) -> bool:
        """Check a message from the neighbour at the other end of a link, and keep it."""
        try:
            self._take(peer, data, now)
        except Refused as reason:
            self._refuse(peer, str(reason), now)
            return False
        return True

    def _take(self, peer: str, data: bytes, now: float) -> None:
        if peer not in self.mail:
            raise Refused("the sender is no neighbour")
        n_numbers = self.n_features + 1
        most = 16 * n_numbers * (1 + len(self.holdings)) ** 2 + 65_536
        message = parse(data, most)
        if message.network != self.network:
            raise Refused("it belongs to another network")
        if message.sender != peer:
            raise Refused(f"it says that it comes from {message.sender[:80]!r}")
        if message.settings != self._settings_digest:
            raise Refused("the sender has other settings")
        mail = self.mail[peer]
        mail.check(message)
        news = read_values(message, n_numbers)
        has_roster = message.HasField("roster")
        entries, couples = read_roster(message.roster) if has_roster else ([], [])
        self._check_tasks(message)
        is_new = mail.heard_at is None
        changed = has_roster and self.roster.merge(entries, couples)
        mail.put(message, news, now)
        is_restless = mail.calm == 0 and not mail.is_settled
        if changed or (self.is_settled and (is_restless or self._is_far(peer, news))):
            self._wake()
        if changed or is_new:
            self._announce(now)

    def _is_far(self, peer: str, news: News) -> bool:
        """Whether values that came while settled are not those that this node settled with.

        Two nodes may settle apart while the link between them is cut; the first sign of life
        after it heals has to wake them.
        """
        if self.state.is_stale or news.round <= self.mail[peer].applied:
            return False
        agents, _, halves = self._arrays
        ends, values = self._heard_ends({peer: news})
        # With κ = 0 nothing is taken in; what is left of `receive` is the residual.
        found = _receive_all(ends, agents, halves, values, 0.0) if len(ends) else np.zeros(1)
        return bool(found.max() > self.settings.tol)

    def _check_tasks(self, message: Any) -> None:
        """Refuse tasks and groups that are not as the roster says.

        Where one of the two has news to hear first they may differ: then values without a link end
        here are simply not used.
        """
        if message.roster_digest != self.roster.digest:
            return
        theirs = self.roster.tasks_at(message.sender)
        for value in message.values:
            to_task = value.to_task or value.task
            if value.task not in theirs:
                raise Refused(f"the sender does not hold task {value.task[:80]!r}")
            if to_task not in self.holdings:
                raise Refused(f"task {to_task[:80]!r} is not held here")
            if (value.group or value.task) != self.roster.group(value.task):
                raise Refused(f"task {value.task[:80]!r} is not in group {value.group[:80]!r}")

    def _refuse(self, peer: str, reason: str, now: float) -> None:
        self.refused[peer] += 1
        last = self._last_refusal_log.get(peer)
        if last is None or now - last >= REFUSAL_LOG_SECONDS:
            self._last_refusal_log[peer] = now
            log.warning(
                "Node %s refused a message from node %s (%d so far): %s.",
                self.name, peer, self.refused[peer], reason,
            )  # fmt: skip

    # Answers

    def decision(self, task: str) -> Floats:
        """Return u = w₀ + w_t of the agent here, the bias last."""
        return np.asarray(self.estimate(task).sum(axis=0))

    def estimate(self, task: str) -> Floats:
        """Return the common and the specific part of the agent here."""
        return np.array(self.state.agents["estimate"][self.holding(task).slot])

    def edge_states(self) -> dict[Key, tuple[Floats, Floats]]:
        """Return ρ and z of every link end elsewhere."""
        halves = self.state.halves
        return {
            key: (np.array(halves["penalty"][half]), np.array(halves["state"][half]))
            for key, half in self._halves.items()
        }

    def groups(self) -> list[list[str]]:
        """Return the tasks held here that train together."""
        by = sorted(self.holdings, key=lambda task: (self.roster.group(task), task))
        return [list(g) for _, g in itertools.groupby(by, key=self.roster.group)]

    def status(self) -> dict[str, Any]:
        """Return what `dtsvm status` shows."""
        return {
            "node": self.name,
            "round": self.round,
            "residual": self.residual,
            "neighbours": sorted(self.mail),
            "present": self.present,
            "heard": self.heard,
            "nodes": len(self.roster.distances(self.name)),
            "tasks": {
                task: len(self.state.row_slots[h.slot]) for task, h in sorted(self.holdings.items())
            },
            "groups": self.groups(),
            "calm": self.calm,
            "is_settled": self.is_settled,
            "refused": sum(self.refused.values()),
        }


@njit(cache=True, nogil=True)
def _solve_all(
    some: NDArray[np.int64],
    agents: AgentArrays,
    rows: RowArrays,
    halves: HalfArrays,
    box: float,
    accuracy: Accuracy,
) -> None:
    for a in some:
        local_step(a, agents, rows, halves, box, accuracy)


@njit(cache=True, nogil=True)
def _send_all(ends: NDArray[np.int64], agents: AgentArrays, halves: HalfArrays, q: Floats) -> None:
    for i in range(len(ends)):
        send(ends[i], agents, halves, q[i])


@njit(cache=True, nogil=True)
def _receive_all(
    ends: NDArray[np.int64], agents: AgentArrays, halves: HalfArrays, q: Floats, kappa: float
) -> Floats:
    residual = np.zeros(len(ends))
    for i in range(len(ends)):
        residual[i] = receive(ends[i], agents, halves, q[i], kappa)
    return residual


def _digest(value: Any) -> int:
    text = json.dumps(value, sort_keys=True).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
