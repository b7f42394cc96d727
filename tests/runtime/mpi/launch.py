"""Start a program at several ranks, where there is an MPI."""

import importlib.util
import os
import shutil
import subprocess
import sys
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


def run_python(n_ranks, *arguments, **options):
    return run(n_ranks, sys.executable, *arguments, **options)
