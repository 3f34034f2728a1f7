"""A transaction, and statements without one, begin and end as AsyncEngine's own do, and give every connection back."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.ext.asyncio import AsyncEngine

from cambist.db.engine import connect
from tests.core.test_text_connection import db as db  # noqa: PLC0414  a fixture
from tests.core.test_text_connection import pid_of, until_gone

LATE = """
CREATE TABLE kept_rows (id bigint PRIMARY KEY, other bigint REFERENCES kept_rows DEFERRABLE INITIALLY DEFERRED)
"""


@pytest.fixture(params=["AsyncEngine's", "ours"])
def transaction(request, db):
    """Give what begins a transaction."""
    return AsyncEngine(db.engine.sync_engine).begin if request.param == "AsyncEngine's" else db.transaction


@pytest.fixture(params=["AsyncEngine's", "ours"])
def autocommit(request, db):
    """Give what takes a connection on which each statement is its own."""
    if request.param == "ours":
        return db.autocommit
    return AsyncEngine(db.engine.sync_engine).execution_options(isolation_level="AUTOCOMMIT").connect


@pytest.fixture
async def table(db):
    """Give a table of rows, and look whether all connections are back when it goes."""
    async with db.autocommit() as conn:
        await conn.execute(sa.text(LATE))
    yield
    assert db.engine.pool.checkedout() == 0
    async with db.autocommit() as conn:
        await conn.execute(sa.text("DROP TABLE kept_rows"))


async def rows(db):
    async with db.autocommit() as conn:
        return (await conn.execute(sa.text("SELECT id FROM kept_rows ORDER BY id"))).scalars().all()


async def add(conn, number, other=None):
    await conn.exec_driver_sql("INSERT INTO kept_rows VALUES ($1, $2)", (number, other))


async def test_what_was_done_is_committed_at_the_end_and_not_before(transaction, db, table):
    async with transaction() as conn:
        await add(conn, 1)
        await conn.execute(sa.text("INSERT INTO kept_rows VALUES (2)"))
        assert await rows(db) == []
    assert await rows(db) == [1, 2]
    assert conn.closed


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit, SystemExit])
async def test_whatever_is_raised_undoes_it_and_is_raised(transaction, db, table, error):
    raised = error("no")
    with suppress(error):
        async with transaction() as conn:
            await add(conn, 1)
            raise raised
    assert conn.closed
    assert await rows(db) == []


async def test_what_is_raised_is_the_same_error_and_not_another(transaction):
    raised = ValueError("no")
    with pytest.raises(ValueError, match="no") as caught:
        async with transaction():
            raise raised
    assert caught.value is raised
    assert caught.value.__cause__ is None


async def test_an_error_of_the_server_undoes_it(transaction, db, table):
    with pytest.raises(exc.IntegrityError):  # noqa: PT012  it is raised through the transaction
        async with transaction() as conn:
            await add(conn, 1)
            await add(conn, 1)
    assert await rows(db) == []


async def test_what_the_server_refuses_at_the_end_is_undone(transaction, db, table):
    with pytest.raises(exc.IntegrityError, match="kept_rows_other_fkey"):  # noqa: PT012  at its end
        async with transaction() as conn:
            pid = await pid_of(conn)
            await add(conn, 1, other=7)
    assert await rows(db) == []
    async with transaction() as conn:
        assert await pid_of(conn) == pid
        await add(conn, 2)
    assert await rows(db) == [2]


async def test_one_that_was_undone_within_takes_no_more_statements(transaction, db, table):
    with pytest.raises(exc.InvalidRequestError, match="closed transaction inside context"):  # noqa: PT012  likewise
        async with transaction() as conn:
            await add(conn, 1)
            await conn.rollback()
            await add(conn, 2)
    async with transaction() as conn:
        await add(conn, 3)
        await conn.rollback()
    assert await rows(db) == []


async def test_a_savepoint_is_undone_alone(transaction, db, table):
    async with transaction() as conn:
        await add(conn, 1)
        with suppress(exc.IntegrityError):
            async with conn.begin_nested():
                await add(conn, 2)
                await add(conn, 1)
        await add(conn, 3)
    assert await rows(db) == [1, 3]


async def test_a_savepoint_that_was_undone_within_takes_no_more_statements(transaction, db, table):
    async with transaction() as conn:
        await add(conn, 1)
        with pytest.raises(exc.InvalidRequestError, match="closed transaction inside context"):  # noqa: PT012
            async with conn.begin_nested() as savepoint:
                await add(conn, 2)
                await savepoint.rollback()
                await add(conn, 3)
        await add(conn, 4)
    assert await rows(db) == [1, 4]


async def test_each_statement_without_a_transaction_is_kept_at_once(autocommit, db, table):
    with suppress(ValueError):
        async with autocommit() as conn:
            await add(conn, 1)
            await conn.execute(sa.text("INSERT INTO kept_rows VALUES (2)"))
            assert await rows(db) == [1, 2]
            raise ValueError
    assert conn.closed
    async with db.transaction() as conn:  # the same connection, most likely
        level = await conn.exec_driver_sql("SHOW transaction_isolation")
        assert level.scalar_one() == "read committed"
        await add(conn, 3)
        assert await rows(db) == [1, 2]


async def test_who_is_cancelled_while_the_server_commits_gives_the_connection_up(transaction, db, table):
    """The server waits in the commit, for the row that another has locked."""
    async with db.transaction() as conn:
        await add(conn, 1)
    waiting = asyncio.Event()
    pids = []

    async def refer():
        async with transaction() as conn:
            pids.append(await pid_of(conn))
            await add(conn, 2, other=1)
            waiting.set()

    async with db.transaction() as other:
        await other.execute(sa.text("DELETE FROM kept_rows WHERE id = 1"))
        task = asyncio.create_task(refer())
        await waiting.wait()
        locked = sa.text("SELECT 1 FROM pg_stat_activity WHERE pid = :pid AND wait_event_type = 'Lock'")
        async with asyncio.timeout(10), db.autocommit() as conn:
            while (await conn.execute(locked, {"pid": pids[0]})).first() is None:  # noqa: ASYNC110  nobody tells
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until_gone(db, pids[0])
    assert await rows(db) == []


async def test_who_is_cancelled_while_the_server_undoes_leaves_nothing_open(transaction, db, table):
    pids = []

    async def fail():
        async with transaction() as conn:
            pids.append(await pid_of(conn))
            await add(conn, 1)
            asyncio.get_running_loop().call_soon(task.cancel)  # as soon as it waits again: for the server to undo
            raise ValueError

    task = asyncio.create_task(fail())
    with pytest.raises((asyncio.CancelledError, ValueError)):
        await task
    assert db.engine.pool.checkedout() == 0
    assert await rows(db) == []
    async with db.autocommit() as conn:
        open_still = await conn.execute(
            sa.text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid AND state <> 'idle'"), {"pid": pids[0]}
        )
        assert open_still.scalar_one() == 0


async def test_a_connection_on_which_a_task_was_left_in_the_transaction_is_given_up(transaction, db, table):
    left = []

    async def leave():
        async with transaction() as conn:
            pid = await pid_of(conn)
            await add(conn, 1)
            left.extend((pid, asyncio.create_task(conn.exec_driver_sql("SELECT pg_sleep(30)"))))
            await asyncio.sleep(0.01)
            raise ValueError

    with pytest.raises(exc.InterfaceError, match="another operation is in progress"):
        await leave()
    pid, task = left
    await until_gone(db, pid)
    with pytest.raises(exc.SQLAlchemyError):
        await task
    async with db.autocommit() as conn:
        await add(conn, 2)
    async with db.transaction() as conn:
        await add(conn, 3)
    assert await rows(db) == [2, 3]


async def test_who_waits_for_a_connection_and_is_cancelled_takes_none(database_url):
    db = connect(database_url, application_name="one", pool_size=1, pool_overflow=0)

    async def take():
        async with db.transaction() as conn:
            await conn.exec_driver_sql("SELECT 1")

    async with db.autocommit():
        for wait in (0, 0.01):
            task = asyncio.create_task(take())
            await asyncio.sleep(wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    await take()
    assert db.engine.pool.checkedout() == 0
    await db.close()
