"""The face on pooled rows: all tasks together, or each for itself, on one node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from dtsvm.problem import Network
from dtsvm.rounds import Info
from dtsvm.svm.continuing import Continuing
from dtsvm.svm.placing import Central, NamedSession, chosen_groups
from dtsvm.svm.session import Session

__all__ = ["CSVM", "CTSVM"]


class CTSVM(Continuing, Central):
    """Related SVMs trained together on pooled rows (Evgeniou & Pontil, 2004): `DTSVM` on one node.

    Parameters
    ----------
    C, common_reg, specific_reg, task_penalty, relaxation, bias, transfer, positive, local, tol
        As in `DTSVM`; likewise `class_weight`, `probability`, `warm_start`, `task_column`,
        `node_column`, `max_rounds`, `max_seconds`, `n_jobs` and `callback`.

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
        relaxation: float = 0.8,
        bias: str = "task",
        transfer: bool | Sequence[Sequence[Hashable]] = True,
        positive: Any = None,
        class_weight: Any = None,
        probability: bool = False,
        warm_start: bool = False,
        task_column: str | None = None,
        node_column: str | None = None,
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
        self.bias = bias
        self.transfer = transfer
        self.positive = positive
        self.class_weight = class_weight
        self.probability = probability
        self.warm_start = warm_start
        self.task_column = task_column
        self.node_column = node_column
        self.local = local
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callback = callback

    def _session(self, network: Network) -> Session:
        return NamedSession(
            "CTSVM", network, C=self.C, common_reg=self.common_reg,
            specific_reg=self.specific_reg, task_penalty=self.task_penalty, bias=self.bias,
            relaxation=self.relaxation, local=self.local, tol=self.tol, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _groups(self, tasks: list[Any]) -> list[list[Any]]:
        return chosen_groups(self.transfer, tasks)


class CSVM(Continuing, Central):
    """An ordinary linear SVM for every task, on pooled rows.

    Minimises ½‖w‖² + C Σ max(0, 1 − y (xᵀw + b)): what ``sklearn.svm.SVC(kernel="linear")`` does,
    bias not regularised.

    Parameters
    ----------
    C, positive, class_weight, probability, warm_start, task_column, node_column, local, tol
        As in `DTSVM`; likewise `max_rounds`, `max_seconds`, `n_jobs` and `callback`.

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
        class_weight: Any = None,
        probability: bool = False,
        warm_start: bool = False,
        task_column: str | None = None,
        node_column: str | None = None,
        local: str = "tracking",
        tol: float = 1e-4,
        max_rounds: int = 10_000,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Info], None] | None = None,
    ) -> None:
        self.C = C
        self.positive = positive
        self.class_weight = class_weight
        self.probability = probability
        self.warm_start = warm_start
        self.task_column = task_column
        self.node_column = node_column
        self.local = local
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callback = callback

    def _session(self, network: Network) -> Session:
        return NamedSession(
            "CSVM", network, C=self.C, common_reg=2.0, specific_reg=2.0, local=self.local,
            tol=self.tol, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _groups(self, tasks: list[Any]) -> list[list[Any]]:
        return chosen_groups(False, tasks)
