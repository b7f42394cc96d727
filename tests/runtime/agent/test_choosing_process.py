"""Three real processes with mutual TLS choose; one is killed in the middle, and started again."""

import asyncio
import json
import time

import numpy as np
from choosers import agents
from click.testing import CliRunner
from meetings import make_blocks
from sites import LONGEST_SECONDS

from dtsvm import DTSVMCV, Network, load_model
from dtsvm.runtime.agent.node import looks
from dtsvm.runtime.agent.node.model import chosen_model
from dtsvm.runtime.agent.process.children import Children, free_addresses
from dtsvm.runtime.agent.process.choosing import ChoosingProcess
from dtsvm.runtime.agent.process.transport import Transport
from dtsvm.runtime.agent.site.folders import make_site
from dtsvm.ui.compare import compare

NODES = ["a", "b", "c"]


def write_site(site, network, blocks):
    lines = {t: {"data": f"{t}.npz", "label": "y", "labels": [-1, 1]} for t in ("one", "two")}
    address = dict(zip(NODES, free_addresses(3), strict=True))
    make_site(site, network, address, lines, {"C": "auto", "tol": 1e-3})
    for (node, task), (X, y) in blocks.items():
        np.savez(site / node / f"{task}.npz", X=X, y=y.astype(int))


def wait_until(children, is_so):
    until = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < until:
        children.check()
        found = children.statuses()
        if is_so(found):
            return found
        time.sleep(0.1)
    raise AssertionError({name: one.get("choosing") for name, one in found.items()})


def pooled(blocks):
    X, y = (np.concatenate([block[i] for block in blocks.values()]) for i in (0, 1))
    sizes = [len(block[1]) for block in blocks.values()]
    node, task = (np.repeat([key[i] for key in blocks], sizes) for i in (0, 1))
    return X, y.astype(int), {"task": task, "node": node}


def test_a_process_charges_neighbours_for_opening_what_they_say(tmp_path):
    async def run():
        network = Network.line(["a", "b"])
        a, _ = agents(network, make_blocks("ab", ["one"], p=2, n=6), 2, 0.05)
        line = Transport("a", "127.0.0.1:0", {"b": "127.0.0.1:1"}, None, print)
        process = ChoosingProcess(a.node, line, tmp_path, lambda _: None, lambda _: None, chooser=a)
        charged = []
        line.charge = lambda peer, seconds: charged.append((peer, seconds > 0.0))
        a.hear("b", b"no envelope")
        await process._step()
        await process._step()
        return charged

    assert asyncio.run(run()) == [("b", True)]


def test_what_took_no_round_to_choose_is_written_too(tmp_path):
    async def run():
        blocks = {("a", "one"): (np.ones((4, 2)), np.ones(4))}
        (a,) = agents(Network(["a"], []), blocks, 2, 0.05)
        line, written = Transport("a", "127.0.0.1:0", {}, None, print), []
        process = ChoosingProcess(
            a.node, line, tmp_path, lambda _: None, written.append, chooser=a
        )  # fmt: skip
        for _ in range(3):
            await process._step()
            process._follow()
        return a.node, written

    node, written = asyncio.run(run())
    assert node.round == 0
    assert node.is_settled
    assert written == [node]


def test_a_node_says_that_candidates_were_not_certified_in_time(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(looks, "MOST_ROUNDS", 10)

    async def run():
        network = Network(["a"], [])
        (a,) = agents(network, make_blocks("a", ["one", "two"], p=3, n=30), 3, 1e-9)
        line = Transport("a", "127.0.0.1:0", {}, None, print)
        process = ChoosingProcess(a.node, line, tmp_path, lambda _: None, lambda _: None, chooser=a)
        before = process.told()["apart"]
        while not a.outcome:
            await process._step()
        process._follow()
        return a, before, process.told()["apart"]

    chooser, before, said = asyncio.run(run())
    assert before == []
    assert said == [chooser.overdue.words]
    assert said[0] in caplog.text
    assert chooser.overdue.gap > 1e-9
    model = chosen_model(chooser.node, dict.fromkeys(("one", "two"), (-1, 1)), None, chooser)
    assert model.info.status == "max_rounds"


def test_processes_choose_what_memory_chooses_though_one_is_killed(tmp_path):
    site, network = tmp_path / "site", Network.ring(NODES)
    blocks = make_blocks(NODES, ["one", "two"], p=3, n=16, seed=1)
    write_site(site, network, blocks)
    with Children(site) as children:
        for name in NODES:
            children.start(name)
        wait_until(children, lambda found: found.get("b", {}).get("round", 0) > 5)
        children.kill("b")
        children.start("b")
        found = wait_until(
            children,
            lambda found: len(found) == 3 and all(one["is_settled"] for one in found.values()),
        )
        said = CliRunner().invoke(compare, [str(site / name / "node.toml") for name in NODES])
    assert all(one["sentence"] in said.output for one in found["a"]["choosing"]["choices"])
    assert sum(line.split()[:2] == ["a", "16"] for line in said.output.splitlines()) == 2
    models = [load_model(site / name / "model.json") for name in NODES]
    kept = [json.loads((site / name / "model.json").read_text())["choices"] for name in NODES]
    assert kept[0] == kept[1] == kept[2] == found["a"]["choosing"]["choices"]
    assert all(np.array_equal(models[0].coef_, one.coef_) for one in models)
    X, y, where = pooled(blocks)
    memory = DTSVMCV(network, tol=1e-3).fit(X, y, **where)
    whole, theirs = (np.column_stack([m.coef_, m.intercept_]) for m in (memory, models[0]))
    np.testing.assert_allclose(theirs, whole, atol=0.15 * np.abs(whole).max())
    said = [one.predict(X, task=where["task"]) for one in (memory, models[0])]
    assert np.mean(said[0] == said[1]) > 0.97
