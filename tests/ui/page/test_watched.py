"""Saved sessions and agents on the page; the agents' sockets answer from a thread."""

import os

import numpy as np
import pytest

pytest.importorskip("google.protobuf")
from fake_agents import FakeAgents, status_of

from dtsvm import Network, Session
from dtsvm.errors import ModelFileError, NetworkError
from dtsvm.ui.page.agents import Agents
from dtsvm.ui.page.saved import SavedSession


@pytest.fixture
def state(tmp_path, rng):
    live = Session(Network.ring(4), C=0.1)
    for node in range(4):
        X = rng.normal(size=(20, 3))
        live.enter(node, "sick", X, np.sign(X[:, 0] + 0.1))
    live.run(rounds=20)
    live.save(tmp_path / "state.npz")
    return live, tmp_path / "state.npz"


def test_a_saved_session_is_shown_as_it_was(state):
    live, path = state
    frame = SavedSession(path).frame()
    assert (frame["state"], frame["round"]) == ("saved", 20)
    assert frame["gap"] == live.info.gap
    assert [node["name"] for node in frame["nodes"]] == ["0", "1", "2", "3"]
    assert len(frame["links"]) == 4
    assert len(frame["history"]["rows"]) == 20
    assert not frame["can_change"]


def test_the_page_follows_the_file(state):
    live, path = state
    scene = SavedSession(path)
    live.leave(node=2)
    live.run(rounds=5)
    live.save(path)
    os.utime(path, ns=(1, 1))
    scene.move()
    frame = scene.frame()
    assert (frame["round"], len(frame["nodes"])) == (25, 3)
    assert frame["events"][-1]["kind"] == "leave"


def test_a_file_that_is_damaged_later_is_refused_once_and_the_last_state_stays(state):
    _, path = state
    scene = SavedSession(path)
    path.write_bytes(b"nothing")
    scene.move()
    scene.move()
    assert len(scene.refused) == 1
    assert scene.frame()["round"] == 20


def test_a_file_that_is_not_there_is_refused_at_once(tmp_path):
    with pytest.raises(ModelFileError, match="There is no file"):
        SavedSession(tmp_path / "state.npz")


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = FakeAgents(
        tmp_path,
        {"a": status_of("a", ["b"]), "b": status_of("b", ["a"], residual=2e-2, refused=3)},
    )
    yield found
    found.end()


def test_agents_are_shown_with_the_worst_residual_and_what_they_refused(fakes, tmp_path):
    scene = Agents([tmp_path / "a", tmp_path / "b"])
    scene.move()
    frame = scene.frame()
    assert (frame["state"], frame["round"], frame["residual"]) == ("training", 7, 2e-2)
    assert [(task["name"], task["rows"], task["with"]) for task in frame["tasks"]] == [
        ("cold", 8, ["flu"]),
        ("flu", 18, ["cold"]),
    ]
    assert frame["refused"] == ["b refused 3 messages in all."]
    assert [event["detail"] for event in frame["events"]] in (
        ["node a answers", "node b answers"],
        ["node b answers", "node a answers"],
    )


def test_an_agent_that_does_not_answer_stays_in_the_picture_as_gone(fakes, tmp_path):
    scene = Agents([tmp_path / "a", tmp_path / "b"])
    scene.move()
    fakes.close("b")
    scene.move()
    frame = scene.frame()
    assert {node["name"]: node["state"] for node in frame["nodes"]} == {
        "a": "training",
        "b": "gone",
    }
    assert frame["events"][-1]["detail"] == "node b does not answer"


def test_agents_are_told_what_the_page_was_asked(fakes, tmp_path):
    scene = Agents([tmp_path / "a", tmp_path / "b"], can_change=True)
    scene.move()
    assert scene.do("leave_network", {"node": "b"}) == "done"
    assert scene.do("couple", {"tasks": ["flu", "cold"]}) == "done"
    assert fakes.told[0] == ("b", {"command": "leave", "task": None})
    assert fakes.told[1][1] == {"command": "couple", "tasks": ["flu", "cold"]}
    with pytest.raises(NetworkError, match="Node 'c' does not answer"):
        scene.do("leave_network", {"node": "c"})


def test_watch_says_what_it_needs(run, tmp_path):
    both = run("watch", "a/node.toml", "--session", "state.npz", exit_code=2).output
    assert "and not both" in both
    assert "only looks" in run("watch", "--session", "s.npz", "--control", exit_code=2).output
    assert "There is no file" in run("watch", "--session", "s.npz", exit_code=1).output
    taken = run("watch", "--session", "s.npz", "--host", "256.0.0.1", exit_code=1).output
    assert "cannot be served at 256.0.0.1:0" in taken
