import os
import signal
import sys

import numpy as np
import pytest
from launch import needs_mpi, run_python, start, wait_until_gone

from dtsvm import DTSVM, Session
from dtsvm.errors import ParameterError
from dtsvm.runtime.mpi.ranks import is_one_of_several

LONG = """
import os, sys
import numpy as np
from dtsvm import Network, Session
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
rng = np.random.default_rng(0)
live = Session(Network.ring(8), C=50.0, engine="mpi")
for node in range(8):
    X = rng.normal(size=(40, 5))
    live.enter(node, "a", X, np.sign(X[:, 0] + rng.normal(size=40)))
os.write(1, f"{rank} {os.getpid()}\\n".encode())  # in one piece
"""


def test_without_mpi4py_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ParameterError, match=r"needs mpi4py and an MPI library: pip install 'dtsv"):
        Session(engine="mpi")
    with pytest.raises(ParameterError, match="needs mpi4py"):
        DTSVM(engine="mpi").fit([[0.0], [1.0]], [0, 1])


def test_an_engine_that_does_not_exist_is_refused():
    with pytest.raises(
        ParameterError, match=r"^Unknown 'engine' of Session: 'ray'\. Choose from memory, mpi\.$"
    ):
        Session(engine="ray")


@pytest.mark.parametrize(
    ("told", "is_one"),
    [({}, False), ({"PMI_SIZE": "1"}, False), ({"PMI_SIZE": "4"}, True),
     ({"OMPI_COMM_WORLD_SIZE": "2"}, True), ({"PMIX_RANK": "0"}, False),
     ({"PMIX_RANK": "0", "SLURM_NTASKS": "3"}, True), ({"SLURM_NTASKS": "3"}, False)],
)  # fmt: skip
def test_what_the_launcher_says_tells_one_of_several(monkeypatch, told, is_one):
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMIX_RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("SLURM_NTASKS", raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert is_one_of_several() is is_one


@needs_mpi
def test_a_rank_that_fails_ends_all_with_its_sentence_once():
    program = LONG + "if rank == 1: raise ValueError('rank one is out of rows')\nlive.run(10**6)"
    code, _, err = run_python(3, "-c", program)
    assert code != 0
    assert err.count("ValueError: rank one is out of rows") == 1


@needs_mpi
def test_a_time_limit_ends_all_ranks_after_the_same_round():
    end = (
        "info = live.run(10**6, seconds=0.5)\n"
        "os.write(1, f'{rank} {info.status} {info.n_rounds} {info.gap}\\n'.encode())"
    )
    code, out, err = run_python(2, "-c", LONG + end)
    assert code == 0, err
    said = [line.split()[1:] for line in out.splitlines() if "time_limit" in line]
    assert len(said) == 2
    assert said[0] == said[1]
    assert 0 < int(said[0][1]) < 10**6


TRAINS = """
heard = []
def tell(info):  # once more, when it trains
    if not heard:
        heard.append(os.write(1, f"{rank} {os.getpid()}\\n".encode()))
status = live.run(10**9, on_round=tell).status
os.write(1, f'{rank} {status}\\n'.encode())
"""


@needs_mpi
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_one_rank_ends_all(number):
    """Ctrl-C keeps the last whole round at every rank; kill -9 leaves nobody waiting."""
    process = start(3, sys.executable, "-c", LONG + TRAINS)
    try:
        pids = dict(line_of(process) for _ in range(6))  # twice from each
    except ValueError:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    os.kill(pids[1], number)
    out, err = process.communicate(timeout=300)
    if number == signal.SIGINT:
        assert process.returncode == 0, err
        assert sorted(out.splitlines()) == [f"{rank} interrupted" for rank in range(3)]
    else:
        assert process.returncode != 0
        assert "interrupted" not in out
    wait_until_gone(pids.values())


def line_of(process):
    rank, pid = map(int, process.stdout.readline().split())
    return rank, pid


@needs_mpi
def test_each_rank_may_bring_its_own_nodes_rows():
    program = """
import os
import numpy as np
from dtsvm import Network, Session
from mpi4py import MPI
from worlds import rows
rank = MPI.COMM_WORLD.rank
pair = [Session(Network.ring(4), C=0.1, engine=engine) for engine in ("memory", "mpi")]
for live in pair:
    for node in range(4):
        X, y = rows(np.random.default_rng(node), 20, 3, np.ones(3))
        if node and live is pair[1] and not live._members.state.rank_of_node[node] == rank:
            X = y = None
        live.enter(node, "a", X, y, labels=(-1, 1))
    live.run()
one, other = (live.decisions("a") for live in pair)
same = all(np.array_equal(one[node], other[node]) for node in range(4))
os.write(1, f"{same} {pair[1].row_counts('a')}\\n".encode())
"""
    path = os.pathsep.join(sys.path)
    code, out, err = run_python(2, "-c", program, env={**os.environ, "PYTHONPATH": path})
    assert code == 0, err
    assert out.splitlines() == ["True {0: 20, 1: 20, 2: 20, 3: 20}"] * 2


def test_the_numbers_of_one_rank_are_gathered_as_they_are():
    from dtsvm.runtime.mpi.collect import gather_rows

    class Alone:
        size = 1

    assert np.array_equal(gather_rows(Alone(), np.arange(6).reshape(2, 3)), [[0, 1, 2], [3, 4, 5]])
