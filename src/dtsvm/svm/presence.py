"""What a running session holds and what it answers: the reading half of `Session`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dtsvm.errors import DataError, NetworkError, did_you_mean
from dtsvm.problem import Network, Settings
from dtsvm.rounds import Info, Membership, average
from dtsvm.runtime import Memory
from dtsvm.svm.classifier import LinearClassifier
from dtsvm.svm.labels import begin_classes, check_labels, signs
from dtsvm.svm.rows import session_rows

__all__ = ["Event", "Presence", "Risk"]

Node = Hashable
Task = Hashable


class Event(NamedTuple):
    """Something that happened to a session, and after which round."""

    round: int
    kind: str
    detail: str


class Risk(NamedTuple):
    """Share of rows a task's classifiers get wrong.

    nodes : by node. mean : over the nodes, the paper's global risk. network : of the average.
    """

    nodes: dict[Node, float]
    mean: float
    network: float


class Presence:
    """Who is here, and their classifiers; `Session` adds what changes them.

    Attributes
    ----------
    events : list of Event
        What happened at which round.
    info : Info or None
        How the last run ended.
    """

    def __init__(self, network: Network | None, settings: Settings) -> None:
        self._settings = settings
        self._start = network
        self._members: Membership | None = None
        self._memory: Memory | None = None
        self._classes: dict[Task, tuple[Any, Any]] = {}
        self._finished: dict[Task, dict[Node | None, LinearClassifier]] = {}
        self.events: list[Event] = []
        self.info: Info | None = None

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes present."""
        if self._members is None:
            return self._start.nodes if self._start else ()
        return tuple(self._members.neighbours)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks in training."""
        return tuple(self._members.group) if self._members else ()

    @property
    def finished(self) -> tuple[Task, ...]:
        """The tasks that have left; their last classifiers stay available."""
        return tuple(self._finished)

    @property
    def groups(self) -> list[list[Task]]:
        """The tasks that train together."""
        together: dict[int, list[Task]] = {}
        for task, group in (self._members.group if self._members else {}).items():
            together.setdefault(group, []).append(task)
        return list(together.values())

    @property
    def network(self) -> Network:
        """The nodes and links present."""
        if self._members is None:
            return self._start or Network([None], [])
        return Network(list(self._members.neighbours), self._members.links())

    @property
    def round(self) -> int:
        """Rounds done so far."""
        return self._memory.n_rounds if self._memory else 0

    @property
    def history(self) -> NDArray[np.void]:
        """A row a round: residuals, objective and gap where known, messages and bytes sent."""
        return self._need_rows()[1].history.array()

    def classifier(self, task: Task, node: Node | None = None) -> LinearClassifier:
        """Return a task's classifier: the network's average, or one node's own."""
        if task in self._finished:
            kept = self._finished[task]
            if node not in kept:
                raise DataError(f"Task {task!r} was finished without node {node!r}.")
            return kept[node]
        self._known_task(task)
        agents = None if node is None else [self._agent(node, task)]
        coef = self._decision(task, agents)[0]
        return LinearClassifier(coef[:-1], float(coef[-1]), list(self._classes[task]))

    def risk(self, task: Task, X: ArrayLike, y: ArrayLike) -> Risk:
        """Return the share of rows that a task's classifiers get wrong, by node and overall."""
        rows = self._rows(X)
        labels = np.asarray(y)
        if task in self._finished:
            kept = self._finished[task]
            nodes = [v for v in kept if v is not None]
            by = np.array([np.append(kept[v].coef_[0], kept[v].intercept) for v in nodes])
            whole = np.append(kept[None].coef_[0], kept[None].intercept)[None]
            classes: Sequence[Any] = kept[None].classes_.tolist()
        else:
            self._known_task(task)
            holders = self._holders(task)
            nodes, classes = list(holders), self._classes[task]
            by = self._decision(task, list(holders.values()))
            whole = self._decision(task, None)
        check_labels(len(rows), y, task, classes)
        is_positive = signs(labels, classes) > 0
        W = np.concatenate([by, whole])
        wrong = ((rows @ W[:, :-1].T + W[:, -1] > 0) != is_positive[:, None]).mean(axis=0)
        per_node = dict(zip(nodes, wrong[:-1].tolist(), strict=True))
        return Risk(per_node, float(wrong[:-1].mean()), float(wrong[-1]))

    def _need_rows(self) -> tuple[Membership, Memory]:
        if self._members is None or self._memory is None:
            raise DataError("The session is empty: let a task enter a node first.")
        return self._members, self._memory

    def _finish(self, task: Task) -> None:
        kept: dict[Node | None, LinearClassifier] = {None: self.classifier(task)}
        kept.update({node: self.classifier(task, node) for node in self._holders(task)})
        for classifier in kept.values():
            classifier.is_finished = True
        self._finished[task] = kept

    def _holders(self, task: Task) -> dict[Node, int]:
        members, _ = self._need_rows()
        agents = members.agents_of(task)
        return {node: agent for node, agent in agents.items() if not members.is_relay(agent)}

    def _solution(
        self, tasks: list[Task], nodes: list[Node]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return common and specific parts (task, feature), and decisions (node, task, feature)."""
        members, _ = self._need_rows()
        state = members.state
        common, specific = average(state)
        first = [next(iter(self._holders(task).values())) for task in tasks]
        by_node = np.full((len(nodes), len(tasks), state.n_features + 1), np.nan)
        place = {node: i for i, node in enumerate(nodes)}
        for t, task in enumerate(tasks):
            holders = self._holders(task)
            by_node[[place[node] for node in holders], t] = self._decision(
                task, list(holders.values())
            )
        return common[first], specific[first], by_node

    def _decision(self, task: Task, agents: list[int] | None) -> NDArray[np.float64]:
        """Return u = w₀ + w_t with the bias last: of some agents, or the network's one."""
        members, _ = self._need_rows()
        if agents is None:
            members.state.prepare()
            common, specific = average(members.state)
            holders = list(self._holders(task).values())
            return np.asarray((common[holders] + specific[holders]).mean(axis=0)[None])
        return np.asarray(members.state.agents["estimate"][agents].sum(axis=1))

    def _rows(self, X: ArrayLike | None, n_features: int | None = None) -> NDArray[Any]:
        known = self._members.state.n_features if self._members else n_features
        return session_rows(X, known)

    def _classes_for(
        self, task: Task, y: ArrayLike | None, labels: Sequence[Any] | None
    ) -> tuple[Any, Any]:
        if task in self.tasks:
            return self._classes[task]
        return begin_classes(task, y, labels)

    def _known_node(self, node: Node) -> None:
        if node not in self.nodes:
            raise NetworkError(f"Unknown node {node!r}. {did_you_mean(node, self.nodes)}")

    def _known_task(self, task: Task) -> None:
        if task not in self.tasks:
            raise DataError(f"Unknown task {task!r}. {did_you_mean(task, self.tasks)}")

    def _agent(self, node: Node, task: Task) -> int:
        self._known_node(node)
        self._known_task(task)
        agent = self._need_rows()[0].agent(node, task)
        if agent is None or self._need_rows()[0].is_relay(agent):
            raise DataError(f"Node {node!r} does not hold task {task!r}.")
        return agent
