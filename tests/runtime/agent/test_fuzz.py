"""A live agent, in its own process, under malformed messages from a certified neighbour."""

import asyncio
import os
import time

import numpy as np
import pytest
from damage import malformed
from forks import ForkedAgents
from meetings import FIXED, make_blocks, make_node, make_session
from sites import make_site, right, status, weights

from dtsvm import Network
from dtsvm.runtime.agent.process.credentials import Credentials
from dtsvm.runtime.agent.process.process import ask
from dtsvm.runtime.agent.site.certificates import make_certificate
from dtsvm.svm.model_file import load_model

N_MESSAGES, N_WINDOWS = 4_000, 8
ENDLESS = {**FIXED, "tol": 1e-300}
SITE = 0x0ABC  # the network's id in `make_site`


@pytest.fixture
def apart():
    """Run the agents on one core and this process on another, so that neither takes the other's."""
    mine = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(mine) < 2:
        yield lambda pids: None
        return

    def part(pids):
        for pid in pids:
            os.sched_setaffinity(pid, mine[:1])
        os.sched_setaffinity(0, mine[1:])

    yield part
    os.sched_setaffinity(0, mine)


def messages(blocks):
    """What node a could say wrongly to node b."""

    def make(name, neighbours):
        return make_node(name, neighbours, blocks, ENDLESS, network=SITE)

    twins = [make("b", ["a", "c"])]

    def is_refused(data):
        if twins[-1].take("a", data, 0.0):
            twins.append(make("b", ["a", "c"]))  # it has taken something in: begin anew
            return False
        return True

    return malformed(N_MESSAGES, make("a", ["b"]).hello(0.0)["b"], is_refused)


async def dial(folder, port):
    """A connection to node b with the certificate of node a; what comes back is thrown away."""
    files = [(folder / "a" / file).read_bytes() for file in ("ca.pem", "node.pem", "node.key")]
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=Credentials(*files).client_context(), server_hostname=""
    )

    async def drain():
        while await reader.read(65_536):
            pass

    return writer, asyncio.create_task(drain())


async def window(folder, line, batch, seconds):
    """Send a batch and wait until it is refused and the time is over; return rounds and seconds."""
    before = await ask(folder, command="status")
    began = time.monotonic()
    for data in batch:
        line.write(len(data).to_bytes(4, "big") + data)
    await line.drain()
    while True:
        await asyncio.sleep(0.02)
        now = await ask(folder, command="status")
        is_over = time.monotonic() - began >= seconds
        if is_over and now["refused"] >= before["refused"] + len(batch):
            return now["round"] - before["round"], time.monotonic() - began


async def attack(folder, port, found):
    """Alternate windows with and without malformed messages; return the two speeds."""
    fuzzed, quiet = [], []
    line, reading = await dial(folder, port)
    for batch in np.array_split(np.array(found, object), N_WINDOWS):
        fuzzed.append(await window(folder / "b", line, batch.tolist(), 0.0))
        quiet.append(await window(folder / "b", line, [], fuzzed[-1][1]))
    reading.cancel()
    line.close()
    return [sum(r for r, _ in some) / sum(t for _, t in some) for some in (fuzzed, quiet)]


def test_a_live_agent_goes_on_and_keeps_its_state_under_malformed_messages(tmp_path, apart):
    blocks = make_blocks(["b", "c"], ["one"])
    network = Network.line(["b", "c"])
    ports = make_site(tmp_path, network, blocks, ENDLESS)
    (tmp_path / "a").mkdir()
    make_certificate(tmp_path, tmp_path / "a", "a")
    found = messages({**blocks, ("a", "one"): blocks["b", "one"]})
    with ForkedAgents(tmp_path) as agents:
        for name in network.nodes:
            agents.start(name)
        agents.wait_for(lambda: status(tmp_path, "b")["round"] > 100)
        asyncio.run(ask(tmp_path / "b", command="link", name="a", address="127.0.0.1:1"))
        apart([child.pid for child in agents.running.values()])
        fuzzed, quiet = asyncio.run(attack(tmp_path, ports["b"], found))
        print(f"{fuzzed:.0f} rounds a second under fire, {quiet:.0f} without")
        after = status(tmp_path, "b")
        assert after["refused"] == N_MESSAGES
        assert after["nodes"] == 2
        assert fuzzed > 0.0
        asyncio.run(ask(tmp_path / "b", command="leave"))
        agents.running.pop("b").wait(60)
    live = make_session(network, blocks, ENDLESS)
    live.run(rounds=load_model(tmp_path / "b" / "model.json").info_.n_rounds)
    # The link to `a` began the count of rounds anew, so both come to rest by other steps.
    np.testing.assert_allclose(weights(tmp_path, "b", "one"), right(live, "one", "b"), rtol=1e-9)
