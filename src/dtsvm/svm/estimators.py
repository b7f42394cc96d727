"""The face: SVMs over a network as scikit-learn classifiers, each a choice of links and groups."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from dtsvm.problem import Network
from dtsvm.rounds import Info
from dtsvm.svm.base import ConsensusSVM
from dtsvm.svm.continuing import Continuing
from dtsvm.svm.placing import Networked, chosen_groups
from dtsvm.svm.pooled import CSVM, CTSVM
from dtsvm.svm.session import Session

__all__ = ["DSVM", "DTSVM", "METHODS"]


class DTSVM(Continuing, Networked):
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
    relaxation : float, default=0.8
        κ in (0, 1). The paper's iteration is 0.5 with fixed penalties and ``local="exact"``.
    bias : {"task", "common", "mixed"}, default="task"
        A free bias a task; one for all that train together; or a free common one and a specific one
        that is regularised as a constant feature of the features' mean square would be.
    transfer : bool or list of lists, default=True
        True: all tasks train together; False: each alone; or the groups that train together.
    personal : bool, default=False
        Whether different tasks are linked across the network: each node its own task.
    positive : label or dict, optional
        The label of the positive side, for all tasks or by task; the larger one by default.
    class_weight : "balanced", dict or None
        What the loss of a label's rows is multiplied by. "balanced": n / (K n_k) in a task with n
        rows, K labels and n_k rows of this one, counted over the whole network; or a weight a
        label, or by task a dict of them.
    probability : bool, default=False
        Whether to learn probabilities for `predict_proba`: all tasks train five times more beside,
        each time without a fifth of every node's rows.
    warm_start : bool, default=False
        Whether the next `fit` begins where this one ended. On the same rows with another C or
        regularisation everything is kept, else what the nodes found. The training rows are kept in
        memory, and in a pickle.
    task_column, node_column : str, optional
        Columns of a frame (pandas, polars) that say each row's task and node. They are no features.
        Then nothing need be routed: every scorer, search and meta-estimator of scikit-learn works.
    relays : {None, "auto"}
        "auto": nodes between the holders of a task pass its messages on.
    local : {"tracking", "exact"}, default="tracking"
        How well a node solves its own problem in a round.
    tol : float, default=1e-4
        Training stops at a certified relative gap of ¾ of it, when linked agents agree to 0.4 √tol.
    max_rounds : int, default=10000
        Rounds at most.
    max_seconds : float, optional
        Seconds at most.
    n_jobs : int, optional
        Threads for large problems; all cores by default. The result does not depend on it.
    engine : {"memory", "mpi"}, default="memory"
        Who carries the rounds: this process, or all ranks of an MPI program, each of which makes
        the same calls. The result does not depend on it.
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
    model_ : Model
        All of it, frozen: what `save_model` writes.

    Notes
    -----
    A task that trains alone has w₀ and w_t for itself, and with ε₁ = ε₂ = 1 the two together cost
    ¼‖w₀ + w_t‖²: ``transfer=False`` at C is `DSVM` or `CSVM` at 2C. In general it is `CSVM` at
    C (1/ε₁ + 1/ε₂).

    The share A_t/A of a task falls as tasks and nodes are added, so one ε₂ ties a task less and
    less: to keep w_t as it was, multiply `specific_reg` by what A_t/A was divided by. Tasks
    without rows count too.

    A task with rows of one label only trains with the others if another task has this label and a
    second one; its labels are then that task's.

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
        relaxation: float = 0.8,
        bias: str = "task",
        transfer: bool | Sequence[Sequence[Hashable]] = True,
        personal: bool = False,
        positive: Any = None,
        class_weight: Any = None,
        probability: bool = False,
        warm_start: bool = False,
        task_column: str | None = None,
        node_column: str | None = None,
        relays: str | None = None,
        local: str = "tracking",
        tol: float = 1e-4,
        max_rounds: int = 10_000,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        engine: str = "memory",
        callback: Callable[[Info], None] | None = None,
    ) -> None:
        self.network = network
        self.C = C
        self.common_reg = common_reg
        self.specific_reg = specific_reg
        self.task_penalty = task_penalty
        self.node_penalty = node_penalty
        self.relaxation = relaxation
        self.bias = bias
        self.transfer = transfer
        self.personal = personal
        self.positive = positive
        self.class_weight = class_weight
        self.probability = probability
        self.warm_start = warm_start
        self.task_column = task_column
        self.node_column = node_column
        self.relays = relays
        self.local = local
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.engine = engine
        self.callback = callback

    def _session(self, network: Network) -> Session:
        return self._make(
            network,
            self.common_reg,
            self.specific_reg,
            task_penalty=self.task_penalty,
            bias=self.bias,
            personal=self.personal,
        )

    def _groups(self, tasks: list[Any]) -> list[list[Any]]:
        return chosen_groups(self.transfer, tasks)


class DSVM(Continuing, Networked):
    """SVMs over a network, every task for itself (Forero, Cano & Giannakis, 2010).

    Minimises ½‖w‖² + C Σ max(0, 1 − y (xᵀw + b)) for each task. It is `DTSVM` with
    ``transfer=False`` and ε₁ = ε₂ = 2, whose two halves add up to this regulariser.

    Parameters
    ----------
    network, C, node_penalty, relaxation, positive, class_weight, relays, local, tol, max_rounds
        As in `DTSVM`; likewise `probability`, `warm_start`, `task_column`, `node_column`,
        `max_seconds`, `n_jobs`, `engine` and `callback`. A node penalty of 2η gives the cited
        paper's at η.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm import DSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> clf = DSVM(network="ring").fit(X, y, node=np.arange(60) % 4)
    >>> clf.score(X, y, node=3) > 0.95
    True
    """

    def __init__(
        self,
        network: Network | str | None = None,
        *,
        C: float = 1.0,
        node_penalty: float | str = "auto",
        relaxation: float = 0.8,
        positive: Any = None,
        class_weight: Any = None,
        probability: bool = False,
        warm_start: bool = False,
        task_column: str | None = None,
        node_column: str | None = None,
        relays: str | None = None,
        local: str = "tracking",
        tol: float = 1e-4,
        max_rounds: int = 10_000,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        engine: str = "memory",
        callback: Callable[[Info], None] | None = None,
    ) -> None:
        self.network = network
        self.C = C
        self.node_penalty = node_penalty
        self.relaxation = relaxation
        self.positive = positive
        self.class_weight = class_weight
        self.probability = probability
        self.warm_start = warm_start
        self.task_column = task_column
        self.node_column = node_column
        self.relays = relays
        self.local = local
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.engine = engine
        self.callback = callback

    def _session(self, network: Network) -> Session:
        return self._make(network, 2.0, 2.0)

    def _groups(self, tasks: list[Any]) -> list[list[Any]]:
        return chosen_groups(False, tasks)


METHODS: dict[str, type[ConsensusSVM]] = {cls.__name__: cls for cls in (DTSVM, DSVM, CTSVM, CSVM)}
