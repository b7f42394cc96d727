"""Who holds what in a session: agents begun and ended, rows given to all that ask about them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.memory import give_back
from dtsvm.problem.questions import ask, question_groups, side
from dtsvm.rounds import Membership
from dtsvm.svm.engines import begin
from dtsvm.svm.presence import Event
from dtsvm.svm.reachable import Reachable
from dtsvm.svm.training import Training

__all__ = ["Holding"]

Node = Hashable
Task = Hashable


class Holding(Reachable):
    """The writing half of `Session`: what its public methods change."""

    _carrier: dict[str, Any]
    _engine: str = "memory"

    def _open(self, n_features: int, dtype: Any = np.float64) -> Membership:
        """Make the membership when the length of a row is known."""
        if self._members is None:
            rows = n_features, dtype, self._options["personal"]
            self._members, self._memory = begin(
                self._engine, self._start, self._settings, self._carrier, rows
            )
        return self._members

    def _enter_all(self, table: Training) -> None:
        """Let all rows of a fit enter at once."""
        members = self._open(table.X.shape[1], table.X.dtype)
        self._classes = dict(table.classes)
        asked, group = question_groups(table.groups, table.classes)
        self._questions = {task: asked[task] for task in table.tasks}
        for question, g in group.items():
            members.add_task(question, g)
        spread = table.spread(self._questions)
        assert self._start is not None
        slots = members.enter_all(spread.agents, self._start.links)
        if len(spread.agents) == len(self._start) * len(group) and self._start.is_connected:
            self._is_checked = True  # all are everywhere, so they hear each other
        agent = slots.astype(np.int32).take(spread.agent)
        members.state.adopt_rows(table.X, spread.side, agent, spread.weight, spread.at)
        del spread, agent
        give_back(len(table.node) * 8 * table.X.shape[1])

    def _begin(self, task: Task, classes: tuple[Any, ...]) -> None:
        self._classes[task] = classes
        self._questions[task] = ask(task, classes)
        for question in self._questions[task]:
            self._need_rows()[0].add_task(question)
        self._finished.pop(task, None)

    def _give(
        self, node: Node, task: Task, rows: Any, codes: NDArray[np.int64], weight: Any
    ) -> None:
        """Give rows to all agents of a task at a node: one copy of their features serves all."""
        state = self._need_rows()[0].state
        first, *others = self._agents(node, task)
        n = 1 + len(others)
        state.add_rows(first, rows, side(codes, 0, n), weight)
        places = state.places(first)[-len(codes) :]
        for k, agent in enumerate(others, 1):
            state.share_rows(agent, places, side(codes, k, n), weight)

    def _finish_without(self, gone: list[tuple[Node, Task]]) -> None:
        """Finish the tasks that nobody holds any more when these (node, question) pairs go."""
        members, _ = self._need_rows()
        for task in list(self._questions):
            first = self._questions[task][0]
            leaving = {v for v, q in gone if q == first}
            if leaving and not set(self._holders(task)) - leaving:
                self._finish(task)
                for question in self._questions.pop(task):
                    members.remove_task(question)

    def _changed(self, kind: str, detail: str) -> None:
        self._is_checked = False
        self.events.append(Event(self.round, kind, detail))
