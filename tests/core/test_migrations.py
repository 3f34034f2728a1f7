"""The schema as migrations make it: complete, equal to the models, and with its triggers at work."""

from __future__ import annotations

import asyncio

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, insert, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError
from structlog.testing import capture_logs

from cambist.db.engine import Database, connect
from cambist.db.migrations import (
    FOLDER,
    UnknownRevisionError,
    current_revision,
    migrate,
    newest_revision,
    revision_at,
)
from cambist.db.models import Base, LedgerAccount, LedgerMovement, LedgerTransaction
from cambist.db.models.base import Xid8
from tests.support.command import context
from tests.support.waiting import waits_for_a_lock

pytestmark = pytest.mark.slow

MIGRATION_LOCK = 0x63616D6269737401
"""That of every release: one that migrates waits for one of another."""


def test_an_empty_database_is_migrated_to_the_newest_revision_and_a_second_run_changes_nothing(empty_database_url):
    assert asyncio.run(revision_at(empty_database_url)) is None
    migrate(empty_database_url)
    assert asyncio.run(revision_at(empty_database_url)) == newest_revision()
    migrate(empty_database_url)
    assert asyncio.run(revision_at(empty_database_url)) == newest_revision()


def test_a_database_of_another_version_is_refused_in_a_sentence_and_left_as_it_is(empty_database_url):
    migrate(empty_database_url)
    asyncio.run(_set_revision(empty_database_url, "9999"))
    with pytest.raises(UnknownRevisionError, match="revision 9999"):
        migrate(empty_database_url)
    asyncio.run(_set_revision(empty_database_url, newest_revision()))
    assert asyncio.run(revision_at(empty_database_url)) == newest_revision()


async def _set_revision(url: str, revision: str) -> None:
    database = connect(url, application_name="test")
    async with database.transaction() as conn:
        await conn.execute(text("UPDATE schema_version SET version_num = :revision"), {"revision": revision})
    await database.close()


@pytest.mark.filterwarnings("ignore:Did not recognize type 'xid8'")
async def test_the_migrated_schema_is_what_the_models_declare(empty_database_url, run_migrations):
    await run_migrations(empty_database_url)
    database = connect(empty_database_url, application_name="test")

    def differences(connection: Connection):
        def same_type(_, __, ___, ____, declared):
            return False if isinstance(declared, Xid8) else None

        options = {"version_table": "schema_version", "compare_type": same_type, "compare_server_default": True}
        return compare_metadata(MigrationContext.configure(connection, opts=options), Base.metadata)

    async with database.transaction() as connection:
        assert await connection.run_sync(differences) == []
        assert await current_revision(connection) == newest_revision()
        migrated = await _constraints(connection)
    async with database.transaction() as connection:
        await connection.execute(text("DROP SCHEMA public CASCADE"))
        await connection.execute(text("CREATE SCHEMA public"))
        await connection.run_sync(Base.metadata.create_all)
        # Autogenerate sees neither check constraints nor expressions nor collations; the catalogue does.
        declared = await _constraints(connection)
    await database.close()
    assert {row for row in migrated if row[0] != "schema_version"} == declared
    # By whose beginning what tells of a tracker's transaction is found.
    assert ("webhook_deliveries", "delivery_id", "C") in declared


async def _constraints(connection):
    constraints = await connection.execute(
        text(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE connamespace = 'public'::regnamespace AND conrelid <> 0"
        )
    )
    indexes = await connection.execute(
        text("SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'")
    )
    collations = await connection.execute(
        text(
            "SELECT a.attrelid::regclass::text, a.attname, c.collname FROM pg_attribute a"
            " JOIN pg_collation c ON c.oid = a.attcollation JOIN pg_class t ON t.oid = a.attrelid"
            " WHERE t.relnamespace = 'public'::regnamespace AND t.relkind = 'r' AND c.collname <> 'default'"
        )
    )
    return {tuple(row) for row in (*constraints, *indexes, *collations)}


async def _account(connection, *, guarded: bool, debit_normal: bool = False, purpose: str) -> int:
    return await connection.scalar(
        insert(LedgerAccount)
        .values(mode="live", asset="ethereum/native", purpose=purpose, guarded=guarded, debit_normal=debit_normal)
        .returning(LedgerAccount.id)
    )


async def _post(connection, reference: str, debit: int, credit: int, units: int) -> None:
    transaction_pk = await connection.scalar(
        insert(LedgerTransaction)
        .values(mode="live", kind="deposit", reference=reference)
        .returning(LedgerTransaction.id)
    )
    await connection.execute(
        insert(LedgerMovement).values(
            transaction_pk=transaction_pk,
            mode="live",
            asset="ethereum/native",
            debit_account_pk=debit,
            credit_account_pk=credit,
            units=units,
        )
    )


@pytest.fixture
async def accounts(db: Database):
    async with db.transaction() as connection:
        custody = await _account(connection, guarded=True, debit_normal=True, purpose="custody_deposits")
        available = await _account(connection, guarded=True, purpose="available")
    return custody, available


async def _balances(db: Database):
    async with db.autocommit() as connection:
        rows = await connection.execute(select(LedgerAccount.balance).order_by(LedgerAccount.id))
        return rows.scalars().all()


async def test_movements_carry_the_balances_of_both_their_accounts(db, accounts):
    custody, available = accounts
    async with db.transaction() as connection:
        await _post(connection, "one", custody, available, 10**70)
        await _post(connection, "two", available, custody, 1)
    assert await _balances(db) == [-(10**70) + 1, 10**70 - 1]


async def test_a_guarded_account_is_never_overdrawn(db, accounts):
    custody, available = accounts
    async with db.transaction() as connection:
        await _post(connection, "one", custody, available, 5)
    with pytest.raises(IntegrityError, match="guarded_balance"):
        async with db.transaction() as connection:
            await _post(connection, "two", available, custody, 6)
    assert await _balances(db) == [-5, 5]


@pytest.mark.parametrize(
    "statement",
    [
        update(LedgerMovement).values(units=1),
        text("DELETE FROM ledger_movements"),
        text("TRUNCATE ledger_movements"),
        update(LedgerTransaction).values(reference="other"),
        text("DELETE FROM ledger_transactions"),
        text("DELETE FROM ledger_accounts"),
        update(LedgerAccount).values(balance=10**6),
    ],
    ids=str,
)
async def test_what_was_posted_can_be_neither_changed_nor_deleted(db, accounts, statement):
    async with db.transaction() as connection:
        await _post(connection, "one", *accounts, 5)
    with pytest.raises(DBAPIError, match=r"append-only|change only by movements"):
        async with db.transaction() as connection:
            await connection.execute(statement)
    assert await _balances(db) == [-5, 5]


def test_the_newest_revision_is_alembics_head_and_the_history_does_not_branch():
    script = ScriptDirectory(str(FOLDER))
    assert script.get_heads() == [newest_revision()]


async def test_the_same_reference_is_posted_once(db, accounts):
    async with db.transaction() as connection:
        await _post(connection, "one", *accounts, 5)
    with pytest.raises(IntegrityError):
        async with db.transaction() as connection:
            await _post(connection, "one", *accounts, 5)
    assert await _balances(db) == [-5, 5]


async def test_migrations_at_once_do_the_work_once_and_say_that_they_wait(empty_database_url, run_migrations):
    database = connect(empty_database_url, application_name="test")
    with capture_logs() as logs:
        async with database.transaction() as connection:
            await connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
            running = [asyncio.create_task(run_migrations(empty_database_url)) for _ in range(2)]
            running.append(asyncio.create_task(asyncio.to_thread(migrate, empty_database_url)))
            await waits_for_a_lock(connection, running[0], number=len(running))
        await asyncio.gather(*running)
        await asyncio.to_thread(migrate, empty_database_url)
    assert [one["event"] for one in logs] == ["migration_waits"]
    async with database.transaction() as connection:
        assert await current_revision(connection) == newest_revision()
    await database.close()


@pytest.fixture
def run_migrations():
    """Migrate in a process of its own, as the gateway does: never inside a running loop."""

    async def run(url: str) -> None:
        process = context.Process(target=migrate, args=(url,))
        process.start()
        await asyncio.to_thread(process.join)
        assert process.exitcode == 0

    return run
