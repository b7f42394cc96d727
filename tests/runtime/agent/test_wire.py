import asyncio
import contextlib
import time

import numpy as np
from meetings import make_blocks, make_node
from sites import PATIENT

from dtsvm.runtime.agent.node.node import Timing
from dtsvm.runtime.agent.process.process import Process
from dtsvm.runtime.agent.process.transport import Transport

ENDLESS = {"C": 0.1, "node_penalty": 0.05, "tol": 1e-300}


def make_process(folder, name, neighbours, blocks, rounds=None):
    """A node as a process, but in this one, without certificates."""
    home = folder / name
    home.mkdir()
    timing = Timing(**PATIENT)
    node = make_node(name, neighbours, blocks, ENDLESS, timing=timing, now=time.monotonic())
    transport = Transport(
        name, "127.0.0.1:0", neighbours, None, lambda *got: process.hear(*got), 60.0
    )
    process = Process(
        node, transport, home, lambda change: None, lambda node: None, max_rounds=rounds
    )
    return process


async def started(process):
    task = asyncio.create_task(process.run())
    while not process.transport.port:
        await asyncio.sleep(0.01)
    return task


class Tap:
    """A proxy that keeps every byte."""

    def __init__(self):
        self.up, self.down = bytearray(), bytearray()

    async def open(self, port):
        async def serve(reader, writer):
            there, back = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(
                self._copy(reader, back, self.up), self._copy(there, writer, self.down)
            )

        self.server = await asyncio.start_server(serve, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def _copy(self, reader, writer, kept):
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                kept.extend(data)
                writer.write(data)
                await writer.drain()
        writer.close()


async def train_through_a_tap(folder, blocks, rounds):
    tap = Tap()
    b = make_process(folder, "b", {"a": "127.0.0.1:1"}, blocks, rounds)
    task_b = await started(b)
    port = await tap.open(b.transport.port)
    a = make_process(folder, "a", {"b": f"127.0.0.1:{port}"}, blocks, rounds)
    task_a = await started(a)
    while a.node.round < rounds or b.node.round < rounds:
        await asyncio.sleep(0.01)
    for process, task in ((a, task_a), (b, task_b)):
        process.stop()
        await task
    tap.server.close()
    return tap, a.node, b.node


def encodings(values):
    """Ways in which numbers could be written."""
    for code in ("<f8", ">f8", "<f4", ">f4"):
        yield np.asarray(values, code).tobytes()
    for text in ("{!r}", "{:.6g}", "{:.4f}"):
        yield ",".join(text.format(float(v)) for v in values).encode()


def test_nothing_but_decisions_crosses_a_link_and_little_beside_them(tmp_path):
    p, rounds = 10, 300
    blocks = make_blocks(["a", "b"], ["one"], p=p, n=30)
    tap, *nodes = asyncio.run(train_through_a_tap(tmp_path, blocks, rounds))
    crossed = bytes(tap.up) + bytes(tap.down)
    n_checked = 0
    for node in nodes:
        X, y = blocks[node.name, "one"]
        dual = node.state.tables.rows["dual"][node.state.row_slots[node.holdings["one"].slot]]
        free = dual[(dual > 0) & (dual < 0.1)]
        secrets = [*X[:, :2], *X[:, -2:], y, y[:4], dual, dual[:4], *free[:, None]]
        secrets += [[value] for value in X.ravel()]
        for secret in secrets:
            for code in encodings(secret):
                if len(code) >= 6:
                    n_checked += 1
                    assert code not in crossed
        assert bytes(y.astype(np.int8)) not in crossed
    assert n_checked > 3_000
    # The decisions do cross: the search would find what is there.
    assert b"".join(nodes[0]._told["b"])[-80:] in crossed
    for kept in (tap.up, tap.down):
        beside = len(kept) / rounds - 16 * (p + 1)
        assert 0 < beside < 200
