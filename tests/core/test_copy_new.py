"""Thousands of rows at once: all of them or none, inside a transaction that goes on either way."""

from __future__ import annotations

import asyncio

import pytest

from cambist.db.engine import copy_new
from cambist.services.trackers.fan_out import is_gone

COLUMNS = ("number", "name")
NAMES = "SELECT name FROM named ORDER BY number"


@pytest.fixture
async def named(db):
    async with db.transaction() as conn:
        await conn.exec_driver_sql("CREATE TABLE named (number bigint PRIMARY KEY, name text CHECK (name <> ''))")
    return db


async def names(db) -> list[str]:
    async with db.transaction() as conn:
        return list((await conn.exec_driver_sql(NAMES)).scalars())


async def test_rows_come_as_they_are_given(named):
    odd = ["plain", "\\N", "tab\tand\nline", 'quote"', "ünï", "x" * 10_000]
    async with named.transaction() as conn:
        assert await copy_new(conn, "named", COLUMNS, list(enumerate(odd)))
        assert await copy_new(conn, "named", COLUMNS, [])
    assert await names(named) == odd


@pytest.mark.parametrize("broken", [(1, "double"), (9, ""), (None, "no number")], ids=["double", "check", "null"])
async def test_one_row_that_breaks_a_constraint_keeps_all_of_them_out_and_the_transaction_goes_on(named, broken):
    async with named.transaction() as conn:
        await conn.exec_driver_sql("INSERT INTO named VALUES (1, 'before')")
        assert not await copy_new(conn, "named", COLUMNS, [(2, "beside"), broken, (3, "behind")])
        await conn.exec_driver_sql("INSERT INTO named VALUES (4, 'after')")
    assert await names(named) == ["before", "after"]


@pytest.mark.parametrize("at", ["before it", "in the middle of it"])
async def test_a_connection_that_is_lost_is_told_and_leaves_nothing(named, at):
    """In the middle it waits for somebody else's row, and is lost there."""
    is_there = asyncio.Event()

    async def copy_there(after: asyncio.Event) -> None:
        async with named.transaction() as conn:
            pids.append((await conn.exec_driver_sql("SELECT pg_backend_pid()")).scalar_one())
            is_there.set()
            await after.wait()
            await copy_new(conn, "named", COLUMNS, [(2, "beside"), (1, "second")])

    pids: list[int] = []
    go = asyncio.Event()
    async with named.transaction() as holder:
        await holder.exec_driver_sql("INSERT INTO named VALUES (1, 'first')")
        copying = asyncio.create_task(copy_there(go))
        await is_there.wait()
        if at == "in the middle of it":
            go.set()
            waits = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'"
            async with asyncio.timeout(30), named.autocommit() as watching:
                while not (await watching.exec_driver_sql(waits, tuple(pids))).scalar():  # noqa: ASYNC110  nobody tells
                    await asyncio.sleep(0.01)
        await holder.exec_driver_sql("SELECT pg_terminate_backend($1, 10000)", tuple(pids))
        go.set()
        with pytest.raises(Exception) as caught:  # noqa: PT011  whatever it is, it is known for what it is
            await copying
    assert is_gone(caught.value)
    assert await names(named) == ["first"]


async def test_whoever_is_given_up_by_the_server_is_told_so(named):
    async with named.transaction() as holder:
        await holder.exec_driver_sql("INSERT INTO named VALUES (1, 'first')")
        async with named.transaction() as conn:
            await conn.exec_driver_sql("SET LOCAL lock_timeout = '50ms'")
            with pytest.raises(Exception, match="lock timeout"):
                await copy_new(conn, "named", COLUMNS, [(1, "second")])
            await conn.exec_driver_sql("INSERT INTO named VALUES (2, 'after')")
    assert await names(named) == ["first", "after"]
