"""The group of commands: finds a command's module when it is called, and words what went wrong."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Mapping
from typing import Any

import click

from dtsvm.errors import DtsvmError, did_you_mean

__all__ = ["LazyGroup", "to_one_line"]


class LazyGroup(click.Group):
    """Commands named in a table, name to ``module:function``, imported on first use.

    Parameters
    ----------
    commands_at : mapping of str to str
        Where each command is.
    """

    def __init__(self, *args: Any, commands_at: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands_at = commands_at

    def main(self, *args: Any, **options: Any) -> Any:
        """Run; where stdout cannot show a Greek letter it shows its code, as stderr always does."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        return super().main(*args, **options)

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
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        # The pipe's reader went away: click ends quietly, as a filter should.
        except BrokenPipeError:
            raise
        except Exception as error:
            if ctx.params["debug"]:
                raise
            raise to_one_line(error) from error


def to_one_line(error: BaseException) -> click.ClickException:
    """Word an error for the command line."""
    if isinstance(error, DtsvmError):
        shown = click.ClickException(str(error))
        shown.exit_code = error.exit_code  # type: ignore[misc]
        return shown
    return click.ClickException(
        f"{type(error).__name__}: {error} (unexpected; 'dtsvm --debug …' shows where)"
    )
