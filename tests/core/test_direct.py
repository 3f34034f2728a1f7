"""The driver's own connections: never shared by two statements, never used again when something went wrong on them."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from cambist.db import direct
from cambist.db.direct import CONNECTIONS_MAX
from cambist.db.engine import BusyError, connect

pytestmark = pytest.mark.slow

PID = "SELECT pg_backend_pid() AS pid"
SLOW = "SELECT pg_backend_pid() AS pid FROM pg_sleep(0.2)"


@pytest.fixture
async def db(databases):
    """Give a door of this test's own, whose connections no other test opened or is given."""
    with databases.fresh() as url:
        database = connect(url, application_name="cambist-tests", pool_size=5, pool_timeout_s=60)
        yield database
        await database.close()


async def pid(db, statement: str = PID) -> int:
    return (await db.fetch_row(statement))["pid"]


async def test_one_after_the_other_they_share_a_connection_and_at_once_none(db):
    assert await pid(db) == await pid(db)
    pids = await asyncio.gather(*(pid(db, SLOW) for _ in range(CONNECTIONS_MAX)))
    assert len(set(pids)) == CONNECTIONS_MAX


async def test_more_at_once_than_there_are_connections_wait_their_turn(db):
    pids = await asyncio.gather(*(pid(db, SLOW) for _ in range(3 * CONNECTIONS_MAX)))
    assert len(set(pids)) == CONNECTIONS_MAX


async def test_who_waits_too_long_is_told_and_takes_nothing_with_him(db):
    db.fetch_row.__self__._timeout_s = 0.05
    busy = [asyncio.create_task(pid(db, SLOW)) for _ in range(CONNECTIONS_MAX)]
    await asyncio.sleep(0.01)
    with pytest.raises(BusyError):
        await pid(db)
    assert len(set(await asyncio.gather(*busy))) == CONNECTIONS_MAX
    assert len(set(await asyncio.gather(*(pid(db, SLOW) for _ in range(CONNECTIONS_MAX))))) == CONNECTIONS_MAX


async def test_what_is_under_way_when_all_is_closed_leaves_no_connection_behind(db, database_url):
    under_way = asyncio.create_task(pid(db))
    await asyncio.sleep(0)  # it begins, and has to wait for the server
    assert not under_way.done()
    await db.close()
    number = await under_way
    other = await asyncpg.connect(database_url)
    there = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1"
    async with asyncio.timeout(30):
        while await other.fetchval(there, number):  # noqa: ASYNC110  another process's
            await asyncio.sleep(0.01)
    await other.close()


async def test_a_connection_on_which_a_statement_failed_or_was_given_up_is_not_used_again(db):
    before = await pid(db)
    with pytest.raises(asyncpg.DivisionByZeroError):
        await db.fetch_row("SELECT 1 / 0 AS pid")
    after = await pid(db)
    assert after != before
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await db.fetch_row("SELECT pg_sleep(5)")
    assert await pid(db) != after


async def test_a_statement_that_was_given_up_ends_at_the_server_too(db):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await db.fetch_row("SELECT pg_sleep(20)")
    async with db.autocommit() as conn:
        running = await conn.exec_driver_sql(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'"
            " AND query = 'SELECT pg_sleep(20)'"
        )
    assert running.all() == []


async def test_a_connection_that_was_idle_for_long_is_not_used_again(db, monkeypatch):
    before = set(await asyncio.gather(*(pid(db, SLOW) for _ in range(CONNECTIONS_MAX))))
    monkeypatch.setattr(direct, "IDLE_S_MAX", 0.2)
    await asyncio.sleep(0.3)
    after = await pid(db)
    assert after not in before
    assert await pid(db) == after


async def test_connections_that_the_server_closed_are_replaced(db):
    await asyncio.gather(*(pid(db, SLOW) for _ in range(CONNECTIONS_MAX)))
    async with db.autocommit() as conn:
        await conn.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    await asyncio.sleep(0.2)
    assert len(set(await asyncio.gather(*(pid(db, SLOW) for _ in range(CONNECTIONS_MAX))))) == CONNECTIONS_MAX


class Broken:
    """A connection on which the driver finds out that it is lost, in the words that it has for its own mistakes."""

    def __init__(self, error, *, is_lost):
        self.error, self.is_lost = error, is_lost

    def is_closed(self):
        return self.is_lost

    async def fetchrow(self, *_):
        raise self.error

    async def close(self, **_):
        """Close what is closed."""


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
    ],
)
@pytest.mark.parametrize("is_lost, wanted", [(True, ConnectionError), (False, None)])
async def test_a_connection_that_is_lost_meanwhile_is_told_from_a_mistake_of_ours(
    db, monkeypatch, error, is_lost, wanted
):
    async def opened(**_):
        return Broken(error, is_lost=is_lost)

    monkeypatch.setattr(asyncpg, "connect", opened)
    with pytest.raises(wanted or type(error)):
        await db.fetch_row("SELECT 1")
