"""Run at every rank: whatever memory does, ranks do to the last bit, wherever nodes are placed."""

import sys
import traceback
from pathlib import Path

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mpi4py import MPI
from scipy.sparse import csr_array

sys.path.insert(0, str(Path(__file__).parents[2]))
from dtsvm import DTSVM, Network, Session
from dtsvm.rounds import plan
from dtsvm.runtime import memory
from dtsvm.runtime.mpi import share
from worlds import examples, random_network, rows, worlds

COMM = MPI.COMM_WORLD
# The same examples at every rank, and none tried again: a rank that fails ends all. Every rank
# does what memory does, too, so that many have fewer examples.
alike = settings(
    examples(min(8, 16 // COMM.size)),
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
)


def place_anyhow(seed):
    """Place nodes at random, all ranks alike: some cut every link, some leave a rank empty."""
    rng = np.random.default_rng(seed)
    share.place_nodes = lambda weight, links, n: rng.integers(n, size=len(weight))


def check(is_same, what):
    """Fail at every rank if it failed at one: nobody waits for another."""
    assert COMM.allreduce(bool(is_same), MPI.LAND), what


def check_sessions(one, other, what):
    check(one.info.status == other.info.status, f"{what}: status")
    check(one.history.tobytes() == other.history.tobytes(), f"{what}: history")
    check(one.info.objective == other.info.objective, f"{what}: objective")
    check(one.info.gap == other.info.gap, f"{what}: gap")
    for task in one.tasks:
        ours, theirs = one.decisions(task), other.decisions(task)
        same = all(np.array_equal(ours[v], theirs[v]) for v in ours)
        check(same and list(ours) == list(theirs), f"{what}: {task}")
        check(one.row_counts(task) == other.row_counts(task), f"{what}: rows of {task}")


@alike
@given(worlds(max_nodes=8), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2]))
def random_worlds(world, seed, loss):
    try:
        compare_worlds(world, seed, loss)
    except Exception:
        traceback.print_exc()
        COMM.Abort(1)


def compare_worlds(world, seed, loss):
    place_anyhow(seed)
    pair = [world.session(engine=engine, loss=loss) for engine in ("memory", "mpi")]
    for live in pair:
        live.run(rounds=45)
    check_sessions(*pair, "45 rounds")
    for live in pair:
        live.run(rounds=300, tol=1e-4)
    check_sessions(*pair, "to its tolerance")


def churn(live, rng):
    """A life: nodes, tasks, links and rows come and go between runs."""
    w = rng.normal(size=3)
    for node in range(6):
        live.enter(node, "a", *rows(rng, 12, 3, w), labels=(-1, 1))
    live.run(rounds=25)
    for node in (0, 1, 2):
        live.enter(node, "b", *rows(rng, 9, 3, w + 0.3), labels=(-1, 1))
    live.couple("a", "b")
    live.run(rounds=50)
    live.enter("late", "a", *rows(rng, 7, 3, w), links=[4, 5], labels=(-1, 1))
    live.add_data(3, "a", *rows(rng, 5, 3, w))
    live.drop_data(2, "a", oldest=4)
    live.run(rounds=45)
    live.leave(node=4)
    live.link(0, 3)
    live.set(C=0.3)
    live.run(rounds=100)
    live.decouple("b")
    live.leave(node=1, task="b", allow_split=True)
    live.run()


def a_life(seed):
    place_anyhow(seed)
    pair = [Session(Network.ring(6), C=0.1, engine=engine) for engine in ("memory", "mpi")]
    for live in pair:
        churn(live, np.random.default_rng(seed))
    check_sessions(*pair, f"life {seed}")
    check(pair[0].events == pair[1].events, "events")


def fits(seed, kind):
    """CSR or dense, three labels, weights: estimators, nodes placed by rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(240, 6)) * (rng.random((240, 6)) < 0.5)
    y = np.digitize(X[:, 0] + 0.4 * rng.normal(size=240), [-0.3, 0.4])
    names = {"task": rng.integers(2, size=240), "node": rng.integers(7, size=240)}
    names["sample_weight"] = rng.uniform(0.5, 2.0, 240)
    network = random_network(rng, 7)
    rows = csr_array(X) if kind == "csr" else X.astype(kind)
    chosen = {"C": 0.2, "relays": "auto", "class_weight": "balanced", "probability": seed == 1}
    one = DTSVM(network, **chosen).fit(rows, y, **names)
    own = rng.integers(COMM.size, size=7)[names["node"]] == COMM.rank
    # All rows at every rank, or each rank's own; one thread or two.
    for mine, n_jobs in ((np.ones(240, bool), 1), (own, 2)):
        some = {name: values[mine] for name, values in names.items()}
        other = DTSVM(network, engine="mpi", n_jobs=n_jobs, **chosen)
        other.fit(rows[mine], y[mine], **some)
        check_fits(one, other, f"{kind}, {'all' if mine.all() else 'own'} rows")


def check_fits(one, other, kind):
    check(one.history_.tobytes() == other.history_.tobytes(), f"{kind}: history")
    check(np.array_equal(one.coef_, other.coef_), f"{kind}: coef_")
    check(np.array_equal(one.node_coef_, other.node_coef_, equal_nan=True), f"{kind}: nodes")
    check(one.info_.gap == other.info_.gap, f"{kind}: gap")
    for ours, theirs in zip(one.model_.tasks, other.model_.tasks, strict=True):
        check(ours.classes == theirs.classes, f"{kind}: classes")
        if one.probability:
            check(np.array_equal(ours.sigmoid, theirs.sigmoid), f"{kind}: sigmoids")


if __name__ == "__main__":
    # More ranks than cores wait for one another at every round: one of each shows what is new.
    n_each = 3 if COMM.size <= 3 else 1
    for number, kind in enumerate(("csr", "float64", "float32")[:n_each]):
        memory.PARALLEL_WORK = (4_000_000, 100, 100)[number]
        plan.MANY_ROWS = share.MANY_ROWS = (1 << 16, 100, 1 << 16)[number]
        fits(number, kind)
    for life in range(n_each):
        a_life(life)
    random_worlds()
    if COMM.rank == 0:
        print("the same bits")
