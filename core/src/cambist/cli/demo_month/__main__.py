"""Makes the demo's month, on the servers of its data directory, and ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from cambist.cli.options import Invocation, settings_options
from cambist.cli.supervisor import GivenUpError
from cambist.cli.terminal import echo
from cambist.cli.up import running_servers
from cambist.embedded import EmbeddedError

from .make import make, write


@click.command()
@settings_options
@click.argument("told", type=click.Path(path_type=Path, dir_okay=False))
def month(invocation: Invocation, told: Path) -> None:
    """Make the month, and write what a later start has to know of it into TOLD."""
    # Nobody relies on what is written before all of it is: the database has stopped in order by then.
    try:
        with running_servers(invocation, postgres_settings={"synchronous_commit": "off"}):
            made = asyncio.run(make(invocation.settings(passphrase=True), echo))
    except (EmbeddedError, GivenUpError, ChildProcessError) as error:
        raise click.ClickException(str(error)) from error
    write(made, told)


if __name__ == "__main__":
    month()
