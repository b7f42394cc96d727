"""Running processes are told things by 'dtsvm tell', and end at the new optimum."""

import numpy as np
import pytest
from click.testing import CliRunner
from forks import ForkedAgents
from meetings import NAMES, cold, make_blocks, make_session
from sites import farthest, free_ports, make_site, status, write_rows

from dtsvm import Network
from dtsvm.ui import main

SETTINGS = {"C": 0.1, "tol": 1e-8}
ABC = NAMES[:3]
TASKS = ("one", "two")


def call(*args, exit_code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == exit_code, result.output
    return result.output


def settled(agents, names, n, is_so):
    """Wait until something is so of every status, and all have settled."""

    def look():
        found = [status(agents.folder, name) for name in names]
        return all(s["is_settled"] and s["nodes"] == n and is_so(s) for s in found)

    agents.wait_for(look)


@pytest.fixture
def site(tmp_path):
    """Three nodes of two tasks that do not train together, and their rows."""
    blocks = make_blocks(ABC, TASKS)
    make_site(tmp_path, Network.ring(ABC), blocks, SETTINGS, couple=False, round_seconds=0.5)
    with ForkedAgents(tmp_path) as agents:
        for name in ABC:
            agents.start(name)
        settled(agents, ABC, 3, lambda s: len(s["groups"]) == 2)
        yield agents, blocks


def test_tasks_are_coupled_given_rows_and_let_go_one_after_another(site):
    agents, blocks = site
    folder, toml = agents.folder, {name: agents.folder / name / "node.toml" for name in ABC}
    network = Network.ring(ABC)
    apart = make_session(network, blocks, SETTINGS, couple=False)
    apart.run(rounds=2000)
    assert farthest(folder, ABC, apart, TASKS) < 1e-3

    said = call("tell", toml["b"], "couple", "one", "two")
    assert said == "Tasks one, two train together.\n"
    settled(agents, ABC, 3, lambda s: s["groups"] == [["one", "two"]])
    assert farthest(folder, ABC, cold(network, blocks, SETTINGS), TASKS) < 1e-3

    X, y = make_blocks(["c"], ["two"], n=25, seed=8)["c", "two"]
    write_rows(folder / "more.csv", X, y)
    refusal = call("tell", toml["c"], "rows", "add", folder / "more.csv", exit_code=1)
    assert "Say which task with --task: one, two." in refusal
    said = call("tell", toml["c"], "rows", "add", folder / "more.csv", "--task", "two")
    assert said == "Task 'two' has 25 more rows.\n"
    old = blocks["c", "two"]
    blocks["c", "two"] = (np.concatenate([old[0], X]), np.concatenate([old[1], y]))
    best = cold(network, blocks, SETTINGS)
    agents.wait_for(lambda: farthest(folder, ABC, best, TASKS) < 1e-3)
    assert status(folder, "c")["tasks"] == {"one": 12, "two": 37}

    said = call("tell", toml["a"], "leave", "--task", "two")
    assert said == "Task 'two' has left node 'a'.\n"
    del blocks["a", "two"]
    best = cold(network, blocks, SETTINGS)
    agents.wait_for(
        lambda: (
            farthest(folder, ABC, best, ["one"]) < 1e-3
            and farthest(folder, ["b", "c"], best, ["two"]) < 1e-3
        )
    )
    settled(agents, ABC, 3, lambda s: "one" in s["tasks"])
    assert status(folder, "a")["tasks"] == {"one": 12}

    call("tell", toml["a"], "leave", "--task", "one")  # it holds nothing now, and stays
    del blocks["a", "one"]
    rest = cold(Network.line(["b", "c"]), blocks, SETTINGS)
    agents.wait_for(lambda: farthest(folder, ["b", "c"], rest, TASKS) < 1e-3)
    settled(agents, ABC, 3, lambda s: True)
    assert status(folder, "a")["tasks"] == {}
    assert {status(folder, name)["refused"] for name in ABC} == {0}


def test_a_newcomer_is_added_and_linked_to_running_nodes(site):
    agents, blocks = site
    folder = agents.folder
    address = f"127.0.0.1:{free_ports(1)[0]}"
    said = call("network", "add", folder, "d", "--link", "a", "--link", "c", "--listen", address)
    assert f"link d {address}" in said
    more = make_blocks(["d"], TASKS, seed=3)
    for (_, task), (X, y) in more.items():
        write_rows(folder / "d" / f"{task}.csv", X, y)
    agents.start("d")
    for name in ("a", "c"):
        said = call("tell", folder / name / "node.toml", "link", "d", address)
        assert said == f"Node '{name}' is linked to node 'd'.\n"
    blocks.update(more)
    whole = Network([*ABC, "d"], [*Network.ring(ABC), ("a", "d"), ("c", "d")])
    settled(agents, [*ABC, "d"], 4, lambda s: True)
    best = make_session(whole, blocks, SETTINGS, couple=False)
    best.run(rounds=2000)
    agents.wait_for(lambda: farthest(folder, whole.nodes, best, TASKS) < 1e-3)
    # Told twice, or told a new address, it is still one link.
    call("tell", folder / "a" / "node.toml", "link", "d", address)
    settled(agents, [*ABC, "d"], 4, lambda s: True)
    assert farthest(folder, whole.nodes, best, TASKS) < 1e-3


def test_what_cannot_be_done_is_refused_and_changes_nothing(site):
    agents, _ = site
    folder = agents.folder
    toml = folder / "a" / "node.toml"
    before = {name: status(folder, name)["round"] for name in ABC}
    wrong = folder / "wrong.csv"
    wrong.write_text("x0,x1,y\n1.0,2.0,1\n")
    odd = folder / "odd.csv"
    odd.write_text("x0,x1,x2,x3,y\n1,2,3,4,7\n")
    for words, sentence in [
        (["couple", "one", "three"], "couple needs two or more of the tasks one, two."),
        (["couple", "one"], "couple needs two or more of the tasks one, two."),
        (["leave", "--task", "three"], "Node 'a' does not hold task 'three'."),
        (["rows", "add", folder / "no.csv", "--task", "one"], "no.csv"),
        (["rows", "add", wrong, "--task", "one"], "x2"),
        (["rows", "add", odd, "--task", "one"], "7"),
        (["rows", "add", odd, "--task", "three"], "Node 'a' does not hold task 'three'."),
        (["link", "a", "127.0.0.1:5"], "Node 'a' is linked to itself; a link joins two nodes."),
        (["link", "no/name", "127.0.0.1:5"], "'no/name' cannot be the name of a node"),
        (["link", "d", "nowhere"], "'nowhere' is no address"),
    ]:
        said = call("tell", toml, *words, exit_code=1)
        assert said.startswith("Error: "), (words, said)
        assert sentence in said, (words, said)
    assert {name: status(folder, name)["round"] for name in ABC} == before
    assert all(status(folder, name)["is_settled"] for name in ABC)
