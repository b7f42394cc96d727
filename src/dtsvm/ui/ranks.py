"""A command started at several ranks: one reads like all, one speaks, and all end together."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from dtsvm.runtime.mpi.ranks import end_all, is_one_of_several, wait_for_turn, world
from dtsvm.svm.company import Alone, find_company
from dtsvm.ui.group import to_one_line

__all__ = ["check_command", "find_ranks", "is_first", "one_voice"]


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
        heard = sys.stderr
        if world().rank > 0:
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        try:
            return command(ctx, *args, **options)
        except click.exceptions.Exit:
            raise
        except BaseException as error:
            sys.stderr = heard
            wait_for_turn()
            _end_with(error, has_traceback=ctx.find_root().params["debug"])

    return run


def _end_with(error: BaseException, *, has_traceback: bool) -> NoReturn:
    if has_traceback:
        traceback.print_exception(error)
    shown = error if isinstance(error, click.ClickException) else to_one_line(error)
    shown.show(file=sys.stderr)
    end_all(shown.exit_code)
