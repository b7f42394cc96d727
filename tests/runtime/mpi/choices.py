"""Run at every rank: what is chosen does not depend on the ranks, nor on who has which rows."""

import numpy as np
from mpi4py import MPI
from scipy.sparse import csr_array

from dtsvm import DTSVM, DTSVMCV, Network, Session

COMM = MPI.COMM_WORLD


def check(is_same, what):
    """Fail at every rank if it failed at one: nobody waits for another."""
    assert COMM.allreduce(bool(is_same), MPI.LAND), what


def drawn(seed, kind, n_labels):
    """Rows of three tasks, one of them turned round, at six of seven nodes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(210, 5)) * (rng.random((210, 5)) < 0.7)
    task, node = rng.integers(3, size=210), rng.integers(6, size=210)
    value = X[:, 0] + 0.5 * rng.normal(size=210)
    value[task == 2] *= -1
    y = np.digitize(value, [-0.3, 0.4][: n_labels - 1])
    rows = csr_array(X) if kind == "csr" else X.astype(kind)
    return rng, rows, y, {"task": task, "node": node}


def chooses(seed, kind, n_labels=2, **options):
    rng, X, y, names = drawn(seed, kind, n_labels)
    if seed % 2:
        names["sample_weight"] = rng.integers(0, 3, 210).astype(float)
    chosen = {"max_rounds": 200, "candidates": [("task", 1.0), ("common", 0.5, True)],
              "C": [0.1, 1.0], **options}  # fmt: skip
    one = DTSVMCV(Network.ring(7), **chosen).fit(X, y, **names)
    own = rng.integers(COMM.size, size=7)[names["node"]] == COMM.rank
    for mine in (own, np.ones(210, bool)):
        other = DTSVMCV(Network.ring(7), engine="mpi", **chosen)
        other.fit(X[mine], y[mine], **{name: values[mine] for name, values in names.items()})
        what = f"{kind}, {n_labels} labels, {'all' if mine.all() else 'own'} rows"
        compare(one, other, what, mine)


def lacks(kind, n_labels):
    """Only two nodes have rows, so some ranks have none."""
    _, X, y, names = drawn(4, kind, n_labels)
    names["node"] %= 2
    chosen = {"max_rounds": 200, "candidates": [("task", 1.0), ("common", 0.5)], "C": [0.1, 1.0]}
    one = DTSVMCV(Network.ring(3), **chosen).fit(X, y, **names)
    mine = names["node"] + 1 == COMM.rank
    other = DTSVMCV(Network.ring(3), engine="mpi", **chosen)
    other.fit(X[mine], y[mine], **{name: values[mine] for name, values in names.items()})
    compare(one, other, f"{kind}, {n_labels} labels, ranks without rows", mine)


def weighs(kind, **options):
    """Rows count by weights at one rank; the others say none."""
    rng, X, y, names = drawn(5, "float64", 2)
    mine = names["node"] % COMM.size == COMM.rank
    first = names["node"] % COMM.size == 0
    weight = np.where(first, rng.integers(0, 3, 210).astype(float), 1.0)
    one = kind(Network.ring(7), **options).fit(X, y, **names, sample_weight=weight)
    other = kind(Network.ring(7), engine="mpi", **options)
    own = weight[mine] if COMM.rank == 0 else None
    other.fit(X[mine], y[mine], **{key: v[mine] for key, v in names.items()}, sample_weight=own)
    check(np.array_equal(one.coef_, other.coef_), f"{kind.__name__}: weights at one rank")


def compare(one, other, what, mine=None):
    check(np.array_equal(one.weights_, other.weights_), f"{what}: weights")
    check(one.choices_ == other.choices_, f"{what}: choices")
    check(np.array_equal(one.coef_, other.coef_), f"{what}: coef_")
    check(np.array_equal(one.intercept_, other.intercept_), f"{what}: intercept_")
    check(np.array_equal(one.node_coef_, other.node_coef_, equal_nan=True), f"{what}: nodes")
    if mine is not None:
        check(np.array_equal(one.is_wrong_[mine], other.is_wrong_), f"{what}: held-out rows")
    check(one.info_.n_rounds == other.info_.n_rounds, f"{what}: rounds")


def lives(is_sparse):
    """A session chooses, nodes and rows come and go, and it chooses again."""
    pair = [Session(Network.ring(5), engine=engine) for engine in ("memory", "mpi")]
    chosen = {"max_rounds": 200, "candidates": [("task", 1.0), ("mixed", 0.5)], "C": [0.1, 1.0]}
    form = csr_array if is_sparse else np.asarray
    for live in pair:
        rng = np.random.default_rng(0)
        for node in range(5):
            for task in ("cough", "fever"):
                X = rng.normal(size=(15, 3))
                live.enter(node, task, form(X), np.sign(X[:, 0] + 0.1), labels=(-1, 1))
    compare(*(live.choose(**chosen) for live in pair), "first choice")
    for live in pair:
        rng = np.random.default_rng(1)
        X = rng.normal(size=(8, 3))
        live.add_data(1, "fever", form(X), np.sign(X[:, 0]))
        live.drop_data(2, "cough", oldest=3)
        live.leave(node=3)
        live.enter("late", "cough", form(X), np.sign(X[:, 0]), links=[0, 4], labels=(-1, 1))
    compare(*(live.choose(**chosen) for live in pair), "next choice")


if __name__ == "__main__":
    chooses(0, "float64", guard="alone")
    chooses(1, "csr", class_weight="balanced", refit=False)
    chooses(2, "float32", n_labels=3)
    weighs(DTSVM, max_rounds=200, relays="auto")
    weighs(DTSVMCV, max_rounds=200, C=[0.1, 1.0])
    if COMM.size > 2:
        lacks("float64", 2)
        lacks("csr", 3)
    for kind in (False, True):
        lives(kind)
    if COMM.rank == 0:
        print("the same choices")
