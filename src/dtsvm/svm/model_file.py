"""A trained model on disk: JSON that a person can read, written whole or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dtsvm.data.files import write_atomically
from dtsvm.errors import ModelFileError, ParameterError
from dtsvm.svm.base import ConsensusSVM
from dtsvm.svm.model_reader import (
    FORMAT,
    METHODS,
    REMEDY,
    VERSION,
    Columns,
    Reader,
    is_label,
    name_tuple,
    parse,
    rebuild,
)

__all__ = ["load_model", "save_model"]

# The network is stored once, in its own section; a callback is code.
_NOT_SETTINGS = ("network", "callback")


def save_model(
    estimator: Any,
    path: str | PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    label: str | None = None,
    task: str | None = None,
    node: str | None = None,
) -> None:
    """Write a trained estimator to a JSON file.

    Parameters
    ----------
    estimator : DTSVM, DSVM, CTSVM or CSVM
        A fitted estimator. Its nodes, tasks and labels must be strings, ints, floats or bools.
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
    >>> from dtsvm import CSVM
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "model.json")
    >>> clf = CSVM().fit([[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"])
    >>> save_model(clf, path, feature_names=["height"])
    >>> load_model(path).predict([[0.5], [3.5]]).tolist()
    ['low', 'high']
    >>> folder.cleanup()
    """
    if type(estimator).__name__ not in METHODS or not isinstance(estimator, ConsensusSVM):
        raise ParameterError(
            f"save_model writes a {', '.join(METHODS)} and nothing else. "
            f"Got {type(estimator).__name__} instead."
        )
    check_is_fitted(estimator)
    columns = _columns_of(estimator, Columns(name_tuple(feature_names), label, task, node))
    text = _to_text(_sections(estimator, columns)) + "\n"
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise ModelFileError(
            f"{path} cannot be written: {error.strerror or error}. Choose another place."
        ) from error


def load_model(path: str | PathLike[str]) -> Any:
    """Read an estimator that `save_model` wrote; it predicts bit for bit what the saved one did.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    DTSVM, DSVM, CTSVM or CSVM
        Fitted: it has every attribute of the saved one but `history_`, and `columns_`, a `Columns`.

    Examples
    --------
    >>> load_model("nowhere.json")
    Traceback (most recent call last):
    ...
    dtsvm.errors.ModelFileError: There is no file nowhere.json. Check the path.
    """
    file = Path(path)
    reader = Reader(file, parse(file))
    try:
        return rebuild(reader)
    except ModelFileError:
        raise
    except KeyError as error:
        raise ModelFileError(f"{file} lacks the entry {error}. {REMEDY}") from error
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(
            f"{file} has an entry that does not belong there ({error}). {REMEDY}"
        ) from error


# To text


def _sections(estimator: Any, columns: Columns) -> dict[str, Any]:
    from dtsvm import __version__

    return {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"dtsvm {__version__}",
        "method": type(estimator).__name__,
        "settings": _settings(estimator),
        "columns": {
            "n_features": int(estimator.n_features_in_),
            **columns._asdict(),
            "are_checked": hasattr(estimator, "feature_names_in_"),
        },
        "network": {
            "nodes": [_label("Node", node) for node in estimator.network_.nodes],
            "links": [list(link) for link in estimator.network_],
        },
        "tasks": _tasks(estimator),
        "common": _common(estimator),
        "nodes": _nodes(estimator),
        "info": {name: _known(value) for name, value in asdict(estimator.info_).items()},
    }


def _settings(estimator: Any) -> dict[str, Any]:
    settings = estimator.get_params(deep=False)
    for name in _NOT_SETTINGS:
        settings.pop(name, None)
    if isinstance(settings["positive"], Mapping):
        # An object's keys are strings in JSON; pairs keep the type of a task's name.
        settings["positive"] = {"by_task": [list(pair) for pair in settings["positive"].items()]}
    return {name: _plain(value) for name, value in settings.items()}


def _tasks(estimator: Any) -> list[dict[str, Any]]:
    return [
        {
            "task": _label("Task", task),
            "negative": _label("Label", negative),
            "positive": _label("Label", positive),
            "intercept": float(estimator.intercept_[t]),
            "coef": estimator.coef_[t].tolist(),
            "specific_coef": estimator.specific_coef_[t].tolist(),
        }
        for t, (task, (negative, positive)) in enumerate(
            zip(estimator.tasks_.tolist(), estimator.task_classes_.tolist(), strict=True)
        )
    ]


def _common(estimator: Any) -> list[dict[str, Any]]:
    """The common part of each group of tasks that trained together."""
    tasks = estimator.tasks_.tolist()
    parts = np.broadcast_to(estimator.common_coef_, estimator.coef_.shape)
    return [
        {"tasks": group, "coef": parts[tasks.index(group[0])].tolist()}
        for group in estimator._groups(tasks)
        if group
    ]


def _nodes(estimator: Any) -> list[dict[str, Any]]:
    """What each node says on its own, where it holds the task."""
    nodes, tasks = estimator.nodes_.tolist(), estimator.tasks_.tolist()
    return [
        {
            "node": nodes[v],
            "task": tasks[t],
            "intercept": float(estimator.node_intercept_[v, t]),
            "coef": estimator.node_coef_[v, t].tolist(),
        }
        for v, t in np.argwhere(~np.isnan(estimator.node_intercept_)).tolist()
    ]


def _columns_of(estimator: Any, given: Columns) -> Columns:
    known = getattr(estimator, "columns_", Columns())
    named = name_tuple(getattr(estimator, "feature_names_in_", None))
    columns = Columns(
        given.features or named or known.features,
        *(new or old for new, old in zip(given[1:], known[1:], strict=True)),
    )
    n_features = estimator.n_features_in_
    if columns.features is not None and len(columns.features) != n_features:
        raise ParameterError(
            f"feature_names has {len(columns.features)} names, but the model has {n_features} "
            "features."
        )
    return columns


def _label(what: str, value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if not is_label(plain):
        raise ModelFileError(
            f"{what} {plain!r} cannot be written to a model file; use strings, ints, floats or "
            "bools as names."
        )
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
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
