"""A command started at several ranks: one reads like all, one speaks, and all end together."""

from __future__ import annotations

import functools
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from dtsvm.errors import ParameterError
from dtsvm.runtime.mpi.collect import gather_json
from dtsvm.runtime.mpi.ranks import end_all, is_one_of_several, wait_for_turn, world
from dtsvm.svm.company import Alone, find_company
from dtsvm.ui.group import is_launched, to_one_line

__all__ = ["at_one_rank", "check_command", "find_ranks", "is_first", "one_voice", "say_once"]

WAIT_SECONDS = 0.05


def is_first() -> bool:
    """Whether this process writes: it is rank 0, or the only one."""
    return not is_one_of_several() or world().rank == 0


def find_ranks() -> Alone:
    """Return the ranks that run this command, or nobody but this process."""
    return find_company("mpi") if is_one_of_several() else Alone()


def check_command(company: Alone, kind: type, files: Sequence[Path]) -> None:
    """Refuse what several ranks cannot do."""
    if company.is_alone:
        return
    if kind.__name__ in ("CTSVM", "CSVM"):
        raise click.UsageError(
            f"--method {kind.__name__.lower()} pools all rows on one machine: run it without "
            "mpiexec, or say --method dtsvm or dsvm."
        )
    if Path("-") in files:
        raise click.UsageError("Standard input reaches one rank only: name files instead of -.")


def one_voice(command: Callable[..., None]) -> Callable[..., None]:
    """Let rank 0 alone print; an error ends all ranks, and is said once."""

    @functools.wraps(command)
    def run(ctx: click.Context, /, *args: Any, **options: Any) -> None:
        if not is_one_of_several():
            return command(ctx, *args, **options)
        comm = _need_world()
        heard = sys.stderr
        if comm.rank > 0:
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        try:
            _refuse_other_commands(comm)
            return command(ctx, *args, **options)
        except click.exceptions.Exit:
            raise
        except BaseException as error:
            sys.stderr = heard
            wait_for_turn()
            _end_with(error, has_traceback=ctx.find_root().params["debug"])

    run.is_over_ranks = True  # type: ignore[attr-defined]
    return run


def at_one_rank(name: str, command: Callable[[], Any]) -> Any:
    """Run a command that one process does at rank 0 alone; the others wait for it.

    Ranks that were given different commands are processes of their own, each with its own work.
    """
    comm = _same_world() if is_one_of_several() else None
    if comm is None:
        return command()
    try:
        if comm.rank == 0:
            words = f"dtsvm {name} runs in one process: rank 0 of {comm.size} does it."
            click.echo(words, err=True)
            return command()
    finally:
        done = comm.Ibarrier()
        while not done.Test():
            time.sleep(WAIT_SECONDS)  # and not spin, on a core that rank 0 may need
    return None


def say_once(error: click.UsageError) -> None:
    """End all ranks of a command that was called wrongly, which is said once."""
    command = error.ctx.command if error.ctx is not None else None
    is_over_ranks = getattr(getattr(command, "callback", None), "is_over_ranks", False)
    if (is_over_ranks or isinstance(command, click.Group)) and is_one_of_several():
        _need_world()
        wait_for_turn()
        error.show(file=sys.stderr)
        end_all(error.exit_code)


def _need_world() -> Any:
    """Return the ranks; if there is no MPI, all of them find that out, and one says it."""
    try:
        return world()
    except ParameterError:
        if is_launched(from_rank=1):
            raise click.exceptions.Exit(ParameterError.exit_code) from None
        raise


def _same_world() -> Any:
    """Return the ranks if all run the same command and there is an MPI; else None."""
    try:
        comm = world()
    except ParameterError:
        return None
    every = gather_json(comm, sys.argv[1:])
    return comm if all(one == every[0] for one in every) else None


def _refuse_other_commands(comm: Any) -> None:
    every = gather_json(comm, sys.argv[1:])
    for rank, one in enumerate(every):
        if one != every[0]:
            first, other = (" ".join(["dtsvm", *said]) for said in (every[0], one))
            raise click.UsageError(
                f"Rank 0 runs '{first}' and rank {rank} runs '{other}'. Give all ranks the same "
                "command, or start programs of their own without an MPI launcher."
            )


def _end_with(error: BaseException, *, has_traceback: bool) -> NoReturn:
    if has_traceback:
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        click.echo("Aborted!", file=sys.stderr)  # as one process says it
        end_all(1)
    shown = error if isinstance(error, click.ClickException) else to_one_line(error)
    shown.show(file=sys.stderr)
    end_all(shown.exit_code)
