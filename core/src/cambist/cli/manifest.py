"""``cambist manifest``: what a restore needs besides seed and chains, written beside every backup."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from sqlalchemy.exc import SQLAlchemyError

from cambist.ports import SystemClock
from cambist.services.recovery import restore
from cambist.services.recovery.restore import Manifest
from cambist.settings import Settings

from .opened import opened_database, opened_registry, reason
from .options import Invocation, settings_options
from .terminal import echo


@click.command()
@settings_options
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
def manifest(invocation: Invocation, path: Path) -> None:
    """Write the recovery manifest to PATH, and accounts to PATH.accounts, over what is there."""
    settings = invocation.settings()
    try:
        found, accounts = asyncio.run(_write(settings, path))
    except SQLAlchemyError as error:
        raise click.ClickException(f"The database cannot be read: {reason(error)}.") from error
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}.") from error
    echo(f"{len(found.merchants)} merchants and {len(found.chains)} chains are in {path}.")
    echo(f"{accounts} accounts are in {restore.accounts_path(path)}: a restore needs both.")


async def _write(settings: Settings, path: Path) -> tuple[Manifest, int]:
    why = "the manifest is made from a database that is in use."
    async with opened_database(settings, "manifest", why) as database:
        registry = opened_registry(settings)
        # The manifest is the younger of the two: it names every merchant who has an account.
        accounts = await restore.write_accounts(database, restore.accounts_path(path))
        async with database.transaction() as conn:
            found = await restore.compose(conn, registry, SystemClock().now())
        restore.write_manifest(path, found)
        return found, accounts
