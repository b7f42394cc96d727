import asyncio

import numpy as np
import pytest
from forks import ForkedAgents
from meetings import FIXED, NAMES, SHAPES, cold, make_blocks, make_session
from sites import make_site, right, weights, write_rows

from dtsvm import Network
from dtsvm.runtime.agent.process.process import ask


@pytest.mark.parametrize(
    "shape", ["ring", *(pytest.param(s, marks=pytest.mark.slow) for s in ("complete", "line"))]
)
def test_six_processes_equal_memory_bit_for_bit(shape, tmp_path):
    network = SHAPES[shape](NAMES)
    blocks = make_blocks(NAMES, ["one", "two"])
    make_site(tmp_path, network, blocks, FIXED)
    with ForkedAgents(tmp_path) as agents:
        for name in NAMES:
            agents.start(name, "--rounds", "40")
        agents.wait_for(lambda: all((tmp_path / n / "model.json").exists() for n in NAMES))
    live = make_session(network, blocks, FIXED)
    live.run(rounds=40)
    for name in NAMES:
        for task in ("one", "two"):
            mine = weights(tmp_path, name, task)
            assert np.array_equal(mine, right(live, task, name))


def test_processes_train_lose_one_take_it_back_and_are_told(tmp_path):
    names = NAMES[:3]
    network = Network.ring(names)
    blocks = make_blocks(names, ["one"])
    settings = {"C": 0.1, "tol": 1e-8}
    make_site(tmp_path, network, blocks, settings, round_seconds=0.5, evict_seconds=2.0)
    with ForkedAgents(tmp_path) as agents:
        for name in names:
            agents.start(name)

        def check(among, blocks, shape):
            agents.settle(among, cold(shape(among), blocks, settings))

        check(names, blocks, Network.ring)
        agents.running["c"].kill()
        agents.running.pop("c").wait()
        rest = {k: v for k, v in blocks.items() if k[0] != "c"}
        check(["a", "b"], rest, Network.line)
        agents.start("c")
        check(names, blocks, Network.ring)
        X, y = make_blocks(["a"], ["one"], n=30, seed=8)["a", "one"]
        write_rows(tmp_path / "more.csv", X, y)
        asyncio.run(ask(tmp_path / "a", command="rows", file=str(tmp_path / "more.csv")))
        old = blocks["a", "one"]
        blocks["a", "one"] = (np.concatenate([old[0], X]), np.concatenate([old[1], y]))
        check(names, blocks, Network.ring)
        asyncio.run(ask(tmp_path / "b", command="leave"))
        agents.running.pop("b").wait(60)
        rest = {k: v for k, v in blocks.items() if k[0] != "b"}
        check(["a", "c"], rest, Network.line)
        assert (tmp_path / "a" / "control.sock").stat().st_mode & 0o777 == 0o600
