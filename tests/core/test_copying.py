"""Thousands of rows at once: all of them or none, inside a transaction that goes on either way."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest

from cambist.db.copying import bigint_field, bytes_field, copy_new, moment_field, text_field
from cambist.services.trackers.fan_out import is_gone

COLUMNS = ("number", "name")
NULL = (-1).to_bytes(4, "big", signed=True)
NAMES = "SELECT name FROM named ORDER BY number"


@pytest.fixture
async def named(db):
    async with db.transaction() as conn:
        await conn.exec_driver_sql("CREATE TABLE named (number bigint PRIMARY KEY, name text CHECK (name <> ''))")
    return db


async def names(db) -> list[str]:
    async with db.transaction() as conn:
        return list((await conn.exec_driver_sql(NAMES)).scalars())


def row(number: int | None, name: str) -> bytes:
    return (NULL if number is None else bigint_field(number)) + text_field(name)


async def test_rows_come_as_they_are_given(named):
    odd = ["plain", "\\N", "tab\tand\nline", 'quote"', "ünï", "x" * 10_000]
    async with named.transaction() as conn:
        assert await copy_new(conn, "named", COLUMNS, [row(*one) for one in enumerate(odd)], {})
        assert await copy_new(conn, "named", COLUMNS, [], {})
    assert await names(named) == odd


async def test_each_kind_of_field_holds_what_it_can_hold(db):
    """Beside what all have alike, over more rows than one message holds."""
    told = [
        (-(2**63), b"", datetime(1970, 1, 1, tzinfo=UTC)),
        (2**63 - 1, bytes(range(256)), datetime(2026, 7, 8, 9, 10, 11, 123456, tzinfo=timezone(timedelta(hours=5)))),
        *((number, b"x" * number, datetime(2000, 1, 1, microsecond=number, tzinfo=UTC)) for number in range(600)),
    ]
    columns, alike = ("number", "body", "at"), {"name": text_field("all"), "seen": moment_field(told[1][2])}
    rows = [bigint_field(number) + bytes_field(body) + moment_field(at) for number, body, at in told]
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "CREATE TABLE kinds (number bigint, name text, body bytea, at timestamptz, seen timestamptz,"
            " id bigint GENERATED ALWAYS AS IDENTITY)"
        )
        assert await copy_new(conn, "kinds", columns, rows, alike)
        found = (await conn.exec_driver_sql("SELECT number, body, at, name, seen FROM kinds ORDER BY id")).all()
    assert [tuple(one) for one in found] == [(*one, "all", told[1][2]) for one in told]


@pytest.mark.parametrize("broken", [(1, "double"), (9, ""), (None, "no number")], ids=["double", "check", "null"])
async def test_one_row_that_breaks_a_constraint_keeps_all_of_them_out_and_the_transaction_goes_on(named, broken):
    async with named.transaction() as conn:
        await conn.exec_driver_sql("INSERT INTO named VALUES (1, 'before')")
        assert not await copy_new(conn, "named", COLUMNS, [row(2, "beside"), row(*broken), row(3, "behind")], {})
        await conn.exec_driver_sql("INSERT INTO named VALUES (4, 'after')")
    assert await names(named) == ["before", "after"]


@pytest.mark.slow
@pytest.mark.parametrize("at", ["before it", "in the middle of it"])
async def test_a_connection_that_is_lost_is_told_and_leaves_nothing(named, at):
    """In the middle it waits for somebody else's row, and is lost there."""
    is_there = asyncio.Event()

    async def copy_there(after: asyncio.Event) -> None:
        async with named.transaction() as conn:
            pids.append((await conn.exec_driver_sql("SELECT pg_backend_pid()")).scalar_one())
            is_there.set()
            await after.wait()
            await copy_new(conn, "named", COLUMNS, [row(2, "beside"), row(1, "second")], {})

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
                await copy_new(conn, "named", COLUMNS, [row(1, "second")], {})
            await conn.exec_driver_sql("INSERT INTO named VALUES (2, 'after')")
    assert await names(named) == ["first", "after"]


@pytest.mark.parametrize("broken", [bigint_field(1), text_field("1") + text_field("short"), b""])
async def test_a_row_that_is_written_wrongly_is_no_lost_connection(named, broken):
    async with named.transaction() as conn:
        with pytest.raises(Exception) as caught:  # noqa: PT011  whatever the server says of it
            await copy_new(conn, "named", COLUMNS, [row(1, "beside"), broken], {})
        await conn.exec_driver_sql("INSERT INTO named VALUES (2, 'after')")
    assert not is_gone(caught.value)
    assert await names(named) == ["after"]
