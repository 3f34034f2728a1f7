"""What connections know of PostgreSQL's own array types is what the server would tell, and nobody asks it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import asyncpg
import pytest

from cambist.db.direct import connect_once
from cambist.db.engine import connect
from cambist.db.known_types import KNOWN, KnowingConnection

VALUES = {
    "json": '{"a": 1}',
    "bool": True,
    "bytea": b"\x00\xff",
    "int2": -3,
    "int4": 2**31 - 1,
    "varchar": "ß",
    "int8": -(2**63),
    "float8": 0.5,
    "date": date(2024, 2, 29),
    "timestamptz": datetime(2024, 2, 29, 12, tzinfo=UTC),
    "interval": timedelta(days=3, seconds=1),
    "numeric": Decimal("123456789012345678901234567890.000000000000000001"),
    "uuid": UUID(int=7),
    "jsonb": '["b"]',
}


@pytest.fixture
def nobody_asks(monkeypatch):
    async def asks(_connection, typeoids, _timeout):
        pytest.fail(f"the server is asked about {typeoids}")

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", asks)


async def test_it_is_what_the_server_tells(database_url):
    connection = await asyncpg.connect(database_url)
    rows, _ = await connection._introspect_types(list(KNOWN), 10)
    told = {row["oid"]: dict(row) for row in rows if row["oid"] in KNOWN}
    assert told.keys() == KNOWN.keys()
    for oid, known in KNOWN.items():
        assert known == {name: told[oid][name] for name in known}
        assert {value for name, value in told[oid].items() if name not in known} == {0, None}
    await connection.close()


@pytest.mark.parametrize("kept", [100, 0])
async def test_each_goes_there_and_back_with_no_question_whether_or_not_statements_are_kept(
    database_url, nobody_asks, kept
):
    assert {f"_{name}" for name in VALUES} == {known["name"] for known in KNOWN.values()}
    for name, value in VALUES.items():
        connection = await asyncpg.connect(database_url, statement_cache_size=kept, connection_class=KnowingConnection)
        for values in ([value, None, value], [], [[value], [value]]):
            assert await connection.fetchval(f"SELECT $1::{name}[]", values) == values
        await connection.close()


async def test_each_door_to_the_database_leaves_the_question_out(database_url, nobody_asks):
    database = connect(database_url, application_name="cambist-tests", pool_size=1)
    async with database.transaction() as conn:
        assert (await conn.exec_driver_sql("SELECT $1::bigint[]", ([1],))).scalar_one() == [1]
    assert (await database.fetch_row("SELECT $1::numeric[] AS found", [Decimal(1)]))["found"] == [Decimal(1)]
    await database.close()
    once = await connect_once(database_url, timeout_s=10)
    assert await once.fetchval("SELECT $1::boolean[]", [True]) == [True]
    await once.close()


async def test_other_types_are_asked_about_beside_those_that_are_known(database_url):
    connection = await connect_once(database_url, timeout_s=10)
    row = await connection.fetchrow("SELECT $1::int8[] AS known, $2::int4range[] AS other", [5], [asyncpg.Range(1, 4)])
    assert (row["known"], row["other"]) == ([5], [asyncpg.Range(1, 4)])
    await connection.close()
