"""Brings a database up to date: Alembic, driven through advanced-alchemy.

Runs outside any event loop, because ``env.py`` makes its own; a lock in the database lets one process at a time
through.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import NullPool, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from cambist.db.direct import tls_of
from cambist.db.engine import driver_url
from cambist.db.models import Base

if TYPE_CHECKING:
    from advanced_alchemy.alembic.commands import AlembicCommands

FOLDER = Path(__file__).parent
VERSION_TABLE = "schema_version"


def commands(url: str) -> AlembicCommands:
    """Return Alembic's commands for the database at this address."""
    # Here, because these imports take most of a second, and a start rarely needs them.
    from advanced_alchemy.alembic.commands import AlembicCommands  # noqa: PLC0415
    from advanced_alchemy.config import AlembicAsyncConfig, SQLAlchemyAsyncConfig  # noqa: PLC0415

    config = SQLAlchemyAsyncConfig(
        engine_instance=create_async_engine(driver_url(url), poolclass=NullPool, connect_args=tls_of(url)),
        metadata=Base.metadata,
        alembic_config=AlembicAsyncConfig(
            script_location=str(FOLDER), version_table_name=VERSION_TABLE, render_as_batch=False, compare_type=True
        ),
    )
    return AlembicCommands(config)


class UnknownRevisionError(Exception):
    """The database is at a revision that no migration of this release makes; the message is for the operator."""


def migrate(url: str) -> None:
    """Bring the database up to date, all steps in one transaction. Does nothing where it already is.

    Raises UnknownRevisionError.
    """
    found = asyncio.run(revision_at(url))
    if found is not None and found not in _revisions():
        raise UnknownRevisionError(
            f"The database is at revision {found}, which another version of Cambist made and this one does not know."
        )
    if found != newest_revision():
        commands(url).upgrade("head")


def newest_revision() -> str:
    """Return the revision that this release works with: the number that the last migration's file starts with."""
    return max(_revisions())


def _revisions() -> set[str]:
    return {file.name.partition("_")[0] for file in (FOLDER / "versions").glob("[0-9]*.py")}


async def current_revision(connection: AsyncConnection) -> str | None:
    """Return the revision that the database is at, or None where it is empty."""
    try:
        async with connection.begin_nested():
            found: str | None = await connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
            return found
    except ProgrammingError:
        return None


async def revision_at(url: str) -> str | None:
    engine = create_async_engine(driver_url(url), poolclass=NullPool, connect_args=tls_of(url))
    try:
        async with engine.connect() as connection:
            return await current_revision(connection)
    finally:
        await engine.dispose()
