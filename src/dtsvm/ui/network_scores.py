"""`dtsvm evaluate node.toml`: a running network scored on the rows its nodes hold out."""

from __future__ import annotations

import asyncio
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import MissingExtraError, NetworkError
from dtsvm.svm.model_file import read_model
from dtsvm.ui.judging import Report
from dtsvm.ui.scores import Scores

try:
    from dtsvm.runtime.agent.node.scoring import BINS
    from dtsvm.runtime.agent.process.control import ask
    from dtsvm.runtime.agent.site.config import read_config

    IS_INSTALLED = True
except ImportError:  # said when the command is called
    IS_INSTALLED = False

__all__ = ["ask_network"]

ASK_SECONDS, MOST_SECONDS = 0.1, 30.0


def ask_network(path: Path) -> Report:
    """Ask a running agent how good the network is; wait until all nodes have counted."""
    if not IS_INSTALLED:
        raise MissingExtraError(
            "Agents need protobuf and cryptography, which are not installed. "
            'Install them with: pip install "dtsvm[agent]"'
        )
    config = read_config(path)
    counts = asyncio.run(_wait_for_counts(config.folder))
    if not config.model.exists():
        raise NetworkError(f"There is no {config.model} yet: the agent has not settled. Wait.")
    model = read_model(config.model)
    report = Report(model, by_node=False)
    for one in model.tasks:
        found = np.array(counts.get(str(one.task), ()))
        if found.sum() > 0:
            report.tasks.append((one, _scores(found, len(one.classes)), []))
    if not report.tasks:
        raise NetworkError(
            "No node holds out rows. Write 'holdout = 0.2' above the first section of every "
            "node.toml, and start the agents again."
        )
    return report


async def _wait_for_counts(folder: Path) -> dict[str, Any]:
    until, is_first = time.monotonic() + MOST_SECONDS, True
    while time.monotonic() < until:
        answer = await ask(folder, command="evaluate", is_first=is_first)
        if answer["counts"] is not None:
            return dict(answer["counts"])
        is_first = False
        await asyncio.sleep(ASK_SECONDS)
    raise NetworkError(
        f"Not every node answered in {MOST_SECONDS:.0f} s. See 'dtsvm status' for who is absent."
    )


def _scores(counts: NDArray[np.float64], n_labels: int) -> Scores:
    """What follows from counts: a confusion table, or decision values in bins, ties half."""
    if len(counts) != (n_labels**2 if n_labels > 2 else 2 * BINS):
        raise NetworkError(
            "Some node says that a task has other labels than it has here, so that counts do not "
            "go together. See 'dtsvm status' for who is refused."
        )
    if n_labels > 2:
        whole = counts.reshape(n_labels, n_labels).round().astype(np.int64)
        return Scores(whole, math.nan, int(whole.sum(axis=1).max()))
    negative, positive = np.split(counts, 2)
    half = BINS // 2
    table = [[part[:half].sum(), part[half:].sum()] for part in (negative, positive)]
    below = np.cumsum(negative) - negative / 2
    pairs = negative.sum() * positive.sum()
    auc = float(positive @ below / pairs) if pairs else math.nan
    most = int(max(negative.sum(), positive.sum()))
    return Scores(np.array(table).round().astype(np.int64), auc, most)
