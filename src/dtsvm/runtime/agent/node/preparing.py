"""What is agreed between nodes before the first round: columns and labels by gossip, sums by waves.

Every node says which columns and labels it has, in words that only it can sign, and passes on what
others said. Who knows everybody's joins them to one schema, or says by name what does not go
together and waits for it to be mended. Then masked sums over the network give everybody the same
plan. Who comes later takes over what a neighbour has agreed on.

All of it can be done anew: the next generation. Who hears of a generation after its own is called
to join, and who was away when it was agreed on is told.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import Records, Schema, agree_schemas
from dtsvm.errors import DtsvmError
from dtsvm.prepare import Encoded, Plan, agreeing, encode
from dtsvm.prepare.encode import join
from dtsvm.runtime.agent.node.agreed import MOST_LABELS, Agreed, Labelled, agree_labels, read_counts
from dtsvm.runtime.agent.node.identity import Identity
from dtsvm.runtime.agent.node.masks import pairs
from dtsvm.runtime.agent.node.offers import Offers, check_fit, check_rows
from dtsvm.runtime.agent.node.spoken import is_spoken, said_by, speak, survives
from dtsvm.runtime.agent.node.statement import WISHES, Statement, agree_columns, read_statements
from dtsvm.runtime.agent.node.vouching import Vouching
from dtsvm.runtime.agent.node.wave import Tree, Wave, parcel_words, reached, read_parcel
from dtsvm.runtime.privacy.sums import NoisySums

__all__ = ["Preparing", "is_preparing"]

PROTOCOL = 900  # see `spoken`
WAVES = ("first", "second", "third")  # one for every sum there may be
MOST_NODES, MOST_ASKED = 4096, 10  # times asked to vouch
Floats = NDArray[np.float64]
Steps = Generator[Floats, Floats, Agreed]


def is_preparing(data: bytes) -> bool:
    """Whether a message belongs to preparation: its first field is the protocol."""
    return is_spoken(PROTOCOL, data)


@dataclass
class Preparing:
    """One node's part in agreeing on a preparation. It has no clock and no sockets.

    Parameters
    ----------
    name : str
        The node.
    network : int
        The network's id.
    neighbours : tuple of str
        Who may talk to it.
    rows : sequence of Records
        Its rows, by task.
    identity : Identity
        What it signs with.
    incarnation : int
        Grows with every start of the node.
    min_count : int
        As in `Preparation`.
    missing_columns : {"refuse", "impute"}
        As in `Preparation`.
    labels : mapping of str to Labelled
        Its labels, by task.
    groups : sequence
        Tasks that it wants to train together.
    class_weight : "balanced", dict or None
        What rows of each label weigh; the same at every node.
    is_raw : bool
        Whether numbers are taken as they are, so that only labels are agreed on.
    sparse : bool
        Whether features are CSR, as in `Preparation`.
    agreed : Agreed, optional
        What was agreed before.
    generation : int
        For the how-manieth time all agree, if nothing is agreed.
    vouched : mapping, optional
        Who vouched for what was agreed before.
    least : int
        How many nodes must vouch for what this one takes over.
    most_labels : int
        How many labels a task may have.
    noise : NoisySums, optional
        What adds noise to its part of sums; then columns are those that were written down, and
        nobody is told which labels its rows have.
    """

    name: str
    network: int
    neighbours: tuple[str, ...]
    rows: Sequence[Records]
    identity: Identity
    incarnation: int
    min_count: int = 10
    missing_columns: str = "refuse"
    labels: Mapping[str, Labelled] = field(default_factory=dict)
    groups: Sequence[Sequence[str]] = ()
    class_weight: Any = None
    is_raw: bool = False
    sparse: bool = False
    agreed: Agreed | None = None
    generation: int = 0
    called: int = 0  # to a later generation, by a neighbour
    noise: NoisySums | None = None
    vouched: Mapping[str, Any] = field(default_factory=dict)
    least: int = 1
    most_labels: int = MOST_LABELS
    trouble: str = ""
    refused: int = 0
    _known: dict[str, Statement] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)
    _late: set[str] = field(default_factory=set)
    _asked: set[str] = field(default_factory=set)
    _epoch: int = 0
    _waves: dict[str, Wave] = field(default_factory=dict)
    _steps: Steps | None = None
    _taken: set[str] = field(default_factory=set)
    _met: set[str] = field(default_factory=set)  # heard from, in this generation
    _offers: Offers = field(default_factory=Offers)
    _n_asked: Counter[str] = field(default_factory=Counter)  # to vouch, by neighbour
    _n_told: Counter[str] = field(default_factory=Counter)  # statements, by neighbour

    def __post_init__(self) -> None:
        self.vouching = Vouching(self.name, self.network, self.identity)
        if self.agreed is not None:
            self.vouching.begin(self.agreed, self.vouched)
        for task, one in self.labels.items():
            one.check(task)
        self._begin_generation(self.agreed.generation if self.agreed else self.generation)

    def _begin_generation(self, generation: int) -> None:
        """Say for which generation this node's words are meant; those for others are forgotten."""
        self.generation, self._epoch = generation, 0
        self._known, self._waves, self._met = {}, {}, set()
        self._say()

    def _say(self) -> None:
        """Say which columns and labels this node has."""
        shown = self.labels
        if self.noise is not None:
            schema = self.noise.schema()
            shown = {task: Labelled(one.given) for task, one in self.labels.items()}
        else:
            schema = agree_schemas(
                {f"{self.name} ({i})": part.schema for i, part in enumerate(self.rows)},
                self.missing_columns,
            )
        said = json.dumps(
            {
                "columns": schema.to_dict(),
                "labels": {task: one.said() for task, one in shown.items()},
                "groups": [list(group) for group in self.groups],
                "generation": self.generation,
                **{name: getattr(self, name) for name in sorted(WISHES)},
            },
            sort_keys=True,
        )
        mine = Statement(
            self.name, self.incarnation, tuple(sorted(self.neighbours)), said,
            self.identity.agreement.hex(), self.identity.certificate.hex(),
        )  # fmt: skip
        self._known[self.name] = mine.signed(self.network, self.identity)

    @property
    def plan(self) -> Plan | None:
        """How columns become features, once that is agreed."""
        return self.agreed.plan if self.agreed else None

    def step(self, *, is_late: bool = False) -> None:
        """Go as far as what is known allows; `is_late`: whoever is not here is not waited for."""
        if self.agreed is None and is_late:
            self._take_over(is_late=True)
        is_latecomer = self._offers.by and len(self._present()) == 1
        if self.agreed is not None or is_latecomer or (self.absent and not is_late):
            return
        try:
            self._follow()
        except DtsvmError as error:
            self.trouble = str(error)
        except Exception as error:  # whatever a node can make of a sum
            self.trouble = f"A sum of columns made no sense ({type(error).__name__})."
            self._begin_again()

    def _begin_again(self) -> None:
        """Let the sums be begun anew when the next node is heard of."""
        self._steps, self._waves = None, {}

    @property
    def known(self) -> set[str]:
        """All nodes that it knows of."""
        return {*self._known, *self.neighbours}

    @property
    def absent(self) -> list[str]:
        """The nodes that somebody calls a neighbour and nobody has heard of."""
        named = {link for one in self._present().values() for link in one.links}
        return sorted(named - self._known.keys())

    @property
    def waits_for(self) -> list[str]:
        """The neighbours whose part of a sum, or whose total, this node waits for."""
        return sorted({name for wave in self._waves.values() for name in wave.lacks()})

    def _follow(self) -> None:
        around = [name for name in self.neighbours if name in self._known]
        if around and len(self._present()) == 1:
            words = f"Node {self.name} is no neighbour of {', '.join(around)} any more."
            raise DtsvmError(f"{words} Have them told to link it, or tell it to unlink them.")
        epoch = self._find_epoch()
        if epoch != self._epoch:
            self._begin(epoch)
        for name, wave in self._waves.items():
            if wave.total is None or self._steps is None or wave.name in self._taken:
                continue
            self._taken.add(wave.name)
            try:
                vector = self._steps.send(wave.total)
            except StopIteration as end:
                self.agreed, self.trouble = end.value, ""
                self.vouching.sign(end.value)
                return
            following = WAVES[WAVES.index(name) + 1]
            self._waves[following].begin(1, vector)

    def _begin(self, epoch: int) -> None:
        """Begin anew with the nodes known now."""
        self._epoch, self._steps, self._taken = epoch, None, set[str]()
        tree = Tree.of(self.name, Statement.links_of(self._known))
        self._waves = {name: Wave(name, tree, epoch, self._secrets) for name in WAVES}
        nodes = self._present()
        schema = agree_columns(nodes, self.missing_columns, is_raw=self.is_raw)
        groups = [group for one in nodes.values() for group in one.groups]
        labels = {name: one.labels for name, one in nodes.items()}
        classes, by_label = agree_labels(labels, groups, self.most_labels)
        self.trouble = ""
        self._steps = self._agreeing(schema, classes, by_label)
        self._waves[WAVES[0]].begin(1, next(self._steps))

    def _agreeing(
        self, schema: Schema, classes: dict[str, tuple[Any, ...]], by_label: frozenset[str]
    ) -> Steps:
        """Give this node's part of one sum after another, and be sent the totals."""
        plan, counts = None, {}
        if not self.is_raw:
            rows = self._encode(schema)
            steps = agreeing(rows, self.min_count)
            if self.noise is not None:
                steps = self.noise.agreeing(rows, steps, len(self._present()), self.min_count)
            found = yield from steps
            plan = replace(found, is_centred=not self.sparse)
        if self.is_raw or self.class_weight == "balanced":
            own = [self._count(task, labels) for task, labels in sorted(classes.items())]
            vector, known = np.concatenate([np.zeros(0), *own]), self.labels
            if self.noise is not None:
                vector, known = self.noise.classes(vector), {}
            total = yield vector
            counts = read_counts(classes, known, np.maximum(total, 1.0) if self.noise else total)
        return Agreed(plan, classes, by_label, counts, self.generation)

    def _count(self, task: str, classes: tuple[Any, ...]) -> Floats:
        mine = self.labels[task].counts if task in self.labels else {}
        return np.array([float(mine.get(label, 0)) for label in classes])

    def _encode(self, schema: Schema) -> Encoded:
        """Return the rows of all tasks here; there may be none."""
        parts = [encode(part, schema, self.missing_columns) for part in self.rows]
        rows = join(schema, parts)
        return rows if self.noise is None else self.noise.clipped(rows)

    def _present(self) -> dict[str, Statement]:
        """What the nodes said that are joined with this one, by links that both ends name."""
        names = reached(self.name, Statement.links_of(self._known))
        return {name: self._known[name] for name in sorted(names)}

    def _secrets(self) -> list[tuple[bytes, bool]]:
        tree = self._present()  # who adds up: masks of others would not cancel
        others = pairs(self.name, sorted(tree), [n for n in self.neighbours if n in tree])
        halves = {other: bytes.fromhex(self._known[other].agreement) for other in others}
        return [(self.identity.shared(half), self.name < other) for other, half in halves.items()]

    def _find_epoch(self) -> int:
        text = f"{Statement.digest_of(self._present())} {self.generation}"
        return int(hashlib.sha256(text.encode()).hexdigest()[:15], 16) + 1

    # Saying

    def message(self, neighbour: str) -> bytes:
        """Return what a neighbour is told: what it lacks, and this node's part in the sums."""
        said: dict[str, Any] = {
            "digest": Statement.digest_of(self._known),
            "has_plan": self.agreed is not None,
            "generation": self.generation,
            "asks": neighbour in self.unmet,
            "epoch": self._epoch,
            "waves": {n: parcel_words(w.parcel(neighbour)) for n, w in self._waves.items()},
        }
        if self._digests.get(neighbour) != Statement.digest_of(self._known):
            some = Statement.some_of(self._known, self._n_told[neighbour])
            self._n_told[neighbour] += len(some)
            said["statements"] = [one.to_dict() for one in some]
        if self.agreed is not None:
            said["vouched"] = self.vouching.to_dict(self.agreed)
            said["vouched_for"] = self.vouching.digest(self.agreed)
            said |= {"agreed": self.agreed.to_dict()} if neighbour in self._late else {}
        return speak(PROTOCOL, self.network, self.name, said)

    def owes(self, neighbour: str) -> bool:
        """Whether a neighbour that was just heard is to be answered."""
        return self.agreed is not None and neighbour in (self._late | self._asked)

    @property
    def unmet(self) -> list[str]:
        """The neighbours that have not said what they have agreed on, or who vouches for it."""
        who = self.vouching.who(self.agreed) if self.agreed else frozenset(self.neighbours)
        return [
            name
            for name in self.neighbours
            if name not in self._met or (name not in who and self._n_asked[name] < MOST_ASKED)
        ]

    def count_asked(self) -> None:
        """Note that neighbours were asked: who does not vouch then will not."""
        self._n_asked.update(self.unmet)

    @property
    def notes(self) -> list[str]:
        """What its owner should know of what was taken over."""
        return self.vouching.notes(self.agreed) if self.agreed else []

    def hear(self, peer: str, data: bytes) -> None:
        """Take a neighbour's message; a bad one is counted and changes nothing."""
        self.refused += not survives(lambda: self._hear(peer, said_by(peer, self.network, data)))

    def _hear(self, peer: str, said: Any) -> None:
        generation = int(said["generation"])
        if not 0 <= generation <= self.identity.latest():
            raise ValueError("a generation out of all range")
        told = said.get("statements", ())
        if len(self._known) + len(told) > 2 * MOST_NODES:
            raise ValueError("too many nodes")
        fresh = read_statements(told, self.identity, self.network)
        agreed = Agreed.from_dict(said["agreed"]) if said.get("agreed") else None
        if generation > self.generation and self.agreed is not None:
            self.called = generation
        elif generation > self.generation:
            self._begin_generation(generation)
        for one in fresh:
            known = self._known.get(one.name)
            if one.generation != self.generation:
                continue
            if known is None or one.is_newer_than(known):
                self._known[one.name] = one
                if one.name == self.name:  # it said so before it began
                    self.incarnation = one.incarnation + 1
                    self._say()
        self._digests[peer] = str(said["digest"])
        is_late = not said["has_plan"] or generation < self.generation
        (self._late.add if is_late else self._late.discard)(peer)
        (self._asked.add if said["asks"] else self._asked.discard)(peer)
        if generation == self.generation:
            self._met.add(peer)
        used = [self.agreed] if self.agreed else list(self._offers.by.values())
        self.vouching.hear(str(said.get("vouched_for"))[:64], said.get("vouched", {}), used)
        if agreed and self.agreed is None and agreed.generation == generation >= self.generation:
            self._offers.put(peer, agreed)
            if said["epoch"] != self._epoch:  # else this node adds it up itself
                self._take_over()
        if said["epoch"] == self._epoch:
            for name, wave in self._waves.items():
                wave.hear(peer, read_parcel(said["waves"][name]))

    def _take_over(self, *, is_late: bool = False) -> None:
        """Go on with what neighbours have agreed on, if it fits this node's rows and node.toml."""
        try:
            least = max(1 if is_late else min(2, len(self.neighbours)), self.least)
            agreed = self._offers.best(least, self.vouching.who)
            if agreed is None:
                self.trouble = self._offers.words(self.least, self.vouching.who) or self.trouble
                return
            check_fit(
                agreed, self.labels, self._known[self.name].schema, is_raw=self.is_raw,
                is_sparse=self.sparse, most_labels=self.most_labels,
            )  # fmt: skip
            check_rows(agreed.plan, () if self.noise else self.rows)
        except DtsvmError as error:
            self.trouble = f"What the network agreed on is not taken over. {error}"
            return
        self.agreed, self.trouble, self.generation = agreed, "", agreed.generation
