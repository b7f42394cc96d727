"""Every snippet of the README and the docs is run, in order, in one folder a document."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Minutes long, of this repository rather than of an installation, or what other tests run.
ELSEWHERE = ("make ", "dtsvm demo network", "dtsvm demo page", "dtsvm watch", "dtsvm reproduce",
             "dtsvm live", "pip ", "python -m benchmarks", "cd src ")  # fmt: skip
NUMBER = re.compile(r"\d[\d.,]*(e-?\d+)?")
AGENT_SECONDS = 600  # only a failure takes as long


def blocks(path):
    return [(found[1], found[2]) for found in BLOCK.finditer(path.read_text())]


def shape(text):
    """A text with its numbers and blanks out of sight."""
    return [NUMBER.sub("#", " ".join(line.split())) for line in text.strip().splitlines()]


def documents_with_code():
    return [
        pytest.param(path, id=str(path.relative_to(ROOT)))
        for path in DOCUMENTS
        if any(kind in ("bash", "python") for kind, _ in blocks(path))
    ]


class Reader:
    """Does what a document says."""

    def __init__(self, folder):
        self.folder = folder
        self.names = {}
        self.agents = []
        self.said = ""
        bin_ = str(Path(sys.executable).parent)
        path = os.pathsep.join([bin_, os.environ["PATH"]])
        self.environment = {**os.environ, "PATH": path, "COLUMNS": "80"}

    def bash(self, code):
        kept = [line for line in code.splitlines() if not line.strip().startswith(ELSEWHERE)]
        agents = [line for line in kept if line.startswith("dtsvm agent")]
        rest = [line for line in kept if line not in agents]
        if any("model.json" in line for line in rest) and self.agents:
            self.wait_for_models()
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(rest)], cwd=self.folder,
            env=self.environment, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, (code, done.stdout, done.stderr)
        self.said = done.stdout
        for line in agents:
            log = (self.folder / "agents.log").open("ab")
            self.agents.append(
                subprocess.Popen(
                    ["bash", "-c", f"exec {line}"],
                    cwd=self.folder,
                    env=self.environment,
                    stdout=log,
                    stderr=log,
                )
            )
            log.close()

    def wait_for_models(self):
        deadline = time.monotonic() + AGENT_SECONDS
        folders = [path.parent for path in self.folder.rglob("node.toml")]
        while not all((folder / "model.json").exists() for folder in folders):
            log = (self.folder / "agents.log").read_text()
            assert time.monotonic() < deadline, f"the agents wrote no models: {log[-2000:]}"
            time.sleep(0.2)

    def python(self, code):
        # A later snippet goes on with the names of an earlier one.
        exec(compile(code, "snippet", "exec"), self.names)

    def leave(self):
        for process in self.agents:
            process.terminate()
        for process in self.agents:
            process.wait(timeout=300)


@pytest.fixture
def reader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = Reader(tmp_path)
    yield found
    found.leave()


@pytest.mark.slow
@pytest.mark.parametrize("path", documents_with_code())
def test_every_snippet_runs_and_says_what_is_printed(path, reader, capsys):
    for kind, code in blocks(path):
        if kind == "bash":
            reader.bash(code)
        elif kind == "python":
            capsys.readouterr()
            reader.python(code)
            reader.said = capsys.readouterr().out
        elif kind == "text":
            assert shape(reader.said) == shape(code)
