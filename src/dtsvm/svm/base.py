"""What the four estimators share: rows in, a session run to its end, classifiers out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dtsvm.data.folds import FOLDS
from dtsvm.data.labels import (
    all_labels,
    check_positive,
    encode_levels,
    find_labels,
    name_array,
    name_classes,
)
from dtsvm.errors import NotConvergedWarning
from dtsvm.problem import Model, Network
from dtsvm.problem.settings import count, positive
from dtsvm.rounds import Info, Status
from dtsvm.svm.answers import Answers, unknown_name, unsaid_task
from dtsvm.svm.company import find_company, present
from dtsvm.svm.frames import frame_columns, prepared, take_column
from dtsvm.svm.probability import deal_folds, held_out_tasks, with_sigmoids
from dtsvm.svm.rows import company_rows, company_weights, counted_rows, estimator_rows
from dtsvm.svm.session import Session
from dtsvm.svm.training import Training, narrow_codes, number_pairs
from dtsvm.svm.weights import weighted

__all__ = ["ConsensusSVM", "Levels"]

Levels = tuple[list[Any], NDArray[np.int64]]


def has_probabilities(estimator: Any) -> bool:
    """Whether an estimator was asked for probabilities, or its file has some."""
    tasks = getattr(getattr(estimator, "model_", None), "tasks", ())
    if getattr(estimator, "probability", any(one.sigmoid is not None for one in tasks)):
        return True
    raise AttributeError("predict_proba needs probability=True when training.")


class ConsensusSVM(ClassifierMixin, BaseEstimator):
    """What the four have in common: rows in, a session run to its end, classifiers out."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        task: ArrayLike | None = None,
        node: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)
            Rows of all nodes and tasks. Left where it is if float64 or float32, in C order or CSR.
        y : array-like of shape (n_rows,)
            Labels; every task has its own, two or more.
        task, node : array-like of shape (n_rows,), optional
            Each row's task and node; one task, one node by default.
        sample_weight : array-like of shape (n_rows,), optional
            What each row's loss is multiplied by. A row of weight 0 is not there.

        Returns
        -------
        self
            With `tasks_`, `nodes_`, `coef_`, `intercept_`, `common_coef_`, `specific_coef_`,
            `node_coef_`, `node_intercept_`, `classes_`, `task_classes_`, `network_`, `info_` and
            `history_` set.
        """
        table, network = self._table(X, y, task, node, sample_weight)
        if getattr(self, "probability", False):
            self._train_with_folds(network, table)
        else:
            session, tasks = self._enter(network, table), table.tasks
            del table  # what rounds need of a row is the session's now
            self._take_trained(session, self._run(session), network, tasks)
        self._warn(self.info_)
        return self

    def decision_function(
        self,
        X: ArrayLike,
        *,
        task: ArrayLike | None = None,
        node: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Return xᵀw + b for every row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.
        task, node : scalar or array-like of shape (n_rows,), optional
            Whose classifier to use. `task` may be left out if there is one only, or if X has the
            column `task_column`; without `node` it is the network's averaged answer.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Of two classes: above 0 for the positive one, which is the task's own if `task` is
            given. Else a value for every label of `classes_`, the largest for the label that is
            predicted; a label that a row's task does not have gets less than all others.
        """
        asked = self._ask(X, task, node, "decision_function")
        is_told = task is not None or len(self.tasks_) == 1
        if is_told and asked.are_signed():
            return asked.signed()
        scores = asked.scores(self.classes_)
        return scores[:, 1] if len(self.classes_) == 2 else scores

    def predict(
        self, X: ArrayLike, *, task: ArrayLike | None = None, node: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Return a label for every row; see `decision_function` for `task` and `node`."""
        return self._ask(X, task, node, "predict").labels(self.classes_)

    @available_if(has_probabilities)
    def predict_proba(
        self,
        X: ArrayLike,
        *,
        task: ArrayLike | None = None,
        node: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Return the probability of every label of `classes_` for every row.

        Only with ``probability=True``. A label that a row's task does not have gets 0. As the
        sigmoid has a threshold of its own, the likeliest label may differ from `predict`'s.

        Parameters
        ----------
        X, task, node
            As in `decision_function`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Every row sums to 1.
        """
        return self._ask(X, task, node, "predict_proba").probabilities(self.classes_)

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
        from sklearn import metrics  # slow to load, and fitting does without

        labels = self._ask(X, task, node, "score").labels(self.classes_)
        return float(metrics.accuracy_score(y, labels, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # Before training

    def _columns(
        self, X: Any, task: ArrayLike | None, node: ArrayLike | None
    ) -> tuple[Any, Any, Any]:
        """Take the columns that say task and node out of a frame; what is given counts more."""
        X, by_task = take_column(X, self.task_column, "task", is_needed=task is None)
        X, by_node = take_column(X, self.node_column, "node", is_needed=node is None)
        return X, by_task if task is None else task, by_node if node is None else node

    def _levels(self, values: ArrayLike | None, n_rows: int, name: str) -> Levels:
        if values is None:
            return [0], np.zeros(n_rows, np.int32)
        return encode_levels(values, n_rows, name)

    def _table(
        self,
        X: Any,
        y: Any,
        task: Any,
        node: Any,
        sample_weight: Any,
        find: Callable[[Any, Levels], dict[Any, Any]] | None = None,
        *,
        is_first: bool = True,
    ) -> tuple[Training, Network]:
        """Check what a fit is given and find out whose each row is.

        `find` gives the tasks' labels if they are not just those of the rows.
        """
        X, task, node = self._columns(X, task, node)
        company = find_company(getattr(self, "engine", "memory"))
        rows, labels = company_rows(company, self, X, y, is_first)
        n = rows.shape[0]
        what = company.levels(self._levels(task, n, "task"), "task")
        weight = company_weights(company, sample_weight, n)
        at = counted_rows(weight, n, company)
        network, (nodes, node_of) = self._place(
            company.levels(self._levels(node, n, "node"), "node"), has_nodes=node is not None
        )
        own = company.own(node_of if at is None else node_of[at], nodes, network)
        at = at if own is None else own if at is None else at[own]
        some = slice(None) if at is None else at  # no copies of what is there already
        labels, what = labels[some], (what[0], what[1][some].astype(np.int32, copy=False))
        node_of = node_of[some].astype(np.int32, copy=False)
        what = what if weight is None else present(what, company)
        if find is None:
            check_positive(self.positive, what[0])
            found = company.labels(find_labels(labels, what))
            classes = name_classes(what[0], found, self.positive, is_named=task is not None)
        else:
            classes = find(labels, what)
        weight = None if weight is None else weight[some]
        shape, is_alone = (len(nodes), len(what[0])), company.is_alone
        table = Training(
            rows, at, *what, nodes, node_of, classes, narrow_codes(labels, what, classes),
            self._groups(what[0]), weight, weight,
            None if is_alone else company.held(number_pairs(node_of, what[1], shape)), company,
        )  # fmt: skip
        return weighted(table, self.class_weight), network

    def _run(self, session: Session) -> Info:
        keeper = self.__dict__.get("_keeper")
        if keeper is not None:
            keeper.begin(session)
        self._begun = session.round
        info = session.run(
            count(type(self).__name__, "max_rounds", self.max_rounds),
            tol=session.settings.tol,
            seconds=self._seconds(),
            on_round=self.callback,
        )
        if keeper is not None:
            keeper.end(session)
        return info

    def _enter(self, network: Network, table: Training) -> Session:
        """Open a session and let all rows enter."""
        session = self._session(network)
        session._enter_all(table)
        return session

    def _train_with_folds(self, network: Network, table: Training) -> None:
        """Train all tasks, and beside them once more without each fold, for the sigmoids."""
        fold = deal_folds(table, FOLDS)
        more = held_out_tasks(table, fold)
        session = self._enter(network, more)
        info = replace(self._run(session), **session._certificate(table.tasks)._asdict())
        self._take_trained(session, info, network, table.tasks)
        models = session._task_models(more.tasks)
        n = len(table.tasks)
        self._take(replace(self.model_, tasks=with_sigmoids(models[:n], models[n:], table, fold)))

    def _take_trained(
        self, session: Session, info: Info, network: Network, tasks: list[Any]
    ) -> None:
        models = session._task_models(tasks)
        self._take(
            Model(type(self).__name__, self._settings(), network, models,
                  info, models[0].coef.shape[1], *frame_columns(self))
        )  # fmt: skip
        self.history_ = session.history
        self.n_iter_ = info.n_rounds - self.__dict__.pop("_begun")

    def _seconds(self) -> float | None:
        if self.max_seconds is None:
            return None
        return positive(type(self).__name__, "max_seconds", self.max_seconds)

    def _place(self, where: Levels, has_nodes: bool) -> tuple[Network, Levels]:
        raise NotImplementedError

    def _groups(self, tasks: list[Any]) -> list[list[Any]]:
        raise NotImplementedError

    def _session(self, network: Network) -> Session:
        raise NotImplementedError

    # After training

    @property
    def node_coef_(self) -> NDArray[np.float64]:
        """What every node found, (node, task, feature); NaN where it does not hold the task."""
        return self.model_.by_node()[:, :, :-1]

    @property
    def node_intercept_(self) -> NDArray[np.float64]:
        """The biases of `node_coef_`, (node, task)."""
        return self.model_.by_node()[:, :, -1]

    def _settings(self) -> dict[str, Any]:
        """What a model remembers of the parameters: the network has its own place, code none."""
        return {name: getattr(self, name) for name in _remembered(type(self))}  # type: ignore[arg-type]

    def _take(self, model: Model) -> None:
        """Set what training gives."""
        self.model_ = model
        self.tasks_ = name_array([one.task for one in model.tasks])
        self.nodes_ = name_array(list(model.network.nodes))
        self.network_ = model.network
        self._take_classes()
        self.coef_ = np.concatenate([one.coef for one in model.tasks])
        self.intercept_ = np.concatenate([one.intercept for one in model.tasks])
        common = np.concatenate([one.common_coef for one in model.tasks])
        self.common_coef_ = common[0] if len(model.groups) == 1 else common
        self.specific_coef_ = np.concatenate([one.specific_coef for one in model.tasks])
        self.info_ = model.info
        self.n_iter_ = model.info.n_rounds

    def _take_classes(self) -> None:
        classes = [one.classes for one in self.model_.tasks]
        are_pairs = all(len(labels) == 2 for labels in classes)
        self.task_classes_ = np.empty((len(classes), 2) if are_pairs else len(classes), object)
        self.task_classes_[:] = [list(labels) for labels in classes] if are_pairs else classes
        self.classes_ = name_array(list(classes[0])) if len(classes) == 1 else all_labels(classes)

    def _warn(self, info: Info) -> None:
        if info.status is Status.CONVERGED:
            return
        remedy = {
            Status.MAX_ROUNDS: "raise max_rounds, lower C, standardise the features or raise tol",
            Status.TIME_LIMIT: "raise max_seconds",
            Status.INTERRUPTED: "the state after the last whole round was kept",
        }[info.status]
        residual = max(info.primal_residual, info.dual_residual)
        warnings.warn(
            f"{type(self).__name__} stopped after {info.n_rounds} rounds ({info.status}) with "
            f"residual {residual:.1e} and certified gap {info.gap:.1e}, tolerance {self.tol:g}: "
            f"{remedy}.",
            NotConvergedWarning,
            stacklevel=3,
        )

    # Prediction

    def _ask(
        self, X: ArrayLike, task: ArrayLike | None, node: ArrayLike | None, method: str
    ) -> Answers:
        """Check rows, and find whom each of them asks; `method` is the one that was called."""
        check_is_fitted(self)
        is_unsaid = task is None and len(self.tasks_) > 1
        X, by_column = take_column(X, self.task_column, "task", is_needed=is_unsaid)
        X, _ = take_column(X, self.node_column, "node", is_needed=False)
        rows = estimator_rows(self, prepared(X, self.model_.preparation))
        if is_unsaid and by_column is None:
            raise unsaid_task(method, self.tasks_)
        task = by_column if is_unsaid else task
        return Answers(
            self.model_,
            rows,
            self._positions(task, rows.shape[0], "task", list(self.tasks_)),
            self._positions(node, rows.shape[0], "node", list(self.nodes_)),
        )

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
            raise unknown_name(name, wanted, known)
        values, index = encode_levels(wanted, n_rows, name)
        for value in values:
            if value not in position:
                raise unknown_name(name, value, known)
        return np.array([position[value] for value in values], np.int64)[index]


@cache
def _remembered(kind: Any) -> tuple[str, ...]:
    """The parameters of an estimator that its model remembers."""
    left_out = ("network", "callback", "engine")  # which engine ran does not matter
    names: list[str] = kind._get_param_names()
    return tuple(name for name in names if name not in left_out)
