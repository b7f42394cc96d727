"""Where the lanes of a choice stand, on disk: a node that was killed goes on there.

Beside the checkpoint, and unlike it no more than a head start: from any start the lanes end at the
same classifiers, so a file that is lost, old or damaged costs rounds and nothing else.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.data.files import digest_of
from dtsvm.runtime.agent.node.bench import Kept
from dtsvm.runtime.agent.node.lasting import Lasting

__all__ = ["dump_lanes", "read_lanes"]

Floats = NDArray[np.float64]
FORMAT = "dtsvm lanes 1"


def dump_lanes(kept: dict[str, Kept], network: int, generation: int) -> bytes:
    """Return lanes as a file."""
    lanes, floats, marks = [], [np.zeros(0)], [np.zeros(0, np.int64)]
    for name, one in kept.items():
        lanes.append([name, one.C, one.estimate.shape[1], len(one.marks), [*one.flows]])
        floats += [one.estimate.ravel(), one.dual, *(flow.ravel() for flow in one.flows.values())]
        marks.append(one.marks)
    head = {"format": FORMAT, "network": network, "generation": generation, "lanes": lanes}
    arrays: dict[str, NDArray[Any]] = {
        "head": np.frombuffer(json.dumps(head).encode(), np.uint8),
        "floats": np.concatenate(floats),
        "marks": np.concatenate(marks),
    }
    arrays["digest"] = np.frombuffer(digest_of(arrays), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def read_lanes(content: bytes, network: int, generation: int) -> Lasting:
    """Return lanes from a file; none if it is damaged, of another network or other features.

    Examples
    --------
    >>> read_lanes(b"nothing of the kind", 1, 0)
    {}
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        is_whole = arrays.pop("digest").tobytes() == digest_of(arrays)
        head = json.loads(arrays["head"].tobytes())
        wanted = (FORMAT, network, generation)
        if not is_whole or (head["format"], head["network"], head["generation"]) != wanted:
            return Lasting()
        return Lasting(_lanes(head["lanes"], arrays["floats"], arrays["marks"]))
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError):
        return Lasting()


def _lanes(lanes: list[list[object]], floats: Floats, marks: NDArray[np.int64]) -> dict[str, Kept]:
    found, at, first = {}, 0, 0

    def take(n: int) -> Floats:
        nonlocal at
        at += n
        return floats[at - n : at]

    for name, C, width, n_rows, others in lanes:
        p1, n = int(str(width)), int(str(n_rows))
        estimate, dual = take(2 * p1).reshape(2, p1), take(n)
        names = others if isinstance(others, list) else []
        flows = {str(other): take(2 * p1).reshape(2, p1) for other in names}
        found[str(name)] = Kept(float(str(C)), estimate, marks[first : first + n], dual, flows)
        first += n
    return found
