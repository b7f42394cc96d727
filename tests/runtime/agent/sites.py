"""Folders of a network on this machine, and its agents as processes."""

import asyncio
import csv
import random
import socket
import subprocess
import sys
import time

import numpy as np

from dtsvm.errors import NetworkError
from dtsvm.runtime.agent.process.process import ask
from dtsvm.runtime.agent.site.certificates import make_authority, make_certificate
from dtsvm.runtime.agent.site.config import Common, to_toml
from dtsvm.svm.model_file import load_model

PATIENT = {"round_seconds": 120.0, "start_seconds": 300.0, "evict_seconds": 600.0}
# Only a failure takes as long: a busy machine may take minutes for what is done in a second.
LONGEST_SECONDS = 600.0
ANSWER_SECONDS = 60.0
# The system gives ports above these to whoever connects, even between now and an agent's start.
PORTS = range(10_000, 32_000)


def free_ports(n):
    """Ports that were free a moment ago."""
    found = []
    while len(found) < n:
        with socket.socket() as one:
            port = random.SystemRandom().choice(PORTS)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def write_rows(path, X, y):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{j}" for j in range(X.shape[1])), "y"])
        writer.writerows(
            [*map(repr, x), int(label)] for x, label in zip(X.tolist(), y, strict=True)
        )


def make_site(folder, network, blocks, settings, *, through=None, couple=True, **timing):
    """One folder a node: rows, configuration, certificates.

    `through` has the port to dial instead of the neighbour's own, by (who dials, whom).
    """
    folder.mkdir(exist_ok=True)
    make_authority(folder, "test")
    ports = dict(zip(network.nodes, free_ports(len(network.nodes)), strict=True))
    for name in network.nodes:
        home = folder / name
        home.mkdir()
        make_certificate(folder, home, name)
        dialled = {(name, other): ports[other] for other in network.neighbours(name)}
        dialled.update({k: v for k, v in (through or {}).items() if k in dialled})
        around = {other: f"127.0.0.1:{port}" for (_, other), port in dialled.items()}
        tasks = {}
        for (node, task), (X, y) in blocks.items():
            if node == name:
                write_rows(home / f"{task}.csv", X, y)
                tasks[task] = {"data": f"{task}.csv", "label": "y", "labels": [-1, 1]}
        listen = f"127.0.0.1:{ports[name]}"
        together = "all" if couple else []
        text = to_toml(name, "0abc", listen, around, tasks, settings, Common(couple=together))
        for key, value in {**PATIENT, **timing}.items():
            lines = [
                f"{key} = {value}" if line.startswith(f"{key} =") else line
                for line in text.splitlines()
            ]
            text = "\n".join(lines) + "\n"
        (home / "node.toml").write_text(text)
    return ports


def status(folder, name):
    """A node's status, or that of one that is not there."""
    try:
        return asyncio.run(ask(folder / name, ANSWER_SECONDS, command="status"))
    except (NetworkError, OSError, TimeoutError):
        return {"round": 0, "is_settled": False, "nodes": 0, "refused": 0}


def weights(folder, name, task):
    """The classifier in a node's model file, the bias last."""
    model = load_model(folder / name / "model.json")
    t = model.tasks_.tolist().index(task)
    return np.append(model.coef_[t], model.intercept_[t])


def right(live, task, node=None):
    """The classifier of a session, the bias last."""
    found = live.classifier(task, node=node)
    return np.append(found.coef_[0], found.intercept_)


def farthest(folder, names, best, tasks=("one",)):
    """Worst relative distance of the nodes' model files from the classifiers of a session."""
    worst = 0.0
    for task in tasks:
        whole = right(best, task)
        for name in names:
            away = np.linalg.norm(weights(folder, name, task) - whole)
            worst = max(worst, away / np.linalg.norm(whole))
    return worst


class Agents:
    """Agents as processes; none outlives the test."""

    def __init__(self, folder):
        self.folder = folder
        self.running = {}

    def start(self, name, *options):
        command = [sys.executable, "-c", "from dtsvm.ui import main; main()", "agent"]
        log = (self.folder / f"{name}.log").open("ab")
        self.running[name] = subprocess.Popen(
            [*command, str(self.folder / name / "node.toml"), *options], stderr=log, stdout=log
        )
        log.close()

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def wait_for(self, condition, seconds=LONGEST_SECONDS):
        """Look again and again until something is so, and return it; no agent may die meanwhile."""
        until = time.monotonic() + seconds
        while not (found := condition()):
            for name, process in self.running.items():
                assert process.poll() is None, self.log(name)
            assert time.monotonic() < until, {n: self.log(n)[-800:] for n in self.running}
            time.sleep(0.05)
        return found

    def settle(self, names, best=None, seconds=LONGEST_SECONDS):
        """Wait until these have settled together, knowing of nobody else.

        Where silence is short until somebody counts as gone, a busy machine may make it so: then
        wait until their models are those of a session, too.
        """

        def is_so():
            found = [status(self.folder, name) for name in names]
            if not all(one["is_settled"] and one["nodes"] == len(names) for one in found):
                return False
            return best is None or farthest(self.folder, names, best) < 1e-3

        self.wait_for(is_so, seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
