import numpy as np
import pytest

from dtsvm.errors import DtsvmError, NetworkError
from dtsvm.ui.page.demo import MOST_NODES, DemoNetwork, mesh
from dtsvm.ui.page.demo_rows import poisoned


def settle(scene, most=5000):
    for _ in range(most):
        scene.move()
        if scene.is_settled:
            return
    raise AssertionError(f"not settled after {most} rounds: {scene._last}")


def test_whatever_happens_the_network_goes_to_the_optimum_of_those_present(scene):
    for action, what in [
        ("couple", {"tasks": ["3v6", "8v9"]}),
        ("kill", {"node": "2"}),
        ("poison", {"node": "5"}),
        ("lose", {"share": 0.3}),
        ("revive", {"node": "2"}),
        ("add", {"beside": "1"}),
        ("heal", {"node": "5"}),
        ("leave", {"task": "5v4"}),
        ("decouple", {"task": "3v6"}),
        ("enter", {"task": "5v4"}),
    ]:
        scene.do(action, what)
        settle(scene)
        shown = {task["name"]: task for task in scene.frame()["tasks"]}
        for task in scene.live.tasks:
            assert shown[task]["risk"] == pytest.approx(scene.optimum[task], abs=0.02), action


def test_coupling_helps_the_tasks_that_have_hardly_any_rows():
    scene = DemoNetwork(mesh([str(i + 1) for i in range(12)], seed=0), seed=0)
    alone = scene.optimum["3v6"]
    scene.do("couple", {"tasks": ["3v6", "8v9"]})
    assert scene.optimum["3v6"] < alone - 0.05


def test_a_poisoned_node_that_is_killed_leaves_no_trace(scene):
    scene.do("kill", {"node": "5"})
    without = scene.optimum
    scene.do("revive", {"node": "5"})
    scene.do("poison", {"node": "5"})
    assert scene.optimum != without
    scene.do("kill", {"node": "5"})
    assert scene.optimum == without


def test_a_healed_node_has_its_own_rows_again(scene):
    before = scene.live.row_counts("8v9")
    scene.do("poison", {"node": "3"})
    assert scene.live.row_counts("8v9")["3"] == 8 * before["3"]
    scene.do("heal", {"node": "3"})
    assert scene.live.row_counts("8v9") == before


def test_killed_nodes_are_shown_with_their_old_links(scene):
    scene.do("kill", {"node": "4"})
    frame = scene.frame()
    states = {node["name"]: node["state"] for node in frame["nodes"]}
    assert states["4"] == "gone"
    assert {end for link in frame["links"] if link["state"] == "gone" for end in link["ends"]} > {
        "4"
    }


def test_links_can_be_made_and_cut(scene):
    free = next(v for v in "3456" if v not in scene.live.network.neighbours("1"))
    scene.do("link", {"node": "1", "other": free})
    assert free in scene.live.network.neighbours("1")
    scene.do("unlink", {"node": "1", "other": free})
    assert free not in scene.live.network.neighbours("1")


def test_a_departure_that_would_split_the_network_is_refused_and_changes_nothing():
    scene = DemoNetwork(mesh(["1", "2", "3"], seed=0), seed=0)
    scene.do("unlink", {"node": "1", "other": "3"})
    with pytest.raises(NetworkError, match="Nothing was changed"):
        scene.do("kill", {"node": "2"})
    assert "2" in scene.live.nodes
    scene.do("kill", {"node": "2", "split": True})
    scene.move()
    assert scene.optimum == {}


@pytest.mark.parametrize(
    ("action", "what", "sentence"),
    [
        ("kill", {"node": "99"}, "Unknown node '99'"),
        ("revive", {"node": "1"}, "Node '1' was not killed."),
        ("heal", {"node": "1"}, "Node '1' is not poisoned."),
        ("enter", {"task": "1v7"}, "Unknown task '1v7'"),
        ("couple", {"tasks": ["3v6"]}, "couple needs two tasks or more."),
        ("lose", {"share": 1.0}, "must be a float from 0 to below 1"),
        ("pace", {"rounds": 0}, "The pace must be"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(scene, action, what, sentence):
    with pytest.raises(DtsvmError, match=sentence):
        scene.do(action, what)


def test_a_paused_network_stands_still(scene):
    scene.move()
    scene.do("pause", {})
    scene.move()
    assert scene.live.round == 1
    scene.do("resume", {})
    scene.move()
    assert scene.live.round == 2


def test_the_page_draws_so_many_nodes_and_no_more(scene):
    scene.places.update({f"x{i}": (0.5, 0.5) for i in range(MOST_NODES)})
    with pytest.raises(NetworkError, match=f"{MOST_NODES} nodes at most"):
        scene.do("add", {})


def test_poisoned_rows_are_the_same_rows_with_every_label_turned():
    X, y = np.arange(6.0).reshape(3, 2), np.array([1, -1, 1])
    lies_X, lies_y = poisoned((X, y))
    assert (lies_X[:3] == X).all()
    assert (lies_y.reshape(-1, 3) == -y).all()
