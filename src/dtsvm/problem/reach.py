"""Who can hear whom: whether the agents that must agree are linked, and relays if they are not."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from dtsvm.errors import NetworkError

__all__ = ["check_reach", "parts", "place_relays", "separations"]

Node = Hashable
Task = Hashable
Neighbours = Mapping[Node, Collection[Node]]
Holders = Mapping[Task, Collection[Node]]

NETWORK_APART = (
    "The network falls into parts that cannot hear each other: {parts}. Add a link between them."
)
TASK_APART = (
    "Task {task!r} is held by nodes that cannot hear each other: {parts}. "
    "Link them, or set relays='auto' to let the nodes between them pass messages on."
)
GROUP_APART = (
    "Tasks {sides} train together, but no node holds both sides. Set relays='auto', or "
    "personal=True to link different tasks across the network, or train them apart with "
    "transfer=False."
)


def parts(nodes: Iterable[Node], neighbours: Neighbours) -> list[list[Node]]:
    """Split `nodes` into the sets that hear each other without going through other nodes.

    Examples
    --------
    >>> from dtsvm.problem.reach import parts
    >>> parts([0, 1, 3], {0: [1], 1: [0, 2], 2: [1, 3], 3: [2]})
    [[0, 1], [3]]
    """
    left = dict.fromkeys(nodes)
    found = []
    while left:
        part = [next(iter(left))]
        del left[part[0]]
        for node in part:
            for beside in neighbours[node]:
                if beside in left:
                    del left[beside]
                    part.append(beside)
        together = set(part)
        found.append([node for node in neighbours if node in together])
    return found


def separations(
    neighbours: Neighbours, holders: Holders, groups: Sequence[Sequence[Task]], personal: bool
) -> dict[Hashable, tuple[int, str]]:
    """Find agents that must agree and cannot: what is apart, in how many parts, and a sentence."""
    found: dict[Hashable, tuple[int, str]] = {}
    if len(whole := parts(neighbours, neighbours)) > 1:
        found["network"] = len(whole), NETWORK_APART.format(parts=_listed(whole))
    for task, nodes in holders.items():
        if len(islands := parts(nodes, neighbours)) > 1:
            sentence = TASK_APART.format(task=task, parts=_listed(islands))
            found["task", task] = len(islands), sentence
    for group in groups:
        if len(camps := _camps(group, holders, neighbours, personal)) > 1:
            sides = " and ".join(", ".join(repr(task) for task in camp) for camp in camps)
            found["group", frozenset(group)] = len(camps), GROUP_APART.format(sides=sides)
    return found


def check_reach(
    neighbours: Neighbours, holders: Holders, groups: Sequence[Sequence[Task]], personal: bool
) -> None:
    """Refuse agents that must agree and cannot, naming the nodes that are cut off."""
    for _, sentence in separations(neighbours, holders, groups, personal).values():
        raise NetworkError(sentence)


def place_relays(
    neighbours: Neighbours, holders: Holders, groups: Sequence[Sequence[Task]], personal: bool
) -> list[tuple[Node, Task]]:
    """Return (node, task) pairs that, without rows, join what cannot hear each other.

    They lie on shortest paths. A relay only passes messages on: it is not counted in the objective,
    so the answer does not depend on where relays are.
    """
    held = {task: dict.fromkeys(nodes) for task, nodes in holders.items()}
    placed = []
    for task, nodes in held.items():
        while len(islands := parts(nodes, neighbours)) > 1:
            others = {node for island in islands[1:] for node in island}
            path = _shortest_path(islands[0], others, neighbours)
            placed += [(node, task) for node in path[1:-1]]
            nodes.update(dict.fromkeys(path[1:-1]))
    for group in (group for group in groups if len(group) > 1):
        while len(camps := _camps(group, held, neighbours, personal)) > 1:
            ours = {node: task for task in camps[0] for node in held[task]}
            theirs = {node for camp in camps[1:] for task in camp for node in held[task]}
            path = _shortest_path(list(ours), theirs, neighbours)
            task = ours[path[0]]
            placed += [(node, task) for node in path[1:]]
            held[task].update(dict.fromkeys(path[1:]))
    return placed


def _camps(
    group: Sequence[Task], holders: Holders, neighbours: Neighbours, personal: bool
) -> list[list[Task]]:
    """Split a group's tasks into the sets whose common parts are linked."""
    at: dict[Node, list[Task]] = {}
    for task in group:
        for node in holders.get(task, ()):
            at.setdefault(node, []).append(task)
    meets: dict[Task, set[Task]] = {task: set() for task in group if holders.get(task)}
    for node, tasks in at.items():
        near = set(tasks)
        if personal:
            near.update(task for beside in neighbours[node] for task in at.get(beside, ()))
        for task in tasks:
            meets[task] |= near
    return parts(meets, meets)


def _shortest_path(starts: Iterable[Node], goals: set[Node], neighbours: Neighbours) -> list[Node]:
    came_from: dict[Node, Node | None] = dict.fromkeys(starts)
    queue = deque(came_from)
    while queue:
        node = queue.popleft()
        if node in goals:
            path = [node]
            while (before := came_from[path[-1]]) is not None:
                path.append(before)
            return path[::-1]
        for beside in neighbours[node]:
            if beside not in came_from:
                came_from[beside] = node
                queue.append(beside)
    whole = parts(neighbours, neighbours)
    raise NetworkError(NETWORK_APART.format(parts=_listed(whole)))


def _listed(sets: Sequence[Sequence[Node]]) -> str:
    return " and ".join(str(list(part)) for part in sets)
