"""What commands open: the plugins, and the database of a gateway that is in use."""

from __future__ import annotations

import os
import pwd
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cambist.bootstrap import open_database
from cambist.db.engine import Database
from cambist.registry import Registry, RegistryError
from cambist.services.audit.entries import Origin
from cambist.settings import Settings, SettingsError


@asynccontextmanager
async def opened_database(settings: Settings, command: str, why: str) -> AsyncIterator[Database]:
    """Yield the database. Raises SettingsError where none is configured, saying why the command needs one."""
    if settings.database.url is None:
        raise SettingsError(f"database.url must be set: {why}")
    database = open_database(settings, command)
    try:
        yield database
    finally:
        await database.close()


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
