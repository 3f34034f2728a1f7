"""A statement of text does what it does through all of SQLAlchemy: rows, errors and what becomes of the connection."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from decimal import Decimal

import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.ext.asyncio import AsyncEngine

from cambist.db import pool
from cambist.db.connection import TextConnection, TextEngine
from cambist.db.engine import connect

TABLE = "CREATE TEMPORARY TABLE things (id bigint PRIMARY KEY, name text NOT NULL, price numeric) ON COMMIT DROP"
REFUSED = "SELECT 'refused'"
FILL = "INSERT INTO things SELECT n, 'thing ' || n, n / 4.0 FROM generate_series(1, 3) n"


@pytest.fixture(scope="module")
async def db(databases):
    """Give one database to all tests of a file: they leave nothing in it, but change its schema."""
    with databases.fresh() as url:
        db = connect(url, application_name="tests")
        yield db
        await db.close()


@pytest.fixture
async def passed_by(db, monkeypatch):
    """Give what SQLAlchemy's own connection is asked, besides what it asks a server that it meets."""
    async with db.autocommit():
        asked = []
    own = sa.Connection.exec_driver_sql

    def ask(self, statement, *rest, **others):
        asked.append(statement)
        return own(self, statement, *rest, **others)

    monkeypatch.setattr(sa.Connection, "exec_driver_sql", ask)
    return asked


@pytest.fixture(params=["through SQLAlchemy", "past it"])
def engine(request, db, passed_by):
    """Give SQLAlchemy's own engine, and then ours, on the same pool."""
    if request.param == "past it":
        yield TextEngine(db.engine.sync_engine)
        assert set(passed_by) <= {REFUSED}
    else:
        yield AsyncEngine(db.engine.sync_engine)
        assert passed_by


@pytest.fixture
async def conn(engine):
    """Give a connection in a transaction, with three things in a table."""
    async with engine.connect() as conn, conn.begin() as transaction:
        await conn.exec_driver_sql(TABLE)
        await conn.exec_driver_sql(FILL)
        yield conn
        await transaction.rollback()


async def test_a_row_is_read_by_name_by_number_and_as_a_mapping(conn):
    found = await conn.exec_driver_sql("SELECT id, name, price FROM things WHERE id > $1 ORDER BY id", (1,))
    assert found.returns_rows
    assert list(found.keys()) == ["id", "name", "price"]
    first, second = found.all()
    assert first == (2, "thing 2", Decimal("0.5"))
    assert (first.id, first.name, first[2]) == (2, "thing 2", Decimal("0.5"))
    assert second._mapping == {"id": 3, "name": "thing 3", "price": Decimal("0.75")}
    assert second._asdict() == dict(second._mapping)
    name, price = second[1:]
    assert (name, price) == ("thing 3", Decimal("0.75"))
    with pytest.raises(AttributeError):
        first.nothing  # noqa: B018
    assert isinstance(first, sa.Row)


async def test_all_ways_to_take_the_rows(conn):
    def find(ids):
        return conn.exec_driver_sql("SELECT id, name FROM things WHERE id = ANY($1) ORDER BY id", (ids,))

    assert [row.id for row in await find([1, 2])] == [1, 2]
    assert (await find([1])).one().name == "thing 1"
    assert (await find([])).one_or_none() is None
    assert (await find([])).first() is None
    assert (await find([])).all() == []
    assert (await find([1, 2])).first() == (1, "thing 1")
    assert (await find([1, 2])).scalars().all() == [1, 2]
    assert (await find([1, 2])).scalars(1).all() == ["thing 1", "thing 2"]
    assert (await find([2])).scalar_one() == 2
    assert (await find([])).scalar_one_or_none() is None
    assert (await find([])).scalar() is None
    assert (await find([3])).mappings().one() == {"id": 3, "name": "thing 3"}
    assert (await find([1, 2])).columns("name").all() == [("thing 1",), ("thing 2",)]
    assert dict((await find([1, 2])).all()) == {1: "thing 1", 2: "thing 2"}
    assert [list(part) for part in (await find([1, 2, 3])).partitions(2)] == [
        [(1, "thing 1"), (2, "thing 2")],
        [(3, "thing 3")],
    ]
    found = await find([1, 2, 3])
    assert (found.fetchone(), found.fetchmany(1), found.fetchall()) == (
        (1, "thing 1"),
        [(2, "thing 2")],
        [(3, "thing 3")],
    )
    assert found.fetchone() is None
    with pytest.raises(exc.NoResultFound):
        (await find([])).one()
    with pytest.raises(exc.MultipleResultsFound):
        (await find([1, 2])).one_or_none()


async def test_two_columns_of_one_name_are_read_by_number_and_the_last_by_name(conn):
    row = (await conn.exec_driver_sql("SELECT id, price AS id, count(*) OVER () FROM things WHERE id = 2")).one()
    assert row == (2, Decimal("0.5"), 1)
    assert row._fields == ("id", "id", "count")
    assert (row.id, row._mapping) == (Decimal("0.5"), {"id": Decimal("0.5"), "count": 1})


@pytest.mark.parametrize(
    "statement, count",
    [
        ("INSERT INTO things VALUES (4, 'four', 4), (5, 'five', 5)", 2),
        ("INSERT INTO things VALUES (1, 'one', 1) ON CONFLICT DO NOTHING", 0),
        ("UPDATE things SET price = 1", 3),
        ("DELETE FROM things WHERE id = 1", 1),
        ("SELECT FROM things", 3),
        ("SELECT 1 FROM things", 3),
        ("UPDATE things SET price = 1 WHERE id < 3 RETURNING id", 2),
        ("WITH gone AS (DELETE FROM things RETURNING id) SELECT count(*) FROM gone", 1),
        ("SET LOCAL statement_timeout = 1000", -1),
        ("ALTER TABLE things ADD weight bigint", -1),
    ],
)
async def test_it_says_how_many_rows_were_found_or_changed(conn, statement, count):
    assert (await conn.exec_driver_sql(statement)).rowcount == count


async def test_of_what_returns_no_rows_none_can_be_taken(conn):
    done = await conn.exec_driver_sql("UPDATE things SET price = 1")
    assert not done.returns_rows
    for take in (done.all, done.first, done.one, done.one_or_none, done.scalar, done.scalars, done.fetchone, done.keys):
        with pytest.raises(exc.ResourceClosedError, match="does not return rows"):
            take()


async def test_values_arrive_as_they_are(conn):
    moment = datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC)
    values = (None, True, 2**63 - 1, "ß$1", b"\x00", Decimal("1e-30"), moment, [1, None])
    casts = ("text", "bool", "bigint", "text", "bytea", "numeric", "timestamptz", "bigint[]")
    asked = ", ".join(f"${number}::{cast}" for number, cast in enumerate(casts, 1))
    assert (await conn.exec_driver_sql(f"SELECT {asked}", values)).one() == values
    assert (await conn.exec_driver_sql("SELECT $1::jsonb", ('{"a": [1.5]}',))).scalar_one() == {"a": [1.5]}


ERRORS = {
    "twice the same key": ("INSERT INTO things VALUES ($1, 'one', 1)", (1,), exc.IntegrityError, "23505"),
    "no name": ("INSERT INTO things VALUES (9)", (), exc.IntegrityError, "23502"),
    "no such table": ("SELECT * FROM nothing", (), exc.ProgrammingError, "42P01"),
    "not SQL": ("SELEC 1", (), exc.ProgrammingError, "42601"),
    "divided by nothing": ("SELECT 1 / (id - 1) FROM things", (), exc.DBAPIError, "22012"),
    "not a number": ("SELECT $1::bigint", ("secret",), exc.DBAPIError, "22000"),
    "too large": ("SELECT $1::bigint", (2**63,), exc.DBAPIError, "22000"),
    "too few values": ("SELECT $1::bigint + $2::bigint", (7,), exc.InterfaceError, None),
    "too many values": ("SELECT 1", (7,), exc.InterfaceError, None),
    "told by a function": ("DO $$ BEGIN RAISE 'no' USING ERRCODE = 'CB001'; END $$", (), exc.DBAPIError, "CB001"),
    "too long": ("SELECT pg_sleep(30)", (), exc.DBAPIError, "57014"),
}


@pytest.mark.parametrize("case", ERRORS)
async def test_an_error_is_the_same_and_a_savepoint_goes_back_before_it(conn, passed_by, case):
    statement, values, kind, state = ERRORS[case]
    if case == "too long":
        await conn.exec_driver_sql("SET LOCAL statement_timeout = 20")
    raised = []
    for way in (type(conn).exec_driver_sql, sa.ext.asyncio.AsyncConnection.exec_driver_sql):
        with pytest.raises(kind) as caught:
            async with conn.begin_nested():
                await way(conn, statement, values)
        raised.append(caught.value)
    if isinstance(conn, TextConnection):
        passed_by.remove(statement)  # what it is compared with
    first, second = raised
    assert type(first) is type(second)
    assert str(first) == str(second)
    assert (type(first.orig), str(first.orig)) == (type(second.orig), str(second.orig))
    assert first.orig.sqlstate == second.orig.sqlstate == state
    assert (first.statement, first.connection_invalidated) == (statement, False)
    assert type(first.__cause__.__cause__) is type(second.__cause__.__cause__)
    assert (await conn.exec_driver_sql("SELECT count(*) FROM things")).scalar_one() == 3


async def test_after_an_error_the_transaction_refuses_all_until_it_is_undone(engine):
    async with engine.connect() as conn:
        async with conn.begin() as transaction:
            await conn.exec_driver_sql(TABLE)
            with pytest.raises(exc.DBAPIError):
                await conn.exec_driver_sql("SELECT 1 / 0")
            with pytest.raises(exc.DBAPIError, match="current transaction is aborted"):
                await conn.exec_driver_sql("SELECT 1")
            await transaction.rollback()
            with pytest.raises(exc.InvalidRequestError):
                await conn.exec_driver_sql(REFUSED)
        async with conn.begin():
            assert (await conn.exec_driver_sql("SELECT to_regclass('things')")).scalar_one() is None


async def test_a_transaction_is_begun_by_its_first_statement_and_seen_by_nobody_before_its_end(engine, db):
    xids = set()
    try:
        async with engine.begin() as conn:
            for _ in range(2):
                xids.add((await conn.exec_driver_sql("SELECT pg_current_xact_id()::text")).scalar_one())
            await conn.exec_driver_sql("CREATE TABLE seen (id bigint)")
            async with db.autocommit() as other:
                assert (await other.execute(sa.text("SELECT to_regclass('seen')"))).scalar_one() is None
        async with db.autocommit() as other:
            assert (await other.execute(sa.text("SELECT to_regclass('seen')"))).scalar_one() is not None
    finally:
        async with db.autocommit() as other:
            await other.execute(sa.text("DROP TABLE IF EXISTS seen"))
    assert len(xids) == 1


async def test_without_a_transaction_each_statement_is_its_own(db, passed_by):
    async with db.autocommit() as conn:
        xids = [(await conn.exec_driver_sql("SELECT pg_current_xact_id()::text")).scalar_one() for _ in range(2)]
        with pytest.raises(exc.DBAPIError):
            await conn.exec_driver_sql("SELECT 1 / 0")
        xids.append((await conn.exec_driver_sql("SELECT pg_current_xact_id()::text")).scalar_one())
    assert len(set(xids)) == 3
    assert passed_by == []


@pytest.mark.parametrize("how", ["a timeout", "the server"])
async def test_without_a_transaction_one_that_was_given_up_takes_no_more_statements(engine, db, how):
    apart = type(engine)(engine.execution_options(isolation_level="AUTOCOMMIT").sync_engine)
    async with apart.connect() as conn:
        pid = await pid_of(conn)
        if how == "a timeout":
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(conn.exec_driver_sql("SELECT pg_sleep(30)"), 0.05)
        else:
            async with db.autocommit() as other:
                await other.execute(sa.text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
            with pytest.raises(exc.DBAPIError):
                await conn.exec_driver_sql("SELECT 1")
        for _ in range(2):
            with pytest.raises(exc.PendingRollbackError):
                await conn.exec_driver_sql(REFUSED)
            with pytest.raises(exc.PendingRollbackError):
                await conn.execute(sa.text(REFUSED))


async def test_a_savepoint_whose_release_failed_takes_no_more_statements(conn):
    savepoint = await conn.begin_nested()
    await conn.exec_driver_sql(f"RELEASE SAVEPOINT {savepoint.sync_transaction._savepoint}")
    with pytest.raises(exc.DBAPIError, match="does not exist"):
        await savepoint.commit()
    with pytest.raises(exc.PendingRollbackError):
        await conn.exec_driver_sql(REFUSED)


async def test_statements_on_one_connection_wait_for_each_other(conn):
    numbers = [conn.exec_driver_sql("SELECT $1::bigint, pg_sleep(0.001)", (number,)) for number in range(5)]
    assert [found.scalar_one() for found in await asyncio.gather(*numbers)] == list(range(5))


async def test_many_values_go_through_sqlalchemy(db, passed_by):
    async with db.transaction() as conn:
        await conn.exec_driver_sql(TABLE)
        add = "INSERT INTO things VALUES ($1, $2)"
        await conn.exec_driver_sql(add, [(1, "a"), (2, "b")])
        assert passed_by == [add]
        assert (await conn.exec_driver_sql("SELECT name FROM things ORDER BY id")).scalars().all() == ["a", "b"]


async def test_who_listens_hears_of_each_statement(db, passed_by):
    heard = []

    def listen(*call):
        heard.append(call[2])

    async with db.transaction() as conn:
        await conn.exec_driver_sql("SELECT 1")
        sa.event.listen(db.engine.sync_engine, "before_cursor_execute", listen)
    try:
        async with db.transaction() as conn:
            await conn.exec_driver_sql("SELECT 2")
    finally:
        sa.event.remove(db.engine.sync_engine, "before_cursor_execute", listen)
    assert heard == passed_by == ["SELECT 2"]


async def pid_of(conn):
    return (await conn.exec_driver_sql("SELECT pg_backend_pid()")).scalar_one()


async def until_gone(db, pid):
    known = sa.text("SELECT 1 FROM pg_stat_activity WHERE pid = :pid")
    async with asyncio.timeout(10), db.autocommit() as conn:
        while (await conn.execute(known, {"pid": pid})).first() is not None:  # noqa: ASYNC110  the server tells nobody
            await asyncio.sleep(0.01)


async def test_a_connection_that_the_server_has_ended_is_given_up(engine, db):
    async with engine.connect() as conn:
        await conn.begin()
        pid = await pid_of(conn)
        async with db.autocommit() as other:
            await other.execute(sa.text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
        with pytest.raises(exc.DBAPIError) as caught:
            await conn.exec_driver_sql("SELECT 1")
        assert caught.value.connection_invalidated
        with pytest.raises(exc.PendingRollbackError):
            await conn.exec_driver_sql(REFUSED)
    async with engine.begin() as conn:
        assert await pid_of(conn) != pid


async def test_a_connection_that_the_server_has_ended_meanwhile_is_given_to_nobody(engine, db):
    async with db.autocommit() as other:
        async with engine.connect() as one, engine.connect() as two:
            pids = {await pid_of(conn) for conn in (one, two)}
            lost = [(await conn.get_raw_connection()).driver_connection for conn in (one, two)]
        for pid in pids:
            await other.execute(sa.text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
    async with asyncio.timeout(30):
        while not all(conn.is_closed() for conn in lost):  # noqa: ASYNC110  the driver tells nobody
            await asyncio.sleep(0.01)
    async with engine.begin() as one, engine.begin() as two:
        assert pids.isdisjoint({await pid_of(one), await pid_of(two)})


async def test_a_clock_that_is_set_back_after_the_server_was_lost_has_no_connection_opened_again_and_again(
    engine, db, monkeypatch
):
    async with engine.connect() as conn:
        pid = await pid_of(conn)
        async with db.autocommit() as other:
            await other.execute(sa.text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
        with pytest.raises(exc.DBAPIError):
            await conn.exec_driver_sql("SELECT 1")
    set_back = float(int(time.time()) - 3_600)  # which no rounding changes
    monkeypatch.setattr(time, "time", lambda: set_back)
    monkeypatch.setattr(pool, "clock_now", lambda: datetime.fromtimestamp(set_back, UTC))
    pids = set()
    for _ in range(3):
        async with engine.connect() as conn:
            pids.add(await pid_of(conn))
    assert len(pids) == 1


async def test_a_connection_whose_statement_was_cancelled_is_given_up_and_ends_at_the_server(engine, db):
    begun = asyncio.Event()
    pids = []

    async def sleep():
        async with engine.begin() as conn:
            pids.append(await pid_of(conn))
            begun.set()
            await conn.exec_driver_sql("SELECT pg_sleep(30)")

    task = asyncio.create_task(sleep())
    await begun.wait()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_gone(db, pids[0])
    async with engine.begin() as conn:
        assert await pid_of(conn) not in pids


async def test_a_timeout_around_a_statement_gives_its_connection_up(engine, db):
    async with engine.connect() as conn:
        await conn.begin()
        pid = await pid_of(conn)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(conn.exec_driver_sql("SELECT pg_sleep(30)"), 0.05)
        assert conn.invalidated
    await until_gone(db, pid)


async def test_a_statement_whose_table_has_changed_is_prepared_anew(engine, db):
    name = f"changing_{type(engine).__name__}"  # no connection knows it yet
    read = f"TABLE {name}"
    async with db.autocommit() as conn:
        await conn.execute(sa.text(f"CREATE TABLE {name} AS SELECT 1::bigint AS id"))
    try:
        async with engine.begin() as conn:
            assert (await conn.exec_driver_sql(read)).one() == (1,)
            pid = await pid_of(conn)
        async with db.autocommit() as other:
            await other.execute(sa.text(f"ALTER TABLE {name} ADD name text DEFAULT 'new'"))
        async with engine.begin() as conn:
            assert await pid_of(conn) == pid
            with pytest.raises(exc.NotSupportedError, match="cached statement plan is invalid"):
                await conn.exec_driver_sql(read)
        async with engine.begin() as conn:
            assert await pid_of(conn) == pid
            assert (await conn.exec_driver_sql(read)).one() == (1, "new")
    finally:
        async with db.autocommit() as conn:
            await conn.execute(sa.text(f"DROP TABLE {name}"))
