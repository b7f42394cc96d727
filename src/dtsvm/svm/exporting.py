"""A trained task for programs that do not know us: as scikit-learn's own classifier, or ONNX."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.labels import name_array
from dtsvm.errors import DataError, MissingExtraError
from dtsvm.problem import Model, TaskModel
from dtsvm.problem.settings import choice
from dtsvm.svm.model_file import model_of

__all__ = ["export"]


def export(
    trained: Any, task: Hashable = None, *, node: Hashable = None, form: str = "sklearn"
) -> Any:
    """Return one task's classifier as an object of another library.

    Parameters
    ----------
    trained : DTSVM, DSVM, CTSVM, CSVM, Session or Model
        What was trained.
    task : hashable, optional
        The task; it may be left out if there is one only.
    node : hashable, optional
        Whose classifier; the network's averaged one by default.
    form : {"sklearn", "onnx"}, default="sklearn"
        A fitted ``sklearn.linear_model.SGDClassifier(loss="hinge")``, which needs nothing of this
        package any more; or an ONNX model of it, which needs skl2onnx to be made.

    Returns
    -------
    SGDClassifier or onnx.ModelProto
        It labels rows of features as the task does; a model that was trained from raw columns has
        them made by its preparation, which is not part of it. The ONNX model takes float32 rows
        named "X".

    Examples
    --------
    >>> from dtsvm import CSVM, export
    >>> clf = CSVM().fit([[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"])
    >>> plain = export(clf)
    >>> type(plain).__name__, plain.predict([[0.5], [3.5]]).tolist()
    ('SGDClassifier', ['low', 'high'])
    """
    choice("export", "form", form, ("sklearn", "onnx"))
    model = model_of(trained)
    plain = _plain(model, _one(model, task), node)
    return plain if form == "sklearn" else _to_onnx(plain)


def _one(model: Model, task: Hashable) -> TaskModel:
    if task is not None:
        return model.task(task)
    if len(model.tasks) > 1:
        names = ", ".join(str(one.task) for one in model.tasks)
        raise DataError(
            f"The model knows several tasks ({names}): say which to export with task=…."
        )
    return model.tasks[0]


def _plain(model: Model, one: TaskModel, node: Hashable) -> Any:
    from sklearn.linear_model import SGDClassifier  # slow to import, and seldom needed

    coef, intercept, classes = _in_order(*one.weights(node), list(one.classes))
    plain = SGDClassifier(loss="hinge")
    plain.coef_, plain.intercept_, plain.classes_ = coef, intercept, name_array(classes)
    plain.n_features_in_, plain.n_iter_ = model.n_features, model.info.n_rounds
    if model.names_are_checked:
        plain.feature_names_in_ = np.array(model.columns.features, object)
    return plain


def _in_order(
    coef: NDArray[np.float64], intercept: NDArray[np.float64], classes: list[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[Any]]:
    """Put labels in scikit-learn's order: sorted, one row of weights if they are two."""
    if len(classes) == 2 and len(coef) == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    try:
        order = sorted(range(len(classes)), key=lambda k: classes[k])
    except TypeError:  # labels of kinds that do not compare: as they are
        order = list(range(len(classes)))
    in_order = [classes[k] for k in order]
    if len(classes) > 2:
        return coef[order], intercept[order], in_order
    turn = 1.0 if order == [0, 1] else -1.0
    return turn * coef, turn * intercept, in_order


def _to_onnx(plain: Any) -> Any:
    try:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import FloatTensorType
    except ImportError as error:
        raise MissingExtraError(
            "Export as ONNX needs skl2onnx, which is not installed. "
            'Install it with: pip install "dtsvm[onnx]"'
        ) from error
    return convert_sklearn(
        plain,
        initial_types=[("X", FloatTensorType([None, plain.n_features_in_]))],
        options={id(plain): {"zipmap": False, "raw_scores": True}},
    )
