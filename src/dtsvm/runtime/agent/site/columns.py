"""A site's columns: its files read before the network agrees, and the plan kept beside them."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data import read_records
from dtsvm.data.files import write_atomically
from dtsvm.data.holdout import held_out
from dtsvm.errors import NetworkError
from dtsvm.prepare import Preparation
from dtsvm.prepare.plan import Plan
from dtsvm.runtime.agent.node.identity import Identity, Nameless
from dtsvm.runtime.agent.node.preparing import Preparing
from dtsvm.runtime.agent.site.config import Config, PrepareConfig

__all__ = ["begin_preparing", "is_held", "keep_plan"]

FILE = "preparation.json"


def begin_preparing(config: Config, identity: Identity | None) -> Preparing:
    """Read the site's files; what was agreed before is taken over."""
    wishes = config.prepare or PrepareConfig()
    rows = []
    for task, given in config.tasks.items():
        if given.data is None:
            continue
        found = read_records(
            given.data,
            roles={"label": given.label},
            features=given.features,
            kinds=wishes.kinds,
        )
        assert found.y is not None
        rows.append(found.take(np.flatnonzero(~is_held(config, task, found.y))))
    return Preparing(
        config.name, config.network, tuple(config.neighbours), rows, identity or Nameless(),
        time.time_ns() // 1000, wishes.min_count, wishes.missing_columns, _kept_plan(config),
    )  # fmt: skip


def is_held(config: Config, task: str, y: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows of a task are held out here; the node needs nobody to choose them."""
    return held_out(f"{config.name} {task}", config.holdout, 0, y, None)


def keep_plan(config: Config, plan: Plan) -> Preparation:
    """Write what was agreed beside the checkpoint, and return it."""
    wishes = config.prepare or PrepareConfig()
    made = Preparation.from_plan(
        plan, min_count=wishes.min_count, missing_columns=wishes.missing_columns
    )
    path = config.folder / FILE
    try:
        write_atomically(path, json.dumps(made.to_dict(), indent=1).encode(), is_private=True)
    except OSError as error:
        raise NetworkError(f"{path} cannot be written: {error.strerror}. Make room.") from error
    return made


def _kept_plan(config: Config) -> Plan | None:
    path = config.folder / FILE
    if not path.exists():
        return None
    try:
        return Plan.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise NetworkError(
            f"{path} cannot be used ({error}). Remove it, and the network's plan is taken over."
        ) from error
