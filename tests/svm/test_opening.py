"""Batches of lanes opened at once: the same agents, links and rounds as a session's."""

import numpy as np
import pytest

from dtsvm import Network
from dtsvm.errors import NetworkError
from dtsvm.select import SMALL, Candidate, Held, Job, Lane, split
from dtsvm.svm.lanes import Lanes
from dtsvm.svm.warm import WarmLanes


def posed(network, holders, seed=0):
    """Rows of two tasks at some nodes of a network, and two candidates' jobs."""
    rng = np.random.default_rng(seed)
    n = 60
    X, task = rng.normal(size=(n, 3)), rng.integers(2, size=n)
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    node = rng.integers(len(holders), size=n)
    held = Held(X, y, task, split(y, 2 * node + task, 2), 2, 2)
    lanes = [Lane(np.flatnonzero(held.fold != k), np.ones(2)) for k in range(2)]
    lanes.append(Lane(np.arange(n), np.ones(2)))
    jobs = [Job(Candidate(family, C), lanes) for family in SMALL[:2] for C in (0.1, 1.0)]
    return (held, (holders, node), network, 3.0, 0.01, 2000), jobs


@pytest.mark.parametrize(
    ("network", "holders"),
    [
        (Network.ring(4), [0, 1, 2, 3]),
        (Network.line(5), [0, 4]),
        (Network(["b", "a", "c"], [("b", "c"), ("c", "a")]), ["a", "b"]),
        (Network([7], []), [7]),
    ],
)
def test_lanes_opened_at_once_end_where_sessions_of_them_end(network, holders):
    options, jobs = posed(network, holders)
    at_once, sessions = Lanes(*options), WarmLanes(*options, numbers=np.arange(60))
    for ours, theirs in zip(at_once(jobs), sessions(jobs), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-9)
    for (_, ours), (_, theirs) in zip(at_once.stages[0], sessions.stages[0], strict=True):
        assert (ours.n_rounds, ours.bytes_sent) == (theirs.n_rounds, theirs.bytes_sent)


def test_a_network_in_parts_is_refused():
    options, jobs = posed(Network(["a", "b"], []), ["a", "b"])
    with pytest.raises(NetworkError, match="parts that cannot hear each other"):
        Lanes(*options)(jobs)
