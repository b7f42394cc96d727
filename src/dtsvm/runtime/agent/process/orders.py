"""What a running node's owner may tell it: on disk first, then done, then acknowledged.

While columns are agreed on there is nothing to do it to: what was told is on disk, and the node
begins to agree anew with that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dtsvm.errors import NetworkError, did_you_mean
from dtsvm.runtime.agent.node.names import check_address, check_link, check_name, check_unlink
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.preparing import Preparing
from dtsvm.runtime.agent.node.sharing import share_nothing
from dtsvm.runtime.agent.process.transport import Transport

__all__ = ["Change", "Command", "EarlyOrders", "Orders"]

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


@dataclass
class EarlyOrders:
    """Follows what the owner of a node says while columns are agreed on.

    Parameters
    ----------
    preparing : Preparing
        The node's part in that.
    keep : callable
        Puts a change on disk.
    stopped : asyncio.Event
        Set when the owner wants it to end.
    has_changed : bool
        Whether it is to begin anew, with what it was told.
    """

    preparing: Preparing
    keep: Callable[[Change], None]
    stopped: asyncio.Event
    has_changed: bool = False

    @property
    def are_over(self) -> bool:
        """Whether the node agrees no further as it is."""
        return self.stopped.is_set() or self.has_changed

    def follow(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Do what is said, or refuse it with a sentence."""
        name, command = self.preparing.name, str(asked.get("command"))
        if command == "leave" and asked.get("task") is None:
            self.stopped.set()
            return {"said": f"Node {name!r} leaves."}
        if command not in ("leave", "link", "unlink"):
            raise NetworkError(
                f"Node {name!r} still agrees on columns: until it trains it can be told status, "
                "leave, link and unlink alone. What it couples can be written into node.toml, and "
                "rows into its files, before it is started again."
            )
        said = getattr(self, f"_{command}")(asked)
        self.has_changed = True
        return {"said": f"{said} It goes on to agree on columns so."}

    def _leave(self, asked: dict[str, Any]) -> str:
        task, held = str(asked["task"]), self.preparing.labels
        if task not in held:
            raise NetworkError(
                f"Node {self.preparing.name!r} does not hold task {task!r}. "
                f"{did_you_mean(task, held)}"
            )
        self.keep({"left": task})
        return f"Task {task!r} has left node {self.preparing.name!r}."

    def _link(self, asked: dict[str, Any]) -> str:
        node = self.preparing.name
        name, address = check_name(asked["name"]), check_address(asked["address"])
        check_link(node, name, self.preparing.known)
        self.keep({"linked": (name, address)})
        return f"Node {node!r} is linked to node {name!r}."

    def _unlink(self, asked: dict[str, Any]) -> str:
        node, name = self.preparing.name, str(asked["name"])
        check_unlink(node, name, self.preparing.neighbours)
        self.keep({"unlinked": name})
        return f"Node {node!r} is linked to node {name!r} no more."
