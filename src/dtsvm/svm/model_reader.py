"""A model file read back: every entry checked before it is used."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import ModelFileError
from dtsvm.problem import Columns, Model, Network, TaskModel
from dtsvm.rounds import Info, Status

__all__ = [
    "FORMAT",
    "METHODS",
    "POOLED",
    "REMEDY",
    "VERSION",
    "is_label",
    "name_tuple",
    "parse",
    "rebuild",
]

FORMAT, VERSION = "dtsvm model", 2
METHODS = ("DTSVM", "DSVM", "CTSVM", "CSVM", "DTSVMCV")  # the classes by these names
POOLED = ("CTSVM", "CSVM")  # of these, the ones without a network
REMEDY = "Train again, or restore the file from a copy."


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

    def index(self, value: Any, what: str) -> int:
        """Return a number that counts."""
        if type(value) is not int or value < 0:
            self.refuse(f"{what} is {value!r} instead of a whole number")
        return value

    def maybe(self, name: str) -> dict[str, Any] | None:
        """Return a part that may be null."""
        if name in self.content and self.content[name] is None:
            return None
        found: dict[str, Any] = self.section(name, dict)
        return found

    def label(self, value: Any, what: str) -> Any:
        """Return a name."""
        if not is_label(value):
            self.refuse(f"{what} has {value!r} where a name is expected")
        return value


_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}


def rebuild(path: Path, content: dict[str, Any]) -> Model:
    """Make the model again from what the file holds."""
    reader = Reader(path, content)
    method = str(reader.section("method", str))
    if method not in METHODS:
        reader.refuse(f"the method is {method!r} instead of one of {', '.join(METHODS)}")
    columns = reader.section("columns", dict)
    p = columns["n_features"]
    if type(p) is not int or p < 1:
        reader.refuse(f"n_features is {p!r} instead of a positive int")
    settings = {name: _setting(value) for name, value in reader.section("settings", dict).items()}
    network = _read_network(reader)
    return Model(
        method, settings, network, _read_tasks(reader, p, list(network.nodes)),
        _read_info(reader), p, _read_columns(reader, columns, p), columns["are_checked"],
        reader.maybe("preparation"), reader.maybe("privacy"), _read_choices(reader),
    )  # fmt: skip


def _read_choices(reader: Reader) -> tuple[dict[str, Any], ...]:
    found = reader.section("choices", list) if "choices" in reader.content else []
    if not all(isinstance(one, dict) and isinstance(one.get("sentence"), str) for one in found):
        reader.refuse("section 'choices' has an entry without a sentence")
    return tuple(found)


def _setting(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _setting(item) for name, item in value["pairs"]}
    return value


def _read_columns(reader: Reader, columns: dict[str, Any], p: int) -> Columns:
    features, units = columns["features"], columns["units"]
    for what, names in (("features", features), ("units", units)):
        if names is not None and (not isinstance(names, list) or len(names) != p):
            reader.refuse(f"columns names {names!r} as its {p} {what}")
    label, task, node = (columns[name] for name in ("label", "task", "node"))
    for name in [*(features or []), *(units or []), label, task, node]:
        if name is not None and not isinstance(name, str):
            reader.refuse(f"columns has {name!r} where a column's name is expected")
    if columns["are_checked"] not in (True, False) or (columns["are_checked"] and not features):
        reader.refuse("columns says that names are checked, but has none")
    return Columns(name_tuple(features), label, task, node, units and tuple(units))


def _read_network(reader: Reader) -> Network:
    section = reader.section("network", dict)
    nodes = [reader.label(node, "section 'network'") for node in section["nodes"]]
    return Network(nodes, [(u, v) for u, v in section["links"]])


def _read_tasks(reader: Reader, p: int, nodes: list[Any]) -> tuple[TaskModel, ...]:
    section = reader.section("tasks", list)
    tasks = [reader.label(entry["task"], "section 'tasks'") for entry in section]
    if not tasks or len(set(tasks)) != len(tasks):
        reader.refuse("section 'tasks' needs tasks with different names")
    common = {
        (entry["group"], _key(entry["class"])): reader.numbers(
            entry["coef"], p, "a coef of section 'common'"
        )
        for entry in reader.section("common", list)
    }
    by_node = _read_nodes(reader, tasks, nodes, p)
    return tuple(
        _read_task(reader, entry, p, common, by_node.get(entry["task"], {})) for entry in section
    )


def _read_task(
    reader: Reader, entry: dict[str, Any], p: int, common: dict[Any, Any], own: dict[Any, Any]
) -> TaskModel:
    """Read one task: labels, the network's classifiers, their parts, and every holder's."""
    owner = f"task {entry['task']!r}"
    classes = tuple(reader.label(label, owner) for label in entry["classes"])
    found = entry["classifiers"]
    labels = [one["class"] for one in found]
    if len(classes) < 2 or labels not in ([None], list(classes)):
        reader.refuse(f"{owner} needs one classifier for its two labels, or one for each label")
    whole = np.array([_read_classifier(reader, one, p, owner) for one in found])
    specific = [
        reader.numbers(one["specific_coef"], p, f"specific_coef of {owner}") for one in found
    ]
    shared = [common.get((entry["group"], _key(label))) for label in labels]
    if None in shared:
        reader.refuse(f"section 'common' has nothing for {owner}")
    nodes = {node: np.array([one[_key(label)] for label in labels]) for node, one in own.items()}
    return TaskModel(
        entry["task"], classes, whole[:, :-1], whole[:, -1], np.array(shared), np.array(specific),
        nodes, reader.index(entry["group"], f"group of {owner}"), _read_sigmoids(reader, found),
    )  # fmt: skip


def _read_sigmoids(reader: Reader, found: list[dict[str, Any]]) -> NDArray[np.float64] | None:
    if all(one["sigmoid"] is None for one in found):
        return None
    return np.array([reader.numbers(one["sigmoid"], 2, "sigmoid") for one in found])


def _read_nodes(
    reader: Reader, tasks: list[Any], nodes: list[Any], p: int
) -> dict[Any, dict[Any, dict[Any, Any]]]:
    """Return what each node says on its own, by task, node and class."""
    found: dict[Any, dict[Any, dict[Any, Any]]] = {}
    for entry in reader.section("nodes", list):
        node, task = entry["node"], entry["task"]
        if node not in nodes or task not in tasks:
            reader.refuse(f"section 'nodes' names node {node!r} and task {task!r}, one of which "
                          "is not in the model")  # fmt: skip
        own = _read_classifier(reader, entry, p, f"node {node!r}, task {task!r}")
        found.setdefault(task, {}).setdefault(node, {})[_key(entry["class"])] = own
    return found


def _key(label: Any) -> tuple[type, Any]:
    """Tell 1 and True apart."""
    return type(label), label


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
