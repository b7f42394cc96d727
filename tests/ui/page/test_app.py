import http.client
import json

import pytest

from dtsvm.ui.page.app import COOKIE


@pytest.fixture
def ask(served):
    def call(method, path, body=None, *, token=None, kind="application/json"):
        line = http.client.HTTPConnection(served.host, served.port, timeout=120)
        headers = {"content-type": kind}
        if token:
            headers["cookie"] = f"{COOKIE}-{served.port}={token}"
        line.request(method, path, None if body is None else json.dumps(body), headers)
        answer = line.getresponse()
        content = answer.read()
        line.close()
        return answer.status, content, answer.headers

    return call


@pytest.mark.parametrize("path", ["/", "/frame", "/frames", "/static/page.js", "/?token=wrong"])
def test_nothing_is_shown_without_the_token(ask, path):
    status, content, _ = ask("GET", path)
    assert status == 403
    assert b"needs its token" in content


def test_nothing_is_done_without_the_token(ask, scene):
    asked = {"action": "kill", "what": {"node": "1"}}
    assert ask("POST", "/do", asked)[0] == 403
    assert ask("POST", "/do", asked, token="wrong")[0] == 403
    assert "1" in scene.live.nodes


def test_the_address_that_is_printed_opens_the_page_and_leaves_a_cookie(ask, served):
    status, _, headers = ask("GET", f"/?token={served.token}")
    assert (status, headers["location"]) == (303, "/")
    assert "httponly" in headers["set-cookie"].lower()
    status, content, headers = ask("GET", "/", token=served.token)
    assert status == 200
    assert b"<title>dtsvm</title>" in content
    assert "default-src 'none'" in headers["content-security-policy"]


def test_no_file_outside_the_page_is_served(ask, served):
    for name in ("nothing.js", "..%2fapp.py", "app.py"):
        assert ask("GET", f"/static/{name}", token=served.token)[0] == 404


def test_what_is_asked_for_happens(ask, served, scene):
    asked = {"action": "kill", "what": {"node": "1"}}
    status, content, _ = ask("POST", "/do", asked, token=served.token)
    assert (status, json.loads(content)["said"]) == (200, "kill: node 1 is gone with its rows")
    assert "1" not in scene.live.nodes


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"action": "kill", "what": {"node": "99"}}, 200),
        ({"action": "explode"}, 200),
        ({"action": "kill", "what": {"knot": "1"}}, 400),
        (["kill"], 400),
        ({}, 400),
    ],
)
def test_what_cannot_be_done_is_refused_and_listed(ask, served, scene, asked, status):
    found, content, _ = ask("POST", "/do", asked, token=served.token)
    assert found == status
    assert json.loads(content)["refused"] == scene.refused[-1]


def test_a_form_of_another_page_is_refused(ask, served, scene):
    asked = {"action": "kill", "what": {"node": "1"}}
    assert ask("POST", "/do", asked, token=served.token, kind="text/plain")[0] == 415
    assert "1" in scene.live.nodes


def test_a_page_that_only_looks_changes_nothing(ask, served, scene):
    scene.can_change = False
    asked = {"action": "kill", "what": {"node": "1"}}
    status, content, _ = ask("POST", "/do", asked, token=served.token)
    assert status == 403
    assert "--control" in json.loads(content)["refused"]
    assert "1" in scene.live.nodes


def test_the_stream_sends_whole_frames_and_then_only_new_rounds(served, scene):
    line = http.client.HTTPConnection(served.host, served.port, timeout=120)
    line.request("GET", "/frames", headers={"cookie": f"{COOKIE}-{served.port}={served.token}"})
    answer = line.getresponse()
    frames = []
    while len(frames) < 2:
        text = answer.readline().decode()
        if text.startswith("data: "):
            frames.append(json.loads(text[6:]))
            scene.do("poison" if len(frames) == 1 else "heal", {"node": "2"})
    line.close()
    first, second = (frame["history"] for frame in frames)
    assert first["is_whole"]
    assert second["start"] == first["next"]
    assert not second["is_whole"] or first["next"] == 0
