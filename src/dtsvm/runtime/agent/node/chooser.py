"""A node that chooses with all others: it goes through `select`'s steps and gets their answers.

Every step asks for a sum over the network, which is a wave of its own, or for tracks to be trained,
which are nodes of their own over the same links. All that is said of them to a neighbour goes in
one envelope. When somebody comes, goes or gets rows all begin anew together, tracks from where they
stood. There are no sockets and no clock here.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import NetworkError
from dtsvm.problem import Settings
from dtsvm.problem.track import Mine, Track
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.knowing import know
from dtsvm.runtime.agent.node.masks import MOST, pairs
from dtsvm.runtime.agent.node.names import shown
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.tracks import Kept, Runner
from dtsvm.runtime.agent.node.wave import Parcel, Tree, Wave
from dtsvm.runtime.privacy.veil import make_veil

__all__ = ["Chooser", "is_choosing"]

# As in `preparing`: a protocol number of its own. Parts of an envelope are in the field for sums.
PROTOCOL = 902
_FIRST = wire.Message(protocol=PROTOCOL).SerializeToString()
MOST_BYTES = 16_000_000  # of an envelope
FAIR_BYTES = 2_000_000  # after which another one is begun
MOST_WAITING = 64_000_000  # bytes of envelopes that have not been opened
MOST_PARTS = 4096
Floats = NDArray[np.float64]
Steps = Generator[Any, Any, Any]
Plan = Callable[[Mine], Steps]


def is_choosing(data: bytes) -> bool:
    """Whether a message belongs to choosing: its first field is the protocol."""
    return data.startswith(_FIRST)


@dataclass
class Chooser:
    """One node's part in choosing.

    Parameters
    ----------
    node : Node
        The node whose rows, links and roster are used; it trains nothing itself.
    plan : callable
        Returns the steps for what a node knows: `select.choosing_at_node`.
    settings : Settings
        Of every track, but for C.
    """

    node: Node
    plan: Plan
    settings: Settings
    outcome: Any = None
    refused: int = 0
    reasons: dict[str, str] = field(default_factory=dict)  # the last one, by neighbour
    n_rounds: int = 0  # of the tracks that trained longest, one stage after the other
    n_begun: int = 0
    gap: float = 0.0  # the worst of all that was trained
    kept: dict[str, Kept] = field(default_factory=dict)
    epoch: int | None = None
    _steps: Steps | None = None
    _asked: Any = None
    _position: int = 0  # questions answered
    _n_sums: int = 0
    _wave: Wave | None = None
    _runners: dict[int, list[Runner]] = field(default_factory=dict)  # by question
    _positions: dict[str, int] = field(default_factory=dict)  # of neighbours
    _waiting: deque[tuple[str, bytes]] = field(default_factory=deque)
    _n_waiting: int = 0
    _told: dict[str, tuple[float, Parcel | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.node.veil.is_noisy:
            raise NetworkError(
                "Choosing trains on the rows many times over, which a privacy budget does not "
                "allow. Write C, chosen on rows that are public, into every node.toml."
            )

    # Hearing

    def hear(self, peer: str, data: bytes) -> None:
        """Keep an envelope until the next step."""
        if self._n_waiting + len(data) > MOST_WAITING:
            self._refuse(peer, "it says more than can be read in time")
            return
        self._n_waiting += len(data)
        self._waiting.append((peer, data))

    def _open_envelopes(self, now: float) -> None:
        while self._waiting:
            peer, data = self._waiting.popleft()
            self._n_waiting -= len(data)
            try:
                self._take(peer, data, now)
            except Exception as error:  # whatever a neighbour can make of a message
                self._refuse(peer, f"what it says of choosing cannot be read ({shown(error)})")

    def _refuse(self, peer: str, reason: str) -> None:
        self.refused += 1
        self.reasons[peer] = reason

    def _take(self, peer: str, data: bytes, now: float) -> None:
        if len(data) > MOST_BYTES:
            raise ValueError("too long")
        message = wire.Message.FromString(data)
        if message.sender != peer or message.network != self.node.network:
            raise ValueError("not for this node")
        if message.roster_digest != self.epoch or peer not in self.node.present:
            return  # one of the two has news to hear first
        if len(message.sums) > MOST_PARTS:
            raise ValueError("too many parts")
        self._positions[peer] = int(message.round)
        for part in message.sums:
            if part.name:
                self._pass_on(peer, part.name, part.up, now)
            elif self._wave is not None:
                self._wave.hear(peer, Parcel(part.wanted, part.done, part.up, part.down))

    def _pass_on(self, peer: str, name: str, data: bytes, now: float) -> None:
        """Give a track what is for it; one that has not begun here will be told again."""
        question, _, k = name.partition(" ")
        runners = self._runners.get(int(question), [])
        if 0 <= int(k) < len(runners):
            runners[int(k)].node.take(peer, data, now)

    # Going on

    def step(self, now: float) -> dict[str, list[bytes]]:
        """Go as far as what was heard allows; return the envelopes for every neighbour."""
        self._open_envelopes(now)
        if self._is_due(now):
            self._begin()
        if self._wave is None:
            return {}
        said: dict[str, list[tuple[str, bytes]]] = {}
        self._advance(now, said)
        self._step_all(self._position, now, said, is_older=True)
        self._forget_old()
        return self._envelopes(now, said)

    def _is_due(self, now: float) -> bool:
        """Whether all are here that were not when it last began, and agree who that is."""
        node = self.node
        if node.roster.digest == self.epoch:
            return False
        if self.epoch is None and not node.may_begin(now):
            return False
        return all(node.mail[n].roster_digest == node.roster.digest for n in node.present)

    def _begin(self) -> None:
        self.keep_all()
        self._remember_refusals(list(self._runners))
        self.n_rounds, self.gap = self.rounds, 0.0
        node = self.node
        self.epoch, self.outcome = node.roster.digest, None
        self._runners, self._positions, self._told = {}, {}, {}
        self._position = self._n_sums = 0
        self.n_begun += 1
        names, links = node.roster.map(node.name)
        tree = Tree.of(node.name, links)
        self._wave = Wave("choosing", tree, self.epoch, lambda: self._secrets(names))
        self._steps = self.plan(know(node))
        self._ask(next(self._steps))

    def _secrets(self, names: list[str]) -> list[tuple[bytes, bool]]:
        node = self.node
        others = pairs(node.name, names, node.roster.neighbours(node.name))
        return [(node.sums.shared(other), node.name < other) for other in others]

    def keep_all(self) -> None:
        """Keep where all tracks stand, for the next time."""
        for runners in self._runners.values():
            self.kept |= {runner.track.name: runner.keep() for runner in runners}

    def _ask(self, asked: Any) -> None:
        self._asked = asked
        if isinstance(asked, list):
            self._runners[self._position] = [self._open(k, t) for k, t in enumerate(asked)]
        elif self._wave is not None:
            self._n_sums += 1
            self._wave.begin(self._n_sums, np.clip(asked, -MOST, MOST))

    def _open(self, k: int, track: Track) -> Runner:
        node = self.node
        text = f"{node.network:x} {self.epoch:x} {self._position} {k} {track.name}".encode()
        network = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
        timing = replace(node.timing, start_seconds=np.inf, evict_seconds=np.inf)
        settings = replace(self.settings, C=track.C)
        return Runner.open(
            node, track, settings, network, self.kept.get(track.name), now=node.now, timing=timing,
            veil=make_veil(node.veil.privacy),
        )  # fmt: skip

    def _advance(self, now: float, said: dict[str, list[tuple[str, bytes]]]) -> None:
        """Answer the question that is open, and those that follow, as far as that goes."""
        while self._steps is not None and self._wave is not None:
            if isinstance(self._asked, list):
                answer: Any = self._train(now, said)
            else:
                answer = self._wave.total if self._wave.done == self._n_sums else None
            if answer is None:
                return
            self._position += 1
            try:
                self._ask(self._steps.send(answer))
            except StopIteration as end:
                self.outcome, self._steps = end.value, None

    def _train(self, now: float, said: dict[str, list[tuple[str, bytes]]]) -> list[Any] | None:
        self._step_all(self._position, now, said)
        runners = self._runners[self._position]
        found = [dict(runner.found) for runner in runners if runner.found is not None]
        if len(found) < len(runners):
            return None
        self.n_rounds = self.rounds
        self.gap = max([self.gap, *(runner.gap for runner in runners)])
        return found

    def _step_all(
        self,
        question: int,
        now: float,
        said: dict[str, list[tuple[str, bytes]]],
        *,
        is_older: bool = False,
    ) -> None:
        """Step the tracks of a question, or of all before it."""
        for q, runners in self._runners.items():
            if q < question if is_older else q == question:
                for k, runner in enumerate(runners):
                    for name, data in runner.step(now).items():
                        said.setdefault(name, []).append((f"{q} {k}", data))

    def _forget_old(self) -> None:
        """Close tracks whose answers everybody around has."""
        around = self.node.present
        least = min([self._position, *(self._positions.get(n, 0) for n in around)])
        closed = [q for q in self._runners if q < least]
        self._remember_refusals(closed)
        for question in closed:
            for runner in self._runners.pop(question):
                self.kept[runner.track.name] = runner.keep()

    def _remember_refusals(self, questions: list[int]) -> None:
        """Keep what tracks that are closed have refused."""
        for runner in (runner for question in questions for runner in self._runners[question]):
            self.refused += sum(runner.node.refused.values())
            self.reasons |= runner.node.inbox.reasons

    # Saying

    def _envelopes(
        self, now: float, said: dict[str, list[tuple[str, bytes]]]
    ) -> dict[str, list[bytes]]:
        assert self._wave is not None
        out: dict[str, list[bytes]] = {}
        for name in self.node.present:
            then, told = self._told.get(name, (-np.inf, None))
            parcel = self._wave.parcel(name)
            is_due = now - then >= self.node.timing.heartbeat_seconds
            has_news = parcel != told and bool(parcel.up or parcel.down or self._owes(name))
            if is_due or has_news or name in said:
                is_told = is_due or has_news
                out[name] = self._pack(said.get(name, []), parcel if is_told else None)
                self._told[name] = (now, parcel) if is_told else (then, told)
        return out

    def _owes(self, neighbour: str) -> bool:
        """Whether a neighbour waits to hear that what it told has come."""
        wave = self._wave
        return wave is not None and neighbour == wave.tree.parent

    def _pack(self, parts: list[tuple[str, bytes]], parcel: Parcel | None) -> list[bytes]:
        """Put parts into as few envelopes as are of a fair length."""
        assert self.epoch is not None
        out: list[Any] = []
        size = 0
        for name, data in parts or [("", b"")]:
            if not out or size + len(data) > FAIR_BYTES:
                message = wire.Message(
                    protocol=PROTOCOL, network=self.node.network, sender=self.node.name,
                    round=self._position, roster_digest=self.epoch,
                )  # fmt: skip
                out.append(message)
                size = 0
            if name:
                out[-1].sums.add(name=name, up=data)
                size += len(data)
        if parcel is not None:
            out[0].sums.add(wanted=parcel.wanted, done=parcel.done, up=parcel.up, down=parcel.down)
        return [bytes(message.SerializeToString()) for message in out]

    # What is known of it

    @property
    def runners(self) -> list[Runner]:
        """The tracks that train now."""
        asked = isinstance(self._asked, list) and self._steps is not None
        return self._runners.get(self._position, []) if asked else []

    @property
    def rounds(self) -> int:
        """Rounds of the tracks that trained longest, one stage after the other."""
        return self.n_rounds + max((runner.n_rounds for runner in self.runners), default=0)

    @property
    def residual(self) -> float:
        """The worst residual of the tracks that train now; 0 when all is done."""
        if self.outcome is not None:
            return 0.0
        return max((runner.node.residual for runner in self.runners), default=float("inf"))

    @property
    def work(self) -> int:
        """Numbers that a step may have to go through."""
        return sum(r.track.width * len(r.track.marks) * len(r.track.tasks) for r in self.runners)

    def decision(self, task: str) -> Floats | None:
        """Return a task's chosen classifier, the bias last; None before there is one."""
        if self.outcome is None or task not in self.outcome.tasks:
            return None
        return np.asarray(self.outcome.chosen.classifiers[self.outcome.tasks.index(task)])

    def refusals(self, now: float) -> dict[str, Any]:
        """Return how often neighbours were refused, the last reason, and who is barred how long."""
        nodes = [runner.node for some in list(self._runners.values()) for runner in some]
        reasons, barred = dict(self.reasons), self.node.barred(now)
        for node in nodes:
            reasons |= node.inbox.reasons
            for name, seconds in node.barred(now).items():
                barred[name] = max(seconds, barred.get(name, 0.0))
        n = self.refused + sum(sum(node.refused.values()) for node in nodes)
        return {"refused": n, "reasons": reasons, "barred": barred}

    def status(self) -> dict[str, Any]:
        """Return how far it is."""
        runners = self.runners
        return {
            "questions": self._position,
            "tracks": len(runners),
            "on": runners[0].track.on if runners else None,
            "certified": sum(runner.found is not None for runner in runners),
            "rounds": self.rounds,
            "times_begun": self.n_begun,
            "is_done": self.outcome is not None,
            "choices": [one.to_dict() for one in self.outcome.choices] if self.outcome else [],
        }
