"""``cambist manifest``: what a restore needs besides seed and chains, written beside every backup."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from msgspec import Struct
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
    """Write the recovery manifest to PATH, and accounts to PATH.accounts, over what is there.

    Where that knows of more than the database, as after a loss, it is kept under another name.
    """
    settings = invocation.settings()
    try:
        if path.exists() and not path.is_file():
            raise click.ClickException(f"{path} is no file.")
        made = asyncio.run(_write(settings, path))
    except SQLAlchemyError as error:
        raise click.ClickException(f"The database cannot be read: {reason(error)}.") from error
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}.") from error
    if made.kept is not None:
        echo(f"What was there knew of more than the database does, and is {made.kept} now.")
    found = made.manifest
    echo(f"{len(found.merchants)} merchants and {len(found.chains)} chains are in {path}.")
    echo(f"{made.accounts} accounts are in {restore.accounts_path(path)}: a restore needs both.")


class _Made(Struct, frozen=True):
    """What was written, and where what was there before is, if it is kept."""

    manifest: Manifest
    accounts: int
    kept: Path | None


async def _write(settings: Settings, path: Path) -> _Made:
    why = "the manifest is made from a database that is in use."
    async with opened_database(settings, "manifest", why) as database:
        registry = opened_registry(settings)

        async def compose() -> Manifest:
            async with database.transaction() as conn:
                return await restore.compose(conn, registry, SystemClock().now())

        before, trouble = restore.read_before(path)
        trouble = trouble or await restore.why_kept(database, restore.accounts_path(path))
        found = await compose()
        is_lost = bool(trouble) or (before is not None and restore.knows_more(before, found))
        kept = restore.move_aside(path) if is_lost else None
        # The manifest is the younger of the two: it names every merchant who has an account.
        accounts = await restore.write_accounts(database, restore.accounts_path(path))
        found = await compose()
        restore.write_manifest(path, found)
        return _Made(found, accounts, kept)
