import numpy as np
import pytest

from dtsvm import Network, Session
from dtsvm.problem import Settings
from dtsvm.rounds import State
from dtsvm.runtime import memory


def session(rng, **settings):
    live = Session(Network.ring(4), **settings)
    for node in range(4):
        X = rng.normal(size=(60, 8))
        live.enter(node, "a", X, np.sign(X[:, 0] + rng.normal(size=60)))
    return live


def test_a_run_looks_up_even_if_its_rounds_take_long(rng):
    live = session(rng, C=100.0, local="exact", node_penalty=1.0, task_penalty=1.0)
    info = live.run(rounds=3000, seconds=0.2)
    assert info.status == "time_limit"
    assert 0 < info.n_rounds < 3000


@pytest.mark.parametrize("when", [1, 2])
def test_rounds_that_were_over_when_ctrl_c_came_are_in_the_books(rng, monkeypatch, when):
    plain = session(np.random.default_rng(0))
    live = session(np.random.default_rng(0))
    loop, calls = memory.Memory._loop, []

    def rounds_and_a_signal(self, job):
        loop(self, job)
        calls.append(job.record.progress[0])
        if len(calls) == when:
            raise KeyboardInterrupt

    monkeypatch.setattr(memory, "CHUNK_NUMBERS", 100_000)
    monkeypatch.setattr(memory.Memory, "_loop", rounds_and_a_signal)
    info = live.run(rounds=1000)
    monkeypatch.undo()
    assert info.status == "interrupted"
    assert info.n_rounds == len(live.history) == sum(calls) > 0
    plain.run(rounds=info.n_rounds)
    live.run(rounds=100)
    plain.run(rounds=100)
    assert np.array_equal(live.classifier("a").coef, plain.classifier("a").coef)
    assert live.info.messages_sent == plain.info.messages_sent


def test_no_round_is_no_proof(rng, monkeypatch):
    def signal(self, job):
        raise KeyboardInterrupt

    monkeypatch.setattr(memory.Memory, "_loop", signal)
    assert session(rng).run(rounds=10).gap == np.inf


@pytest.mark.parametrize("local", ["tracking", "exact"])
def test_threads_change_no_bit(rng, monkeypatch, local):
    def trained(n_jobs):
        live = session(np.random.default_rng(1), n_jobs=n_jobs, local=local)
        live.run(rounds=50)
        return live._members.state.tables.agents["estimate"]

    alone = trained(1)
    monkeypatch.setattr(memory, "PARALLEL_WORK", 0)
    assert np.array_equal(trained(3), alone)


def test_rows_that_were_adopted_may_grow_and_stay_with_their_agents(rng):
    """The caller's rows are copied when others come: training goes on as if they had been there."""
    X = rng.normal(size=(80, 3))
    y, node = np.sign(X[:, 0] + 0.3 * rng.normal(size=80)), rng.permutation(80) % 4
    found = []
    for is_adopted in (True, False):
        state = State(3, Settings(C=0.2))
        slots = state.add_agents(range(4), [0] * 4)
        state.link(slots[:3], slots[1:], True, True)
        if is_adopted:
            state.adopt_rows(X[:60], y[:60], slots[node[:60]])
        else:
            for v in range(4):
                mine = node[:60] == v
                state.add_rows(slots[v], X[:60][mine], y[:60][mine])
        state.add_rows(slots[2], X[60:], y[60:])
        memory.Memory(state).train(max_rounds=60, tol=None)
        found.append(state.estimate(slots))
    assert np.array_equal(*found)
