"""What Alembic runs for each of its commands."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, cast

import structlog
from alembic import context
from sqlalchemy import Connection, text

from cambist.db.models import Base
from cambist.db.models.base import UnitsType, Xid8

if TYPE_CHECKING:
    from advanced_alchemy.alembic.commands import AlembicCommandConfig

# Any number will do, so long as it stays the same in every release.
_MIGRATION_LOCK = 0x63616D6269737401

config = cast("AlembicCommandConfig", context.config)
log = structlog.get_logger(__name__)


def _render(kind: str, item: object, _: object) -> str | Literal[False]:
    # Amounts are plain numbers in the database; only our side of the column is special.
    return "sa.Numeric(78, 0)" if kind == "type" and isinstance(item, UnitsType) else False


def _compare_type(_: object, __: object, ___: object, ____: object, declared: object) -> bool | None:
    # xid8 is reflected as an unknown type, which compares as different.
    return False if isinstance(declared, Xid8) else None


def _options() -> dict[str, Any]:
    return {
        "target_metadata": Base.metadata,
        "compare_type": _compare_type,
        "render_item": _render,
        "user_module_prefix": "models.",
        "version_table": config.version_table_name,
        "render_as_batch": False,
    }


def _run(connection: Connection) -> None:
    context.configure(connection=connection, **_options())
    with context.begin_transaction():
        # Held to the end of the transaction. Alembic reads the current revision after this, so whoever waited
        # here finds the work done.
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        lock = {"lock": _MIGRATION_LOCK}
        if not connection.scalar(text("SELECT pg_try_advisory_xact_lock(:lock)"), lock):
            log.warning("migration_waits", hint="another process brings the database up to date, or was killed at it")
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), lock)
        context.run_migrations()


async def _run_online() -> None:
    engine = config.engine
    async with engine.connect() as connection:  # type: ignore[union-attr]  # always the async one here
        await connection.run_sync(_run)
        await connection.commit()
    await engine.dispose()  # type: ignore[misc]


if context.is_offline_mode():
    context.configure(url=config.db_url, literal_binds=True, dialect_opts={"paramstyle": "named"}, **_options())
    with context.begin_transaction():
        context.run_migrations()
else:
    asyncio.run(_run_online())
