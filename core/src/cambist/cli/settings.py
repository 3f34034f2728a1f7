"""``cambist settings``: what is stored of the platform settings, and the removal of what this version does not read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import click
import msgspec
from sqlalchemy.exc import SQLAlchemyError

from cambist.ports import SystemClock
from cambist.services import stored_settings
from cambist.services.audit.entries import Action, record
from cambist.services.stored_settings import StoredValue
from cambist.settings import Settings, SettingsError

from .opened import answer, opened_database, person, reason
from .options import Invocation, settings_options
from .terminal import echo

EXIT_UNREAD = 1
WHY = "'cambist settings' reads the platform settings of a gateway that is in use."


@click.group(invoke_without_command=True)
@settings_options
def settings(invocation: Invocation) -> None:
    """List what is stored of the platform settings, and say what of it this version does not read.

    Exits with 1 where there is such.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    try:
        found = asyncio.run(_listed(invocation.settings()))
    except (SQLAlchemyError, OSError) as error:
        raise SettingsError(f"The database cannot be read: {reason(error)}.") from error
    for one in found:
        echo(_line(one))
    if not found:
        echo("Nothing is stored: every setting has its default.")
    if any(one.problem is not None for one in found):
        raise SystemExit(EXIT_UNREAD)


@settings.command()
@settings_options
@click.argument("name", metavar="NAME")
def remove(invocation: Invocation, name: str) -> None:
    """Remove the stored setting NAME, as 'cambist settings' writes it. Only what this version does not read."""
    told = invocation.settings()

    async def act() -> Sequence[str]:
        now = SystemClock().now()
        async with opened_database(told, "settings", WHY) as database, database.transaction() as conn:
            found = await stored_settings.remove(conn, name, now)
            details = {"removed": found.name, "value": _value(found)}
            await record(conn, person(), Action.PLATFORM_SETTINGS_CHANGED, now, details=details, line=False)
        return [f"Removed {_line(found)}"]

    answer(act())


async def _listed(told: Settings) -> Sequence[StoredValue]:
    async with opened_database(told, "settings", WHY) as database, database.autocommit() as conn:
        return await stored_settings.list_stored(conn)


def _line(one: StoredValue) -> str:
    written = f"{one.name}  {_value(one)}"
    return written if one.problem is None else f"{written}  NOT READ: {one.problem}"


def _value(one: StoredValue) -> str:
    return msgspec.json.encode(one.value).decode()
