import numpy as np
import pytest

from dtsvm import DTSVM, Network, Session
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
    compiled, calls = memory._rounds, []

    def rounds_and_a_signal(world, job):
        compiled(world, job)
        calls.append(job.over[0])
        if len(calls) == when:
            raise KeyboardInterrupt

    monkeypatch.setattr(memory, "CHUNK_NUMBERS", 100_000)
    monkeypatch.setattr(memory, "_rounds", rounds_and_a_signal)
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
    def signal(world, job):
        raise KeyboardInterrupt

    monkeypatch.setattr(memory, "_rounds", signal)
    assert session(rng).run(rounds=10).gap == np.inf


def test_adopted_rows_that_are_copied_stay_with_their_agents(rng, monkeypatch):
    """A state may own the caller's rows later: they are sorted then, and training goes on."""
    X = rng.normal(size=(80, 3))
    y, node = np.sign(X[:, 0] + 0.3 * rng.normal(size=80)), rng.permutation(80) % 4
    kept = DTSVM(Network.ring(4), max_rounds=60, tol=1e-300)
    with pytest.warns(match="60 rounds"):
        kept.fit(X, y, node=node)
    step = memory.Memory._advance

    def copied(self, n, rule):
        step(self, min(n, 20), rule)
        State.own_rows(self.state)

    monkeypatch.setattr(memory.Memory, "_advance", copied)
    with pytest.warns(match="60 rounds"):
        again = DTSVM(Network.ring(4), max_rounds=60, tol=1e-300).fit(X, y, node=node)
    assert np.array_equal(kept.coef_, again.coef_)
