"""The group of commands: finds a command's module when it is called, and words what went wrong."""

from __future__ import annotations

import importlib
import io
import os
import sys
import warnings
from collections.abc import Collection, Mapping
from typing import Any

import click

from dtsvm.errors import DtsvmError, did_you_mean

__all__ = ["LazyGroup", "is_launched", "to_one_line"]


LAUNCHED = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK")


class LazyGroup(click.Group):
    """Commands named in a table, name to ``module:function``, imported on first use.

    Parameters
    ----------
    commands_at : mapping of str to str
        Where each command is.
    alone : collection of str
        The commands that one of several ranks does for all.
    """

    def __init__(
        self,
        *args: Any,
        commands_at: Mapping[str, str],
        alone: Collection[str] = (),
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.commands_at = commands_at
        self.alone = alone

    def main(self, *args: Any, **options: Any) -> Any:
        """Run; where stdout cannot show a Greek letter it shows its code, as stderr always does."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        asked = [*args[0]] if args and args[0] is not None else sys.argv[1:]
        if {"--help", "--version"} & {*asked} and is_launched(from_rank=1):
            sys.exit(0)  # rank 0 shows it
        return super().main(*args, **options)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Read the command line, or show help; what cannot be written becomes one line."""
        try:
            return super().make_context(*args, **options)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise to_one_line(error) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands' names in the order of the table, which is the order of work."""
        return [*self.commands_at, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self.commands_at:
            return super().get_command(ctx, cmd_name)
        module, function = self.commands_at[cmd_name].split(":")
        command = getattr(importlib.import_module(module), function)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was asked for, or say which one was probably meant."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            choices = self.list_commands(ctx)
            ctx.fail(f"Unknown command {args[0]!r}. {did_you_mean(args[0], choices)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an error becomes one line and an exit code, a traceback with --debug."""
        try:
            with warnings.catch_warnings():
                if not ctx.params["debug"]:
                    warnings.showwarning = _show_warning
                if not is_launched():
                    return super().invoke(ctx)
                return self._invoke_launched(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        # The pipe's reader went away: click ends quietly, as a filter should.
        except BrokenPipeError:
            raise
        except Exception as error:
            if ctx.params["debug"]:
                raise
            raise to_one_line(error) from error

    def _invoke_launched(self, ctx: click.Context) -> Any:
        """Run a command that an MPI launcher started, perhaps as one of several ranks."""
        ranks = importlib.import_module("dtsvm.ui.ranks")
        name = next((one for one in sys.argv[1:] if not one.startswith("-")), "")
        run = super().invoke
        try:
            return ranks.at_one_rank(name, lambda: run(ctx)) if name in self.alone else run(ctx)
        except click.UsageError as error:
            ranks.say_once(error)
            raise


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Say a warning in one line, as errors are."""
    click.echo(f"Warning: {message}", err=True)


def is_launched(from_rank: int = 0) -> bool:
    """Whether an MPI launcher started this process, as a rank from this one on."""
    said = (os.environ.get(name, "") for name in LAUNCHED)
    return any(rank.isdigit() and int(rank) >= from_rank for rank in said)


def to_one_line(error: BaseException) -> click.ClickException:
    """Word an error for the command line."""
    if isinstance(error, DtsvmError):
        shown = click.ClickException(str(error))
        shown.exit_code = error.exit_code  # type: ignore[misc]
        return shown
    if isinstance(error, OSError) and error.strerror:
        place = "The output" if error.filename is None else str(error.filename)
        return click.ClickException(f"{place} cannot be used: {error.strerror}.")
    if isinstance(error, Warning):  # python -W error
        return click.ClickException(str(error))
    return click.ClickException(
        f"{type(error).__name__}: {error} (unexpected; 'dtsvm --debug …' shows where)"
    )
