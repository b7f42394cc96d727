"""What a running session holds and what it answers: the reading half of `Session`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dtsvm.data.labels import begin_classes, check_labels, signs
from dtsvm.errors import DataError, NetworkError, did_you_mean
from dtsvm.problem import Model, Network, Settings, TaskModel
from dtsvm.rounds import Info, Membership, average
from dtsvm.runtime import Memory
from dtsvm.svm.classifier import LinearClassifier
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
        self._options: dict[str, Any] = {}
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

    def model(self) -> Model:
        """Return all tasks in training as a model, to save or to hand to others.

        Examples
        --------
        >>> from dtsvm import Session
        >>> live = Session(C=0.1)
        >>> live.enter("here", "sick", [[0.0], [2.0]], [-1, 1])
        >>> _ = live.run()
        >>> live.model().task("sick").classes
        (-1, 1)
        """
        members, _ = self._need_rows()
        if self.info is None:
            raise DataError("The session has not trained yet: call run() first.")
        settings = {
            **vars(self._settings),
            **self._options,
            "transfer": self.groups,
            "positive": {task: self._classes[task][1] for task in self.tasks},
        }
        tasks = self._task_models(list(self.tasks))
        return Model("DTSVM", settings, self.network, tasks, self.info, members.state.n_features)

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

    def decisions(self, task: Task) -> dict[Node, NDArray[np.float64]]:
        """Return the decision of every node that holds a task: weights, and the bias last."""
        self._known_task(task)
        holders = self._holders(task)
        found = self._decision(task, list(holders.values()))
        return dict(zip(holders, found, strict=True))

    def row_counts(self, task: Task) -> dict[Node, int]:
        """Return how many rows of a task each node holds."""
        self._known_task(task)
        slots = self._need_rows()[0].state.row_slots
        return {node: len(slots[agent]) for node, agent in self._holders(task).items()}

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

    def _blocks(self) -> dict[tuple[Node, Task], tuple[NDArray[Any], NDArray[np.float64]]]:
        """Return the rows and ±1 labels of every node and task that has some."""
        state = self._need_rows()[0].state
        found = {}
        for task in self.tasks:
            for node, agent in self._holders(task).items():
                X, y = state.tables.rows_of(agent)
                if len(y):
                    found[node, task] = X if isinstance(X, np.ndarray) else X.toarray(), y
        return found

    def _holders(self, task: Task) -> dict[Node, int]:
        members, _ = self._need_rows()
        agents = members.agents_of(task)
        return {node: agent for node, agent in agents.items() if not members.is_relay(agent)}

    def _task_models(self, tasks: list[Task]) -> tuple[TaskModel, ...]:
        """Return the classifiers of these tasks: the network's, their parts, and every holder's."""
        members, _ = self._need_rows()
        members.state.prepare()
        common, specific = average(members.state)
        group = {task: g for g, together in enumerate(self.groups) for task in together}
        found = []
        for task in tasks:
            holders = self._holders(task)
            agents = list(holders.values())
            parts = _agreed(common[agents]), _agreed(specific[agents])
            whole = parts[0] + parts[1]
            by_node = self._decision(task, agents)[:, None]
            found.append(
                TaskModel(
                    task, tuple(self._classes[task]), whole[:, :-1], whole[:, -1],
                    parts[0][:, :-1], parts[1][:, :-1],
                    dict(zip(holders, by_node, strict=True)), group[task],
                )
            )  # fmt: skip
        return tuple(found)

    def _decision(self, task: Task, agents: list[int] | None) -> NDArray[np.float64]:
        """Return u = w₀ + w_t with the bias last: of some agents, or the network's one."""
        members, _ = self._need_rows()
        if agents is None:
            common, specific = average(members.state)
            holders = list(self._holders(task).values())
            return _agreed(common[holders]) + _agreed(specific[holders])
        return np.asarray(members.state.estimate(agents).sum(axis=1))

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


def _agreed(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """What these agents agree on; their mean where the network has come apart."""
    is_one = bool((parts == parts[0]).all())
    return parts[:1] if is_one else parts.mean(axis=0, keepdims=True)
