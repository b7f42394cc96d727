"""The unit and the image of an agent say what the command line takes."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from dtsvm.ui import main

DEPLOY = Path(__file__).parents[1] / "deploy"
UNIT, IMAGE = (DEPLOY / "dtsvm@.service").read_text(), (DEPLOY / "Dockerfile").read_text()


def test_both_start_an_agent_with_options_that_there_are():
    shown = CliRunner().invoke(main, ["agent", "--help"]).output
    started = re.search(r"^ExecStart=\S+/dtsvm (.*)$", UNIT, re.M)
    entry = re.search(r"^ENTRYPOINT \[(.*)\]$", IMAGE, re.M)
    assert started
    assert entry
    words = re.findall(r'"([^"]+)"', entry[1])
    assert words == ["dtsvm", *started[1].split()]
    assert words[1] == "agent"
    assert all(word in shown for word in words if word.startswith("--"))


def test_both_leave_politely_and_run_as_nobody_special():
    assert "KillSignal=SIGTERM" in UNIT
    assert "STOPSIGNAL SIGTERM" in IMAGE
    assert re.search(r"^User=(?!root)", UNIT, re.M)
    assert re.search(r"^USER (?!root)", IMAGE, re.M)


def test_an_image_is_built_in_known_steps_from_what_is_here():
    steps = {line.split()[0] for line in IMAGE.splitlines() if line and not line.startswith("#")}
    known = {"FROM", "RUN", "COPY", "USER", "WORKDIR", "STOPSIGNAL", "ENTRYPOINT"}
    assert steps == known
    assert "[agent]" in IMAGE


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_takes_the_unit(tmp_path):
    unit = UNIT.replace("/srv/dtsvm/.venv/bin/dtsvm", "/bin/true").replace("User=dtsvm\n", "")
    path = tmp_path / "dtsvm@.service"
    path.write_text(unit)
    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True
    )
    about = [line for line in found.stderr.splitlines() if "dtsvm" in line]
    assert not about, about
