"""A node that chooses with all others: it goes through `select`'s steps and gets their answers.

Every step asks for a sum over the network, which is a wave of its own, or for tracks to be trained,
all of them in the same rounds over the same links. All that is said to a neighbour goes in one
envelope. When somebody comes, goes or gets rows all begin anew together, tracks from where they
stood. There are no sockets and no clock here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import NetworkError
from dtsvm.problem import Settings
from dtsvm.problem.track import Mine, Track
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.bench import Where
from dtsvm.runtime.agent.node.calibrating import Unseen
from dtsvm.runtime.agent.node.doubts import Doubts
from dtsvm.runtime.agent.node.envelopes import Early, Waiting, pack, read, written
from dtsvm.runtime.agent.node.frugal import is_frugal
from dtsvm.runtime.agent.node.knowing import know, place
from dtsvm.runtime.agent.node.lanes import aspect, task_of
from dtsvm.runtime.agent.node.lasting import Lasting
from dtsvm.runtime.agent.node.masks import MOST, pairs
from dtsvm.runtime.agent.node.names import ABOUT, shown
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.overdue import Overdue
from dtsvm.runtime.agent.node.restarts import Restarts
from dtsvm.runtime.agent.node.tracks import Telling, Training
from dtsvm.runtime.agent.node.wave import Tree, Wave
from dtsvm.runtime.privacy.veil import make_veil

__all__ = ["Chooser", "is_choosing"]

# As in `preparing`: a protocol number of its own. Parts of an envelope are in the field for sums.
PROTOCOL = 907
_FIRST = wire.Message(protocol=PROTOCOL).SerializeToString()
MOST_BYTES = 16_000_000  # of an envelope
MOST_WAITING = 64_000_000  # bytes of envelopes that have not been opened, of all neighbours
MOST_PARTS = 4096
MOST_AHEAD = 64  # questions that a neighbour may be ahead
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
    clock : callable
        Tells how long what a neighbour said takes to be opened.
    """

    node: Node
    plan: Plan
    settings: Settings
    clock: Callable[[], float] = lambda: 0.0
    outcome: Any = None
    refused: int = 0
    reasons: dict[str, str] = field(default_factory=dict)  # the last one, by neighbour
    n_rounds: int = 0  # of the tracks that trained longest, one stage after the other
    n_begun: int = 0
    overdue: Overdue = field(init=False)  # what was not certified in time, and the worst gap
    doubts: Doubts = field(default_factory=Doubts)
    kept: Lasting = field(default_factory=Lasting)
    waiting: Waiting = field(default_factory=Waiting)
    epoch: int | None = None
    _steps: Steps | None = None
    _asked: Any = None
    _position: int = 0  # questions answered
    _n_sums: int = 0
    _wave: Wave | None = None
    _telling: Telling | None = None
    _trainings: dict[int, Training] = field(default_factory=dict)  # by question
    _positions: dict[str, int] = field(default_factory=dict)  # of neighbours
    _early: Early = field(default_factory=Early)
    _where: Where = field(init=False)
    _tree: Tree = field(init=False)
    _restarts: Restarts = field(default_factory=Restarts)

    def __post_init__(self) -> None:
        if self.node.veil.is_noisy:
            raise NetworkError(
                "Choosing trains on the rows many times over, which a privacy budget does not "
                "allow. Write C, chosen on rows that are public, into every node.toml."
            )
        self._restarts.hold(self.node)
        self.overdue = Overdue(self.settings.tol)

    # Hearing

    def hear(self, peer: str, data: bytes) -> None:
        """Keep an envelope until the next step; no neighbour takes the others' room."""
        if not self.waiting.put(peer, data, self._share):
            self._refuse(peer, "it says more than can be read in time")

    @property
    def _share(self) -> float:
        """Bytes that one neighbour may have waiting."""
        return MOST_WAITING / max(len(self.node.mail), 1)

    def _open_envelopes(self) -> None:
        for peer, data in self.waiting.take():
            self._read(peer, self._take, data)

    def _read(self, peer: str, take: Callable[[str, Any], None], what: Any) -> None:
        """Take what a neighbour said, whatever it is, and count how long that takes."""
        began = self.clock()
        try:
            take(peer, what)
        except Exception as error:  # whatever a neighbour can make of a message
            self._refuse(peer, f"what it says of choosing cannot be read ({shown(error)})")
        self.waiting.spend(peer, self.clock() - began)

    def _refuse(self, peer: str, reason: str) -> None:
        self.refused += 1
        self.reasons[peer] = reason

    def _take(self, peer: str, data: bytes) -> None:
        if len(data) > MOST_BYTES or not is_frugal(data, MOST_PARTS + 20):
            raise ValueError("too long, or too many parts")
        message = wire.Message.FromString(data)
        is_meant = message.sender == peer and message.network == self.node.network
        if not is_meant or len(message.sums) > MOST_PARTS:
            raise ValueError("not for this node, or too many parts")
        if message.roster_digest != self.epoch or peer not in self.node.present:
            return  # one of the two has news to hear first
        self._positions[peer] = position = int(message.round)
        if self.doubts.differ(peer, position, message.settings):
            self._steps = self.outcome = None
            return
        for part in message.sums:
            if part.name:
                self._pass_on(peer, part)
            elif self._wave is not None:
                self._wave.hear(peer, read(part))

    def _pass_on(self, peer: str, part: Any) -> None:
        """Give a training what is for it; for one that has not begun here it waits."""
        question, _, wave = part.name.partition(" ")
        training = self._trainings.get(int(question))
        if training is None:
            if 0 < int(question) - self._position <= MOST_AHEAD:
                self._early.put(int(question), peer, part, self._share)
            return
        if wave:
            training.waves[wave].wave.hear(peer, read(part))
        else:
            training.hear(peer, part.up)

    # Going on

    def step(self, now: float) -> dict[str, list[bytes]]:
        """Go as far as what was heard allows; return the envelopes for every neighbour."""
        self._open_envelopes()
        if self._is_due(now):
            self._begin(now)
        if self._wave is None:
            return {}
        said: dict[str, list[Any]] = {}
        self._advance(now, said)
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

    def _begin(self, now: float) -> None:
        self._restarts.watch(self.node, now)
        self.keep_all()
        if self.doubts.begin():
            self.kept.clear()  # what a liar had its hand in
        self.kept.begin()
        node, self.n_rounds, self.overdue = self.node, self.rounds, Overdue(self.settings.tol)
        self.epoch, self.outcome = node.roster.digest, None
        self._trainings, self._positions, self._early = {}, {}, Early()
        self._position = self._n_sums = 0
        self.n_begun += 1
        self._where = place(node)
        self._tree = Tree.of(node.name, self._where.links)
        self._wave = self._make_wave("choosing")
        self._telling = Telling(self._wave)
        self._steps = self.plan(know(node))
        self._ask(next(self._steps))

    def _make_wave(self, name: str) -> Wave:
        assert self.epoch is not None
        names = list(self._where.names)
        return Wave(name, self._tree, self.epoch, lambda: self._secrets(names))

    def _secrets(self, names: list[str]) -> list[tuple[bytes, bool]]:
        node = self.node
        others = pairs(node.name, names, node.roster.neighbours(node.name))
        return [(node.sums.shared(other), node.name < other) for other in others]

    def keep_all(self) -> None:
        """Keep where all tracks stand, for the next time."""
        for training in self._trainings.values():
            self.kept.put(training.keep())

    def _ask(self, asked: Any) -> None:
        self._asked = asked
        if isinstance(asked, list):
            self._trainings[self._position] = self._open(asked)
            for peer, part in self._early.pop(self._position):
                self._read(peer, self._pass_on, part)
        elif self._wave is not None:
            self._n_sums += 1
            self._wave.begin(self._n_sums, np.clip(asked, -MOST, MOST))

    def _open(self, tracks: list[Track]) -> Training:
        waves = (
            self._make_wave(f"looks {self._position}"), self._make_wave(f"levels {self._position}")
        )  # fmt: skip
        veil = make_veil(self.node.veil.privacy)
        return Training(tracks, self._where, self.settings, veil, waves, self.kept)

    def _advance(self, now: float, said: dict[str, list[Any]]) -> None:
        """Answer the question that is open, and those that follow, as far as that goes."""
        while self._steps is not None and self._wave is not None:
            if isinstance(self._asked, list):
                answer: Any = self._train(now, said)
            else:
                answer = self._wave.total if self._wave.done == self._n_sums else None
            if answer is None:
                return
            self._position += 1
            self.doubts.note(answer)
            try:
                self._ask(self._steps.send(answer))
            except StopIteration as end:
                self.outcome, self._steps = end.value, None
            except Exception as error:  # what a liar can make of a total
                self.doubts.stop(error)
                self._steps = None

    def _train(self, now: float, said: dict[str, list[Any]]) -> list[Any] | None:
        training = self._trainings[self._position]
        seconds = self.node.timing.heartbeat_seconds
        for name, letters in training.step(now, seconds).items():
            parts = [wire.Sum(name=f"{self._position}", up=letter) for letter in letters]
            said.setdefault(name, []).extend(parts)
        for peer, reason in training.complaints:
            self._refuse(peer, reason)
        training.complaints.clear()
        if training.found is None:
            return None
        self.n_rounds += training.n_rounds
        self.overdue.note(training.gaps)
        self.kept.put(training.keep())  # a larger C begins there
        return training.found

    def _forget_old(self) -> None:
        """Close trainings whose answers everybody around has."""
        around = self.node.present
        least = min([self._position, *(self._positions.get(n, 0) for n in around)])
        for question in [q for q in self._trainings if q < least]:
            self.kept.put(self._trainings.pop(question).keep())

    # Saying

    def _envelopes(self, now: float, said: dict[str, list[Any]]) -> dict[str, list[bytes]]:
        out: dict[str, list[bytes]] = {}
        seconds = self.node.timing.heartbeat_seconds
        for name in self.node.present:
            parts = said.get(name, [])
            for wave, telling in self._tellings.items():
                parcel = telling.parcel(name, now, seconds)
                if parcel is not None:
                    parts.append(written(wave, parcel))
            if parts:
                head = wire.Message(
                    protocol=PROTOCOL, network=self.node.network, sender=self.node.name,
                    round=self._position, roster_digest=self.epoch, settings=self.doubts.digest,
                )  # fmt: skip
                out[name] = pack(head, parts)
        return out

    @property
    def _tellings(self) -> dict[str, Telling]:
        """All waves by the names under which neighbours are told of them."""
        assert self._telling is not None
        waves = {"": self._telling}
        for question, training in self._trainings.items():
            waves |= {f"{question} {name}": one for name, one in training.waves.items()}
        return waves

    # What is known of it

    @property
    def training(self) -> Training | None:
        """What trains now."""
        asked = isinstance(self._asked, list) and self._steps is not None
        return self._trainings.get(self._position) if asked else None

    @property
    def rounds(self) -> int:
        """Rounds of all trainings, one after the other."""
        training = self.training
        return self.n_rounds + (training.n_rounds if training else 0)

    @property
    def residual(self) -> float:
        """The worst residual of what trains now; 0 when all is done."""
        if self.outcome is not None:
            return 0.0
        training = self.training
        return training.residual if training else float("inf")

    @property
    def work(self) -> int:
        """Numbers that a step may have to go through."""
        training = self.training
        tracks = training.tracks if training else []
        return sum(t.width * sum(len(at) for at, _ in t.tasks.values()) for t in tracks)

    def decision(self, lane: str) -> Floats | None:
        """Return a lane's chosen classifier, the bias last; None before there is one."""
        task, about = task_of(lane), aspect(lane)[1:]
        for part in self.outcome.parts if self.outcome is not None else ():
            if part.about == about and task in part.tasks:
                return np.asarray(part.chosen.classifiers[part.tasks.index(task)])
        return None

    def unseen(self) -> dict[str, Unseen] | None:
        """Return what was chosen says of rows here when they are held out, by main lane."""
        if self.outcome is None:
            return None
        found = {}
        for part in self.outcome.parts:
            for task in (task for task in part.tasks if task in self.node.tasks):
                values, y, weight = part.unseen(task)
                found[f"{task}{ABOUT * bool(part.about)}{part.about}"] = Unseen(
                    values, y > 0, weight
                )
        return found

    def refusals(self, now: float) -> dict[str, Any]:
        """Return how often neighbours were refused, the last reason, and who is barred how long."""
        return {
            "refused": self.refused,
            "reasons": dict(self.reasons),
            "barred": self.node.barred(now),
        }

    @property
    def waits_for(self) -> list[str]:
        """The neighbours whose part of a sum, or whose total, this node waits for."""
        if self._wave is None or self._steps is None:
            return []
        training = self.training
        return sorted({*self._wave.lacks(), *(training.waits_for if training else ())})

    def status(self) -> dict[str, Any]:
        """Return how far it is."""
        training = self.training
        parts = self.outcome.parts if self.outcome is not None else ()
        return {
            "doubt": self.doubts.why,
            "questions": self._position,
            "tracks": len(training.tracks) if training else 0,
            "on": training.tracks[0].on if training else None,
            "certified": training.n_certified if training else 0,
            "rounds": self.rounds,
            "times_begun": self.n_begun,
            "is_done": self.outcome is not None,
            "choices": [one.to_dict() for part in parts for one in part.choices],
            "compared": [one for part in parts for one in part.compared()],
        }
