"""What a running session holds and what it answers: the reading half of `Session`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dtsvm.data.labels import begin_classes, check_labels, label_codes
from dtsvm.errors import DataError, NetworkError, did_you_mean
from dtsvm.problem import Certificate, Model, Network, Settings, TaskModel
from dtsvm.rounds import Info, Membership, average
from dtsvm.runtime import Memory
from dtsvm.svm.classifier import LinearClassifier
from dtsvm.svm.company import Alone
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


class Certified(NamedTuple):
    """How good an answer provably is."""

    objective: float
    gap: float


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
        self._classes: dict[Task, tuple[Any, ...]] = {}
        self._questions: dict[Task, list[Hashable]] = {}  # of the tasks in training
        self._finished: dict[Task, TaskModel] = {}
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
        return tuple(self._questions)

    @property
    def finished(self) -> tuple[Task, ...]:
        """The tasks that have left; their last classifiers stay available."""
        return tuple(self._finished)

    @property
    def groups(self) -> list[list[Task]]:
        """The tasks that train together."""
        found: list[tuple[set[int], list[Task]]] = []
        group = self._members.group if self._members else {}
        for task, questions in self._questions.items():
            shared = {group[question] for question in questions}
            mine = [one for one in found if not one[0].isdisjoint(shared)]
            apart = [one for one in found if one[0].isdisjoint(shared)]
            tasks = [*(other for one in mine for other in one[1]), task]
            found = [*apart, (shared.union(*(one[0] for one in mine)), tasks)]
        return [tasks for _, tasks in found]

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
        is_finished = task in self._finished
        if is_finished and node is not None and node not in self._finished[task].nodes:
            raise DataError(f"Task {task!r} was finished without node {node!r}.")
        if not is_finished and node is not None:
            self._agents(node, task)
        one = self._answer(task)
        coef, intercept = one.weights(node)
        if one.n_classifiers == 1:
            return LinearClassifier(coef[0], float(intercept[0]), list(one.classes), is_finished)
        return LinearClassifier(coef, intercept, list(one.classes), is_finished)

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
            "positive": {
                task: self._classes[task][1] for task in self.tasks if len(self._classes[task]) == 2
            },
        }
        tasks = self._task_models(list(self.tasks))
        return Model("DTSVM", settings, self.network, tasks, self.info, members.state.n_features)

    def risk(self, task: Task, X: ArrayLike, y: ArrayLike) -> Risk:
        """Return the share of rows that a task's classifiers get wrong, by node and overall."""
        rows = self._rows(X)
        one = self._answer(task)
        check_labels(rows.shape[0], y, task, one.classes)
        W = np.array([*one.nodes.values(), np.hstack([one.coef, one.intercept[:, None]])])
        values = np.asarray(rows @ W[:, :, :-1].reshape(-1, W.shape[2] - 1).T)
        values = values.reshape(rows.shape[0], *W.shape[:2]) + W[:, :, -1]
        chosen = values[:, :, 0] > 0 if W.shape[1] == 1 else values.argmax(axis=2)
        wrong = (chosen != label_codes(y, one.classes)[:, None]).mean(axis=0)
        per_node = dict(zip(one.nodes, wrong[:-1].tolist(), strict=True))
        return Risk(per_node, float(wrong[:-1].mean()), float(wrong[-1]))

    def decisions(self, task: Task) -> dict[Node, NDArray[np.float64]]:
        """Return the decision of every node that holds a task: weights, and the bias last.

        Of a task of more than two labels it has a row each.
        """
        self._known_task(task)
        nodes = self._answer(task).nodes
        return {node: own[0] if len(own) == 1 else own for node, own in nodes.items()}

    def row_counts(self, task: Task) -> dict[Node, int]:
        """Return how many rows of a task each node holds."""
        self._known_task(task)
        state = self._need_rows()[0].state
        return {node: state.n_rows(agents[0]) for node, agents in self._holders(task).items()}

    def _need_rows(self) -> tuple[Membership, Memory]:
        if self._members is None or self._memory is None:
            raise DataError("The session is empty: let a task enter a node first.")
        return self._members, self._memory

    def _need_all_rows(self, what: str) -> None:
        if not self._need_rows()[1].has_all_rows:
            raise DataError(
                f"{what} needs all rows in one process, but with engine='mpi' they are at several "
                "ranks: use engine='memory'."
            )

    def _answer(self, task: Task) -> TaskModel:
        """Return the classifiers of one task, in training or finished."""
        if task in self._finished:
            return self._finished[task]
        self._known_task(task)
        return self._task_models([task])[0]

    def _blocks(
        self, others: Alone
    ) -> dict[tuple[Node, Task], tuple[NDArray[Any], NDArray[np.float64]]]:
        """Return the rows and ±1 labels of every node and task that has some, here or elsewhere."""
        tables = self._need_rows()[0].state.tables
        agents = {
            (node, task): held[0]
            for task in self.tasks
            for node, held in self._holders(task).items()
        }
        counts = others.add(np.array([len(tables.row_slots[a]) for a in agents.values()]))
        found = {}
        for (who, agent), n in zip(agents.items(), counts.tolist(), strict=True):
            if n:
                X, y = tables.rows_of(agent)
                found[who] = X if isinstance(X, np.ndarray) else X.toarray(), y
        return found

    def _finish(self, task: Task) -> None:
        self._finished[task] = self._answer(task)

    def _certificate(self, tasks: list[Task]) -> Certified:
        """Return objective and gap of these tasks, whoever else trains beside them."""
        state = self._need_rows()[0].state
        mine = [agent for t in tasks for held in self._holders(t).values() for agent in held]
        sets = set(state.plan.common_part[mine].tolist())
        each = zip(state.plan.parts, self._need_rows()[1].certificates(), strict=True)
        some = [one for part, one in each if int(state.plan.common_part[part[0]]) in sets]
        whole = Certificate(sum(c.objective for c in some), sum(c.bound for c in some))
        return Certified(whole.objective, whole.gap)

    def _holders(self, task: Task) -> dict[Node, list[int]]:
        """Return the agents of every node that holds a task, one a question."""
        members, _ = self._need_rows()
        asked = [members.agents_of(question) for question in self._questions[task]]
        is_relay = members.state.tables.agents["is_relay"].tolist()
        return {
            node: [agents[node] for agents in asked]
            for node, first in asked[0].items()
            if not is_relay[first]
        }

    def _task_models(self, tasks: list[Task]) -> tuple[TaskModel, ...]:
        """Return the classifiers of these tasks: the network's, their parts, and every holder's."""
        state = self._need_rows()[0].state
        holders = [self._holders(task) for task in tasks]
        every = np.array([a for held in holders for some in held.values() for a in some], np.int64)
        means, own = average(state), state.tables.agents["estimate"].take(every, axis=0)
        decisions, team = own[:, 0] + own[:, 1], state.plan.specific_part[every].tolist()
        group = {task: g for g, together in enumerate(self.groups) for task in together}
        found, end = [], 0
        for task, held in zip(tasks, holders, strict=True):
            n = len(self._questions[task])
            begin, end = end, end + n * len(held)
            by_node = decisions[begin:end].reshape(len(held), n, -1)
            if len(set(team[begin:end])) == n:
                parts = means.take(every[begin : begin + n], axis=0)  # (question, 2, feature)
            else:  # come apart
                parts = means[every[begin:end]].reshape(len(held), n, 2, -1).mean(axis=0)
            whole = parts[:, 0] + parts[:, 1]
            found.append(
                TaskModel(
                    task, tuple(self._classes[task]), whole[:, :-1], whole[:, -1],
                    parts[:, 0, :-1], parts[:, 1, :-1],
                    dict(zip(held, by_node, strict=True)), group[task],
                )
            )  # fmt: skip
        return tuple(found)

    def _rows(self, X: ArrayLike | None, n_features: int | None = None) -> Any:
        known = self._members.state.n_features if self._members else n_features
        return session_rows(X, known)

    def _classes_for(
        self, task: Task, y: ArrayLike | None, labels: Sequence[Any] | None
    ) -> tuple[Any, ...]:
        if task in self.tasks:
            return self._classes[task]
        return begin_classes(task, y, labels)

    def _known_node(self, node: Node) -> None:
        if node not in self.nodes:
            raise NetworkError(f"Unknown node {node!r}. {did_you_mean(node, self.nodes)}")

    def _known_task(self, task: Task) -> None:
        if task not in self.tasks:
            raise DataError(f"Unknown task {task!r}. {did_you_mean(task, self.tasks)}")

    def _agents(self, node: Node, task: Task) -> list[int]:
        """Return a node's agents of a task, one a question, or refuse."""
        self._known_node(node)
        self._known_task(task)
        holders = self._holders(task)
        if node not in holders:
            raise DataError(f"Node {node!r} does not hold task {task!r}.")
        return holders[node]
