import numpy as np
import pytest
from forks import ForkedAgents
from meetings import SHAPES, Carrier, build, cold, distance, make_blocks
from sites import farthest, make_site, status

from dtsvm import Network
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.node.timing import Timing

NAMES = [f"n{i}" for i in range(8)]
SETTINGS = {"C": 0.1, "tol": 1e-4}


def settled(network, blocks, **more):
    carrier = Carrier(build(network, blocks, SETTINGS, **more))
    carrier.meet()
    carrier.run_until_settled(2000)
    return carrier


def leave(carrier, name):
    """Let a node leave politely; return how far the others had gone three rounds later."""
    before = {n: node.decision("one") for n, node in carrier.nodes.items()}
    node = carrier.nodes[name]
    carrier.deliver(name, node.leave())
    del carrier.nodes[name]
    for _ in range(3):
        carrier.tick()
    return max(
        np.linalg.norm(node.decision("one") - before[n]) for n, node in carrier.nodes.items()
    )


def offsets(carrier, tasks):
    found = {
        task: np.array(
            [node.state.offset(node.holdings[task].slot) for node in carrier.nodes.values()]
        )
        for task in tasks
    }
    size = max(np.abs(one).max() for one in found.values())
    common = sum(one[:, 0].sum(axis=0) for one in found.values())
    apart = max(np.abs(one[:, 1].sum(axis=0)).max() for one in found.values())
    return size, max(np.abs(common).max(), apart)


def test_a_polite_leave_shakes_the_others_much_less_than_without_hand_over(monkeypatch):
    blocks = make_blocks(NAMES, ["one"], n=20)
    carrier = settled(Network.ring(NAMES), blocks)
    handed = leave(carrier, "n3")
    carrier.run_until_settled(2000)
    size, total = offsets(carrier, ["one"])
    assert size > 1e-3
    assert total < 1e-9
    rest = {key: rows for key, rows in blocks.items() if key[0] != "n3"}
    best = cold(Network.complete([n for n in NAMES if n != "n3"]), rest, SETTINGS)
    assert distance(carrier.nodes.values(), best) < 1e-2
    monkeypatch.setattr(Roster, "has_parted", lambda *_: False)
    assert handed < 0.6 * leave(settled(Network.ring(NAMES), blocks), "n3")


@pytest.mark.parametrize("shape", ["ring", "complete"])
def test_all_that_is_handed_over_sums_to_nothing_whoever_leaves_next(shape):
    tasks = ["one", "two"]
    blocks = make_blocks(NAMES[:6], tasks)
    carrier = settled(SHAPES[shape](NAMES[:6]), blocks, timing=Timing(evict_seconds=3.0))
    leave(carrier, "n2")
    carrier.nodes["n4"].tell_owner()
    carrier.nodes["n4"].leave_task("two")
    carrier.run_until_settled(2000)
    here = {key: rows for key, rows in blocks.items() if key[0] != "n2" and key != ("n4", "two")}
    del carrier.nodes["n3"]  # dies, with what it was handed over
    for _ in range(120):
        carrier.tick()
    carrier.run_until_settled(2000)
    here = {key: rows for key, rows in here.items() if key[0] != "n3"}
    best = cold(Network.complete(["n0", "n1", "n4", "n5"]), here, SETTINGS)
    assert all(node.status()["lies"] == 0 for node in carrier.nodes.values())
    assert distance(carrier.nodes.values(), best) < 1e-2


def test_tasks_that_train_apart_share_nothing_any_more():
    blocks = make_blocks(NAMES[:4], ["one", "two"])
    carrier = settled(Network.ring(NAMES[:4]), blocks)
    carrier.nodes["n1"].tell_owner()
    carrier.nodes["n1"].decouple("two")
    carrier.tick()
    carrier.run_until_settled(2000)
    for task in ("one", "two"):
        alone = {key: rows for key, rows in blocks.items() if key[1] == task}
        best = cold(Network.complete(NAMES[:4]), alone, SETTINGS).classifier(task)
        whole = np.append(best.coef_[0], best.intercept_)
        for node in carrier.nodes.values():
            away = np.linalg.norm(node.decision(task) - whole) / np.linalg.norm(whole)
            assert away < 1e-2


def test_a_process_that_leaves_hands_over_and_the_others_settle_at_their_own_optimum(tmp_path):
    names = list("abcde")
    blocks = make_blocks(names, ["one"])
    make_site(tmp_path / "site", Network.ring(names), blocks, {"C": 0.1, "tol": 1e-6})
    with ForkedAgents(tmp_path / "site") as agents:
        for name in names:
            agents.start(name)
        agents.settle(names)
        leaver = agents.running.pop("c")
        leaver.terminate()
        leaver.wait(300)
        rest = [name for name in names if name != "c"]
        agents.settle(rest)
        here = {key: rows for key, rows in blocks.items() if key[0] != "c"}
        best = cold(Network.complete(rest), here, {"C": 0.1, "tol": 1e-9})
        assert farthest(tmp_path / "site", rest, best) < 1e-3
        assert all(status(tmp_path / "site", name)["lies"] == 0 for name in rest)
