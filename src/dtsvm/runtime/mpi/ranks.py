"""The ranks of this program: how many, which one this is, and how they end together."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any, NoReturn

from dtsvm.errors import ParameterError

__all__ = ["end_all", "end_together", "is_one_of_several", "maximum", "world"]

# What launchers tell their ranks: MPICH and Intel, Open MPI, MVAPICH, Slurm with PMIx.
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
MISSING = (
    "engine='mpi' needs mpi4py and an MPI library: pip install 'dtsvm[mpi]', and where the machine "
    "has no MPI of its own, pip install mpich."
)
FORWARD_SECONDS = 0.5  # in which the launcher passes on what was said, before it ends all
PATIENCE_SECONDS, MOST_SECONDS = 2.0, 5.0  # before a rank other than 0 speaks of its error


def is_one_of_several() -> bool:
    """Whether a launcher (mpiexec, srun) started this process as one of several ranks.

    Examples
    --------
    >>> from dtsvm.runtime.mpi.ranks import is_one_of_several
    >>> is_one_of_several()
    False
    """
    sizes = [os.environ.get(name, "") for name in SIZES]
    if any(size.isdigit() and int(size) > 1 for size in sizes):
        return True
    return "PMIX_RANK" in os.environ and int(os.environ.get("SLURM_NTASKS", "1")) > 1


def world() -> Any:
    """Return the communicator of all ranks."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ParameterError(MISSING) from error
    return MPI.COMM_WORLD


def maximum() -> Any:
    """Return MPI's name for the larger of two."""
    from mpi4py import MPI

    return MPI.MAX


def end_together() -> None:
    """Let an error that nobody catches end all ranks: the others would wait for this one."""
    if world().size > 1 and not isinstance(sys.excepthook, _EndAll):
        sys.excepthook = _EndAll(sys.excepthook)


class _EndAll:
    """An excepthook that ends all ranks."""

    def __init__(self, shown: Any) -> None:
        self._shown = shown

    def __call__(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        wait_for_turn()
        self._shown(kind, error, trace)
        end_all(130 if issubclass(kind, KeyboardInterrupt) else 1)


def wait_for_turn() -> None:
    """Let a lower rank speak first: if it failed as well, it has ended all by then."""
    rank = world().rank
    time.sleep(min(PATIENCE_SECONDS + 0.1 * rank, MOST_SECONDS) if rank else 0.0)


def end_all(code: int) -> NoReturn:
    """End every rank with an exit code, whatever they are doing."""
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(FORWARD_SECONDS)
    world().Abort(code)
    os._exit(code)  # some launchers take a moment to end the rank that asked
