"""Training kept running: tasks, nodes, links and rows come and go, the answer stays exact."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dtsvm.data.labels import check_labels, label_codes
from dtsvm.errors import DataError, NetworkError, ParameterError, did_you_mean
from dtsvm.problem import Network, Settings
from dtsvm.problem.questions import Question
from dtsvm.problem.settings import choice, count, positive
from dtsvm.rounds import Info
from dtsvm.svm.engines import ENGINES, check_engine
from dtsvm.svm.kept import Kept
from dtsvm.svm.rows import row_weights

__all__ = ["Session"]

Node = Hashable
Task = Hashable
MAX_ROUNDS = 100_000


class Session(Kept):
    """Training kept running while its world changes.

    Parameters
    ----------
    network : Network, optional
        The nodes and links to start with; more may come.
    C, common_reg, specific_reg, task_penalty, node_penalty, relaxation, local, tol, bias
        As in `DTSVM`.
    personal : bool, default=False
        Whether different tasks of a group are linked across the network.
    relays : {None, "auto"}
        Whether nodes between the holders of a task pass its messages on.
    loss : float, default=0
        Share of messages across links that get lost.
    seed : int, default=0
        Seed of the losses.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    engine : {"memory", "mpi"}, default="memory"
        Who carries the rounds: this process, or all ranks of an MPI program, each of which makes
        the same calls. The result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm import Network, Session
    >>> rng = np.random.default_rng(0)
    >>> live = Session(Network.ring(4), C=0.1)
    >>> for node in range(4):
    ...     X = rng.normal(size=(20, 3))
    ...     live.enter(node, "sick", X, np.sign(X[:, 0] + 0.1))
    >>> live.run().status
    <Status.CONVERGED: 'converged'>
    >>> live.leave(node=2)
    >>> live.run().gap < 1e-4
    True
    """

    _owner = "Session"
    _choice: Any = None  # what `choose` remembers

    def __init__(
        self,
        network: Network | None = None,
        *,
        C: float = 1.0,
        common_reg: float = 1.0,
        specific_reg: float = 1.0,
        task_penalty: float | str = "auto",
        node_penalty: float | str = "auto",
        relaxation: float = 0.8,
        local: str = "tracking",
        tol: float = 1e-4,
        bias: str = "task",
        personal: bool = False,
        relays: str | None = None,
        loss: float = 0.0,
        seed: int = 0,
        n_jobs: int | None = None,
        engine: str = "memory",
    ) -> None:
        chosen = Settings.checked(
            self._owner, C=C, common_reg=common_reg, specific_reg=specific_reg,
            task_penalty=task_penalty, node_penalty=node_penalty, relaxation=relaxation,
            local=local, tol=tol, bias=bias,
        )  # fmt: skip
        if relays is not None:
            choice(self._owner, "relays", relays, ("auto",))
        _check_loss(loss)
        if n_jobs is not None and n_jobs != -1:
            count(self._owner, "n_jobs", n_jobs)
        choice(self._owner, "engine", engine, ENGINES)
        check_engine(engine)
        self._engine = engine
        super().__init__(network, chosen)
        self._options = {"personal": personal, "relays": relays}
        self._carrier: dict[str, Any] = {
            "loss": loss,
            "seed": seed,
            "n_threads": None if n_jobs == -1 else n_jobs,
        }

    # Coming and going

    def enter(
        self,
        node: Node,
        task: Task,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        links: Iterable[Node] = (),
        labels: Sequence[Any] | None = None,
        n_features: int | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        """Let a task begin at a node; the node and the task may be new.

        Parameters
        ----------
        node, task : hashable
            Where, and what.
        X, y : array-like or CSR, optional
            The node's rows of the task; an agent may have none.
        links : iterable of nodes, optional
            A new node's neighbours.
        labels : sequence, optional
            The task's labels, (negative, positive) if they are two; needed when its first rows are
            not of all classes. A task of more than two asks about each label against the rest.
        n_features : int, optional
            Length of a row, when the session's first agent has no rows.
        sample_weight : array-like, optional
            What each row's loss is multiplied by; 1 by default.
        """
        wanted = list(links)
        self._check_entry(node, task, wanted)
        rows = self._rows(X, n_features)
        weight = row_weights(sample_weight, rows.shape[0])
        classes = self._classes_for(task, y, labels)
        check_labels(rows.shape[0], y, task, classes)
        members = self._open(rows.shape[1], rows.dtype)
        if node not in members.neighbours:
            members.add_node(node)
            for other in wanted:
                members.link(node, other)
        if task not in self._questions:
            self._begin(task, classes)
        questions = self._questions[task]
        if members.agent(node, questions[0]) is None:
            members.enter([(node, question) for question in questions])
        else:
            for question in questions:
                members.promote(members.at[node][question])
        if rows.shape[0]:
            self._give(node, task, rows, label_codes(y, classes), weight)
        self._changed("enter", f"task {task!r} at node {node!r} with {rows.shape[0]} rows")

    def add_data(
        self,
        node: Node,
        task: Task,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        """Give an agent more rows; `sample_weight` multiplies each row's loss."""
        self._agents(node, task)
        rows = self._rows(X)
        n = rows.shape[0]
        weight = row_weights(sample_weight, n)
        classes = self._classes[task]
        check_labels(n, y, task, classes)
        if n:
            self._give(node, task, rows, label_codes(y, classes), weight)
        self._changed("add_data", f"{n} rows of task {task!r} at node {node!r}")

    def drop_data(
        self, node: Node, task: Task, *, oldest: int | None = None, mask: ArrayLike | None = None
    ) -> None:
        """Take rows away from an agent: the `oldest` so many, or those where `mask` is true."""
        agents = self._agents(node, task)
        state = self._need_rows()[0].state
        n = state.n_rows(agents[0])
        if (oldest is None) == (mask is None):
            raise ParameterError("drop_data needs either oldest=… or mask=…, and not both.")
        if mask is None:
            k = count("drop_data", "oldest", oldest)
            if k > n:
                raise DataError(f"Node {node!r} has {n} rows of task {task!r}; cannot drop {k}.")
            is_dropped = np.arange(n) < k
        else:
            is_dropped = np.asarray(mask, bool)
            if is_dropped.shape != (n,):
                raise DataError(
                    f"Node {node!r} has {n} rows of task {task!r}, but mask has {is_dropped.size}."
                )
        for agent in agents:
            state.drop_rows(agent, is_dropped)
        self._changed(
            "drop_data", f"{int(is_dropped.sum())} rows of task {task!r} at node {node!r}"
        )

    def leave(
        self, *, node: Node | None = None, task: Task | None = None, allow_split: bool = False
    ) -> None:
        """Let a task, a node, or one task at one node go; what stays behind forgets it at once.

        A task none of whose agents is left is finished: `classifier` still answers for it.
        """
        members, _ = self._need_rows()
        if node is None and task is None:
            raise ParameterError("leave needs node=…, task=… or both.")
        if node is not None:
            self._known_node(node)
        if task is not None:
            self._known_task(task)
        if node is None:
            gone = [(v, q) for q in self._questions[task] for v in members.agents_of(q)]
        elif task is None:
            gone = [(node, q) for q in members.at[node]]
        else:
            self._agents(node, task)
            gone = [(node, q) for q in self._questions[task]]
        drops_node = task is None
        self._check_split(gone, [node] if drops_node else [], [], allow_split)
        self._finish_without(gone)
        if drops_node:
            members.remove_node(node)
        else:
            for v, q in gone:
                if q in members.group:
                    members.leave(v, q)
        what = [f"{k} {v!r}" for k, v in (("task", task), ("node", node)) if v is not None]
        self._changed("leave", " at ".join(what))

    def couple(self, *tasks: Task) -> None:
        """Let tasks, and all that already train with them, train together."""
        if len(set(tasks)) < 2:
            raise ParameterError("couple needs two tasks or more.")
        for task in tasks:
            self._known_task(task)
        members, _ = self._need_rows()
        together = [t for group in self.groups if set(group) & set(tasks) for t in group]
        by_label: dict[Any, list[Hashable]] = {}
        for question in (q for task in together for q in self._questions[task]):
            about = question.label if isinstance(question, Question) else None
            by_label.setdefault(about, []).append(question)
        if None in by_label and len(by_label) > 1:
            raise ParameterError(
                "A task of two labels and a task of more cannot be coupled while they train; "
                "couple those that have as many as each other, or train all with DTSVM."
            )
        for questions in by_label.values():
            members.couple(questions)
        self._changed("couple", ", ".join(repr(task) for task in tasks))

    def decouple(self, task: Task) -> None:
        """Let a task go on alone."""
        self._known_task(task)
        for question in self._questions[task]:
            self._need_rows()[0].decouple(question)
        self._changed("decouple", repr(task))

    def link(self, u: Node, v: Node) -> None:
        """Link two nodes."""
        members = self._link_ends(u, v)
        if v in members.neighbours[u]:
            raise NetworkError(f"Nodes {u!r} and {v!r} are linked already.")
        members.link(u, v)
        self._changed("link", f"{u!r} and {v!r}")

    def unlink(self, u: Node, v: Node, *, allow_split: bool = False) -> None:
        """Cut the link between two nodes."""
        members = self._link_ends(u, v)
        if v not in members.neighbours[u]:
            raise NetworkError(f"Nodes {u!r} and {v!r} are not linked.")
        self._check_split([], [], [(u, v)], allow_split)
        members.unlink(u, v)
        self._changed("unlink", f"{u!r} and {v!r}")

    def set(self, **settings: Any) -> None:
        """Change settings, such as `C`, `common_reg` or the share of lost messages, and go on."""
        known = [*vars(self._settings), "loss"]
        for name in settings:
            if name not in known:
                raise ParameterError(f"Unknown setting {name!r}. {did_you_mean(name, known)}")
        loss = _check_loss(settings.get("loss", self._carrier["loss"]))
        rest = {name: value for name, value in settings.items() if name != "loss"}
        merged = {**vars(self._settings), **rest}
        self._settings = Settings.checked(self._owner, **merged)
        self._carrier["loss"] = loss
        if self._memory:
            self._memory.loss = loss
        if self._members and rest:
            self._members.state.set(self._settings)
        self._changed("set", ", ".join(f"{k}={v!r}" for k, v in settings.items()))

    # Rounds

    def run(
        self,
        rounds: int | None = None,
        *,
        tol: float | None = None,
        seconds: float | None = None,
        on_round: Callable[[Info], None] | None = None,
    ) -> Info:
        """Train: exactly `rounds` rounds, or to `tol`, or for so many seconds at most.

        Without arguments it trains to the session's own `tol`. With both `rounds` and `tol` it
        stops at whichever comes first. Ctrl-C stops after a whole round. The rounds, messages,
        bytes and seconds of the `Info` returned are those of the session since it began.
        """
        _, memory = self._need_rows()
        if rounds is not None:
            rounds = count("run", "rounds", rounds)
        if tol is not None:
            tol = positive("run", "tol", tol)
        self._place_relays_or_refuse()
        self.info = memory.train(
            max_rounds=rounds or MAX_ROUNDS,
            tol=tol if rounds else tol or self._settings.tol,
            max_seconds=seconds,
            on_round=on_round,
        )
        return self.info

    def step(self) -> Info:
        """Train one round."""
        return self.run(rounds=1)

    def choose(self, **options: Any) -> Any:
        """Choose C, coupling, company and sides for what is here now.

        Candidates stay in training between calls: after nodes, links or rows came or went, the next
        choice goes on from where they are. They begin anew when a task comes or goes, when
        `options` but `callback` and `n_jobs` change, when a part of the network has only new
        nodes, or when rows have become much longer or shorter. The session itself is not changed.

        Parameters
        ----------
        **options
            Parameters of `DTSVMCV`, such as `candidates`, `guard` and `tol`; not what the session
            says itself, nor `class_weight`.

        Returns
        -------
        DTSVMCV
            Fitted: `choices_` says what was chosen.

        Examples
        --------
        >>> import numpy as np
        >>> from dtsvm import Network, Session
        >>> rng = np.random.default_rng(0)
        >>> live = Session(Network.ring(3))
        >>> for node in range(3):
        ...     for task in ("cough", "fever"):
        ...         X = rng.normal(size=(15, 2))
        ...         live.enter(node, task, X, np.sign(X[:, 0]))
        >>> first = live.choose()
        >>> X = rng.normal(size=(5, 2))
        >>> live.add_data(1, "fever", X, np.sign(X[:, 0]))
        >>> again = live.choose()
        >>> again.info_.n_rounds < first.info_.n_rounds
        True
        """
        from dtsvm.svm.warm import LiveChoice

        self._need_rows()
        if self._choice is None or not self._choice.goes_on(options):
            self._choice = LiveChoice(options)
        return self._choice.choose(self)


def _check_loss(loss: Any) -> float:
    if isinstance(loss, bool) or not isinstance(loss, int | float) or not 0 <= loss < 1:
        raise ParameterError(
            f"The 'loss' parameter of Session must be a float from 0 to below 1. "
            f"Got {loss!r} instead."
        )
    return float(loss)
