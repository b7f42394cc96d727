"""Links between real processes are cut and healed, by proxies that neither end knows of."""

import asyncio
import os
import time

import numpy as np
from forks import ForkedAgents
from meetings import NAMES, cold, make_blocks
from proxies import Proxies
from sites import farthest, make_site, status, write_rows

from dtsvm import Network
from dtsvm.runtime.agent.process.process import ask

# How long links are cut at least; 20 for a long look.
CUT_SECONDS = float(os.environ.get("DTSVM_CUT_SECONDS", "4"))
SETTINGS = {"C": 0.1, "tol": 1e-5}
SIDES = (["a", "b", "c"], ["d", "e", "f"])
ACROSS = [("a", "f"), ("c", "d")]  # the links of the ring between the sides


def make(folder, proxies, blocks, evict):
    ports = make_site(
        folder, Network.ring(NAMES), blocks, SETTINGS,
        through=proxies.through, round_seconds=0.5, evict_seconds=evict,
    )  # fmt: skip
    proxies.lead_to(ports)


def optimum(network, blocks):
    mine = {key: block for key, block in blocks.items() if key[0] in network.nodes}
    return cold(network, mine, SETTINGS)


def test_a_cut_longer_than_the_lease_lets_each_side_go_to_its_own_optimum_and_back(tmp_path):
    blocks = make_blocks(NAMES, ["one"])
    with Proxies(ACROSS) as proxies, ForkedAgents(tmp_path) as agents:
        make(tmp_path, proxies, blocks, evict=CUT_SECONDS / 2)
        for name in NAMES:
            agents.start(name)
        whole = optimum(Network.ring(NAMES), blocks)
        agents.settle(NAMES, whole)
        proxies.cut("silent")
        began = time.monotonic()
        for side in SIDES:
            alone = optimum(Network.line(side), blocks)
            agents.settle(side, alone)
            assert farthest(tmp_path, side, whole) > 1e-2
        time.sleep(max(0.0, began + CUT_SECONDS - time.monotonic()))
        proxies.heal()
        agents.settle(NAMES, whole)


def test_a_cut_shorter_than_the_lease_keeps_what_is_known_and_ends_at_one_optimum(tmp_path):
    blocks = make_blocks(NAMES, ["one"])
    with Proxies(ACROSS) as proxies, ForkedAgents(tmp_path) as agents:
        make(tmp_path, proxies, blocks, evict=10 * CUT_SECONDS + 60)
        for name in NAMES:
            agents.start(name)
        agents.settle(NAMES)
        before = optimum(Network.ring(NAMES), blocks)
        proxies.cut("closed")
        time.sleep(CUT_SECONDS / 2)
        assert {status(tmp_path, name)["nodes"] for name in NAMES} == {6}
        assert farthest(tmp_path, NAMES, before) < 1e-3
        # What one side learns now the other cannot hear of; nobody forgets anybody.
        X, y = make_blocks(["a"], ["one"], n=30, seed=8)["a", "one"]
        write_rows(tmp_path / "more.csv", X, y)
        asyncio.run(ask(tmp_path / "a", command="rows", file=str(tmp_path / "more.csv")))
        time.sleep(CUT_SECONDS / 2)
        assert {status(tmp_path, name)["nodes"] for name in NAMES} == {6}
        assert farthest(tmp_path, SIDES[1], before) < 1e-3
        proxies.heal()
        old = blocks["a", "one"]
        blocks["a", "one"] = (np.concatenate([old[0], X]), np.concatenate([old[1], y]))
        after = optimum(Network.ring(NAMES), blocks)
        agents.wait_for(lambda: farthest(tmp_path, NAMES, after) < 1e-3)
        agents.settle(NAMES)
        assert farthest(tmp_path, NAMES, after) < 1e-3
