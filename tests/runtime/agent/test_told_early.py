"""What an agent is told while the network still agrees on columns: done, kept, or refused."""

import pandas as pd
import pytest
from click.testing import CliRunner
from forks import ForkedAgents
from sites import status
from test_preparing import SITES, meet, table, talk, three_sites

from dtsvm.errors import NetworkError
from dtsvm.problem import Network
from dtsvm.runtime.agent.node.agreed import Labelled
from dtsvm.runtime.agent.process.orders import EarlyOrders
from dtsvm.runtime.agent.site.checkpoint import read_told, repaired, retold, told_before
from dtsvm.ui import main

ABC = ["a", "b", "c"]


class Stopped:
    """Stands for the event that ends a node."""

    def __init__(self):
        self.is_so = False

    def set(self):
        self.is_so = True

    def is_set(self):
        return self.is_so


@pytest.fixture
def early():
    """Orders of node a, and what they put on disk."""
    node = meet(Network.ring(ABC), {name: table(i) for i, name in enumerate(ABC)})["a"]
    node.labels = {"flu": Labelled(counts={0: 1})}
    kept = []
    return EarlyOrders(node, kept.append, Stopped()), kept


@pytest.mark.parametrize(
    ("asked", "change"),
    [
        ({"command": "unlink", "name": "c"}, {"unlinked": "c"}),
        ({"command": "link", "name": "d", "address": "h:5"}, {"linked": ("d", "h:5")}),
        ({"command": "leave", "task": "flu"}, {"left": "flu"}),
    ],
)
def test_links_and_tasks_are_on_disk_before_the_node_begins_to_agree_anew(early, asked, change):
    orders, kept = early
    assert "It goes on to agree on columns so." in orders.follow(asked)["said"]
    assert kept == [change]
    assert orders.has_changed
    assert orders.are_over
    assert not orders.stopped.is_set()


def test_what_cannot_be_written_changes_nothing(early):
    orders, _ = early

    def full(change):
        raise NetworkError("no room")

    orders.keep = full
    with pytest.raises(NetworkError, match="no room"):
        orders.follow({"command": "unlink", "name": "c"})
    assert not orders.are_over


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"command": "couple", "tasks": ["one", "two"]}, "can be written into node.toml"),
        ({"command": "rows", "file": "more.csv"}, "rows into its files"),
        ({"command": "prepare"}, "still agrees on columns"),
        ({"command": "unlink", "name": "x"}, "Node 'a' has no link to 'x'. Choose from b, c."),
        ({"command": "link", "name": "a", "address": "h:5"}, "is linked to itself"),
        ({"command": "link", "name": "B", "address": "h:5"}, "differs from node 'b' in case only"),
        ({"command": "link", "name": "d", "address": "nowhere"}, "'nowhere' is no address"),
        ({"command": "leave", "task": "two"}, "Node 'a' does not hold task 'two'."),
    ],
)
def test_what_cannot_be_done_yet_is_refused_with_a_remedy(early, asked, sentence):
    orders, kept = early
    with pytest.raises(NetworkError) as refusal:
        orders.follow(asked)
    assert sentence in str(refusal.value)
    assert kept == []
    assert not orders.are_over


def test_a_node_that_has_not_begun_remembers_what_it_was_told(tmp_path):
    told = told_before(tmp_path).but({"unlinked": "c"}).but({"left": "flu"})
    first = retold(None, told, "a", 7)
    assert read_told(first).neighbours({"b": "h:1", "c": "h:2"}) == {"b": "h:1"}
    again = retold(first, read_told(first).but({"linked": ("c", "h:3")}), "a", 7)
    assert read_told(again).neighbours({"b": "h:1"}) == {"b": "h:1", "c": "h:3"}
    assert read_told(again).left == ("flu",)
    assert read_told(repaired(again)[0]) == read_told(again)


def test_the_others_agree_once_all_have_unlinked_the_one_that_does_not_fit():
    ring, tables = Network.ring(ABC), {name: table(i) for i, name in enumerate(ABC)}
    nodes = meet(ring, {**tables, "c": tables["c"].drop(columns="dose")})
    talk(nodes, ring, 20)
    assert all("Node c has no column 'dose'" in one.trouble for one in nodes.values())
    rest = Network.line(ABC[:2])
    for name, one in meet(rest, tables).items():
        one.incarnation = 2
        one._begin_generation(0)
        nodes[name] = one
    for name in ABC[:2]:
        nodes["c"].hear(name, nodes[name].message("c"))
        nodes[name].hear("c", nodes["c"].message(name))  # they remember it, and go on without
    talk({name: nodes[name] for name in ABC[:2]}, rest, 20)
    assert nodes["a"].plan == nodes["b"].plan
    assert nodes["a"].plan.n_rows == 60
    nodes["c"].step()
    assert nodes["c"].agreed is None
    assert nodes["c"].trouble == (
        "Node c is no neighbour of a, b any more. Have them told to link it, or tell it to unlink "
        "them."
    )


@pytest.mark.slow
def test_agents_told_to_unlink_while_they_agree_go_on_without_even_if_killed(tmp_path):
    site = tmp_path / "site"
    three_sites(site)
    path, toml = site / "west" / "rows.csv", site / "west" / "node.toml"
    rows = pd.read_csv(path, sep="\t", dtype=str).drop(columns="creatinine (mg/dl)")
    rows.to_csv(path, sep="\t", index=False)
    toml.write_text(toml.read_text().replace('"creatinine", ', ""))

    def unlink(name):
        words = ["tell", str(site / name / "node.toml"), "unlink", "west"]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        assert f"Node '{name}' is linked to node 'west' no more." in done.stdout

    with ForkedAgents(site) as agents:
        for name in SITES:
            agents.start(name)
        sentence = "Node west has no column 'creatinine'"
        agents.wait_for(lambda: all(sentence in agents.log(name) for name in SITES))
        unlink("north")
        agents.running["north"].kill()
        agents.running.pop("north").wait()
        agents.start("north")
        unlink("south")
        agents.settle(["north", "south"])
        assert status(site, "north")["neighbours"] == ["south"]
        assert status(site, "south")["neighbours"] == ["north"]
        assert {status(site, name)["nodes"] for name in ("north", "south")} == {2}
