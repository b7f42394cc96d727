"""Whether those who must agree can hear each other: asked before a run and before a departure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from dtsvm.errors import DataError, NetworkError, did_you_mean
from dtsvm.problem.reach import check_reach, place_relays, separations
from dtsvm.rounds import Membership
from dtsvm.svm.presence import Presence

__all__ = ["Reachable"]

Node = Hashable
Task = Hashable


class Reachable(Presence):
    """A session's checks of who hears whom."""

    _may_split = False
    _is_checked = False

    def _place_relays_or_refuse(self) -> None:
        if self._is_checked:
            return
        members, _ = self._need_rows()
        world = (*self._world(), self._options["personal"])
        if self._options["relays"] == "auto":
            members.enter(place_relays(*world), is_relay=True)
        elif not self._may_split:
            check_reach(*world)
        self._is_checked = True

    def _world(
        self,
        gone: Sequence[tuple[Node, Task]] = (),
        nodes: Sequence[Node] = (),
        cut: Sequence[tuple[Node, Node]] = (),
    ) -> tuple[dict[Node, list[Node]], dict[Task, list[Node]], list[list[Task]]]:
        """Describe who hears whom, question by question, less what is about to go."""
        members, _ = self._need_rows()
        broken = {frozenset(link) for link in cut}
        neighbours = {
            u: [v for v in around if v not in nodes and frozenset((u, v)) not in broken]
            for u, around in members.neighbours.items()
            if u not in nodes
        }
        holders = {
            task: [v for v in members.agents_of(task) if (v, task) not in gone and v not in nodes]
            for task in members.group
        }
        together: dict[int, list[Task]] = {}
        for question, group in members.group.items():
            together.setdefault(group, []).append(question)
        return neighbours, holders, list(together.values())

    def _check_split(
        self,
        gone: list[tuple[Node, Task]],
        nodes: list[Node],
        cut: list[tuple[Node, Node]],
        allow_split: bool,
    ) -> None:
        """Refuse a departure after which some who must agree can no longer hear each other."""
        if allow_split:
            self._may_split = True
            return
        if self._options["relays"] == "auto" and not nodes and not cut:
            return
        personal = self._options["personal"]
        before = separations(*self._world(), personal)
        for what, (n, sentence) in separations(*self._world(gone, nodes, cut), personal).items():
            if n > before.get(what, (1, ""))[0]:
                raise NetworkError(
                    f"{sentence} Nothing was changed; say allow_split=True to go on in parts."
                )

    def _check_entry(self, node: Node, task: Task, links: list[Node]) -> None:
        nodes = self._members.neighbours if self._members else self.nodes
        if task in self.tasks and node in self._holders(task):
            raise DataError(
                f"Node {node!r} holds task {task!r} already; use add_data for more rows."
            )
        if node in nodes and links:
            raise NetworkError(f"Node {node!r} is here already; use link for more links.")
        if node not in nodes and nodes and not links:
            raise NetworkError(f"Node {node!r} is new; name its neighbours with links=[…].")
        for other in links:
            if other not in nodes:
                raise NetworkError(f"Unknown node {other!r}. {did_you_mean(other, nodes)}")

    def _link_ends(self, u: Node, v: Node) -> Membership:
        members, _ = self._need_rows()
        for node in (u, v):
            self._known_node(node)
        if u == v:
            raise NetworkError(f"Node {u!r} is linked to itself; a link joins two nodes.")
        return members
