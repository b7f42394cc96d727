"""Who is here: nodes, links, tasks and groups by their labels, and the agents they make.

Two agents are linked inside a node when their tasks are in one group, across a network link when
they have the same task, and across a network link between tasks of one group if `personal`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dtsvm.kernel import compiled
from dtsvm.problem import Network
from dtsvm.problem.settings import Settings
from dtsvm.rounds.state import State

__all__ = ["Membership"]

Node = Hashable
Task = Hashable
Ints = NDArray[np.int64]


class Membership:
    """Nodes, links, tasks, groups and agents, with the numbers they stand for.

    Labels are taken as they are: callers check them first.
    """

    def __init__(
        self,
        n_features: int,
        settings: Settings,
        *,
        personal: bool = False,
        dtype: DTypeLike = np.float64,
        make_state: Callable[[int, Settings, DTypeLike], State] = State,
    ) -> None:
        self.state = make_state(n_features, settings, dtype)
        self.is_personal = personal
        self.neighbours: dict[Node, dict[Node, None]] = {}
        self.group: dict[Task, int] = {}
        self.at: dict[Node, dict[Task, int]] = {}
        self._node_rank: dict[Node, int] = {}
        self._task_rank: dict[Task, int] = {}
        self._next_group = 0

    def agent(self, node: Node, task: Task) -> int | None:
        """Return the agent's slot, or None."""
        return self.at.get(node, {}).get(task)

    def agents_of(self, task: Task) -> dict[Node, int]:
        """Return the task's agents by node, relays included."""
        return {node: tasks[task] for node, tasks in self.at.items() if task in tasks}

    @property
    def tasks(self) -> list[Any]:
        """Every task there ever was, by rank."""
        return list(self._task_rank)

    def tasks_of(self, agents: Ints) -> list[Any]:
        """Return the tasks of some agents."""
        names = self.tasks
        return [names[rank] for rank in self.state.tables.agents["task"][agents].tolist()]

    def is_relay(self, agent: int) -> bool:
        """Whether an agent only passes messages on."""
        return bool(self.state.tables.agents["is_relay"][agent])

    def links(self) -> list[tuple[Node, Node]]:
        """Return every network link once."""
        rank = self._node_rank
        return [
            (u, v) for u, around in self.neighbours.items() for v in around if rank[u] < rank[v]
        ]

    def add_node(self, node: Node) -> None:
        """Add a node without links or tasks."""
        self.neighbours[node] = {}
        self.at[node] = {}
        self._node_rank.setdefault(node, len(self._node_rank))

    def add_network(self, network: Network) -> None:
        """Add the nodes and links of a network; nobody is there yet."""
        for node in network.nodes:
            self.add_node(node)
            self.neighbours[node] = dict.fromkeys(network.neighbours(node))

    def remove_node(self, node: Node) -> None:
        """Take a node away with its agents and links."""
        for task in list(self.at[node]):
            self.leave(node, task)
        for other in self.neighbours.pop(node):
            del self.neighbours[other][node]
        del self.at[node]

    def add_task(self, task: Task, group: int | None = None) -> None:
        """Add a task, in a group of its own unless one is given."""
        if group is None:
            group = self._next_group
        self._next_group = max(self._next_group, group + 1)
        self.group[task] = group
        self._task_rank.setdefault(task, len(self._task_rank))

    def remove_task(self, task: Task) -> None:
        """Take a task away with all its agents."""
        for node in self.agents_of(task):
            self.leave(node, task)
        del self.group[task]

    def enter(self, pairs: Sequence[tuple[Node, Task]], *, is_relay: bool = False) -> list[int]:
        """Make agents at (node, task) pairs and link them; return their slots in the same order."""
        slots: list[int] = self.state.add_agents(
            [self._node_rank[node] for node, _ in pairs],
            [self._task_rank[task] for _, task in pairs],
            is_relay,
        ).tolist()
        links: list[tuple[int, int, bool, bool]] = []
        for (node, task), slot in zip(pairs, slots, strict=True):
            links += [(slot, other, False, False) for other in self._partners(node, task)]
            for beside in self.neighbours[node]:
                links += self._across(slot, task, beside)
            self.at[node][task] = slot
        self._link(links)
        self._welcome(slots, links)
        return slots

    def enter_all(self, pairs: Sequence[tuple[Node, Task]], links: Ints) -> Ints:
        """Let the first agents of all enter at once; return their slots in the order of `pairs`.

        Nobody has left yet, so ranks are positions; `links` has those of both ends of every network
        link.
        """
        at = np.array([self._node_rank[node] for node, _ in pairs], np.int64)
        what = np.array([self._task_rank[task] for _, task in pairs], np.int64)
        slots = self.state.add_agents(at, what)
        for (node, task), slot in zip(pairs, slots.tolist(), strict=True):
            self.at[node][task] = slot
        n_nodes, n_tasks = len(self.neighbours), len(self.group)
        agent = np.full(n_nodes * n_tasks, -1, np.int64)
        agent[at * n_tasks + what] = slots
        group = np.array(list(self.group.values()), np.int64)
        found = compiled.linked_agents(
            agent.reshape(n_nodes, n_tasks), links, group, self.is_personal
        )
        if len(found[0]):
            self.state.link(*found)
        return slots

    def _welcome(self, slots: list[int], links: list[tuple[int, int, bool, bool]]) -> None:
        """Let newcomers begin where the agents that were here before them stand."""
        new = set(slots)
        taught: dict[int, list[tuple[int, bool]]] = {}
        for slot, other, is_wide, _ in links:
            if other not in new:
                taught.setdefault(slot, []).append((other, is_wide))
        for slot, teachers in taught.items():
            others, wide = zip(*teachers, strict=True)
            self.state.iterates.welcome(slot, np.array(others), np.array(wide))

    def promote(self, relay: int) -> None:
        """Let a relay take part: from now on it counts."""
        self.state.promote(relay)

    def leave(self, node: Node, task: Task) -> None:
        """Take one agent away."""
        agent = self.at[node].pop(task)
        self.state.leave(agent)

    def link(self, u: Node, v: Node) -> None:
        """Link two nodes and the agents that thereby hear each other."""
        self.neighbours[u][v] = None
        self.neighbours[v][u] = None
        self._link([x for task, slot in self.at[u].items() for x in self._across(slot, task, v)])

    def unlink(self, u: Node, v: Node) -> None:
        """Cut the link between two nodes and the agents' links that ran over it."""
        del self.neighbours[u][v]
        del self.neighbours[v][u]
        self._cut(self.at[u].values(), self.at[v].values())

    def couple(self, tasks: Iterable[Task]) -> None:
        """Make one group of the groups of these tasks."""
        merged = {self.group[task] for task in tasks}
        target = min(merged)
        links: list[tuple[int, int, bool, bool]] = []
        for source in sorted(merged - {target}):
            for task in [t for t, group in self.group.items() if group == source]:
                for node, slot in self.agents_of(task).items():
                    links += [(slot, s, False, False) for s in self._partners(node, task, target)]
                    links += self._personal(slot, node, task, target)
            self.group = {t: target if g == source else g for t, g in self.group.items()}
        self._link(links)

    def decouple(self, task: Task) -> None:
        """Give a task a group of its own."""
        others = [t for t, g in self.group.items() if g == self.group[task] and t != task]
        mine = self.agents_of(task).values()
        for other in others:
            self._cut(mine, self.agents_of(other).values())
        self.group[task] = self._next_group
        self._next_group += 1

    def describe(self) -> dict[str, Any]:
        """Return what `restore` needs, as lists: labels need not be strings."""
        return {
            "neighbours": [[node, list(around)] for node, around in self.neighbours.items()],
            "at": [[node, list(tasks.items())] for node, tasks in self.at.items()],
            "group": list(self.group.items()),
            "node_rank": list(self._node_rank.items()),
            "task_rank": list(self._task_rank.items()),
            "next_group": self._next_group,
        }

    def restore(self, described: dict[str, Any]) -> None:
        """Take over what `describe` returned."""
        self.neighbours = {node: dict.fromkeys(around) for node, around in described["neighbours"]}
        self.at = {node: dict(map(tuple, tasks)) for node, tasks in described["at"]}
        self.group = dict(map(tuple, described["group"]))
        self._node_rank = dict(map(tuple, described["node_rank"]))
        self._task_rank = dict(map(tuple, described["task_rank"]))
        self._next_group = described["next_group"]

    def _partners(self, node: Node, task: Task, group: int | None = None) -> list[int]:
        group = self.group[task] if group is None else group
        here = self.at[node].items()
        return [slot for t, slot in here if t != task and self.group[t] == group]

    def _across(self, slot: int, task: Task, beside: Node) -> list[tuple[int, int, bool, bool]]:
        same = self.agent(beside, task)
        links = [] if same is None else [(slot, same, True, True)]
        if self.is_personal:
            links += [(slot, other, False, True) for other in self._partners(beside, task)]
        return links

    def _personal(
        self, slot: int, node: Node, task: Task, group: int
    ) -> list[tuple[int, int, bool, bool]]:
        if not self.is_personal:
            return []
        return [
            (slot, other, False, True)
            for beside in self.neighbours[node]
            for other in self._partners(beside, task, group)
        ]

    def _link(self, links: list[tuple[int, int, bool, bool]]) -> None:
        if links:
            a, b, is_wide, is_across = (np.array(column) for column in zip(*links, strict=True))
            self.state.link(a, b, is_wide, is_across)

    def _cut(self, ours: Iterable[int], theirs: Iterable[int]) -> None:
        ends = self.state.tables.ends
        used = ends.used
        owner, other = ends["owner"][used], ends["owner"][ends["twin"][used]]
        between = np.isin(owner, list(ours)) & np.isin(other, list(theirs))
        self.state.cut(used[between])
