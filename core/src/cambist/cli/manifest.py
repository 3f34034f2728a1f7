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

from .opened import opened_database, opened_registry
from .options import Invocation, settings_options
from .terminal import echo


@click.command()
@settings_options
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
def manifest(invocation: Invocation, path: Path) -> None:
    """Write the recovery manifest to PATH, over what is there."""
    settings = invocation.settings()
    try:
        found = asyncio.run(_compose(settings))
        restore.write_manifest(path, found)
    except SQLAlchemyError as error:
        raise click.ClickException(f"The database cannot be read: {type(error).__name__}.") from error
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}.") from error
    echo(f"{len(found.merchants)} merchants and {len(found.chains)} chains are in {path}.")


async def _compose(settings: Settings) -> Manifest:
    why = "the manifest is made from a database that is in use."
    async with opened_database(settings, "manifest", why) as database:
        registry = opened_registry(settings)
        async with database.transaction() as conn:
            return await restore.compose(conn, registry, SystemClock().now())
