"""Run at every rank: a session is saved, and read back by any number of ranks or one process."""

import sys

import numpy as np
from mpi4py import MPI
from scipy.sparse import csr_array

from dtsvm import Network, Session

COMM = MPI.COMM_WORLD


def live_one(engine, is_sparse):
    """Two tasks, one of three labels; losses; a row and a departure between two runs."""
    rng = np.random.default_rng(0)
    form = csr_array if is_sparse else np.asarray
    live = Session(Network.ring(6), C=0.3, engine=engine, loss=0.1)
    for node in range(6):
        X = rng.normal(size=(15, 4))
        live.enter(node, "two", form(X), np.sign(X[:, 0] + 0.1), labels=(-1, 1))
        live.enter(node, "three", form(X), np.digitize(X[:, 1], [-0.3, 0.3]), labels=(0, 1, 2))
    live.run(rounds=45)
    live.add_data(2, "two", form(np.ones((1, 4))), [1], sample_weight=[2.5])
    live.leave(node=3)
    live.run(rounds=37)
    return live


def check_same(one, other):
    same = one.history.tobytes() == other.history.tobytes() and all(
        np.array_equal(ours, other.decisions(task)[node])
        for task in one.tasks
        for node, ours in one.decisions(task).items()
    )
    assert COMM.allreduce(same, MPI.LAND), "not the same bits"


if __name__ == "__main__":
    for is_sparse in (False, True):
        path = f"{sys.argv[2]}/{is_sparse}.npz"
        if sys.argv[1] == "save":
            live_one("mpi", is_sparse).save(path)
            continue
        one = live_one("memory", is_sparse)
        other = Session.load(path, engine="mpi" if COMM.size > 1 else "memory")
        for live in (one, other):
            live.run(rounds=60)
        check_same(one, other)
        for live in (one, other):
            live.set(C=0.2)
            live.run()
        check_same(one, other)
