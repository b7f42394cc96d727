"""What a node answers: its classifiers, and how it is. The reading half of `Node`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.runtime.agent.node.balance import Balancer
from dtsvm.runtime.agent.node.bounds import Bounds
from dtsvm.runtime.agent.node.certifier import Certifier
from dtsvm.runtime.agent.node.handover import Handover
from dtsvm.runtime.agent.node.inbox import Inbox
from dtsvm.runtime.agent.node.member import Member
from dtsvm.runtime.agent.node.scaling import Scaler
from dtsvm.runtime.agent.node.summing import Summing

__all__ = ["Answers"]

Floats = NDArray[np.float64]


class Answers(Member):
    """A node as others read it; `Node` writes what is read here."""

    sums: Summing
    balancer: Balancer
    scaler: Scaler
    handover: Handover
    certifier: Certifier
    inbox: Inbox
    refused: Counter[str]
    _bounds: dict[str, Bounds]

    def certified(self, task: str) -> Floats:
        """Return both parts of the network's certified answer; before that, of the agent here."""
        found = self.agreed(self.chosen(task)) if self.is_settled else None
        return self.estimate(task) if found is None else found

    def agreed(self, lane: str) -> Floats | None:
        """Return both parts of what the network last agreed on for a lane, if there is that."""
        slot = self.holding(lane).slot
        answer = self.certifier.answer(slot)
        return None if answer is None else np.stack([answer.common, answer.specific[slot]])

    def bounds(self, task: str) -> Bounds:
        """Return what the data of a task allow."""
        return self._bounds[task]

    def groups(self) -> list[list[str]]:
        """Return the tasks held here that train together."""
        return self.roster.grouped(self.tasks)

    def status(self) -> dict[str, Any]:
        """Return what `dtsvm status` shows."""
        return {
            "node": self.name,
            "round": self.round,
            "residual": self.residual,
            "neighbours": sorted(self.mail),
            "present": self.present,
            "heard": self.heard,
            "nodes": len(self.roster.distances(self.name)),
            "tasks": {task: self.n_rows(task) for task in sorted(self.tasks)},
            "groups": self.groups(),
            "levels": self.balancer.levels(),
            "gap": self.certifier.gap,
            "lies": self.balancer.n_lies
            + self.certifier.n_lies
            + self.scaler.n_lies
            + self.handover.n_lies,
            "calm": self.calm,
            "is_settled": self.is_settled,
            "privacy": self.veil.status(),
            "refused": sum(self.refused.values()),
            "reasons": dict(self.inbox.reasons),
            "waits_for": self.sums.waits_for(),
        }
