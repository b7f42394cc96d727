"""The estimator with nothing to set: C, coupling, company and sides chosen inside the network."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dtsvm.data.labels import check_positive, find_labels, name_classes, task_codes
from dtsvm.errors import DataError, NotConvergedWarning
from dtsvm.problem import Model, Network
from dtsvm.problem.settings import choice, count, positive
from dtsvm.problem.weights import class_weights
from dtsvm.rounds import Status
from dtsvm.select import (
    Candidate,
    Chosen,
    Held,
    agent_name,
    candidates,
    choose,
    describe,
    read_families,
    read_folds,
    reference_of,
    split,
)
from dtsvm.svm.base import ConsensusSVM, Levels
from dtsvm.svm.company import Alone, find_company, mean_square, present
from dtsvm.svm.engines import ENGINES
from dtsvm.svm.estimators import METHODS as BY_HAND
from dtsvm.svm.frames import frame_columns
from dtsvm.svm.lanes import Lanes, Progress
from dtsvm.svm.mixing import Answer, by_candidate, joined, models_of, wrong_labels
from dtsvm.svm.placing import Networked
from dtsvm.svm.rows import company_rows, company_weights

__all__ = ["DTSVMCV", "METHODS"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class DTSVMCV(Networked):
    """Related SVMs over a network, with C, coupling, company and sides chosen inside it.

    Every task's classifier is a mean of candidates' classifiers, linear again. Candidates range
    from a task alone over several degrees of sharing to one classifier for all, each as it is and
    with tasks turned round, times C. Every node holds out its own rows in turn; what travels is
    what training exchanges anyway, and sums of margins by task and candidate. The weights are a
    posterior whose prior is learnt from all tasks, so a task of few rows follows what helps others.

    Parameters
    ----------
    network : Network or str, optional
        As in `DTSVM`.
    candidates : {"all", "small", "alone"} or list of (bias, own share, turned), default="small"
        Families to try: `bias` is "task", "common" or "mixed"; the own share θ gives the task's own
        weights ε₂ = 1/θ and the common ones ε₁ = 1/(1 − θ). ("task", 1.0) must be among them.
    C : float or list of float, optional
        Values to try; 0.1, 1, 10 and 100 over the mean squared length of a row by default. The
        objective is ½‖w‖² + C Σ hinge, as in `DSVM`.
    folds : int or array-like of shape (n_rows,), default=3
        How many times rows are held out, or which fold (from 0) holds out each row.
    guard : {None, "alone"}
        With "alone", a task trains alone, at the C with the fewest held-out errors, unless company
        makes no more of them than that and than always to say its commoner label, and is likelier
        to be better by odds of three to two, by its held-out margins and by what other tasks have
        found. Hardly a task loses then; the average does, up to five points with ten rows a task.
    refit : bool, default=True
        Whether candidates are trained on all rows beside the folds; else the mean of the folds'
        classifiers is taken, which trains one lane of each fewer.
    positive, class_weight, task_column, node_column
        As in `DTSVM`. Weights count in training and in the losses of held-out rows; errors are
        shares of rows as they are.
    tol : float, default=0.05
        Certified gap of every candidate.
    max_rounds : int, default=3000
        Rounds a candidate may take.
    seed : int, default=0
        Of the folds.
    n_jobs : int, optional
        Candidates trained at a time, by threads; all cores by default, one at several ranks.
    engine : {"memory", "mpi"}, default="memory"
        With "mpi" all ranks train every candidate, each with the rows of its own nodes; where every
        rank is given all rows, candidates are dealt to them. The result does not depend on it.
    callback : callable, optional
        Called with a `Progress` after every candidate.

    Attributes
    ----------
    choices_ : list of Choice
        A row a task: what was chosen, the error alone and as chosen with intervals, and a sentence.
        Where a task has more than two labels, a row a label and task.
    candidates_ : list of Candidate
        What was tried; `weights_` of shape (n_choices, n_candidates) has their shares.
    is_wrong_ : ndarray of shape (n_rows, 3)
        Which rows, when held out, are labelled wrong: alone, by the one candidate with company that
        is best for all tasks, and as chosen. A row of weight 0 is not there and never wrong.
    coef_, intercept_, node_coef_, node_intercept_, tasks_, nodes_, classes_, task_classes_
        As in `DTSVM`; `common_coef_` is the mean over tasks and `specific_coef_` the rest.
    info_ : Info
        Rounds as if all candidates of a stage ran side by side, the worst gap, bytes of them all.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm import DTSVMCV, Network
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 5))
    >>> task = np.repeat(["cough", "fever"], 60)
    >>> node = np.tile(np.arange(6), 20)
    >>> y = np.sign(X[:, 0] + 0.1) * np.where(task == "fever", -1, 1)
    >>> clf = DTSVMCV(Network.ring(6)).fit(X, y, task=task, node=node)
    >>> [choice.is_turned for choice in clf.choices_]
    [False, True]
    >>> clf.score(X, y, task=task) > 0.95
    True
    """

    is_wrong_: NDArray[np.bool_]

    def __init__(
        self,
        network: Network | str | None = None,
        *,
        candidates: str | Sequence[Any] = "small",
        C: float | Iterable[float] | None = None,
        folds: int | ArrayLike = 3,
        guard: str | None = None,
        refit: bool = True,
        positive: Any = None,
        class_weight: Any = None,
        task_column: str | None = None,
        node_column: str | None = None,
        tol: float = 0.05,
        max_rounds: int = 3000,
        seed: int = 0,
        n_jobs: int | None = None,
        engine: str = "memory",
        callback: Callable[[Progress], None] | None = None,
    ) -> None:
        self.network = network
        self.candidates = candidates
        self.C = C
        self.folds = folds
        self.guard = guard
        self.refit = refit
        self.positive = positive
        self.class_weight = class_weight
        self.task_column = task_column
        self.node_column = node_column
        self.tol = tol
        self.max_rounds = max_rounds
        self.seed = seed
        self.n_jobs = n_jobs
        self.engine = engine
        self.callback = callback

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        task: ArrayLike | None = None,
        node: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Choose and train.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)
            Rows of all nodes and tasks.
        y : array-like of shape (n_rows,)
            Labels; every task has its own two or more. Where one has more, every label is told
            from the rest: a choice a label, for the tasks that have it.
        task, node : array-like of shape (n_rows,), optional
            Each row's task and node; one task, one node by default.
        sample_weight : array-like of shape (n_rows,), optional
            What each row's loss is multiplied by. A row of weight 0 is not there.

        Returns
        -------
        self
            With `choices_`, `weights_`, `candidates_` and what the other estimators set.
        """
        self._check_options()
        X, task, node = self._columns(X, task, node)
        company = find_company(self.engine)
        rows, labels = company_rows(company, self, X, y, True)
        n_rows = rows.shape[0]
        what = company.levels(self._levels(task, n_rows, "task"), "task")
        where = company.levels(self._levels(node, n_rows, "node"), "node")
        weight = company_weights(company, sample_weight, n_rows)
        at = np.arange(n_rows)
        if weight is not None and not weight.all():
            at = np.flatnonzero(weight)
            rows, labels, weight = rows[at], labels[at], weight[at]
            what, where = (what[0], what[1][at]), (where[0], where[1][at])
        if not company.largest(len(at)):
            raise DataError("The sample_weight of all rows is zero; some rows must count.")
        what = what if weight is None else present(what, company)
        network, where = self._place(where, has_nodes=node is not None)
        others = Alone() if company.own(where[1], where[0], network) is not None else company
        check_positive(self.positive, what[0])
        found = others.labels(find_labels(labels, what))
        classes = name_classes(what[0], found, self.positive, is_named=task is not None)
        codes = task_codes(labels, what, classes)
        held = self._hold(rows, codes, what, where, (at, n_rows), others)
        held = replace(held, weight=self._weigh(weight, codes, what, classes, others))
        lanes = self._lanes(held, where, network, (company, others))
        if any(len(several) > 2 for several in classes.values()):
            self._choose_labels(lanes, what, codes, classes)
        else:
            self._choose(lanes, what[0], classes)
        if len(at) < n_rows:
            self.is_wrong_ = _spread(self.is_wrong_, at, n_rows)
        return self

    def _lanes(
        self, held: Held, where: Levels, network: Network, ranks: tuple[Alone, Alone]
    ) -> Lanes:
        """Say who trains: each process some candidates on all rows, or all on rows of its own."""
        company, others = ranks
        is_default = self.n_jobs is None and not company.is_alone
        n_threads = os.cpu_count() or 1 if self.n_jobs in (None, -1) else self.n_jobs
        is_dealt = not others.is_alone
        return Lanes(
            held, where, network, mean_square(held.X, where[1], others), self.tol, self.max_rounds,
            1 if is_default or is_dealt else n_threads, self.callback,
            Alone() if is_dealt else company, others,
        )  # fmt: skip

    def _weigh(
        self, weight: Floats | None, codes: Ints, what: Levels,
        classes: dict[Any, tuple[Any, ...]], others: Alone,
    ) -> Floats | None:  # fmt: skip
        """Multiply a row's weight by its class's; None if all are 1."""
        if self.class_weight is None:
            return weight
        tasks, task = what
        known = {name: classes[name] for name in tasks}
        counts = [
            others.add(np.bincount(codes[task == t], minlength=len(known[name])))
            for t, name in enumerate(tasks)
        ]
        each = class_weights(self.class_weight, known, counts)
        found = np.array([each[t][k] for t, k in zip(task.tolist(), codes.tolist(), strict=True)])
        return found if weight is None else found * weight

    def _choose(
        self, lanes: Lanes, tasks: list[Any], classes: dict[Hashable, tuple[Any, ...]]
    ) -> Self:
        """Choose from what the lanes say, and keep it."""
        _check_pairs(classes)
        self._take_answers([Answer(lanes, tasks, self._chosen(lanes))], tasks, classes)
        return self

    def _choose_labels(
        self, lanes: Lanes, what: Levels, codes: Ints, classes: dict[Hashable, tuple[Any, ...]]
    ) -> None:
        """Choose for one label after the other: the tasks that have it train it together."""
        tasks, task = what
        held, (nodes, node) = lanes.held, lanes.where
        answers = []
        for label in dict.fromkeys(label for name in tasks for label in classes[name]):
            some = [t for t, name in enumerate(tasks) if label in classes[name]]
            rows = np.flatnonzero(np.isin(task, some))
            position = np.array([(*classes[name], label).index(label) for name in tasks])
            mine = replace(
                held, X=held.X[rows], fold=held.fold[rows], n_tasks=len(some),
                y=np.where(codes[rows] == position[task[rows]], 1.0, -1.0),
                task=np.searchsorted(some, task[rows]),
                weight=None if held.weight is None else held.weight[rows],
            )  # fmt: skip
            part = replace(lanes, held=mine, where=(nodes, node[rows]), stages=[], _lifted={})
            names = [tasks[t] for t in some]
            answers.append((Answer(part, names, self._chosen(part), label), rows))
        self._take_answers([answer for answer, _ in answers], tasks, classes)
        self.is_wrong_ = wrong_labels(answers, what, codes, classes)

    def _chosen(self, lanes: Lanes) -> Chosen:
        """Choose from what the lanes say."""
        some = self._candidates(lanes.held.n_tasks, lanes.mean_square)
        return choose(
            lanes.held, some, lanes, reference=reference_of(some, lanes.mean_square),
            total=lanes.others.add, guard=self.guard, refit=self.refit,
        )  # fmt: skip

    def _take_answers(
        self, answers: list[Answer], tasks: list[Any], classes: dict[Hashable, tuple[Any, ...]]
    ) -> None:
        """Keep what was chosen."""
        models = models_of(answers, tasks, classes)
        self.choices_ = [
            replace(one, label=answer.label)
            for answer in answers
            for one in describe(answer.chosen, answer.tasks)
        ]
        every = [answer.lanes for answer in answers]
        self._take(
            Model(type(self).__name__, self._settings(), every[0].network, models, joined(*every),
                  every[0].held.X.shape[1], *frame_columns(self),
                  choices=tuple(one.to_dict() for one in self.choices_))
        )  # fmt: skip
        self.candidates_, self.weights_ = by_candidate(answers)
        self.is_wrong_ = answers[0].chosen.found.is_wrong
        self._warn_lanes(every)

    def _check_options(self) -> None:
        owner = type(self).__name__
        if self.guard is not None:
            choice(owner, "guard", self.guard, ("alone",))
        choice(owner, "engine", self.engine, ENGINES)
        positive(owner, "tol", self.tol)
        count(owner, "max_rounds", self.max_rounds)
        if self.n_jobs is not None and self.n_jobs != -1:
            count(owner, "n_jobs", self.n_jobs)

    def _candidates(self, n_tasks: int, mean_square: float) -> list[Candidate]:
        owner = type(self).__name__
        families = read_families(owner, self.candidates)
        return candidates(families, n_tasks=n_tasks, mean_square=mean_square, C=self.C, owner=owner)

    def _hold(
        self, X: Any, codes: Ints, what: Levels, where: Levels, at: tuple[Ints, int], others: Alone
    ) -> Held:
        """Say which fold holds out each row; `at` is which of so many rows given they are."""
        owner, y = type(self).__name__, np.where(codes == 1, 1.0, -1.0)
        if np.ndim(self.folds) == 0:
            n = read_folds(owner, self.folds)
            agent = where[1] * len(what[0]) + what[1]
            names = [agent_name(node, task) for node in where[0] for task in what[0]]
            fold = split(y, agent, n, self.seed, names)
            for k in range(2, int(codes.max(initial=0)) + 1):  # labels beyond the first two
                more = codes == k
                fold[more] = split(y[more], agent[more], n, (self.seed, k), names)
            return Held(X, y, what[1], fold, len(what[0]), n)
        fold = np.asarray(self.folds)
        rows, n_rows = at
        if len(fold) != n_rows:
            raise DataError(f"X has {n_rows} rows, but folds has {len(fold)}.")
        fold = fold[rows]
        is_good = fold.ndim == 1 and fold.dtype.kind in "iu" and fold.min(initial=0) >= 0
        some = others.distinct(fold.astype(np.int64)) if is_good else fold[:0]
        if len(some) < 2:
            raise DataError("folds must number each row's fold with ints from 0, two at least.")
        return Held(X, y, what[1], np.searchsorted(some, fold), len(what[0]), len(some))

    def _settings(self) -> dict[str, Any]:
        """Drop what a file cannot keep: folds row by row."""
        settings = super()._settings()
        if np.ndim(self.folds) > 0:
            settings["folds"] = len(np.unique(np.asarray(self.folds)))
        if isinstance(self.C, Iterable):
            settings["C"] = [float(value) for value in self.C]
        if not isinstance(self.candidates, str):
            settings["candidates"] = [list(family) for family in self.candidates]
        return settings

    def _warn_lanes(self, lanes: list[Lanes]) -> None:
        ends = [end for one in lanes for stage in one.stages for end in stage]
        late = [(c, info) for c, info in ends if info.status is not Status.CONVERGED]
        if not late:
            return
        worst, info = max(late, key=lambda end: end[1].gap)
        warnings.warn(
            f"{len(late)} of {len(ends)} trainings of {type(self).__name__} stopped after "
            f"{self.max_rounds} rounds above the tolerance {self.tol:g}; the worst, {worst.family} "
            f"at C = {worst.C:.2g}, has a certified gap of {info.gap:.1e}: raise max_rounds, "
            "leave out large C, standardise the features or raise tol.",
            NotConvergedWarning,
            stacklevel=4,
        )


def _spread(values: NDArray[np.bool_], at: Ints, n_rows: int) -> NDArray[np.bool_]:
    """Put rows where they were among all; the others are false."""
    out = np.zeros((n_rows, *values.shape[1:]), bool)
    out[at] = values
    return out


def _check_pairs(classes: dict[Hashable, tuple[Any, ...]]) -> None:
    for task, labels in classes.items():
        if len(labels) > 2:
            raise DataError(
                f"Task {task!r} has {len(labels)} labels, and a session chooses for tasks of two: "
                "choose with DTSVMCV(...).fit(...)."
            )


METHODS: dict[str, type[ConsensusSVM]] = {**BY_HAND, DTSVMCV.__name__: DTSVMCV}
