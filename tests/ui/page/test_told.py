"""Agents that choose, and neighbours that are refused, as the page words and shows them."""

import re

import pytest

pytest.importorskip("google.protobuf")
from fake_agents import FakeAgents, status_of

from dtsvm.ui.page.agents import Agents
from dtsvm.ui.page.serve import serving
from dtsvm.ui.page.told import how_far

CHOICES = [
    {
        "task": "flu", "n_rows": 18, "weights": {"own share 0.6, bias task": 0.9, "alone": 0.1},
        "C": 0.25, "is_turned": False, "company": ["cold"], "alone": [0.15, 0.05, 0.36],
        "chosen": [0.1, 0.03, 0.3], "difference": [-0.05, -0.2, 0.1],
        "sentence": "flu trains with cold; 15.0 % alone, 10.0 % together.",
    },
    {
        "task": "cold", "n_rows": 0, "weights": {"alone": 1.0}, "C": 1.0, "is_turned": False,
        "company": [], "alone": [None, 0.0, 1.0], "chosen": [None, 0.0, 1.0],
        "difference": [None, -1.0, 1.0],
        "sentence": "cold has no rows; it takes what the others have in common.",
    },
]  # fmt: skip


def choosing(certified=0, tracks=31, *, on="folds", questions=4, times_begun=1, choices=()):
    return {
        "questions": questions, "tracks": tracks, "on": on, "certified": certified, "rounds": 40,
        "times_begun": times_begun, "is_done": bool(choices), "choices": list(choices),
    }  # fmt: skip


def sentence(*found):
    return how_far([{"choosing": one} for one in found])["sentence"]


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = FakeAgents(
        tmp_path,
        {
            "a": status_of("a", ["b"], choosing=choosing(12)),
            "b": status_of("b", ["a"], choosing=choosing(3)),
        },
    )
    yield found
    found.end()


@pytest.fixture
def scene(fakes, tmp_path):
    return Agents([tmp_path / "a", tmp_path / "b"])


def choose(fakes):
    for status in fakes.statuses.values():
        status.update(is_settled=True, gap=7e-3, round=90)
        status["choosing"] = choosing(0, 0, on=None, choices=CHOICES)


def test_who_is_furthest_behind_says_how_far_choosing_is():
    assert "3 of 31 are certified" in sentence(choosing(12), choosing(3))
    assert "1 of 5" in sentence(choosing(20), choosing(1, 5, on="all rows", questions=3))
    assert "on all rows; 2 of 5" in sentence(choosing(2, 5, on="all rows"))
    assert "added up" in sentence(choosing(0, 0, on=None))
    assert "The agents meet" in sentence(choosing(12), choosing(times_begun=0))
    assert "Begun 3 times" in sentence(choosing(12, times_begun=3))
    assert "were chosen by the agents" in sentence(choosing(choices=CHOICES))
    assert how_far([status_of("a", [])]) is None


def test_a_frame_shows_choosing_and_then_the_choice(fakes, scene):
    scene.move()
    frame = scene.frame()
    assert (frame["state"], frame["advice"]) == ("choosing", [])
    assert [(node["state"], node["detail"]) for node in frame["nodes"]] == [
        ("choosing", "(12 of 31)"),
        ("choosing", "(3 of 31)"),
    ]
    assert (frame["progress"]["done"], frame["progress"]["of"]) == (3, 31)
    choose(fakes)
    scene.move()
    frame = scene.frame()
    assert frame["state"] == "settled"
    assert [one["sentence"] for one in frame["advice"]] == [one["sentence"] for one in CHOICES]
    assert frame["settings"][0] == [
        "C of flu", "0.25", "its classifier: 90 % own share 0.6, bias task; 10 % alone",
    ]  # fmt: skip
    assert {task["name"]: task["with"] for task in frame["tasks"]} == {"flu": ["cold"], "cold": []}
    assert frame["events"][-1]["detail"] == " ".join(one["sentence"] for one in CHOICES)
    scene.move()
    assert len(scene.events) == 3  # two that answer, one choice


def test_who_is_refused_and_barred_is_said_with_the_reason(fakes, scene):
    fakes.statuses["a"].update(
        reasons={"b": "its values are larger than the data allow"}, barred={"b": 8.4}, refused=31
    )
    fakes.statuses["b"].update(connections_refused=1, trouble="alone: no neighbour was heard")
    scene.move()
    frame = scene.frame()
    assert frame["refused"] == [
        "a refused b: its values are larger than the data allow. It is not listened to for 8 s.",
        "a refused 31 messages in all.",
        "b refused 1 connection.",
        "b is alone: no neighbour was heard.",
    ]
    assert [link["state"] for link in frame["links"]] == ["barred"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_browser_shows_how_far_choosing_is_and_what_was_chosen(chromium, fakes, scene, scheme):
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 390, "height": 844})
    page, wrong = context.new_page(), []
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    with serving(scene) as served:
        page.goto(served.address)
        page.wait_for_selector("#state.choosing")
        assert "3 of 31 are certified" in page.inner_text("#progress-words")
        assert page.evaluate("document.getElementById('progress-bar').position") == 3 / 31
        page.wait_for_selector("#nodes-body >> text=choosing (12 of 31)")
        choose(fakes)
        page.wait_for_selector("#advice svg")
        assert page.locator("#advice p").all_inner_texts() == [one["sentence"] for one in CHOICES]
        assert page.locator("#advice svg").count() == 1  # nothing is drawn of a task without rows
        shown = page.get_attribute("#advice [role=img]", "aria-label")
        assert shown == "alone 15.0 %, together 10.0 %"
        assert page.inner_text("#advice-head") == "What was chosen, and why"
        assert page.is_hidden("#unseen-words")
        assert page.is_hidden("#progress-bar")
        assert re.search(r"C of flu\s+0.25\s+its classifier: 90 %", page.inner_text("#settings"))
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
    assert wrong == []
