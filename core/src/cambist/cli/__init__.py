"""The one command, ``cambist``. Each subcommand is imported when it is asked for, so that help is quick."""

from __future__ import annotations

import importlib
import sys
from io import StringIO

import click

from cambist import __version__
from cambist.settings import SettingsError

from .imports import collector_off
from .options import EXIT_SETTINGS
from .terminal import echo

# Each names a module of this package, in which a command of the same name is found.
COMMANDS = (
    "admin",
    "audit",
    "demo",
    "doctor",
    "jobs",
    "keys",
    "manifest",
    "migrate",
    "plugins",
    "reconcile",
    "restore",
    "settings",
    "signer",
    "stake",
    "sweeper",
    "up",
    "web",
    "worker",
)


class _Uncut(StringIO):
    """Text with its escape sequences, which click takes out of what it writes to files: they shall be seen."""

    def isatty(self) -> bool:
        """Pretend to be a terminal."""
        return True


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        with collector_off():
            command = getattr(importlib.import_module(f"{__name__}.{cmd_name}"), cmd_name)
        return command if isinstance(command, click.Command) else None

    def invoke(self, ctx: click.Context) -> object:
        """Run a command. What it fails with is shown as ``echo`` shows text: it may name files, and quote servers."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            told = _Uncut()
            error.show(told)
            echo(told.getvalue().removesuffix("\n"), err=True)
            ctx.exit(error.exit_code)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cambist")
def cambist() -> None:
    """Cambist, a self-hosted crypto payment gateway."""


def main() -> None:
    """Run the command. What the operator can mend is said in a sentence, without a traceback."""
    try:
        cambist(prog_name="cambist")
    except SettingsError as error:
        echo(f"cambist: {error}", err=True)
        sys.exit(EXIT_SETTINGS)
