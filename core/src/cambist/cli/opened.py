"""What commands open: the plugins, and the database of a gateway that is in use."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import click
from msgspec.structs import replace
from sqlalchemy.exc import SQLAlchemyError

from cambist.bootstrap import open_database
from cambist.db.engine import Database, why_unreached
from cambist.embedded import EmbeddedError, reached_database
from cambist.ports import system_ids
from cambist.registry import Registry, RegistryError
from cambist.services.audit.entries import Origin
from cambist.services.errors import ServiceError
from cambist.settings import Settings, SettingsError

from .terminal import echo


@asynccontextmanager
async def opened_database(settings: Settings, command: str, why: str) -> AsyncIterator[Database]:
    """Yield the database: the one that is configured, or else what 'cambist up' has made in the data directory.

    Raises SettingsError where there is neither, saying why the command needs one, and UnreachedError.
    """
    with _with_database(settings, why) as found:
        try:
            database = open_database(found, command)
        except (ValueError, SQLAlchemyError) as error:  # whose words repeat what may be part of a password
            raise SettingsError(f"database.url is no address that can be used: {type(error).__name__}.") from None
        try:
            await _reach(database)
            yield database
        finally:
            await database.close()


class UnreachedError(SQLAlchemyError):
    """The database does not let us in. The message says why, and holds no secret."""


async def _reach(database: Database) -> None:
    """Connect once, so that what fails afterwards is not the way to the database. Raises UnreachedError."""
    try:
        async with database.autocommit() as conn:
            await conn.exec_driver_sql("SELECT 1")
    except Exception as error:  # noqa: BLE001  the driver raises anything for what it does not understand of an address
        raise UnreachedError(reason(error)) from None


def reason(error: BaseException) -> str:
    """Return why the database cannot be used, without secrets or what is stored there."""
    if isinstance(error, UnreachedError):
        return str(error)
    state = getattr(getattr(error, "orig", error), "sqlstate", None)
    return why_unreached(error) or _STATES.get(state or "") or type(error).__name__


_STATES = {
    "42P01": "it has not the tables of this version, 'cambist migrate' makes them",
    "42703": "it has not the columns of this version, 'cambist migrate' makes them",
    "42501": "this account may not do that there",
    "25006": "it takes no writes",
}
"""What PostgreSQL's errors mean for who runs a command."""


def answer(lines: Coroutine[Any, Any, Sequence[str]]) -> None:
    """Print what a command has found or done in the database. Raises ClickException and SettingsError."""
    try:
        found = asyncio.run(lines)
    except ServiceError as error:
        raise click.ClickException(error.message) from error
    except (SQLAlchemyError, OSError) as error:
        raise SettingsError(f"The database cannot be used: {reason(error)}.") from error
    for line in found:
        echo(line)


@contextmanager
def _with_database(settings: Settings, why: str) -> Iterator[Settings]:
    if settings.database.url is not None:
        yield settings
        return
    try:
        with reached_database(settings.data_dir, system_ids().random_bytes) as url:
            if url is None:
                raise SettingsError(
                    f"database.url must be set: {why} A gateway that runs its own database is named by --data-dir, and"
                    f" {settings.data_dir} has none."
                )
            yield replace(settings, database=replace(settings.database, url=url))
    except EmbeddedError as error:
        raise SettingsError(str(error)) from error


def person() -> Origin:
    """Return who runs a command, for the audit log: the account of the operating system."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Origin(actor_kind="operator", actor=f"{name} at the command line")


def opened_registry(settings: Settings) -> Registry:
    """Return the registry of the enabled plugins. Raises SettingsError."""
    try:
        return Registry(settings.plugins)
    except RegistryError as error:
        raise SettingsError(str(error)) from error


def live_chains(registry: Registry) -> list[str]:
    """Return the ids of the chains that take real money."""
    return [info.id for info in registry.chains.values() if info.availability == "live"]


def check_live(registry: Registry, chain: str) -> None:
    """Raise SettingsError unless a chain of this id is live."""
    if chain not in (live := live_chains(registry)):
        raise SettingsError(f"There is no live chain {chain!r}; there are: {', '.join(live) or 'none'}.")
