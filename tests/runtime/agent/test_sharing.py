"""Coupled tasks that ask about nothing in common share nothing, and that is said."""

import numpy as np
import pytest

from dtsvm.problem import Settings
from dtsvm.runtime.agent.node.lanes import lane_names, make_lanes
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.node.sharing import share_nothing


def node_of(classes, by_label=()):
    rng = np.random.default_rng(0)
    node = Node("a", [], 2, Settings(), 7, 1)
    for task, labels in classes.items():
        y = np.resize(labels, 12)
        lanes = make_lanes(lane_names(task, labels, by_label=task in by_label), labels, y)
        node.enter(task, rng.normal(size=(12, 2)), lanes, labels)
    node.couple(list(classes))
    return node


def test_two_labels_and_three_share_nothing_if_coupled_late_and_that_is_said_of_both():
    node = node_of({"cold": ("no", "yes"), "flu": ("mild", "no", "yes")})
    said = share_nothing(node.roster, node.tasks)
    assert [sentence.split(":")[0] for sentence in said] == [
        "Task cold shares nothing with flu",
        "Task flu shares nothing with cold",
    ]
    assert "couple, with [prepare], when the network begins" in said[0]


@pytest.mark.parametrize(
    ("classes", "by_label"),
    [
        ({"cold": ("no", "yes"), "flu": ("sick", "well")}, ()),
        ({"cold": ("no", "yes"), "flu": ("mild", "no", "yes")}, ("cold",)),
        ({"cold": ("no", "yes"), "flu": ("sick", "well"), "gout": (1, 2, 3)}, ()),
    ],
)
def test_nothing_is_said_of_tasks_with_a_question_in_common(classes, by_label):
    node = node_of(classes, by_label)
    assert not any("cold" in one.split(":")[0] for one in share_nothing(node.roster, ["cold"]))


def test_labels_that_nobody_else_has_are_named():
    node = node_of({"cold": (1, 2, 3), "flu": (4, 5, 6)})
    assert share_nothing(node.roster, ["flu"]) == [
        "Task flu shares nothing with cold: of its labels it asks 4, 5, 6, and they do not."
    ]
