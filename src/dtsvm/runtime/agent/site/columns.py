"""A site's columns and labels: files read before the network agrees, and what is agreed kept."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import Records, read_records, read_rows
from dtsvm.data.files import write_atomically
from dtsvm.data.holdout import held_out
from dtsvm.errors import NetworkError
from dtsvm.prepare import Prepared
from dtsvm.runtime.agent.node.agreed import MOST_LABELS, Agreed, Labelled
from dtsvm.runtime.agent.node.identity import Identity, Nameless
from dtsvm.runtime.agent.node.preparing import Preparing
from dtsvm.runtime.agent.site.checkpoint import retold, told_before
from dtsvm.runtime.agent.site.config import Config, PrepareConfig, TaskConfig
from dtsvm.runtime.privacy.budget import Budget
from dtsvm.runtime.privacy.sums import NoisySums

__all__ = [
    "BUDGET", "begin_preparing", "is_held", "keep_agreed", "keep_told", "noise", "prepared",
    "want_anew",
]  # fmt: skip

FILE = "agreed.json"
BUDGET = "budget.json"  # what was spent of a node's privacy


def begin_preparing(config: Config, identity: Identity | None) -> Preparing:
    """Read the site's files; what was agreed before is taken over, unless all are to agree anew."""
    wishes, told = config.prepare or PrepareConfig(), told_before(config.folder)
    rows, labels = [], {}
    for task, given in config.tasks.items():
        if task in told.left:
            continue
        parts = [] if given.data is None else [_first(config, task, given)]
        parts += [
            _records(config, given, config.folder / file)
            for owner, file, _ in told.later
            if owner == task
        ]
        counts = Counter(label for _, y in parts for label in y.tolist())
        labels[task] = Labelled(given.labels, dict(sorted(counts.items(), key=str)))
        rows += [found for found, _ in parts if found is not None]
    generation, agreed, vouched = _kept(config)
    if agreed is not None and agreed.strange(labels):
        generation, agreed = 0, None  # as a newcomer, to be told what is the matter
    return Preparing(
        config.name, config.network, tuple(told.neighbours(config.neighbours)), rows,
        identity or Nameless(), time.time_ns() // 1000, wishes.min_count, wishes.missing_columns,
        labels, config.couple, config.class_weight, config.prepare is None, wishes.sparse, agreed,
        generation, noise=noise(config), vouched=vouched, least=config.vouchers,
        most_labels=2 if config.chooses else MOST_LABELS,
    )  # fmt: skip


def noise(config: Config) -> NoisySums | None:
    """Return what adds noise to sums, if the level of privacy asks for that."""
    if config.privacy.level != "dp":
        return None
    return NoisySums(Budget(config.privacy, config.folder / BUDGET, config.holdout))


def _first(config: Config, task: str, given: TaskConfig) -> tuple[Records | None, NDArray[Any]]:
    """The rows of a task's own file that are trained on, and their labels."""
    assert given.data is not None
    found, y = _records(config, given, given.data)
    mine = np.flatnonzero(~is_held(config, task, y))
    return None if found is None else found.take(mine), y[mine]


def _records(config: Config, given: TaskConfig, path: Path) -> tuple[Records | None, NDArray[Any]]:
    if config.prepare is None:
        rows = read_rows(path, label=given.label, features=given.features, weight=given.weight)
        assert rows.y is not None
        return None, rows.y
    roles = {"label": given.label, "weight": given.weight}
    found = read_records(path, roles=roles, features=given.features, kinds=config.prepare.kinds)
    assert found.y is not None
    return found, found.y


def is_held(config: Config, task: str, y: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows of a task are held out here; the node needs nobody to choose them."""
    if config.privacy.level == "dp":
        y = np.zeros(len(y))  # which rows are held out must not follow from others' labels
    return held_out(f"{config.name} {task}", config.holdout, 0, y, None)


def prepared(config: Config, agreed: Agreed | None) -> Prepared | None:
    """Return how columns become features, if they are prepared."""
    if agreed is None or agreed.plan is None:
        return None
    wishes = config.prepare or PrepareConfig()
    return Prepared(agreed.plan, wishes.min_count, wishes.missing_columns, wishes.sparse)


def keep_agreed(config: Config, preparing: Preparing) -> None:
    """Write what was agreed beside the checkpoint, and who vouches for it."""
    if preparing.agreed is not None:
        vouched = preparing.vouching.to_dict(preparing.agreed)
        _write(config.folder / FILE, _text({**preparing.agreed.to_dict(), "vouched": vouched}))


def want_anew(config: Config, generation: int) -> None:
    """Write down that all are to agree anew: from now on, nothing that was agreed before holds."""
    _write(config.folder / FILE, _text({"wanted": generation}))


def keep_told(config: Config, change: dict[str, Any]) -> None:
    """Put on disk what a node was told while it agrees with the others, and does not train."""
    path = config.folder / "checkpoint.npz"
    content = path.read_bytes() if path.exists() else None
    told = told_before(config.folder).but(change)
    _write(path, retold(content, told, config.name, config.network))


def _text(content: dict[str, Any]) -> bytes:
    return json.dumps(content, indent=1).encode()


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content, is_private=True)
    except OSError as error:
        raise NetworkError(
            f"{path} cannot be written: {error.strerror}. Nothing was changed; make room."
        ) from error


def _kept(config: Config) -> tuple[int, Agreed | None, dict[str, Any]]:
    """Return which generation is wanted, or what was agreed and who vouched for it."""
    path = config.folder / FILE
    if not path.exists():
        return 0, None, {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if "wanted" in content:
            return int(content["wanted"]), None, {}
        agreed = Agreed.from_dict(content)
        return agreed.generation, agreed, dict(content.get("vouched", {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NetworkError(
            f"{path} cannot be used ({error}). Remove it, and what the network has agreed on is "
            "taken over."
        ) from error
