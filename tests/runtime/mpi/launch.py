"""Start a program at several ranks, where there is an MPI."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

MPIEXEC = shutil.which(
    "mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
)
needs_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None,
    reason="There is no MPI here: pip install mpi4py mpich.",
)


def start(n_ranks, *command, **options):
    """Start a command at n ranks in a process group of its own."""
    return subprocess.Popen(
        [MPIEXEC, "-n", str(n_ranks), *map(str, command)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        **options,
    )  # fmt: skip


def run(n_ranks, *command, seconds=300, **options):
    """Run a command at n ranks to its end; return its exit code, output and errors."""
    process = start(n_ranks, *command, **options)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        raise
    return process.returncode, out, err


def is_there(pid):
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(pids):
    """Wait until none of these processes is there; only a failure takes a minute."""
    until = time.monotonic() + 60
    while left := [pid for pid in pids if is_there(pid)]:
        assert time.monotonic() < until, f"processes {left} are still there"
        time.sleep(0.05)


def run_python(n_ranks, *arguments, **options):
    return run(n_ranks, sys.executable, *arguments, **options)
