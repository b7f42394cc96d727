"""A session by plan: a TOML file of stages and events, read and checked; `evolution` drives it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from dtsvm.errors import DataError, DtsvmError, ParameterError, did_you_mean
from dtsvm.problem import Network
from dtsvm.problem.settings import count, positive
from dtsvm.svm.names import read_links
from dtsvm.svm.session import Session
from dtsvm.ui.task_rows import TaskRows, read_task_rows

__all__ = ["Event", "Schedule", "Stage", "nodes_to_come", "read_schedule"]

SETTINGS = (
    "C", "common_reg", "specific_reg", "task_penalty", "node_penalty", "relaxation", "local",
    "tol", "personal", "relays", "loss", "seed", "n_jobs",
)  # fmt: skip
# What an event may say, and how it may be said in one word or list.
EVENTS: dict[str, tuple[str, ...]] = {
    "enter": ("task", "node", "links"),
    "add_data": ("task", "node", "data", "rows"),
    "drop_data": ("task", "node", "oldest"),
    "leave": ("task", "node", "allow_split"),
    "couple": ("tasks",),
    "decouple": ("task",),
    "link": ("nodes",),
    "unlink": ("nodes", "allow_split"),
    "set": SETTINGS[:8],
}
NEEDED = {
    "enter": ("task",),
    "add_data": ("task",),
    "drop_data": ("task", "oldest"),
    "couple": ("tasks",),
    "decouple": ("task",),
    "link": ("nodes",),
    "unlink": ("nodes",),
}


class Event(NamedTuple):
    """Something that is to happen: what, and to whom."""

    kind: str
    what: dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """Events, then rounds: so many, or until `tol`."""

    name: str
    rounds: int | None
    tol: float | None
    events: tuple[Event, ...]


@dataclass(frozen=True, eq=False)
class Schedule:
    """A plan that has been read and checked: who is linked, what is to be learnt, what happens."""

    path: Path
    network: Network
    settings: dict[str, Any]
    tasks: dict[str, TaskRows]
    stages: tuple[Stage, ...]


def read_schedule(path: str | PathLike[str]) -> Schedule:
    r"""Read a plan and the rows it names, and refuse what cannot be meant.

    Parameters
    ----------
    path : path-like
        The TOML file. The files it names are looked for beside it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "plan.toml")
    >>> _ = path.write_text('''
    ... network = { shape = "ring", nodes = 3 }
    ... settings = { C = 0.01 }
    ... tasks.3v6 = { data = "digits", rows_per_node = 10, test_rows = 100 }
    ... [[stages]]
    ... events = [{ enter = "3v6" }]
    ... rounds = 20
    ... ''')
    >>> schedule = read_schedule(path)
    >>> list(schedule.tasks), len(schedule.stages)
    (['3v6'], 1)
    >>> folder.cleanup()
    """
    file = Path(path)
    plan = _Plan(file, _parse(file))
    try:
        return _read(plan)
    except DtsvmError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise ParameterError(f"{file} has a value of the wrong kind ({error}).") from error


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"There is no file {path}. Check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise DataError(f"{path} is nested too deeply. Write lists and tables flat.") from error


def _read(plan: _Plan) -> Schedule:
    plan.check_keys(plan.content, ("seed", "network", "settings", "digits", "tasks", "stages"), "")
    network = _read_network(plan, plan.table("network"))
    settings = plan.table("settings", needed=False)
    plan.check_keys(settings, SETTINGS, " in [settings]")
    Session(network, **settings)  # refuses what it could not use, before any row is read
    tables = plan.table("tasks")
    stages = _read_stages(plan, list(tables))
    nodes = list(dict.fromkeys([*network.nodes, *nodes_to_come(stages)]))
    digits, seed = plan.table("digits", needed=False), plan.content.get("seed", 0)
    tasks = read_task_rows(plan.path, tables, digits, nodes, seed)
    return Schedule(plan.path, network, settings, tasks, stages)


class _Plan:
    """A TOML file's content, refused with the place in it."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self.path = path
        self.content = content

    def table(self, name: str, needed: bool = True) -> dict[str, Any]:
        found = self.content.get(name, None if needed else {})
        if not isinstance(found, dict):
            raise ParameterError(f"{self.path} needs a table [{name}].")
        return found

    def check_keys(self, table: dict[str, Any], known: Iterable[str], where: str) -> None:
        for key in table:
            if key not in known:
                raise ParameterError(
                    f"{self.path}: unknown key {key!r}{where}. {did_you_mean(key, known)}"
                )


def _read_network(plan: _Plan, table: dict[str, Any]) -> Network:
    plan.check_keys(table, ("shape", "nodes", "degree", "seed", "links"), " in [network]")
    nodes = table.get("nodes")
    if "links" in table:
        links = table["links"]
        if isinstance(links, str):
            return read_links(plan.path.parent / links, _listed(nodes))
        pairs = [tuple(pair) for pair in links]
        ends = (end for pair in pairs for end in pair)
        return Network(list(dict.fromkeys([*_listed(nodes), *ends])), pairs)  # type: ignore[arg-type]
    if nodes is None:
        raise ParameterError(f"{plan.path}: [network] needs nodes = … or links = ….")
    if table.get("shape") == "random":
        return Network.random(nodes, table.get("degree", 0.5), table.get("seed", 0))
    return Network.named(table.get("shape", "complete"), nodes)


def _listed(nodes: Any) -> list[Any]:
    if nodes is None:
        return []
    return list(range(nodes)) if isinstance(nodes, int) else list(nodes)


def _read_stages(plan: _Plan, tasks: list[str]) -> tuple[Stage, ...]:
    tables = plan.content.get("stages")
    if not isinstance(tables, list) or not tables:
        raise ParameterError(f"{plan.path} needs at least one [[stages]].")
    return tuple(_read_stage(plan, table, i, tasks) for i, table in enumerate(tables, start=1))


def _read_stage(plan: _Plan, table: dict[str, Any], number: int, tasks: list[str]) -> Stage:
    where = f"stage {number}"
    plan.check_keys(table, ("name", "rounds", "tol", "events"), f" in {where}")
    rounds, tol = table.get("rounds"), table.get("tol")
    if rounds is None and tol is None:
        raise ParameterError(f"{plan.path}: {where} needs rounds = … or tol = ….")
    events = table.get("events", [])
    if not isinstance(events, list):
        raise ParameterError(f"{plan.path}: {where} needs events = [ … ].")
    return Stage(
        str(table.get("name", where)),
        None if rounds is None else count(f"{plan.path}, {where}", "rounds", rounds),
        None if tol is None else positive(f"{plan.path}, {where}", "tol", tol),
        tuple(_read_event(plan, event, where, tasks) for event in events),
    )


def _read_event(plan: _Plan, table: Any, where: str, tasks: list[str]) -> Event:
    if not isinstance(table, dict) or len(table) != 1:
        raise ParameterError(
            f"{plan.path}: {where} has the event {table!r}. Write one as {{ enter = 'task' }}."
        )
    ((kind, value),) = table.items()
    if kind not in EVENTS:
        raise ParameterError(
            f"{plan.path}: unknown event {kind!r} in {where}. {did_you_mean(kind, EVENTS)}"
        )
    # One word or list stands for the event's first key: enter = "a" is enter = { task = "a" }.
    what = value if isinstance(value, dict) else {EVENTS[kind][0]: value}
    plan.check_keys(what, EVENTS[kind], f" in {kind} of {where}")
    for key in NEEDED.get(kind, ()):
        if key not in what:
            raise ParameterError(f"{plan.path}: {kind} of {where} needs {key} = ….")
    _check_names(plan, what, f"{kind} of {where}", tasks)
    return Event(kind, what)


def _check_names(plan: _Plan, what: dict[str, Any], where: str, tasks: list[str]) -> None:
    for key in ("tasks", "nodes", "links"):
        if not isinstance(what.get(key, []), list):
            raise ParameterError(f"{plan.path}: {where} needs {key} = [ … ].")
    if len(what.get("tasks", [0, 0])) < 2:
        raise ParameterError(f"{plan.path}: {where} needs two tasks, got {what['tasks']!r}.")
    if len(what.get("nodes", [0, 0])) != 2:
        raise ParameterError(f"{plan.path}: {where} needs two nodes, got {what['nodes']!r}.")
    for task in [*what.get("tasks", []), *([what["task"]] if "task" in what else [])]:
        if task not in tasks:
            raise ParameterError(
                f"{plan.path}: unknown task {task!r} in {where}. {did_you_mean(task, tasks)}"
            )


def nodes_to_come(stages: tuple[Stage, ...]) -> list[Any]:
    """The nodes that enter by name; rows have to be there for them too."""
    entries = [event.what for stage in stages for event in stage.events if event.kind == "enter"]
    return [what["node"] for what in entries if "node" in what]
