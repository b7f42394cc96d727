"""Agents as forks of a process that has imported everything: real processes, without the wait."""

import functools
import multiprocessing
import os
import random
import subprocess
import sys

from sites import Agents

from dtsvm.ui import agent, main

CONTEXT = multiprocessing.get_context("forkserver")
PARENT = ["dtsvm.svm.session", "hypothesis"]  # a fork imports its parent's script anew
CONTEXT.set_forkserver_preload(["dtsvm.ui.agent", "dp_accounting.rdp", *PARENT])


class LossyTransport(agent.Transport):
    """A transport that loses a share of what arrives, each message by itself."""

    def __init__(self, *args, loss, seed, **more):
        super().__init__(*args, **more)
        self.loss, self.random = loss, random.Random(seed)

    def _heard(self, stream, data):
        if self.random.random() >= self.loss:
            super()._heard(stream, data)


def run_agent(path, log, options, loss, seed):
    """`dtsvm agent`, in a process made for it."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.stdout = os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1)
    if loss:
        agent.Transport = functools.partial(LossyTransport, loss=loss, seed=seed)
    main(["agent", str(path), *options])


class Fork:
    """What `subprocess.Popen` is for the others."""

    def __init__(self, *args):
        self.process = CONTEXT.Process(target=run_agent, args=args)
        self.process.start()
        self.pid = self.process.pid
        self.kill, self.terminate = self.process.kill, self.process.terminate

    def poll(self):
        return self.process.exitcode

    def wait(self, timeout=None):
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)


class ForkedAgents(Agents):
    """Agents that start at once and may lose messages."""

    def __init__(self, folder, loss=0.0, seed=0):
        super().__init__(folder)
        self.loss, self.seed, self.n_started = loss, seed, 0

    def start(self, name, *options):
        self.n_started += 1
        seed = 1000 * self.seed + self.n_started
        path, log = self.folder / name / "node.toml", self.folder / f"{name}.log"
        log.touch()  # it may be read before the fork writes to it
        self.running[name] = Fork(path, log, options, self.loss, seed)
