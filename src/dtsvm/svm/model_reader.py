"""A model file read back: every entry checked before it is used."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import ModelFileError
from dtsvm.problem import Network
from dtsvm.rounds import Info, Status
from dtsvm.svm.base import ConsensusSVM
from dtsvm.svm.estimators import CSVM, CTSVM, DSVM, DTSVM

__all__ = [
    "FORMAT",
    "METHODS",
    "REMEDY",
    "VERSION",
    "Columns",
    "Reader",
    "is_label",
    "name_tuple",
    "parse",
    "rebuild",
]

FORMAT, VERSION = "dtsvm model", 1
METHODS: dict[str, type[ConsensusSVM]] = {cls.__name__: cls for cls in (DTSVM, DSVM, CTSVM, CSVM)}
REMEDY = "Train again, or restore the file from a copy."


class Columns(NamedTuple):
    """The columns a model was trained from, where it was trained from files; None if unknown."""

    features: tuple[str, ...] | None = None
    label: str | None = None
    task: str | None = None
    node: str | None = None


def name_tuple(names: Any) -> tuple[str, ...] | None:
    """Return names as a tuple of strings, or None."""
    return None if names is None else tuple(str(name) for name in names)


def is_label(value: Any) -> bool:
    """Whether JSON gives this name back as it was."""
    return type(value) in (str, int, bool) or (type(value) is float and math.isfinite(value))


def parse(path: Path) -> dict[str, Any]:
    """Read the file as JSON of our format and version."""
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


class Reader:
    """The sections of one file, each refused by name when it is not as expected."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self.path = path
        self.content = content

    def refuse(self, what: str) -> NoReturn:
        """Say what is wrong, in which file, and what to do."""
        raise ModelFileError(f"{self.path}: {what}. {REMEDY}")

    def section(self, name: str, kind: type) -> Any:
        """Return a part of the file that must be there."""
        if name not in self.content:
            raise ModelFileError(f"{self.path} has no section {name!r}. {REMEDY}")
        if not isinstance(self.content[name], kind):
            self.refuse(f"section {name!r} is not {_KINDS[kind]}")
        return self.content[name]

    def numbers(self, values: Any, n: int, what: str) -> list[float]:
        """Return `n` finite numbers."""
        if not isinstance(values, list) or len(values) != n:
            got = f"{len(values)} numbers" if isinstance(values, list) else repr(values)
            self.refuse(f"{what} needs {n} numbers, got {got}")
        return [self.number(value, what) for value in values]

    def number(self, value: Any, what: str) -> float:
        """Return one finite number."""
        if type(value) not in (int, float) or not math.isfinite(value):
            self.refuse(f"{what} has {value!r} where a finite number is expected")
        return float(value)

    def label(self, value: Any, what: str) -> Any:
        """Return a name."""
        if not is_label(value):
            self.refuse(f"{what} has {value!r} where a name is expected")
        return value


_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}


def rebuild(reader: Reader) -> Any:
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


def _read_method(reader: Reader) -> str:
    method = str(reader.section("method", str))
    if method not in METHODS:
        reader.refuse(f"the method is {method!r} instead of one of {', '.join(METHODS)}")
    return method


def _read_settings(reader: Reader) -> dict[str, Any]:
    settings = dict(reader.section("settings", dict))
    if isinstance(settings["positive"], dict):
        settings["positive"] = dict(settings["positive"]["by_task"])
    return settings


def _read_columns(reader: Reader, columns: dict[str, Any], p: int) -> Columns:
    features = columns["features"]
    if features is not None and (not isinstance(features, list) or len(features) != p):
        reader.refuse(f"columns names {features!r} as its {p} features")
    others = [columns[name] for name in Columns._fields[1:]]
    for name in [*(features or []), *others]:
        if name is not None and not isinstance(name, str):
            reader.refuse(f"columns has {name!r} where a column's name is expected")
    if columns["are_checked"] not in (True, False) or (columns["are_checked"] and not features):
        reader.refuse("columns says that names are checked, but has none")
    return Columns(name_tuple(features), *others)


def _read_network(reader: Reader) -> Network:
    section = reader.section("network", dict)
    nodes = [reader.label(node, "section 'network'") for node in section["nodes"]]
    return Network(nodes, [(u, v) for u, v in section["links"]])


def _read_tasks(reader: Reader, estimator: Any, p: int) -> list[Any]:
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


def _read_common(reader: Reader, estimator: Any, tasks: list[Any], p: int) -> None:
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


def _read_nodes(reader: Reader, estimator: Any, tasks: list[Any], p: int) -> None:
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
    reader: Reader, entry: dict[str, Any], p: int, owner: str
) -> NDArray[np.float64]:
    coef = reader.numbers(entry["coef"], p, f"coef of {owner}")
    return np.array([*coef, reader.number(entry["intercept"], f"intercept of {owner}")])


def _read_info(reader: Reader) -> Info:
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
