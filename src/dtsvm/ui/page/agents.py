"""Running agents as the page shows them: asked through the sockets in their folders."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

from dtsvm.errors import DtsvmError, NetworkError
from dtsvm.runtime.agent.process.process import ask
from dtsvm.svm.presence import Event
from dtsvm.ui.page.layout import Place, place_nodes
from dtsvm.ui.page.scene import Scene, plain
from dtsvm.ui.page.sessions import describe_events
from dtsvm.ui.page.told import choices_of, how_far, refusals_of, settings_of, state_of

__all__ = ["Agents", "ask_all"]

LOOK_SECONDS = 0.3


class Agents(Scene):
    """The agents of some folders; they are told something only if that was asked for.

    Parameters
    ----------
    folders : list of Path
        The folders of the agents' node.toml files.
    can_change : bool
        Whether the page may tell agents to leave and tasks to train together.
    """

    actions = ("leave_network", "couple")

    def __init__(self, folders: list[Path], can_change: bool = False) -> None:
        super().__init__("Agents", ["round", "residual", "gap"], can_change)
        self.folders = folders
        self.statuses: dict[str, dict[str, Any]] = {}
        self.running: dict[str, Path] = {}
        self.events: list[Event] = []
        self._chosen: list[str] = []
        self._places: tuple[frozenset[Any], dict[Any, Place]] = (frozenset(), {})

    def move(self) -> float:
        """Ask everybody how it is."""
        found = asyncio.run(ask_all(self.folders))
        here = {status["node"]: folder for folder, status in found.items()}
        for node in here.keys() - self.running.keys():
            self._note("present", f"node {node} answers")
        for node in self.running.keys() - here.keys():
            self._note("silent", f"node {node} does not answer")
        before = self._progress()
        self.running = here
        self.statuses.update({status["node"]: status for status in found.values()})
        self._note_choice()
        if here and self._progress() != before:
            self.records.add([self._round(), self._residual(), self._gap()])
        self.version += 1
        return LOOK_SECONDS

    def describe(self) -> dict[str, Any]:
        """Return every agent's last status; who does not answer is shown as silent."""
        answers = [self.statuses[node] for node in self.running]
        links = self._links()
        return {
            "state": self._state(),
            "progress": how_far(answers),
            "advice": choices_of(answers),
            "advice_head": "What was chosen, and why",
            "refused": [*self.refused, *refusals_of(answers)],
            "round": self._round(),
            "residual": plain(self._residual()),
            "gap": plain(self._gap()),
            "events": describe_events(self.events),
            "settings": settings_of(answers),
            "nodes": [self._node(node, place) for node, place in self._placed(links).items()],
            "links": [self._link(*link) for link in links],
            "tasks": self._tasks(),
        }

    def do_leave_network(self, node: str) -> str:
        """Tell an agent to leave politely."""
        return self._tell(node, command="leave", task=None)

    def do_couple(self, tasks: list[str]) -> str:
        """Tell an agent, and through it all, that tasks train together."""
        if not self.running:
            raise NetworkError("No agent answers; start one first.")
        return self._tell(next(iter(self.running)), command="couple", tasks=tasks)

    def _tell(self, node: str, **asked: Any) -> str:
        if node not in self.running:
            raise NetworkError(f"Node {node!r} does not answer.")
        said = str(asyncio.run(ask(self.running[node], **asked)).get("said"))
        self._note(str(asked["command"]), said)
        return said

    def _note_choice(self) -> None:
        """Note what was chosen, once all who answer have it."""
        answers = [self.statuses[node] for node in self.running]
        has_all = all(status.get("choosing", {}).get("is_done") for status in answers)
        chosen = [one["sentence"] for one in choices_of(answers)] if has_all else []
        if chosen and chosen != self._chosen:
            self._note("chosen", " ".join(chosen))
            self._chosen = chosen

    def _note(self, kind: str, detail: str) -> None:
        self.events.append(Event(self._round(), kind, detail))

    def _state(self) -> str:
        """What the network does: what the one that is furthest behind does."""
        found = {state_of(self.statuses[node])[0] for node in self.running}
        order = ("meeting", "choosing", "training", "settled")
        return next((state for state in order if state in found), "waiting")

    def _progress(self) -> dict[str, Any]:
        return {node: self.statuses[node]["round"] for node in self.running}

    def _of(self, key: str) -> list[float]:
        values = (self.statuses[node].get(key) for node in self.running)
        return [math.nan if value is None else float(value) for value in values]

    def _round(self) -> int:
        return int(max(self._of("round"), default=0))

    def _residual(self) -> float:
        return max(self._of("residual"), default=math.nan)

    def _gap(self) -> float:
        return max(self._of("gap"), default=math.nan)

    def _links(self) -> list[tuple[str, str]]:
        pairs = {
            tuple(sorted((node, other)))
            for node, status in self.statuses.items()
            for other in status["neighbours"]
        }
        return sorted((u, v) for u, v in pairs)

    def _placed(self, links: list[tuple[str, str]]) -> dict[str, Place]:
        nodes = sorted({*self.statuses, *(end for link in links for end in link)})
        key = frozenset([*nodes, *links])
        if key != self._places[0] and nodes:
            self._places = (key, place_nodes(nodes, links))
        return self._places[1]

    def _node(self, node: str, place: Place) -> dict[str, Any]:
        status = self.statuses.get(node, {})
        is_here = node in self.running
        state, detail = state_of(status) if is_here else ("gone", "")
        return {
            "name": node,
            "place": place,
            "state": state,
            "detail": detail,
            "residual": plain(status["residual"]) if is_here else None,
            "round": status.get("round"),
            "risk": {},
            "rows": status.get("tasks", {}) if is_here else {},
        }

    def _link(self, u: str, v: str) -> dict[str, Any]:
        """A link, lit by the worse residual of its ends; gone if an end does not hear the other.

        It is barred if an end has refused the other so often that it does not listen for a while.
        """
        ends = [self.statuses[node] for node in (u, v) if node in self.running]
        others = {u: v, v: u}
        is_heard = bool(ends) and all(others[s["node"]] in s["present"] for s in ends)
        is_barred = any(others[s["node"]] in s.get("barred", {}) for s in ends)
        worst = max((float(status["residual"]) for status in ends), default=math.nan)
        return {
            "ends": [u, v],
            "state": "barred" if is_barred else "present" if is_heard else "gone",
            "disagreement": plain(worst) if is_heard else None,
        }

    def _tasks(self) -> list[dict[str, Any]]:
        held: dict[str, list[int]] = {}
        for node in self.running:
            for task, rows in self.statuses[node]["tasks"].items():
                held.setdefault(task, []).append(int(rows))
        groups = [g for node in self.running for g in self.statuses[node]["groups"]]
        group = {task: sorted(g)[0] for g in groups for task in g}
        chosen = {
            one["task"]: one["company"]
            for one in choices_of(self.statuses[node] for node in self.running)
        }
        return [
            {
                "name": task,
                "state": "present",
                "group": group.get(task),
                "with": chosen.get(
                    task, sorted(t for t in held if t != task and group.get(t) == group.get(task))
                ),
                "risk": None,
                "rows": sum(rows),
                "holders": len(rows),
            }
            for task, rows in sorted(held.items())
        ]


async def ask_all(folders: list[Path]) -> dict[Path, dict[str, Any]]:
    """Ask all agents for their status at once; leave out those that do not answer."""
    answers = await asyncio.gather(
        *(ask(folder, command="status") for folder in folders), return_exceptions=True
    )
    found: dict[Path, dict[str, Any]] = {}
    for folder, answer in zip(folders, answers, strict=True):
        if isinstance(answer, dict):
            found[folder] = answer
        elif not isinstance(answer, DtsvmError | OSError | ValueError):
            raise answer
    return found
