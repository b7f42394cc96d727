"""A trained model on disk: JSON that a person can read, written whole or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dtsvm.errors import ModelFileError, ParameterError
from dtsvm.problem import Network
from dtsvm.rounds import Info, Status
from dtsvm.svm.base import ConsensusSVM
from dtsvm.svm.checkpoint import write_atomically
from dtsvm.svm.estimators import CSVM, CTSVM, DSVM, DTSVM

__all__ = ["Columns", "load_model", "save_model"]

FORMAT, VERSION = "dtsvm model", 1
METHODS: dict[str, type[ConsensusSVM]] = {cls.__name__: cls for cls in (DTSVM, DSVM, CTSVM, CSVM)}
REMEDY = "Train again, or restore the file from a copy."
# The network is stored once, in its own section; a callback is code.
_NOT_SETTINGS = ("network", "callback")


class Columns(NamedTuple):
    """The columns a model was trained from, where it was trained from files; None if unknown."""

    features: tuple[str, ...] | None = None
    label: str | None = None
    task: str | None = None
    node: str | None = None


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
    columns = _columns_of(estimator, Columns(_tuple(feature_names), label, task, node))
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
    reader = _Reader(file, _parse(file))
    try:
        return _rebuild(reader)
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
    named = _tuple(getattr(estimator, "feature_names_in_", None))
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


def _tuple(names: Any) -> tuple[str, ...] | None:
    return None if names is None else tuple(str(name) for name in names)


def _label(what: str, value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if not _is_label(plain):
        raise ModelFileError(
            f"{what} {plain!r} cannot be written to a model file; use strings, ints, floats or "
            "bools as names."
        )
    return plain


def _is_label(value: Any) -> bool:
    return type(value) in (str, int, bool) or (type(value) is float and math.isfinite(value))


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


# From text


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ModelFileError(f"There is no file {path}. Check the path.") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError:
        raise _not_a_model(path) from None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        if FORMAT not in text[:200]:
            raise _not_a_model(path) from None
        line = getattr(error, "lineno", 1)
        raise ModelFileError(f"{path} is cut short or damaged at line {line}. {REMEDY}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _not_a_model(path)
    if content.get("version") != VERSION:
        raise ModelFileError(
            f"{path} is a model file of version {content.get('version')!r}, but this dtsvm reads "
            f"version {VERSION}. Install the dtsvm that wrote it, or train again."
        )
    return content


def _not_a_model(path: Path) -> ModelFileError:
    return ModelFileError(
        f"{path} is not a model file. Give a file that 'dtsvm train' or save_model wrote."
    )


class _Reader:
    """The sections of one file, each refused by name when it is not as expected."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self.path = path
        self.content = content

    def refuse(self, what: str) -> NoReturn:
        raise ModelFileError(f"{self.path}: {what}. {REMEDY}")

    def section(self, name: str, kind: type) -> Any:
        if name not in self.content:
            raise ModelFileError(f"{self.path} has no section {name!r}. {REMEDY}")
        if not isinstance(self.content[name], kind):
            self.refuse(f"section {name!r} is not {_KINDS[kind]}")
        return self.content[name]

    def numbers(self, values: Any, n: int, what: str) -> list[float]:
        if not isinstance(values, list) or len(values) != n:
            got = f"{len(values)} numbers" if isinstance(values, list) else repr(values)
            self.refuse(f"{what} needs {n} numbers, got {got}")
        return [self.number(value, what) for value in values]

    def number(self, value: Any, what: str) -> float:
        if type(value) not in (int, float) or not math.isfinite(value):
            self.refuse(f"{what} has {value!r} where a finite number is expected")
        return float(value)

    def label(self, value: Any, what: str) -> Any:
        if not _is_label(value):
            self.refuse(f"{what} has {value!r} where a name is expected")
        return value


_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}


def _rebuild(reader: _Reader) -> Any:
    """Make the estimator again and give it what training gave it, in the same layout."""
    estimator: Any = METHODS[_read_method(reader)](**_read_settings(reader))
    columns = reader.section("columns", dict)
    p = columns["n_features"]
    if type(p) is not int or p < 1:
        reader.refuse(f"n_features is {p!r} instead of a positive int")
    estimator.n_features_in_ = p
    estimator.columns_ = _read_columns(reader, columns, p)
    if columns["are_checked"]:
        estimator.feature_names_in_ = np.array(estimator.columns_.features, object)
    estimator.network_ = network = _read_network(reader)
    if "network" in estimator.get_params(deep=False):
        estimator.network = network
    estimator.nodes_ = _names(list(network.nodes))
    tasks = _read_tasks(reader, estimator, p)
    _read_common(reader, estimator, tasks, p)
    _read_nodes(reader, estimator, tasks, p)
    estimator.info_ = _read_info(reader)
    estimator.n_iter_ = estimator.info_.n_rounds
    return estimator


def _read_method(reader: _Reader) -> str:
    method = str(reader.section("method", str))
    if method not in METHODS:
        reader.refuse(f"the method is {method!r} instead of one of {', '.join(METHODS)}")
    return method


def _read_settings(reader: _Reader) -> dict[str, Any]:
    settings = dict(reader.section("settings", dict))
    if isinstance(settings["positive"], dict):
        settings["positive"] = dict(settings["positive"]["by_task"])
    return settings


def _read_columns(reader: _Reader, columns: dict[str, Any], p: int) -> Columns:
    features = columns["features"]
    if features is not None and (not isinstance(features, list) or len(features) != p):
        reader.refuse(f"columns names {features!r} as its {p} features")
    others = [columns[name] for name in Columns._fields[1:]]
    for name in [*(features or []), *others]:
        if name is not None and not isinstance(name, str):
            reader.refuse(f"columns has {name!r} where a column's name is expected")
    if columns["are_checked"] not in (True, False) or (columns["are_checked"] and not features):
        reader.refuse("columns says that names are checked, but has none")
    return Columns(_tuple(features), *others)


def _read_network(reader: _Reader) -> Network:
    section = reader.section("network", dict)
    nodes = [reader.label(node, "section 'network'") for node in section["nodes"]]
    return Network(nodes, [(u, v) for u, v in section["links"]])


def _read_tasks(reader: _Reader, estimator: Any, p: int) -> list[Any]:
    """Set what there is for each task: labels, the network's classifier, its specific part."""
    section = reader.section("tasks", list)
    tasks = [reader.label(entry["task"], "section 'tasks'") for entry in section]
    if not tasks or len(set(tasks)) != len(tasks):
        reader.refuse("section 'tasks' needs tasks with different names")
    pairs = [
        [reader.label(entry[side], f"task {entry['task']!r}") for side in ("negative", "positive")]
        for entry in section
    ]
    whole, specific = np.empty((len(tasks), p + 1)), np.zeros((len(tasks), p + 1))
    for t, entry in enumerate(section):
        whole[t] = _read_classifier(reader, entry, p, f"task {tasks[t]!r}")
        specific[t, :-1] = reader.numbers(
            entry["specific_coef"], p, f"specific_coef of task {tasks[t]!r}"
        )
    estimator.tasks_ = _names(tasks)
    estimator.task_classes_ = np.empty((len(tasks), 2), object)
    estimator.task_classes_[:] = pairs
    labels = np.array([label for pair in pairs for label in pair])
    estimator.classes_ = labels if len(tasks) == 1 else np.unique(labels)
    estimator.coef_, estimator.intercept_ = whole[:, :-1], whole[:, -1]
    estimator.specific_coef_ = specific[:, :-1]
    return tasks


def _read_common(reader: _Reader, estimator: Any, tasks: list[Any], p: int) -> None:
    groups = reader.section("common", list)
    named = [task for group in groups for task in group["tasks"]]
    if len(named) != len(tasks) or set(named) != set(tasks):
        reader.refuse("section 'common' does not name every task once")
    common = np.empty((len(tasks), p))
    for group in groups:
        common[[tasks.index(task) for task in group["tasks"]]] = reader.numbers(
            group["coef"], p, "a coef of section 'common'"
        )
    estimator.common_coef_ = common[0] if len(groups) == 1 else common


def _read_nodes(reader: _Reader, estimator: Any, tasks: list[Any], p: int) -> None:
    nodes = list(estimator.network_.nodes)
    by_node = np.full((len(nodes), len(tasks), p + 1), np.nan)
    for entry in reader.section("nodes", list):
        node, task = entry["node"], entry["task"]
        if node not in nodes or task not in tasks:
            reader.refuse(f"section 'nodes' names node {node!r} and task {task!r}, one of which "
                          "is not in the model")  # fmt: skip
        by_node[nodes.index(node), tasks.index(task)] = _read_classifier(
            reader, entry, p, f"node {node!r}, task {task!r}"
        )
    estimator.node_coef_, estimator.node_intercept_ = by_node[:, :, :-1], by_node[:, :, -1]


def _read_classifier(
    reader: _Reader, entry: dict[str, Any], p: int, owner: str
) -> NDArray[np.float64]:
    coef = reader.numbers(entry["coef"], p, f"coef of {owner}")
    return np.array([*coef, reader.number(entry["intercept"], f"intercept of {owner}")])


def _read_info(reader: _Reader) -> Info:
    section = reader.section("info", dict)
    values: dict[str, Any] = {
        name: math.nan if value is None else value for name, value in section.items()
    }
    for name, value in values.items():
        if name != "status" and type(value) not in (int, float):
            reader.refuse(f"{name} of section 'info' is {value!r} instead of a number")
    values["status"] = Status(values["status"])
    return Info(**values)


def _names(labels: list[Any]) -> NDArray[Any]:
    """One array of names that does not turn a mixture of types into strings."""
    if len({type(label) for label in labels}) == 1:
        return np.array(labels)
    names = np.empty(len(labels), object)
    names[:] = labels
    return names
