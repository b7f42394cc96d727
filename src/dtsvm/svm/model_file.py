"""A trained model on disk: JSON that a person can read, written whole or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dtsvm.data.files import write_atomically
from dtsvm.errors import ModelFileError, ParameterError
from dtsvm.problem import Columns, Model, TaskModel
from dtsvm.svm.model_reader import (
    FORMAT,
    METHODS,
    REMEDY,
    VERSION,
    is_label,
    name_tuple,
    parse,
    rebuild,
)

__all__ = ["estimator_of", "load_model", "model_of", "read_model", "save_model"]


def save_model(
    trained: Any,
    path: str | PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    label: str | None = None,
    task: str | None = None,
    node: str | None = None,
) -> None:
    """Write what was trained to a JSON file.

    Parameters
    ----------
    trained : DTSVM, DTSVMCV, DSVM, CTSVM, CSVM, Session or Model
        A fitted estimator, a session that has run, or a model. Its nodes, tasks and labels must be
        strings, ints, floats or bools.
    path : path-like
        The file to write; an old one is replaced in one step.
    feature_names : sequence of str, optional
        Names of the features, by which the command line finds them in other files. By default those
        the estimator was fitted or loaded with.
    label, task, node : str, optional
        Columns of the training files, which the command line looks for in other files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dtsvm import CSVM, load_model, save_model
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "model.json")
    >>> clf = CSVM().fit([[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"])
    >>> save_model(clf, path, feature_names=["height"])
    >>> load_model(path).predict([[0.5], [3.5]]).tolist()
    ['low', 'high']
    >>> folder.cleanup()
    """
    model = _with_columns(model_of(trained), Columns(name_tuple(feature_names), label, task, node))
    text = _to_text(_sections(model)) + "\n"
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise ModelFileError(
            f"{path} cannot be written: {error.strerror or error}. Choose another place."
        ) from error


def load_model(path: str | PathLike[str]) -> Any:
    """Read an estimator from a file; it predicts bit for bit what the saved one did.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    DTSVM, DTSVMCV, DSVM, CTSVM or CSVM
        Fitted: it has every attribute of the saved one but `history_` and `choices_`, and
        `columns_`, a `Columns`.

    Examples
    --------
    >>> from dtsvm import load_model
    >>> load_model("nowhere.json")
    Traceback (most recent call last):
    ...
    dtsvm.errors.ModelFileError: There is no file nowhere.json. Check the path.
    """
    model = read_model(path)
    try:
        return estimator_of(model)
    except (TypeError, ValueError) as error:
        raise _strange(Path(path), error) from error


def read_model(path: str | PathLike[str]) -> Model:
    """Read the `Model` that `save_model` wrote."""
    file = Path(path)
    try:
        return rebuild(file, parse(file))
    except ModelFileError:
        raise
    except KeyError as error:
        raise ModelFileError(f"{file} lacks the entry {error}. {REMEDY}") from error
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _strange(file, error) from error


def _strange(file: Path, error: Exception) -> ModelFileError:
    return ModelFileError(f"{file} has an entry that does not belong there ({error}). {REMEDY}")


def model_of(trained: Any) -> Model:
    """Return the model of a fitted estimator, of a session or of itself."""
    if isinstance(trained, Model):
        return trained
    # Who has neither a session nor an estimator needs no scikit-learn, which loads slowly.
    from sklearn.utils.validation import check_is_fitted

    from dtsvm.svm.base import ConsensusSVM
    from dtsvm.svm.session import Session

    if isinstance(trained, Session):
        return trained.model()
    if type(trained).__name__ not in METHODS or not isinstance(trained, ConsensusSVM):
        raise ParameterError(
            f"save_model writes a {', '.join(METHODS)}, a Session or a Model and nothing else. "
            f"Got {type(trained).__name__} instead."
        )
    check_is_fitted(trained)
    return trained.model_


def estimator_of(model: Model) -> Any:
    """Return a fitted estimator that answers as the model does."""
    from dtsvm.svm import cv

    cls = cv.METHODS[model.method]
    known = cls._get_param_names()
    estimator: Any = cls(**{name: model.settings[name] for name in model.settings if name in known})
    if "network" in known:
        estimator.network = model.network
    estimator.n_features_in_ = model.n_features
    estimator.columns_ = model.columns
    if model.names_are_checked:
        estimator.feature_names_in_ = np.array(model.columns.features, object)
    estimator._take(model)
    return estimator


# To text


def _sections(model: Model) -> dict[str, Any]:
    from dtsvm import __version__

    return {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"dtsvm {__version__}",
        "method": model.method,
        "settings": {name: _plain(value) for name, value in model.settings.items()},
        "columns": {
            "n_features": int(model.n_features),
            **model.columns._asdict(),
            "are_checked": model.names_are_checked,
        },
        "preparation": _json("preparation", model.preparation),
        "privacy": _json("privacy", model.privacy),
        "choices": [_json("choices", choice) for choice in model.choices],
        "network": {
            "nodes": [_label("Node", node) for node in model.network.nodes],
            "links": [list(link) for link in model.network],
        },
        "tasks": [_task(one) for one in model.tasks],
        "common": _common(model),
        "nodes": [entry for one in model.tasks for entry in _nodes(one)],
        "info": {name: _known(value) for name, value in asdict(model.info).items()},
    }


def _task(one: TaskModel) -> dict[str, Any]:
    return {
        "task": _label("Task", one.task),
        "classes": [_label("Label", label) for label in one.classes],
        "group": one.group,
        "classifiers": [
            {
                "class": label,
                "intercept": float(one.intercept[k]),
                "coef": one.coef[k].tolist(),
                "specific_coef": one.specific_coef[k].tolist(),
                "sigmoid": None if one.sigmoid is None else one.sigmoid[k].tolist(),
            }
            for k, label in enumerate(_labels(one))
        ],
    }


def _labels(one: TaskModel) -> list[Any]:
    """Each classifier's label; null where one classifier tells two labels apart."""
    return [None] if one.n_classifiers == 1 else [_label("Label", label) for label in one.classes]


def _common(model: Model) -> list[dict[str, Any]]:
    """The common part of each group of tasks that trained together, by class."""
    found: dict[Any, dict[str, Any]] = {}
    for one in model.tasks:
        for k, label in enumerate(_labels(one)):
            entry = {"group": one.group, "class": label, "coef": one.common_coef[k].tolist()}
            found.setdefault((one.group, type(label), label), entry)
    return list(found.values())


def _nodes(one: TaskModel) -> list[dict[str, Any]]:
    """What each node says on its own, where it holds the task."""
    return [
        {
            "node": _label("Node", node),
            "task": one.task,
            "class": label,
            "intercept": float(own[k, -1]),
            "coef": own[k, :-1].tolist(),
        }
        for node, own in one.nodes.items()
        for k, label in enumerate(_labels(one))
    ]


def _with_columns(model: Model, given: Columns) -> Model:
    known = model.columns
    features = given.features or known.features
    if features is not None and len(features) != model.n_features:
        raise ParameterError(
            f"feature_names has {len(features)} names, but the model has {model.n_features} "
            "features."
        )
    others = (new or old for new, old in zip(given[1:], known[1:], strict=True))
    return replace(model, columns=Columns(features, *others))  # type: ignore[arg-type]


def _label(what: str, value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if not is_label(plain):
        raise ModelFileError(
            f"{what} {plain!r} cannot be written to a model file; use strings, ints, floats or "
            "bools as names."
        )
    return plain


def _json(what: str, value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a part that others fill in, if JSON can keep it."""
    if value is None:
        return None
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ModelFileError(
            f"The model's {what} cannot be written to a model file ({error}); it must be made of "
            "text, finite numbers, lists and objects."
        ) from error
    return dict(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        # An object's keys are strings in JSON; pairs keep the type of a name.
        return {"pairs": [[_plain(name), _plain(item)] for name, item in value.items()]}
    return value


def _known(value: Any) -> Any:
    """JSON has no NaN: what is not known is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _to_text(value: Any, indent: str = "") -> str:
    """Indent objects and lists of objects; a list of numbers or names stays on one line."""
    deeper = indent + "  "
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {_to_text(item, deeper)}" for key, item in value.items()]
        return _block("{", items, "}", indent)
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return _block("[", [_to_text(item, deeper) for item in value], "]", indent)
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _block(start: str, items: list[str], end: str, indent: str) -> str:
    lines = ",\n".join(f"{indent}  {item}" for item in items)
    return f"{start}\n{lines}\n{indent}{end}"
