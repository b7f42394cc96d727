"""Differential privacy for readers of the model alone: noise, once, on a certified optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dtsvm.errors import DataError
from dtsvm.problem import Model, Privacy, TaskModel
from dtsvm.runtime.privacy.accounting import noise_multiplier
from dtsvm.runtime.privacy.noise import clip, noised, true_normal
from dtsvm.svm.model_file import model_of
from dtsvm.svm.pooled import CTSVM

__all__ = ["optimum_sensitivity", "release"]

Floats = NDArray[np.float64]


def optimum_sensitivity(C: float, norm: float, reg: tuple[float, float], slack: float) -> float:
    """Return how far an answer within `slack` of the optimum can move if one row is replaced.

    The parts v = (w₀, w₁, …), biases among them as weights of a constant feature, minimise

        J(v) = ε/2 ‖w₀‖² + Σ_t ε'/2 ‖w_t‖² + C Σ_i max(0, 1 − y_i x̃_iᵀ(w₀ + w_t)),

    which is strongly convex with modulus 1 in ‖v‖² = ε ‖w₀‖² + ε' Σ ‖w_t‖². A row of task t changes
    J by a function of w₀ + w_t that is Lipschitz with constant C ‖x̃‖, and ‖w₀ + w_t‖ ≤
    √(1/ε + 1/ε') ‖v‖. As in `noise.sensitivity`, two optima are within 2 C √(R² + 1) √(1/ε + 1/ε')
    of each other; an answer v̂ with J(v̂) ≤ J* + slack is within √(2 slack) of its own.

    Examples
    --------
    >>> optimum_sensitivity(0.5, 0.0, (2.0, 2.0), 0.0)
    1.0
    """
    curved = np.sqrt(1.0 / reg[0] + 1.0 / reg[1])
    return float(2.0 * C * np.sqrt(norm * norm + 1.0) * curved + 2.0 * np.sqrt(2.0 * slack))


def release(
    X: Any,
    y: ArrayLike,
    task: ArrayLike,
    privacy: Privacy,
    *,
    C: float = 1.0,
    reg: tuple[float, float] = (1.0, 1.0),
    tol: float = 1e-8,
    draw: Callable[[int], Floats] = true_normal,
) -> Model:
    """Train on rows in one place and return classifiers that tell readers little of any row.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Rows; those longer than `privacy.norm` are shortened.
    y, task : array-like of shape (n_rows,)
        Labels, two of each task, and tasks.
    privacy : Privacy
        ε, δ and the norm. Each call spends all of ε once more.
    C : float, default=1
        Price of a row's loss.
    reg : tuple of two floats, default=(1, 1)
        `common_reg` and `specific_reg` of `CTSVM`; the bias is regularised as a constant feature.
    tol : float, default=1e-8
        Certified relative gap; it is part of the noise.
    draw : callable, optional
        Draws standard normal numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from dtsvm.problem import Privacy
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> model = release(X, X[:, 0] > 0, np.zeros(400), Privacy("dp", norm=3.0), C=0.01)
    >>> model.privacy["readers_only"]
    True
    """
    rows, labels, tasks = clip(X, privacy.norm), np.asarray(y), np.asarray(task)
    names, of_task = np.unique(tasks, return_inverse=True)
    classes, signs = _signs(labels, names, of_task)
    trained = _trained(rows, signs, of_task, tol, (C, *reg))
    reg = (reg[0], reg[1] / len(names))
    slack = tol * C * len(signs)  # J* ≤ J(0) = C n: a bound that tells nothing of the rows
    size = noise_multiplier(privacy.epsilon, privacy.delta, 1) * optimum_sensitivity(
        C, privacy.norm, reg, slack
    )
    p1 = rows.shape[1] + 1
    sizes = [np.full(p1, size / np.sqrt(one)) for one in reg]
    common = noised(trained.tasks[0].common_coef[0], sizes[0], draw)
    answers = []
    for k, one in enumerate(trained.tasks):
        own = noised(one.specific_coef[0], sizes[1], draw)
        answers.append(_answer(names[k].item(), classes[k], common, own))
    told = {**privacy.describe(), "rounds": 1, "readers_only": True}
    none = float("nan")  # how training went follows from the rows
    info = replace(
        trained.info, n_rounds=1, objective=none, gap=none, primal_residual=none,
        dual_residual=none, seconds=0.0,
    )  # fmt: skip
    return replace(
        trained, tasks=tuple(answers), n_features=p1 - 1, privacy=told, info=info,
    )  # fmt: skip


def _signs(labels: Any, names: Any, of_task: Any) -> tuple[list[tuple[Any, Any]], Floats]:
    classes, signs = [], np.zeros(len(labels))
    for k, name in enumerate(names.tolist()):
        mine = of_task == k
        found = np.unique(labels[mine])
        if len(found) != 2:
            raise DataError(f"Task {name!r} has {len(found)} labels; a release needs two.")
        classes.append((found[0].item(), found[1].item()))
        signs[mine] = np.where(labels[mine] == found[1], 1.0, -1.0)
    return classes, signs


def _trained(
    rows: Floats, signs: Floats, of_task: Any, tol: float, weights: tuple[float, float, float]
) -> Model:
    """Train with the bias as a feature: with every row mirrored, the free bias is best at zero."""
    wide = np.column_stack([rows, np.ones(len(rows))])
    C, common_reg, specific_reg = weights
    clf = CTSVM(C=C, common_reg=common_reg, specific_reg=specific_reg, tol=tol, max_rounds=100_000)
    clf.fit(
        np.concatenate([wide, -wide]),
        np.concatenate([signs, -signs]),
        task=np.concatenate([of_task, of_task]),
        sample_weight=np.full(2 * len(signs), 0.5),
    )
    if not clf.info_.gap <= tol:
        raise DataError(
            f"Training ended at a certified gap of {clf.info_.gap:.1e} instead of {tol:g}, so the "
            "noise would not be enough. Raise tol."
        )
    return model_of(clf)


def _answer(task: Any, classes: tuple[Any, Any], common: Floats, own: Floats) -> TaskModel:
    whole = (common + own)[None]
    return TaskModel(task, classes, whole[:, :-1], whole[:, -1], common[None, :-1], own[None, :-1])
