"""A session as the page shows it: every node's risks, every link's disagreement."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from dtsvm.svm.presence import Event, Risk
from dtsvm.svm.session import Session
from dtsvm.ui.page.layout import Place
from dtsvm.ui.page.scene import plain

__all__ = ["describe_events", "describe_settings", "describe_world", "disagreements"]

Node = Hashable
Task = Hashable
SHOWN_EVENTS = 200
WHY = {
    "C": "price of a row's loss",
    "common_reg": "ε₁, holds the common part small",
    "specific_reg": "ε₂, holds each task's own part small",
    "task_penalty": "η₁, how hard tasks of a node are pulled together",
    "node_penalty": "η₂, how hard neighbours are pulled together",
    "relaxation": "κ, the share of a message that is taken over",
    "local": "how exactly an agent solves its own problem each round",
    "tol": "the certified gap at which training is done",
    "bias": "which intercepts are free",
}


def describe_world(
    live: Session, places: Mapping[Node, Place], risks: Mapping[Any, Risk]
) -> dict[str, Any]:
    """Return the session's nodes, links and tasks; risks of the tasks where they are known."""
    apart = disagreements(live)
    counts = {task: live.row_counts(task) for task in live.tasks}
    worst: dict[Node, float] = {}
    for link, value in apart.items():
        for node in link:
            worst[node] = float(np.fmax(worst.get(node, np.nan), value))
    nodes = []
    for node in live.nodes:
        nodes.append({
            "name": str(node),
            "place": places[node],
            "state": "present",
            "residual": plain(worst.get(node, np.nan)),
            "risk": {str(t): risks[t].nodes[node] for t in risks if node in counts.get(t, ())},
            "rows": {str(t): n[node] for t, n in counts.items() if node in n},
        })  # fmt: skip
    links = [
        {"ends": [str(u), str(v)], "state": "present", "disagreement": plain(value)}
        for (u, v), value in apart.items()
    ]
    return {"nodes": nodes, "links": links, "tasks": _tasks(live, risks, counts)}


def _tasks(
    live: Session, risks: Mapping[Any, Risk], counts: Mapping[Task, Mapping[Node, int]]
) -> list[dict[str, Any]]:
    group = {task: g for g, tasks in enumerate(live.groups) for task in tasks}
    return [
        {
            "name": str(task),
            "state": "present",
            "group": group[task],
            "with": [str(t) for t in live.tasks if group[t] == group[task] and t != task],
            "risk": risks[task].mean if task in risks else None,
            "rows": sum(counts[task].values()),
            "holders": len(counts[task]),
        }
        for task in live.tasks
    ]


def disagreements(live: Session) -> dict[tuple[Node, Node], float]:
    """Return ‖u_v − u_w‖ / max ‖u‖ of each link, the largest over the tasks at both ends.

    Examples
    --------
    >>> from dtsvm import Network, Session
    >>> live = Session(Network.line(2))
    >>> for node in (0, 1):
    ...     live.enter(node, "sick", [[1.0], [-1.0]], [1, -1])
    >>> _ = live.run()
    >>> round(disagreements(live)[0, 1], 3)
    0.0
    """
    links = list(live.network)
    worst = np.full(len(links), np.nan)
    for task in live.tasks:
        by_node = live.decisions(task)
        both = [i for i, (u, v) in enumerate(links) if u in by_node and v in by_node]
        if not both:
            continue
        one = np.array([by_node[links[i][0]] for i in both])
        other = np.array([by_node[links[i][1]] for i in both])
        size = max(float(np.linalg.norm(np.concatenate([one, other]), axis=1).max()), 1e-300)
        worst[both] = np.fmax(worst[both], np.linalg.norm(one - other, axis=1) / size)
    return dict(zip(links, worst.tolist(), strict=True))


def describe_events(events: list[Event]) -> list[dict[str, Any]]:
    """Return the latest events as plain values."""
    return [{"round": e.round, "kind": e.kind, "detail": e.detail} for e in events[-SHOWN_EVENTS:]]


def describe_settings(live: Session) -> list[list[str]]:
    """Return name, value and meaning of every setting in force."""
    return [[k, str(v), WHY.get(k, "")] for k, v in vars(live.settings).items()]
