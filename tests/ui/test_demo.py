import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("cryptography")
from dtsvm.problem import Network
from dtsvm.ui.demo import _dispensable

DEMO = [sys.executable, "-c", "from dtsvm.ui import main; main()", "demo", "network"]


def agents_of(site):
    """The processes that run for a site, found by their command lines."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode().split("\0")
        except OSError:
            continue
        if any(word.startswith(f"{site}{os.sep}") for word in words):
            found.append(int(path.parent.name))
    return found


def test_the_network_loses_a_node_takes_it_back_and_equals_the_simulation(run, tmp_path):
    site = tmp_path / "site"
    said = run("demo", "network", "--nodes", 3, "--out", site, "--seconds", 300).output
    lost = re.search(r"node-3 is killed \(kill -9\) at round ([\d,]+)", said)
    went_on = re.search(r"The others went on from round ([\d,]+) to ([\d,]+) and settled\.", said)
    kept = re.search(
        r"node-3 is started again and goes on from its checkpoint of round (\d+)", said
    )
    assert None not in (lost, went_on, kept)
    before, after = (int(text.replace(",", "")) for text in went_on.groups())
    assert after > before
    assert int(kept[1]) >= 30
    assert "All 3 nodes have settled" in said
    assert "All 3 nodes have left politely." in said
    table = re.findall(
        r"^node-\d +([\d.]+) % +([\d.]+) % +([\d.]+) % +([\d.]+) % +(\S+)$", said, re.M
    )
    assert len(table) == 3
    for few, few_simulated, many, many_simulated, distance in table:
        assert float(few) == pytest.approx(float(few_simulated), abs=0.25)
        assert float(many) == pytest.approx(float(many_simulated), abs=0.25)
        assert max(float(few), float(many)) < 25
        assert float(distance) < 1e-2  # both are within tol = 1e-4 of the optimum
    assert f"The network is in {site}" in said
    assert agents_of(site) == []
    logs = [(site / name / "agent.log").read_text() for name in ("node-1", "node-2", "node-3")]
    assert not any("Traceback" in log for log in logs)
    again = run("evaluate", site / "node-1" / "model.json", site / "test.csv", "--task", "task")
    assert "3v6" in again.output


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_agent(sign, tmp_path):
    site = tmp_path / "site"
    demo = subprocess.Popen(
        [*DEMO, "--nodes", "2", "--out", str(site)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until = time.monotonic() + 600
    while len(agents_of(site)) < 2:
        assert time.monotonic() < until
        time.sleep(0.1)
    demo.send_signal(sign)
    _, errors = demo.communicate(timeout=300)
    assert demo.returncode != 0
    assert b"Traceback" not in errors
    assert agents_of(site) == []


def test_too_little_time_is_said_and_leaves_no_agent_behind(run, tmp_path):
    site = tmp_path / "site"
    result = run("demo", "network", "--nodes", 2, "--out", site, "--seconds", 1, exit_code=1)
    late = r"The nodes did not [\w ]+ in time\. Give them longer with --seconds"
    assert re.search(late, result.output)  # how far they come depends on the machine
    assert agents_of(site) == []


def test_an_agent_that_ends_by_itself_is_named_with_its_last_words(run, tmp_path, monkeypatch):
    monkeypatch.setattr("dtsvm.ui.demo.write_files", lambda site, dealt: None)
    site = tmp_path / "site"
    result = run("demo", "network", "--nodes", 2, "--out", site, exit_code=1)
    assert re.search(r"The agent of node 'node-\d' ended with code 1: Error: ", result.output)
    assert agents_of(site) == []


@pytest.mark.parametrize(
    ("args", "exit_code", "sentence"),
    [
        (["--nodes", "1"], 2, "1 is not in the range 2<=x<=50"),
        (["--topology", "rng"], 2, "'rng' is not one of 'ring', 'complete', 'line'"),
        (["--seed", "-1"], 2, "-1 is not in the range x>=0"),
        (["--out", "full"], 1, "Error: full exists and is not empty. Choose another folder."),
    ],
)
def test_what_makes_no_sense_is_refused(run, tmp_path, args, exit_code, sentence):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert sentence in run("demo", "network", *args, exit_code=exit_code).output


@pytest.mark.parametrize("shape", ["ring", "line", "star", "grid", "complete"])
def test_the_node_that_is_killed_cuts_nobody_off(shape):
    network = Network.named(shape, list("abcdefg"))
    victim = _dispensable(network)
    rest = [node for node in network.nodes if node != victim]
    reached = [rest[0]]
    for node in reached:
        around = network.neighbours(node)
        reached += [other for other in around if other in rest and other not in reached]
    assert sorted(reached) == rest
