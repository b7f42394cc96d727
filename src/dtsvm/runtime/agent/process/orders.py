"""What a running node's owner may tell it: on disk first, then done, then acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dtsvm.errors import NetworkError
from dtsvm.runtime.agent.node.names import check_address, check_name
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.sharing import share_nothing
from dtsvm.runtime.agent.process.transport import Transport

__all__ = ["Change", "Command", "Orders"]

Change = dict[str, Any]
Command = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass
class Orders:
    """Follows what the owner of a node says.

    Parameters
    ----------
    node : Node
        The node.
    transport : Transport
        Its links.
    keep : callable
        Puts the node on disk, with a change that is about to be made.
    stop : callable
        Makes the node leave after this round.
    """

    node: Node
    transport: Transport
    keep: Callable[[Change], None]
    stop: Callable[[], None]

    @property
    def commands(self) -> dict[str, Command]:
        """What may be told, by name."""
        return {
            "leave": self._leave,
            "couple": self._couple,
            "decouple": self._decouple,
            "link": self._link,
            "unlink": self._unlink,
        }

    def _acknowledge(self, **change: Any) -> None:
        """Have a change on disk before it is made, so that it can be acknowledged."""
        self.keep(change)
        self.node.tell_owner()

    def _leave(self, asked: dict[str, Any]) -> dict[str, Any]:
        task = asked.get("task")
        if task is None:
            self.stop()
            return {"said": f"Node {self.node.name!r} leaves."}
        self.node.lanes(task)
        self._acknowledge(left=task)
        self.node.leave_task(task)
        return {"said": f"Task {task!r} has left node {self.node.name!r}."}

    def _couple(self, asked: dict[str, Any]) -> dict[str, Any]:
        tasks = [str(task) for task in asked["tasks"]]
        known = self._known_tasks()
        if set(tasks) - known or len(set(tasks)) < 2:
            raise NetworkError(f"couple needs two or more of the tasks {', '.join(sorted(known))}.")
        said = self.node.presence.coupled(tasks)
        self._acknowledge(said=said)
        self.node.say(said)
        apart = share_nothing(self.node.roster, tasks)
        return {"said": " ".join([f"Tasks {', '.join(tasks)} train together.", *apart])}

    def _decouple(self, asked: dict[str, Any]) -> dict[str, Any]:
        task, known = str(asked["task"]), self._known_tasks()
        if task not in known:
            raise NetworkError(f"decouple needs one of the tasks {', '.join(sorted(known))}.")
        said = self.node.presence.decoupled(task)
        self._acknowledge(said=said)
        self.node.say(said)
        return {"said": f"Task {task} trains alone."}

    def _known_tasks(self) -> set[str]:
        roster = self.node.roster
        return set(roster.main_lanes(roster.entries))

    def _link(self, asked: dict[str, Any]) -> dict[str, Any]:
        name, address = check_name(asked["name"]), check_address(asked["address"])
        self.node.check_link(name)
        self._acknowledge(linked=(name, address))
        self.node.link(name)
        self.transport.link(name, address)
        return {"said": f"Node {self.node.name!r} is linked to node {name!r}."}

    def _unlink(self, asked: dict[str, Any]) -> dict[str, Any]:
        name = str(asked["name"])
        self.node.check_unlink(name)
        self._acknowledge(unlinked=name)
        self.transport.send(name, self.node.unlink(name))
        self.transport.unlink(name)
        return {"said": f"Node {self.node.name!r} is linked to node {name!r} no more."}
