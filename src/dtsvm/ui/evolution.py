"""A session driven by a plan, round by round, and what happened."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from dtsvm.errors import DataError, DtsvmError
from dtsvm.rounds import Info, Status
from dtsvm.svm.session import Session
from dtsvm.ui.schedule import Event, Schedule, Stage, nodes_to_come
from dtsvm.ui.task_rows import TaskRows

__all__ = ["Evolution", "run_schedule"]


@dataclass(eq=False)
class Evolution:
    """What happened, a row a round.

    Attributes
    ----------
    tasks : list of str
        The tasks that have test rows.
    rows : list of tuple
        Round, stage, primal residual, dual residual, and each task's risk, NaN before it entered.
    ends : list of (Stage, Info)
        The stages done, and how each ended.
    """

    tasks: list[str]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    ends: list[tuple[Stage, Info]] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        """Names of what is in a row."""
        risks = [f"risk_{task}" for task in self.tasks]
        return ["round", "stage", "primal_residual", "dual_residual", *risks]

    def to_csv(self) -> str:
        """Return the rows as CSV; a risk that is not known yet is empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow("" if _is_nan(value) else value for value in row)
        return text.getvalue()


def run_schedule(
    schedule: Schedule,
    *,
    on_stage: Callable[[Stage], None] | None = None,
    on_round: Callable[[Info, Evolution], None] | None = None,
) -> Evolution:
    """Drive a session through a plan; Ctrl-C ends it after a whole round.

    Parameters
    ----------
    schedule : Schedule
        The plan.
    on_stage : callable, optional
        Called with each `Stage` when it begins.
    on_round : callable, optional
        Called after every round with its `Info` and all that happened so far.

    Returns
    -------
    Evolution
        Residuals and risks of every round, and how each stage ended.
    """
    session = Session(schedule.network, **schedule.settings)
    tested = {task: rows for task, rows in schedule.tasks.items() if rows.test is not None}
    evolution = Evolution(list(tested))
    for stage in schedule.stages:
        if on_stage:
            on_stage(stage)
        for event in stage.events:
            _apply(schedule, session, stage, event)

        def record(info: Info, stage: Stage = stage) -> None:
            risks = [_risk(session, task, rows) for task, rows in tested.items()]
            residuals = (info.primal_residual, info.dual_residual)
            evolution.rows.append((info.n_rounds, stage.name, *residuals, *risks))
            if on_round:
                on_round(info, evolution)

        info = session.run(stage.rounds, tol=stage.tol, on_round=record)
        evolution.ends.append((stage, info))
        if info.status is Status.INTERRUPTED:
            break
    return evolution


def _risk(session: Session, task: str, rows: TaskRows) -> float:
    """The paper's global risk; a finished task keeps the one it left with."""
    assert rows.test is not None
    is_here = task in session.tasks or task in session.finished
    return session.risk(task, *rows.test).mean if is_here else math.nan


# What happens


def _apply(schedule: Schedule, session: Session, stage: Stage, event: Event) -> None:
    try:
        if event.kind in _BY_NODE:
            _BY_NODE[event.kind](schedule, session, **event.what)
        elif event.kind == "couple":
            session.couple(*event.what["tasks"])
        elif event.kind in ("link", "unlink"):
            what = dict(event.what)
            getattr(session, event.kind)(*what.pop("nodes"), **what)
        else:
            getattr(session, event.kind)(**event.what)
    except DtsvmError as error:
        where = f"{schedule.path}, {stage.name}, {event.kind}"
        raise type(error)(f"{where}: {error}") from error


def _enter(
    schedule: Schedule, session: Session, task: str, node: Any = None, links: Iterable[Any] = ()
) -> None:
    rows = schedule.tasks[task]
    later = set(nodes_to_come(schedule.stages)) - set(session.nodes)
    here = [place for place in rows.holders() if place not in later]
    for place in here if node is None else [node]:
        X, y = rows.first(place)
        session.enter(place, task, X, y, links=links, labels=rows.labels)


def _add_data(
    schedule: Schedule,
    session: Session,
    task: str,
    node: Any = None,
    data: str | None = None,
    rows: int | None = None,
) -> None:
    for place, X, y in schedule.tasks[task].more(_here(session, task, node), data, rows):
        session.add_data(place, task, X, y)


def _drop_data(
    schedule: Schedule, session: Session, task: str, oldest: int, node: Any = None
) -> None:
    for place in _here(session, task, node):
        session.drop_data(place, task, oldest=oldest)


def _here(session: Session, task: str, node: Any) -> list[Any]:
    """Where an event happens: at the node it names, or wherever the task is."""
    if task not in session.tasks:
        raise DataError(f"Task {task!r} has not entered, or has left.")
    return list(session._holders(task)) if node is None else [node]


_BY_NODE: dict[str, Callable[..., None]] = {
    "enter": _enter,
    "add_data": _add_data,
    "drop_data": _drop_data,
}


# What is written


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
