"""Choosing C under differential privacy: one choice for all, kept for ever, and paid for."""

import random

import dp_accounting
import dp_accounting.rdp
import numpy as np
import pytest
from meetings import Carrier
from test_private import LABELS, drawn, private_sites

from dtsvm.errors import NetworkError, ParameterError
from dtsvm.problem import Privacy, Settings
from dtsvm.runtime.agent.node.electing import Electing, decide
from dtsvm.runtime.agent.node.lanes import candidate_lanes, lane_names, make_lanes
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.site.config import read_config
from dtsvm.runtime.agent.site.site import Site
from dtsvm.runtime.privacy.budget import Budget
from dtsvm.runtime.privacy.sums import NoisySums
from dtsvm.runtime.privacy.veil import make_veil
from dtsvm.svm.model_file import load_model, save_model

AUTO = {"C": "auto", "task_penalty": 2.0, "node_penalty": 3.0, "local": "exact", "bias": "mixed"}


def begin(sites):
    """A carrier of training, and every node's part in choosing."""
    carrier = Carrier([site.node for site in sites.values()])
    carrier.now = max(site.node.now for site in sites.values())
    return carrier, {name: part(name, site) for name, site in sites.items()}


def part(name, site):
    node = site.node
    n = len(site.config.privacy.candidates)
    return Electing(
        name, node.network, node.roster, node.identity, n_candidates=n, counted=site.compared,
        chosen=lambda: node.veil.choice,
    )  # fmt: skip


def go_on(sites, carrier, parts, until, most=300, loss=0.0):
    chance = random.Random(0)
    for _ in range(most):
        if until():
            return
        carrier.tick()
        for name, one in parts.items():
            one.step()
            if one.choice is not None and one.chosen() is None:
                sites[name].take_choice(one.choice)
            for other, message in one.owed().items():
                if chance.random() >= loss:
                    parts[other].hear(name, message)
    raise AssertionError("it does not end")


def choices(sites):
    return [site.node.veil.choice for site in sites.values()]


@pytest.mark.parametrize("n_labels", [2, 3])
def test_all_nodes_choose_the_same_C_and_end_at_its_classifier(tmp_path, n_labels):
    folder = tmp_path / "site"
    sites = private_sites(
        folder, n_labels, 600, "weight = 2.0\n", {"weight": "w"}, {**AUTO}, probability=False
    )
    carrier, parts = begin(sites)
    go_on(sites, carrier, parts, lambda: all(s.node.is_settled for s in sites.values()), loss=0.3)
    (choice,) = set(choices(sites))
    budgets = [site.node.veil.budget for site in sites.values()]
    assert [(b.spent, b.left, b.counts) for b in budgets] == [(15, 0, {"errors": 1})] * 3
    found = [site.node.certified(lane) for site in sites.values()
             for lane in lane_names("t", LABELS[:n_labels])]  # fmt: skip
    for k in range(len(found) // 3):
        np.testing.assert_array_equal(found[k], found[k + len(found) // 3])
    site = sites["a"]
    site.write_model(site.node)
    model = load_model(folder / "a" / "model.json")
    assert site.config.privacy.candidates[choice] == model.C
    X, y = drawn(2000, n_labels, 9)
    assert (model.predict(X, task="t") == y).mean() > 0.85


def test_who_was_away_and_who_is_new_choose_as_the_others_did(tmp_path):
    sites = private_sites(tmp_path / "site", 2, 300, settings=AUTO, probability=False)
    carrier, parts = begin(sites)
    others = [sites["a"], sites["b"]]
    go_on(sites, carrier, parts, lambda: all(s.node.veil.choice is not None for s in others))
    wanted = others[0].node.veil.choice
    for budget in (None, sites["c"].config.folder / "budget.json"):  # lost before, and never there
        if budget is not None:
            budget.unlink()
        again = Site(read_config(sites["c"].config.path), save_model)
        again.node.veil.budget.choice = None
        sites["c"] = again
        carrier.nodes["c"], parts["c"] = again.node, part("c", again)
        carrier.begun.discard("c")
        go_on(sites, carrier, parts, lambda: None not in choices(sites))
        assert set(choices(sites)) == {wanted}


def test_a_restarted_node_neither_forgets_the_choice_nor_pays_twice(tmp_path):
    sites = private_sites(tmp_path / "site", 2, 300, settings=AUTO, probability=False)
    carrier, parts = begin(sites)
    go_on(sites, carrier, parts, lambda: None not in choices(sites))
    before = Budget(sites["b"].config.privacy, sites["b"].config.folder / "budget.json")
    assert before.choice == choices(sites)[0]
    assert before.counts == {"errors": 1}
    told = before.told["errors"]
    before.choose((before.choice + 1) % 3)  # once is for ever
    again = Site(read_config(sites["b"].config.path), save_model)
    assert again.node.veil.choice == choices(sites)[0]
    again.node.veil.budget.choice = None
    sums = NoisySums(again.node.veil.budget)
    np.testing.assert_array_equal(sums.compared(lambda: np.zeros(3)), told)


def test_what_is_told_in_all_stays_within_the_budget():
    privacy = Privacy("dp", 3.0, candidates=(0.8, 0.2, 0.05), choosing=0.4, rounds=12)
    veil, drawn_sizes = make_veil(privacy), []
    sums = NoisySums(veil.budget, lambda n: drawn_sizes.append(n) or np.ones(n))
    counts = sums.compared(lambda: np.zeros(3))  # each moves by 1, so all by the root of 3
    accountant = dp_accounting.rdp.RdpAccountant()
    for multiplier, times in (
        (veil.first_multiplier, 3 * privacy.first_rounds),
        (float(np.linalg.norm(counts)) / 3, 1),
        (veil.multiplier, privacy.rounds),
    ):
        accountant.compose(dp_accounting.GaussianDpEvent(multiplier), times)
    assert accountant.get_epsilon(1e-5) == pytest.approx(3.0, rel=1e-4)


def alone(y, veil):
    """What a node tells at first of each candidate, and the sensitivity of each."""
    node, other = (
        Node(name, [nb], 3, Settings(**{**AUTO, "C": 0.8}), 7, 1, veil=v)
        for name, nb, v in (("a", "b", veil), ("b", "a", make_veil(veil.privacy)))
    )
    X, _ = drawn(len(y), 2, 0)
    for one, rows in ((node, X), (other, None)):
        labels = y if rows is not None else []
        lanes = candidate_lanes(make_lanes(["t"], LABELS[:2], labels), veil.privacy.candidates)
        one.enter("t", rows, lanes, LABELS[:2])
    carrier = Carrier([node, other])
    carrier.meet()
    carrier.tick()
    slots = [node.holding(lane).slot for lane in ("t", "t‹1", "t‹2")]
    gain = node.state.tables.agents["gain"][slots]
    return node, node.state.tables.agents["estimate"][slots] / np.repeat(gain, [3, 1], axis=2)


def test_replacing_a_row_moves_all_candidates_together_by_no_more_than_they_have_noise_for():
    privacy = Privacy("dp", candidates=(0.8, 0.2, 0.05), choosing=0.4, rounds=12)
    worst = 0.0
    for k in range(6):
        y = np.repeat(LABELS[:2], 3)
        other = y.copy()
        other[k] = LABELS[k < 3]
        (node, one), (_, two) = (
            alone(some, make_veil(privacy, draw=np.zeros)) for some in (y, other)
        )
        _, noisy = alone(y, make_veil(privacy, draw=np.ones))
        unit = np.abs(noisy - one)[:, 0] / node.veil.first_multiplier * np.sqrt(3)
        worst = max(worst, float(np.linalg.norm((one - two)[:, 0] / unit)))
    assert 0.1 < worst <= 1.0


def test_only_the_chosen_candidate_looks_at_rows_after_the_choice_and_none_before_it():
    privacy = Privacy("dp", candidates=(0.8, 0.2, 0.05), choosing=0.4, rounds=4)
    node, _ = alone(np.repeat(LABELS[:2], 3), make_veil(privacy))
    veil, used = node.veil, node.state.plan.used
    spent = [len(veil.spend(node.state, used, 1)) for _ in range(3)]
    assert spent == [3, 0, 0]  # the other round was spent above
    veil.choose(1)
    spent = [veil.spend(node.state, used, 1).tolist() for _ in range(5)]
    assert spent == [[node.holding("t‹1").slot]] * 4 + [[]]


def test_candidates_and_a_written_C_do_not_go_together(tmp_path):
    with pytest.raises(ParameterError, match=r'C is written down\. Write C = "auto"'):
        private_sites(tmp_path / "site", 2, 5, "candidates = [0.1, 0.2]\n")


def test_one_candidate_is_no_choice(tmp_path):
    with pytest.raises(ParameterError, match="2 to 8 different values of C"):
        private_sites(tmp_path / "site", 2, 5, "candidates = [0.1]\n", settings=AUTO)


def test_a_budget_of_other_candidates_is_refused(tmp_path):
    privacy = Privacy("dp", candidates=(0.8, 0.2), choosing=0.4)
    Budget(privacy, tmp_path / "budget.json").choose(1)
    with pytest.raises(NetworkError, match="was begun with"):
        Budget(Privacy("dp", candidates=(0.8, 0.1), choosing=0.4), tmp_path / "budget.json")


def test_voices_count_before_errors_and_of_equals_the_least_C():
    assert decide(np.array([0.0, 0, 0, 0, 0, 0])) == 2
    assert decide(np.array([5.0, -3.0, 9.0, 0, 0, 0])) == 1
    assert decide(np.array([5.0, -3.0, 9.0, 2, 0, 1])) == 0


def test_all_take_least_noise_where_two_neighbours_were_handed_different_totals(tmp_path):
    sites = private_sites(tmp_path / "site", 2, 300, settings=AUTO, probability=False)
    carrier, parts = begin(sites)
    go_on(sites, carrier, parts, lambda: any(p.is_busy for p in parts.values()))
    root = parts["a"]  # totals come from there
    hand_out = root._message

    def lie(neighbour, wave):
        if wave.total is not None:
            wave.total = wave.total + (neighbour == "c")
        return hand_out(neighbour, wave)

    root._message = lie
    go_on(sites, carrier, parts, lambda: None not in choices(sites))
    assert set(choices(sites)) == {2}


@pytest.mark.parametrize("begins", [0, 3])
def test_a_liar_who_pretends_to_have_chosen_decides_and_learns_nothing_more(tmp_path, begins):
    """Its voice ends the first rounds early; they are given up, and no errors are counted."""
    sites = private_sites(tmp_path / "site", 2, 300, settings=AUTO, probability=False)
    carrier, parts = begin(sites)
    parts["c"].chosen = lambda: 0 if sites["a"].node.veil.budget.spent >= begins else None
    honest = [sites["a"], sites["b"]]
    go_on(sites, carrier, parts, lambda: all(s.node.veil.choice is not None for s in honest))
    parts["c"].chosen = lambda: sites["c"].node.veil.choice
    go_on(sites, carrier, parts, lambda: all(s.node.is_settled for s in honest))
    for site in honest:
        budget = site.node.veil.budget
        assert (budget.choice, budget.spent, budget.counts) == (0, 15, {})
        assert budget.paid == (False, 15)
