"""A network scored on rows nobody trained on: counts travel as a masked sum, rows stay."""

import dataclasses
import random

import numpy as np
import pytest
from click.testing import CliRunner
from forks import ForkedAgents
from sklearn.metrics import roc_auc_score
from test_preparing import SITES, three_sites

from dtsvm.errors import NetworkError
from dtsvm.problem import Network
from dtsvm.runtime.agent.node.entry import Entry
from dtsvm.runtime.agent.node.identity import Nameless
from dtsvm.runtime.agent.node.names import ABOUT
from dtsvm.runtime.agent.node.roster import Roster
from dtsvm.runtime.agent.node.scoring import BINS, Scoring, count_answers
from dtsvm.runtime.agent.node.spoken import speak
from dtsvm.ui import main
from dtsvm.ui.network_scores import _scores


def meet(network):
    who = {name: Nameless() for name in network.nodes}
    nodes = {}
    for i, name in enumerate(network.nodes):
        roster = Roster()
        for other in network.nodes:
            links = tuple((n, True) for n in network.neighbours(other))
            roster.put(
                Entry(other, 1, 1, False, (("flu", 0, 0),), links, agreement=who[other].agreement)
            )
        counts = np.full(2 * BINS, float(i + 1))
        nodes[name] = Scoring(
            name, 7, roster, who[name], count=lambda task, n, counts=counts: counts
        )
    return nodes


def talk(nodes, rounds, loss, seed=0):
    chance = random.Random(seed)
    for _ in range(rounds):
        for name, one in nodes.items():
            for other, message in one.owed().items():
                if chance.random() >= loss:
                    nodes[other].hear(name, message)


@pytest.mark.parametrize("loss", [0.0, 0.4])
@pytest.mark.parametrize("network", [Network.line("abcde"), Network.ring("abcd"), Network("a", [])])
def test_whoever_asks_hears_the_sum_over_all(network, loss):
    nodes = meet(network)
    asker = nodes[network.nodes[-1]]
    for turn in range(1, 4):
        asker.ask()
        talk(nodes, 80, loss, seed=turn)
        expected = sum(range(1, len(network.nodes) + 1))
        assert asker.result()["flu"].tolist() == [expected] * (2 * BINS)
    assert all(one.refused == 0 for one in nodes.values())


def test_a_neighbour_cannot_call_for_sums_faster_than_they_are_made():
    nodes, n_counted = meet(Network.line("abc")), []
    asked, true = nodes["a"], nodes["a"].count
    asked.count = lambda task, n: n_counted.append(task) or true(task, n)
    epoch = asked._fresh().epoch
    for number in range(1, 200):
        said = {"epoch": epoch, "parcel": [number, 0, "", ""], "total": "", "is_in_doubt": False}
        asked.hear("b", speak(Scoring.protocol, 7, "b", said))
    assert len(n_counted) == asked._wave.wanted == 1


def test_nothing_is_counted_where_a_node_far_away_names_other_labels():
    nodes, n_counted = meet(Network.line("abc")), []
    for one in nodes.values():
        old = one.roster.entries["c"]
        lanes = tuple((f"flu{ABOUT}{label}", 0, 0) for label in "xyz")
        one.roster.put(dataclasses.replace(old, sequence=2, tasks=lanes))
    true = nodes["a"].count
    nodes["a"].count = lambda task, n: n_counted.append(task) or true(task, n)
    with pytest.raises(NetworkError, match=r"Node c names other labels of task 'flu' than this"):
        nodes["a"].ask()
    nodes["b"]._called = lambda wave, number: wave.begin(number, np.zeros(2 * BINS))
    nodes["b"].ask()
    talk(nodes, 5, 0.0)
    assert not n_counted


def test_who_takes_away_what_others_counted_is_noticed():
    nodes = meet(Network.line("abc"))
    nodes["c"].count = lambda task, n: np.full(2 * BINS, -4.0)
    for name in "ab":
        nodes[name].ask()
        talk(nodes, 40, 0.0)
        with pytest.raises(NetworkError, match="counted less than nothing: some node lies"):
            nodes[name].result()


def test_counts_with_noise_may_be_less_than_nothing():
    nodes = meet(Network.line("abc"))
    for i, one in enumerate(nodes.values()):
        one.count = lambda task, n, i=i: np.full(2 * BINS, 0.3 - i)
    nodes["a"].ask()
    talk(nodes, 40, 0.0)
    assert nodes["a"].result()["flu"].tolist() == [0.0] * (2 * BINS)


def test_what_cannot_be_read_changes_nothing():
    nodes = meet(Network.line("ab"))
    nodes["a"].hear("b", b"hello")
    assert nodes["a"].refused == 1
    assert nodes["a"].owed() == {}


def test_the_curve_from_bins_is_near_the_curve_from_values():
    rng = np.random.default_rng(0)
    signs = np.where(rng.random(4000) < 0.3, 1.0, -1.0)
    values = signs + 1.5 * rng.normal(size=4000)
    found = _scores(count_answers(values[:, None], (signs > 0).astype(int), 2), 2)
    assert abs(found.auc - roc_auc_score(signs, values)) < 2e-3
    assert found.n_wrong == ((values > 0) != (signs > 0)).sum()
    assert found.confusion.sum() == 4000


@pytest.mark.slow
def test_three_agents_say_how_good_they_are_on_rows_held_out(tmp_path):
    site = tmp_path / "site"
    three_sites(site)
    for name in SITES:
        path = site / name / "node.toml"
        path.write_text("holdout = 0.2\n" + path.read_text())
    with ForkedAgents(site) as agents:
        for name in SITES:
            agents.start(name)
        agents.settle(SITES)
        agents.wait_for(lambda: all((site / name / "model.json").exists() for name in SITES))
        said = {
            CliRunner().invoke(main, ["evaluate", str(site / name / "node.toml")]).output
            for name in SITES
        }
    assert len(said) == 1
    lines = said.pop().splitlines()
    assert lines[0].split()[:3] == ["task", "rows", "error"]
    assert lines[1].split()[:2] == ["all", "72"]
    assert float(lines[1].split()[2]) < 30
