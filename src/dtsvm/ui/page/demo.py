"""The network of `dtsvm demo page`: a live session that a viewer kills, links, couples, poisons."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dtsvm.errors import DataError, NetworkError, ParameterError, did_you_mean
from dtsvm.problem import Network
from dtsvm.rounds import Info
from dtsvm.svm.presence import Event, Risk
from dtsvm.svm.session import Session
from dtsvm.ui.page.demo_rows import PER_NODE, DemoRows, Rows, poisoned
from dtsvm.ui.page.layout import place_beside, place_nodes
from dtsvm.ui.page.scene import Scene, plain
from dtsvm.ui.page.sessions import describe_events, describe_settings, describe_world

__all__ = ["DemoNetwork", "mesh"]

TASKS = tuple(PER_NODE)
SETTINGS: dict[str, Any] = {"C": 0.01, "tol": 1e-4}
CALM = 1e-3  # how far neighbours may be apart when the page says settled
OPTIMUM_TOL = 1e-7
REST_SECONDS = 0.1
MOST_NODES = 1000
STORY = (
    "Three tasks begin apart. 3v6 and 5v4 have hardly any rows: couple them with 8v9 and watch "
    "their risk. Kill a node, poison one, lose messages: the network goes to the optimum of those "
    "present, the dashed lines."
)


def mesh(nodes: list[str], seed: int) -> Network:
    """Return a ring with a chord for every third node: any one node may go, the rest stays whole.

    Examples
    --------
    >>> mesh(list("abcdef"), seed=0).n_links
    8
    """
    n = len(nodes)
    ring = list(Network.ring(nodes))
    far = [(nodes[i], nodes[j]) for i in range(n) for j in range(i + 2, n) if (j - i) < n - 1]
    chosen = np.random.default_rng(seed).permutation(len(far))[: n // 3]
    return Network(nodes, [*ring, *(far[k] for k in sorted(chosen.tolist()))])


class DemoNetwork(Scene):
    """A session on the bundled digits, changed by whoever looks at it.

    Parameters
    ----------
    network : Network
        The nodes, by strings, and their links.
    seed : int
        Seed of the rows and of lost messages.
    speed : float
        Rounds a second.
    """

    actions = (
        "kill", "revive", "add", "link", "unlink", "couple", "decouple", "enter", "leave",
        "lose", "poison", "heal", "pause", "resume", "pace", "advise",
    )  # fmt: skip

    def __init__(self, network: Network, seed: int = 0, speed: float = 30.0) -> None:
        columns = [f"{what} {task}" for what in ("risk", "optimum") for task in TASKS]
        super().__init__("A network on the bundled digits", ["round", "residual", "gap", *columns],
                         can_change=True)  # fmt: skip
        self.rows = DemoRows([str(node) for node in network.nodes], seed)
        self.places = place_nodes(network.nodes, network)
        self.live = Session(network, seed=seed, **SETTINGS)
        self.speed = speed
        self.gone: dict[str, list[str]] = {}  # nodes that were killed, and their links
        self.liars: set[str] = set()
        self.events: list[Event] = []
        self.loss = 0.0
        self.is_paused = self.is_settled = False
        self.optimum: dict[str, float] = {}
        self.advice: list[dict[str, Any]] = []
        self._last: Info | None = None
        self._known_risks: tuple[tuple[int, int], dict[str, Risk]] = ((-1, -1), {})
        for task in TASKS:
            self._enter(self.live, task)
        self.optimum = self._find_optimum()

    # Rounds

    def move(self) -> float:
        """Train one round, unless there is nothing more to gain."""
        if self.is_paused or self.is_settled:
            return REST_SECONDS
        self._last = info = self.live.run(rounds=1)
        residual = max(info.primal_residual, info.dual_residual)
        self.is_settled = info.gap <= self.live.settings.tol and residual <= CALM
        risks = [risk.mean for risk in self._risks().values()]
        best = [self.optimum.get(task, math.nan) for task in TASKS]
        self.records.add([info.n_rounds, residual, info.gap, *risks, *best])
        self.version += 1
        return 1 / self.speed

    def describe(self) -> dict[str, Any]:
        """Return the network with those that were killed, and how far training is."""
        risks = self._risks()
        world = describe_world(self.live, self.places, risks)
        for node in world["nodes"]:
            if node["name"] in self.liars:
                node["state"] = "poisoned"
        world["nodes"] += [self._ghost(node) for node in self.gone]
        world["links"] += [
            {"ends": [node, other], "state": "gone", "disagreement": None}
            for node, around in self.gone.items()
            for other in around
        ]
        here = {task["name"]: task for task in world["tasks"]}
        world["tasks"] = [here.get(task) or _left(task, risks[task]) for task in TASKS]
        for task in world["tasks"]:
            task["optimum"] = plain(self.optimum.get(task["name"], math.nan))
        info = self._last
        return {
            "state": "paused" if self.is_paused else "settled" if self.is_settled else "training",
            "round": self.live.round,
            "residual": plain(max(info.primal_residual, info.dual_residual)) if info else None,
            "gap": plain(info.gap) if info else None,
            "loss": self.loss,
            "speed": self.speed,
            "story": STORY,
            "advice": self.advice,
            "events": describe_events(self.events),
            "settings": describe_settings(self.live),
            **world,
        }

    # What a viewer may do

    def do_kill(self, node: str, split: bool = False) -> str:
        """Take a node away with its rows."""
        self._here(node)
        around = [str(other) for other in self.live.network.neighbours(node)]
        if len(self.live.nodes) == 1:
            raise NetworkError(f"Node {node!r} is the last one; a network needs one node.")
        self.live.leave(node=node, allow_split=split)
        self.gone[node] = around
        return self._changed("kill", f"node {node} is gone with its rows")

    def do_revive(self, node: str) -> str:
        """Let a killed node come back with its rows, linked as before to those present."""
        if node not in self.gone:
            raise NetworkError(f"Node {node!r} was not killed.")
        around = [other for other in self.gone[node] if other in self.live.nodes]
        self._join(node, around or [self._nearest(node)])
        del self.gone[node]
        return self._changed("revive", f"node {node} is back with its rows")

    def do_add(self, beside: str | None = None) -> str:
        """Let a new node with new rows join, linked to one node and that one's first neighbour."""
        if len(self.places) >= MOST_NODES:
            raise NetworkError(f"The page draws {MOST_NODES} nodes at most.")
        first = self._here(beside) if beside is not None else str(self.live.nodes[-1])
        around = [first, *(str(v) for v in self.live.network.neighbours(first)[:1])]
        number = 1 + max((int(v) for v in map(str, self.places) if v.isdecimal()), default=0)
        node = str(number)
        self.places[node] = place_beside(self.places, around)
        self.rows.draw_for(node)
        self._join(node, around)
        return self._changed("add", f"node {node} joins, linked to {' and '.join(around)}")

    def do_link(self, node: str, other: str) -> str:
        """Link two nodes."""
        self.live.link(self._here(node), self._here(other))
        return self._changed("link", f"{node} and {other}")

    def do_unlink(self, node: str, other: str, split: bool = False) -> str:
        """Cut a link."""
        self.live.unlink(self._here(node), self._here(other), allow_split=split)
        return self._changed("unlink", f"{node} and {other}")

    def do_couple(self, tasks: list[str]) -> str:
        """Let tasks train together."""
        self.live.couple(*tasks)
        return self._changed("couple", " and ".join(tasks))

    def do_decouple(self, task: str) -> str:
        """Let a task go on alone."""
        self.live.decouple(task)
        return self._changed("decouple", str(task))

    def do_enter(self, task: str) -> str:
        """Let a task that has left begin again, alone."""
        if task not in TASKS:
            raise DataError(f"Unknown task {task!r}. {did_you_mean(task, TASKS)}")
        self._enter(self.live, task)
        return self._changed("enter", f"task {task}")

    def do_leave(self, task: str) -> str:
        """Let a task leave; what it has learnt stays as it is."""
        if len(self.live.tasks) == 1:
            raise DataError(f"Task {task!r} is the last one; a network needs one task.")
        self.live.leave(task=task)
        return self._changed("leave", f"task {task}")

    def do_lose(self, share: float) -> str:
        """Lose a share of all messages from now on."""
        self.live.set(loss=float(share))
        self.loss = float(share)
        return self._changed("lose", f"{100 * self.loss:.0f} % of all messages")

    def do_poison(self, node: str) -> str:
        """Let a node lie: every label turned round, and told many times."""
        if self._here(node) in self.liars:
            raise DataError(f"Node {node!r} is poisoned already.")
        self.liars.add(node)
        self._swap_rows(node)
        return self._changed("poison", f"node {node} turns its labels round and shouts")

    def do_heal(self, node: str) -> str:
        """Let a poisoned node tell the truth again."""
        if self._here(node) not in self.liars:
            raise DataError(f"Node {node!r} is not poisoned.")
        self.liars.discard(node)
        self._swap_rows(node)
        return self._changed("heal", f"node {node} has its own labels again")

    def do_advise(self) -> str:
        """Find out, on rows held out at every node, which tasks should train together."""
        chosen = self.live.choose()
        self.advice = [
            {
                "task": str(choice.task),
                "sentence": choice.sentence,
                "alone": list(choice.alone),
                "together": list(choice.chosen),
                "unseen": 1 - chosen.score(*self.rows.tests[choice.task], task=choice.task),
            }
            for choice in chosen.choices_
        ]
        return "advise: " + " ".join(one["sentence"] for one in self.advice)

    def do_pause(self) -> str:
        """Stand still."""
        self.is_paused = True
        return "Paused."

    def do_resume(self) -> str:
        """Go on."""
        self.is_paused = False
        return "Training goes on."

    def do_pace(self, rounds: float) -> str:
        """Change how many rounds are trained a second."""
        if not 0 < float(rounds) <= 1000:
            raise ParameterError(f"The pace must be from 0 to 1000 rounds. Got {rounds!r} instead.")
        self.speed = float(rounds)
        return f"{self.speed:g} rounds a second."

    # Inside

    def _rows_of(self, node: str, task: str) -> Rows:
        rows = self.rows.of[node, task]
        return poisoned(rows) if node in self.liars else rows

    def _enter(self, live: Session, task: str) -> None:
        for node in live.nodes:
            live.enter(node, task, *self._rows_of(str(node), task), labels=(-1, 1))

    def _join(self, node: str, around: list[str]) -> None:
        for task in self.live.tasks:
            links = () if node in self.live.nodes else around
            self.live.enter(node, task, *self._rows_of(node, str(task)), links=links)

    def _swap_rows(self, node: str) -> None:
        for task in self.live.tasks:
            n = self.live.row_counts(task)[node]
            self.live.drop_data(node, task, mask=np.ones(n, bool))
            self.live.add_data(node, task, *self._rows_of(node, str(task)))

    def _changed(self, kind: str, detail: str) -> str:
        self.events.append(Event(self.live.round, kind, detail))
        self.is_settled = False
        self.optimum = self._find_optimum()
        return f"{kind}: {detail}"

    def _find_optimum(self) -> dict[str, float]:
        """Train those present afresh, to a certified gap of 1e-7; unknown for a split network."""
        if not self.live.network.is_connected:
            return {}
        fresh = Session(self.live.network, **{**SETTINGS, "tol": OPTIMUM_TOL})
        for task in self.live.tasks:
            self._enter(fresh, str(task))
        for group in self.live.groups:
            if len(group) > 1:
                fresh.couple(*group)
        fresh.run()
        return {str(task): fresh.risk(task, *self.rows.tests[str(task)]).mean
                for task in fresh.tasks}  # fmt: skip

    def _risks(self) -> dict[str, Risk]:
        """Every task's risk now; asked for twice a round and found once."""
        now = (self.live.round, len(self.events))
        if self._known_risks[0] != now:
            found = {task: self.live.risk(task, *self.rows.tests[task]) for task in TASKS}
            self._known_risks = (now, found)
        return self._known_risks[1]

    def _here(self, node: str) -> str:
        if node not in self.live.nodes:
            raise NetworkError(f"Unknown node {node!r}. {did_you_mean(node, self.live.nodes)}")
        return node

    def _nearest(self, node: str) -> str:
        x, y = self.places[node]
        return str(min(self.live.nodes, key=lambda v: math.dist(self.places[v], (x, y))))

    def _ghost(self, node: str) -> dict[str, Any]:
        return {"name": node, "place": self.places[node], "state": "gone", "residual": None,
                "risk": {}, "rows": {}}  # fmt: skip


def _left(task: str, risk: Risk) -> dict[str, Any]:
    return {"name": task, "state": "gone", "group": None, "with": [],
            "risk": risk.mean, "rows": 0, "holders": 0}  # fmt: skip
