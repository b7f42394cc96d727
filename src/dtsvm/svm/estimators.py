"""The face: four SVMs as scikit-learn classifiers, each one a choice of nodes, links and groups."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dtsvm.errors import DataError, NetworkError, NotConvergedWarning, ParameterError, did_you_mean
from dtsvm.problem import Network
from dtsvm.problem.settings import count, positive as positive_number, refusal
from dtsvm.rounds import Info, Status
from dtsvm.svm.labels import encode_levels, positive_label, signs, two_classes
from dtsvm.svm.session import Session

__all__ = ["CSVM", "CTSVM", "DSVM", "DTSVM"]

Levels = tuple[list[Any], NDArray[np.int64]]


class _ConsensusSVM(ClassifierMixin, BaseEstimator):
    """What the four have in common: rows in, a session run to its end, classifiers out."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        task: ArrayLike | None = None,
        node: ArrayLike | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows of all nodes and tasks. Left where it is if float64 or float32 in C order.
        y : array-like of shape (n_rows,)
            Labels; every task has its own two.
        task, node : array-like of shape (n_rows,), optional
            Each row's task and node; one task, one node by default.

        Returns
        -------
        self
            With `tasks_`, `nodes_`, `coef_`, `intercept_`, `common_coef_`, `specific_coef_`,
            `node_coef_`, `node_intercept_`, `classes_`, `task_classes_`, `network_`, `info_` and
            `history_` set.
        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], order="C")
        check_classification_targets(y)
        what = self._levels(task, len(X), "task")
        where = self._levels(node, len(X), "node")
        network, where = self._place(where, has_nodes=node is not None)
        classes = self._find_classes(y, what, named=task is not None)
        session = self._session(network)
        session._enter_all(X, self._to_signs(y, what, classes), where, what,
                           self._groups(what[0]), classes)  # fmt: skip
        info = session.run(
            count(type(self).__name__, "max_rounds", self.max_rounds),
            tol=session.settings.tol,
            seconds=self._seconds(),
            on_round=self.callback,
        )
        self._keep(session, network, what[0], classes, info)
        self._warn(info)
        return self

    def decision_function(
        self,
        X: ArrayLike,
        *,
        task: ArrayLike | None = None,
        node: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Return xᵀw + b: above 0 for a task's positive label.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.
        task, node : scalar or array-like of shape (n_rows,), optional
            Whose classifier to use. `task` may be left out if there is one only; without `node` it
            is the network's averaged answer.

        Returns
        -------
        ndarray of shape (n_rows,)
            The decision values.
        """
        rows, index = self._checked_rows(X, task)
        place = self._positions(node, len(rows), "node", list(self.nodes_))
        values = np.empty(len(rows))
        for t, v in sorted(set(zip(index.tolist(), place.tolist(), strict=True))):
            mine = (index == t) & (place == v)
            coef, intercept = self._classifier(t, v)
            values[mine] = rows[mine] @ coef + intercept
        return values

    def predict(
        self,
        X: ArrayLike,
        *,
        task: ArrayLike | None = None,
        node: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Return a label for every row; see `decision_function` for `task` and `node`."""
        is_positive = (self.decision_function(X, task=task, node=node) > 0).astype(int)
        index = self._positions(task, len(is_positive), "task", list(self.tasks_))
        if len(self.tasks_) == 1:
            return np.asarray(self.classes_)[is_positive]
        return np.array(self.task_classes_[index, is_positive].tolist(), self.classes_.dtype)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        task: ArrayLike | None = None,
        node: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the share of rows that are labelled right."""
        predicted = self.predict(X, task=task, node=node)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    # Before training

    def _levels(self, values: ArrayLike | None, n_rows: int, name: str) -> Levels:
        if values is None:
            return [0], np.zeros(n_rows, np.int64)
        return encode_levels(values, n_rows, name)

    def _find_classes(
        self, y: NDArray[Any], what: Levels, named: bool
    ) -> dict[Hashable, tuple[Any, Any]]:
        tasks, index = what
        return {
            task: two_classes(
                y[index == t] if len(tasks) > 1 else y,
                f"Task {task!r}" if named else "y",
                positive_label(self.positive, task),
            )
            for t, task in enumerate(tasks)
        }

    def _to_signs(
        self, y: NDArray[Any], what: Levels, classes: dict[Hashable, tuple[Any, Any]]
    ) -> NDArray[np.float64]:
        tasks, index = what
        if len(tasks) == 1:
            return signs(y, classes[tasks[0]])
        out = np.empty(len(y))
        for t, task in enumerate(tasks):
            out[index == t] = signs(y[index == t], classes[task])
        return out

    def _seconds(self) -> float | None:
        if self.max_seconds is None:
            return None
        return positive_number(type(self).__name__, "max_seconds", self.max_seconds)

    def _place(self, where: Levels, has_nodes: bool) -> tuple[Network, Levels]:
        raise NotImplementedError

    def _groups(self, tasks: list[Any]) -> list[list[Any]]:
        raise NotImplementedError

    def _session(self, network: Network) -> Session:
        raise NotImplementedError

    # After training

    def _keep(
        self,
        session: Session,
        network: Network,
        tasks: list[Any],
        classes: dict[Hashable, tuple[Any, Any]],
        info: Info,
    ) -> None:
        self.tasks_ = _array(tasks)
        self.nodes_ = _array(list(network.nodes))
        self.network_ = network
        self.task_classes_ = np.empty((len(tasks), 2), object)
        self.task_classes_[:] = [list(classes[task]) for task in tasks]
        self.classes_ = (
            np.array(classes[tasks[0]])
            if len(tasks) == 1
            else np.unique(np.array([label for pair in classes.values() for label in pair]))
        )
        common, specific, by_node = session._solution(tasks, list(network.nodes))
        total = common + specific
        self.coef_, self.intercept_ = total[:, :-1], total[:, -1]
        has_one_group = len(session.groups) == 1
        self.common_coef_ = common[0, :-1] if has_one_group else common[:, :-1]
        self.specific_coef_ = specific[:, :-1]
        self.node_coef_, self.node_intercept_ = by_node[:, :, :-1], by_node[:, :, -1]
        self.info_, self.history_ = info, session.history
        self.n_iter_ = info.n_rounds

    def _warn(self, info: Info) -> None:
        if info.status is Status.CONVERGED:
            return
        tol = self.tol
        remedy = {
            Status.MAX_ROUNDS: "raise max_rounds, lower C, standardise the features or raise tol",
            Status.TIME_LIMIT: "raise max_seconds",
            Status.INTERRUPTED: "the state after the last whole round was kept",
        }[info.status]
        residual = max(info.primal_residual, info.dual_residual)
        warnings.warn(
            f"{type(self).__name__} stopped after {info.n_rounds} rounds ({info.status}) with "
            f"residual {residual:.1e} and certified gap {info.gap:.1e}, tolerance {tol:g}: {remedy}.",
            NotConvergedWarning,
            stacklevel=3,
        )

    # Prediction

    def _checked_rows(
        self, X: ArrayLike, task: ArrayLike | None
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        if task is None and len(self.tasks_) > 1:
            names = ", ".join(str(t) for t in self.tasks_)
            raise DataError(f"The model knows several tasks ({names}): say which with task=….")
        return rows, self._positions(task, len(rows), "task", list(self.tasks_))

    def _positions(
        self, wanted: ArrayLike | None, n_rows: int, name: str, known: list[Any]
    ) -> NDArray[np.int64]:
        """Where each row's task or node stands; −1 without `node`, 0 without `task`."""
        if wanted is None:
            return np.full(n_rows, 0 if name == "task" else -1, np.int64)
        position = {value: i for i, value in enumerate(known)}
        try:
            is_scalar = wanted in position
        except TypeError:
            is_scalar = False
        if is_scalar:
            return np.full(n_rows, position[wanted], np.int64)
        if np.ndim(wanted) == 0:
            raise _unknown(name, wanted, known)
        values, index = encode_levels(wanted, n_rows, name)
        for value in values:
            if value not in position:
                raise _unknown(name, value, known)
        return np.array([position[value] for value in values], np.int64)[index]

    def _classifier(self, t: int, v: int) -> tuple[NDArray[np.float64], float]:
        if v < 0:
            return self.coef_[t], float(self.intercept_[t])
        if np.isnan(self.node_intercept_[v, t]):
            raise DataError(
                f"Node {self.nodes_[v]!r} does not hold task {self.tasks_[t]!r}; leave node out for "
                "the network's answer."
            )
        return self.node_coef_[v, t], float(self.node_intercept_[v, t])


class _Networked(_ConsensusSVM):
    """Those that run over a network."""

    def _place(self, where: Levels, has_nodes: bool) -> tuple[Network, Levels]:
        nodes, index = where
        network = self.network
        if isinstance(network, str):
            network = Network.named(network, nodes)
        elif network is None:
            network = Network.complete(nodes)
        elif not isinstance(network, Network):
            raise refusal(
                type(self).__name__, "network", "a Network, the name of a shape or None", network
            )
        if not has_nodes:
            return network, ([network.nodes[0]], index)
        strange = [node for node in nodes if node not in network]
        if strange:
            raise NetworkError(
                f"Node {strange[0]!r} has rows, but is not in the network. "
                f"{did_you_mean(strange[0], network.nodes)}"
            )
        return network, where

    def _make(self, network: Network, common_reg: float, specific_reg: float, **more: Any) -> Session:
        return _NamedSession(
            type(self).__name__, network, C=self.C, common_reg=common_reg,
            specific_reg=specific_reg, node_penalty=self.node_penalty,
            relaxation=self.relaxation, local=self.local, tol=self.tol, relays=self.relays,
            n_jobs=self.n_jobs, **more,
        )  # fmt: skip


class DTSVM(_Networked):
    """Related SVMs trained together over a network, exact as if all rows were pooled.

    Minimises, over w₀ and a w_t for each of the tasks,

        ε₁/2 ‖w₀‖² + Σ_t (A_t/A) ε₂/2 ‖w_t‖² + C Σ max(0, 1 − y (xᵀ(w₀ + w_t) + b₀ + b_t))

    where A_t of the A (node, task) pairs with rows belong to task t.

    Parameters
    ----------
    network : Network or {"complete", "ring", "line", "star", "grid"}, optional
        Who is linked to whom; complete over the nodes seen by default.
    C : float, default=1.0
        Price of a row's hinge loss.
    common_reg, specific_reg : float, default=1.0
        ε₁ and ε₂. ε₁/ε₂ small makes tasks alike, large makes them unrelated.
    task_penalty, node_penalty : float or "auto", default="auto"
        η₁ on links inside a node and η₂ across the network; they change the speed, not the answer.
    relaxation : float, default=0.9
        κ in (0, 1). The paper's iteration is 0.5 with fixed penalties and ``local="exact"``.
    transfer : bool or list of lists, default=True
        True: all tasks train together; False: each alone; or the groups that train together.
    personal : bool, default=False
        Whether different tasks are linked across the network: each node its own task.
    positive : label or dict, optional
        The label of the positive side, for all tasks or by task; the larger one by default.
    relays : {None, "auto"}
        "auto": nodes between the holders of a task pass its messages on.
    local : {"tracking", "exact"}, default="tracking"
        How well a node solves its own problem in a round.
    tol : float, default=1e-4
        Stop when linked agents agree, and the certified gap is, to this relative accuracy.
    max_rounds : int, default=10000
        Rounds at most.
    max_seconds : float, optional
        Seconds at most.
    n_jobs : int, optional
        Threads for large problems; all cores by default. The result does not depend on it.
    callback : callable, optional
        Called with an `Info` after every round.

    Attributes
    ----------
    tasks_, nodes_ : ndarray
        Labels, in the order of every other attribute's rows.
    coef_ : ndarray of shape (n_tasks, n_features)
        The network's averaged answer w₀ + w_t; `intercept_` of shape (n_tasks,).
    common_coef_ : ndarray of shape (n_features,)
        w₀; of shape (n_tasks, n_features) when there are several groups.
    specific_coef_ : ndarray of shape (n_tasks, n_features)
        w_t.
    node_coef_ : ndarray of shape (n_nodes, n_tasks, n_features)
        What every node found; NaN where it does not hold the task. `node_intercept_` likewise.
    classes_ : ndarray
        The labels; `task_classes_` of shape (n_tasks, 2) has each task's negative and positive one.
    info_ : Info
        Status, rounds, objective, certified gap, residuals, messages and bytes sent, seconds.
    history_ : structured ndarray
        A row a round.
    network_ : Network
        The network used.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm import DTSVM, Network
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 5))
    >>> task = np.repeat(["cough", "fever"], 60)
    >>> node = np.tile(np.arange(6), 20)
    >>> y = np.sign(X[:, 0] + 0.5 * X[:, 1] * (task == "fever"))
    >>> clf = DTSVM(network=Network.ring(6), C=0.1).fit(X, y, task=task, node=node)
    >>> str(clf.info_.status), bool(clf.info_.gap < 1e-4)
    ('converged', True)
    >>> clf.coef_.shape, clf.node_coef_.shape
    ((2, 5), (6, 2, 5))
    >>> clf.predict(X[:3], task="cough", node=4).tolist() == y[:3].tolist()
    True
    """

    def __init__(
        self,
        network: Network | str | None = None,
        *,
        C: float = 1.0,
        common_reg: float = 1.0,
        specific_reg: float = 1.0,
        task_penalty: float | str = "auto",
        node_penalty: float | str = "auto",
        relaxation: float = 0.9,
        transfer: bool | Sequence[Sequence[Hashable]] = True,
        personal: bool = False,
        positive: Any = None,
        relays: str | None = None,
        local: str = "tracking",
        tol: float = 1e-4,
        max_rounds: int = 10_000,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Info], None] | None = None,
    ) -> None:
        self.network = network
        self.C = C
        self.common_reg = common_reg
        self.specific_reg = specific_reg
        self.task_penalty = task_penalty
        self.node_penalty = node_penalty
        self.relaxation = relaxation
        self.transfer = transfer
        self.personal = personal
        self.positive = positive
        self.relays = relays
        self.local = local
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callback = callback

    def _session(self, network: Network) -> Session:
        return self._make(
            network,
            self.common_reg,
            self.specific_reg,
            task_penalty=self.task_penalty,
            personal=self.personal,
        )

    def _groups(self, tasks: list[Any]) -> list[list[Any]]:
        return _chosen_groups(self.transfer, tasks)


class DSVM(_Networked):
    """SVMs over a network, every task for itself (Forero, Cano & Giannakis, 2010).

    Minimises ½‖w‖² + C Σ max(0, 1 − y (xᵀw + b)) for each task. It is `DTSVM` with ``transfer=False``
    and ε₁ = ε₂ = 2, whose two halves add up to this regulariser.

    Parameters
    ----------
    network, C, node_penalty, relaxation, positive, relays, local, tol, max_rounds, max_seconds
        As in `DTSVM`; likewise `n_jobs` and `callback`. A node penalty of 2η gives the iterates of
        the paper cited above at its η.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm import DSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> clf = DSVM(network="ring").fit(X, y, node=np.arange(60) % 4)
    >>> clf.predict(X[:2], node=3).tolist() == y[:2].tolist()
    True
    """

    def __init__(
        self,
        network: Network | str | None = None,
        *,
        C: float = 1.0,
        node_penalty: float | str = "auto",
        relaxation: float = 0.9,
        positive: Any = None,
        relays: str | None = None,
        local: str = "tracking",
        tol: float = 1e-4,
        max_rounds: int = 10_000,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Info], None] | None = None,
    ) -> None:
        self.network = network
        self.C = C
        self.node_penalty = node_penalty
        self.relaxation = relaxation
        self.positive = positive
        self.relays = relays
        self.local = local
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callback = callback

    def _session(self, network: Network) -> Session:
        return self._make(network, 2.0, 2.0)

    def _groups(self, tasks: list[Any]) -> list[list[Any]]:
        return _chosen_groups(False, tasks)


class _Central(_ConsensusSVM):
    """Those that pool the rows on one node; `node` is accepted and changes nothing."""

    def _place(self, where: Levels, has_nodes: bool) -> tuple[Network, Levels]:
        return Network([0], []), ([0], np.zeros_like(where[1]))

    def _positions(
        self, wanted: ArrayLike | None, n_rows: int, name: str, known: list[Any]
    ) -> NDArray[np.int64]:
        return super()._positions(None if name == "node" else wanted, n_rows, name, known)


class CTSVM(_Central):
    """Related SVMs trained together on pooled rows (Evgeniou & Pontil, 2004): `DTSVM` on one node.

    Parameters
    ----------
    C, common_reg, specific_reg, task_penalty, relaxation, transfer, positive, local, tol
        As in `DTSVM`; likewise `max_rounds`, `max_seconds`, `n_jobs` and `callback`.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm import CTSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> clf = CTSVM(C=0.1).fit(X, X[:, 0] > 0, task=np.arange(60) % 2)
    >>> clf.coef_.shape
    (2, 3)
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        common_reg: float = 1.0,
        specific_reg: float = 1.0,
        task_penalty: float | str = "auto",
        relaxation: float = 0.9,
        transfer: bool | Sequence[Sequence[Hashable]] = True,
        positive: Any = None,
        local: str = "tracking",
        tol: float = 1e-4,
        max_rounds: int = 10_000,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Info], None] | None = None,
    ) -> None:
        self.C = C
        self.common_reg = common_reg
        self.specific_reg = specific_reg
        self.task_penalty = task_penalty
        self.relaxation = relaxation
        self.transfer = transfer
        self.positive = positive
        self.local = local
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callback = callback

    def _session(self, network: Network) -> Session:
        return _NamedSession(
            "CTSVM", network, C=self.C, common_reg=self.common_reg,
            specific_reg=self.specific_reg, task_penalty=self.task_penalty,
            relaxation=self.relaxation, local=self.local, tol=self.tol, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _groups(self, tasks: list[Any]) -> list[list[Any]]:
        return _chosen_groups(self.transfer, tasks)


class CSVM(_Central):
    """An ordinary linear SVM for every task, on pooled rows.

    Minimises ½‖w‖² + C Σ max(0, 1 − y (xᵀw + b)): what ``sklearn.svm.SVC(kernel="linear")`` does,
    bias not regularised.

    Parameters
    ----------
    C, positive, local, tol, max_rounds, max_seconds, n_jobs, callback
        As in `DTSVM`.

    Examples
    --------
    >>> from dtsvm import CSVM
    >>> clf = CSVM(C=1.0).fit([[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"])
    >>> clf.predict([[0.5], [3.5]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        positive: Any = None,
        local: str = "tracking",
        tol: float = 1e-4,
        max_rounds: int = 10_000,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Info], None] | None = None,
    ) -> None:
        self.C = C
        self.positive = positive
        self.local = local
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callback = callback

    def _session(self, network: Network) -> Session:
        return _NamedSession(
            "CSVM", network, C=self.C, common_reg=2.0, specific_reg=2.0, local=self.local,
            tol=self.tol, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _groups(self, tasks: list[Any]) -> list[list[Any]]:
        return _chosen_groups(False, tasks)


class _NamedSession(Session):
    """A session whose refusals speak of the estimator that opened it."""

    def __init__(self, owner: str, network: Network, **options: Any) -> None:
        self._owner = owner
        super().__init__(network, **options)


def _chosen_groups(transfer: Any, tasks: list[Any]) -> list[list[Any]]:
    if transfer is True:
        return [tasks]
    if transfer is False:
        return [[task] for task in tasks]
    if isinstance(transfer, str) or not isinstance(transfer, Sequence):
        raise ParameterError(
            f"The 'transfer' parameter must be True, False or a list of groups of tasks. "
            f"Got {transfer!r} instead."
        )
    groups = [list(group) for group in transfer]
    named = [task for group in groups for task in group]
    for task in named:
        if task not in tasks:
            raise DataError(
                f"transfer names task {task!r}, which has no rows. {did_you_mean(task, tasks)}"
            )
        if named.count(task) > 1:
            raise ParameterError(f"transfer names task {task!r} twice; a task is in one group.")
    return groups + [[task] for task in tasks if task not in named]


def _unknown(name: str, value: Any, known: list[Any]) -> DataError:
    plain = value.item() if isinstance(value, np.generic) else value
    return DataError(f"Unknown {name} {plain!r}. {did_you_mean(plain, known)}")


def _array(labels: list[Any]) -> NDArray[Any]:
    """One array of labels, without turning a mixture or tuples into something else."""
    if len({type(label) for label in labels}) == 1 and not isinstance(labels[0], tuple):
        return np.array(labels)
    out = np.empty(len(labels), object)
    out[:] = labels
    return out
