"""The database that tests get one after the other is as a new one, or it is a new one."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import asyncpg
import pytest

from cambist.db.engine import connect
from cambist.testing import databases as databases_module
from cambist.testing.databases import KEPT_MAX, KeptDatabase, KeptDatabases

pytestmark = pytest.mark.slow

MERCHANT = "INSERT INTO merchants (merchant_id, email, name) VALUES ('mer_1', 'ada@shop.example', 'Shop')"


@pytest.fixture
async def kept(databases):
    kept = KeptDatabase(databases)
    yield kept
    await kept.close()


async def used(kept, *statements):
    """Be a test that does this in what it is lent; return its address."""
    url = kept.lend()
    database = kept.open(url)
    async with database.autocommit() as conn:
        for statement in statements:
            await conn.exec_driver_sql(statement)
    await kept.take_back(database)
    return url


async def picture(url):
    """Return all rows of all tables, and where each sequence stands."""
    database, found = connect(url, application_name="test", pool_size=1), {}
    async with database.autocommit() as conn:
        names = await conn.exec_driver_sql(
            "SELECT relname, relkind::text FROM pg_class WHERE relkind IN ('r', 'S')"
            " AND relnamespace = 'public'::regnamespace"
        )
        for name, kind in names.all():
            columns = "to_jsonb(t)::text" if kind == "r" else "last_value, is_called"
            found[name] = (await conn.exec_driver_sql(f"SELECT {columns} FROM {name} t")).all()  # noqa: S608  of the catalogue
    await database.close()
    return found


async def test_whatever_was_written_is_gone_and_numbers_begin_anew(kept, databases):
    url = await used(kept, MERCHANT, "DELETE FROM schema_version", "UPDATE merchants SET name = 'Store'")
    assert kept.lend() == url
    with databases.fresh() as fresh:
        assert await picture(url) == await picture(fresh)
    assert len(await picture(url)) > 100


async def test_a_copy_of_what_was_filled_has_the_same_rows_and_numbers_again(databases):
    with databases.fresh() as filled:
        database = connect(filled, application_name="test", pool_size=1)
        async with database.autocommit() as conn:
            await conn.exec_driver_sql(MERCHANT)
            await conn.exec_driver_sql("SELECT nextval(pg_get_serial_sequence('projects', 'id'))")
        await database.close()
        kept = KeptDatabase(databases, filled.rpartition("/")[2].partition("?")[0])
        other = MERCHANT.replace("mer_1", "mer_2").replace("ada", "bob")
        url = await used(kept, other, "UPDATE merchants SET name = 'Store'", "DELETE FROM merchants WHERE id = 2")
        assert kept.lend() == url
        assert await picture(url) == await picture(filled)
        assert len((await picture(url))["merchants"]) == 1
        await kept.close()


async def test_of_many_templates_those_that_were_asked_for_last_are_kept(databases):
    kept, lent = KeptDatabases(databases), []
    with ExitStack() as stack:
        names = [stack.enter_context(databases.fresh()).rpartition("/")[2] for _ in range(KEPT_MAX + 1)]
        for name in [*names, names[1], names[0]]:
            async with kept.lent(name.partition("?")[0]) as (url, _):
                lent.append(url)
        await kept.close()
    assert lent[-2] == lent[1], "it was asked for within the last few"
    assert lent[-1] != lent[0], "others were since"


async def test_what_may_not_be_deleted_is_gone_too(kept):
    account = (
        "INSERT INTO ledger_accounts (mode, asset, purpose, guarded, debit_normal, balance)"
        " VALUES ('live', 'x/y', 'suspense', false, false, 0)"
    )
    url = await used(kept, account)
    assert kept.lend() == url
    assert (await picture(url))["ledger_accounts"] == []


@pytest.mark.parametrize(
    "left",
    [
        ["CREATE TABLE more ()"],
        ["ALTER TABLE merchants DISABLE TRIGGER USER"],
        ["BEGIN", "ALTER TABLE merchants RENAME TO sellers", "ROLLBACK"],
        ["SET session_replication_role = replica", "CREATE INDEX more ON merchants (name)"],
        ["SELECT pg_advisory_lock(1)"],
        [MERCHANT, "ANALYZE merchants"],
    ],
    ids=["table", "trigger", "undone", "untold", "lock", "counted"],
)
async def test_where_more_than_rows_is_left_the_next_test_gets_another(kept, left):
    url = await used(kept, MERCHANT)
    assert await used(kept, *left) == url
    assert await used(kept) != url


async def test_where_somebody_is_still_connected_the_next_test_gets_another(kept):
    url = kept.lend()
    database = kept.open(url)
    left = await asyncpg.connect(url)
    await kept.take_back(database)
    assert kept.lend() != url
    left.terminate()


async def test_a_connection_that_was_given_up_is_not_missed(kept):
    """A statement was cancelled on it, as where a test's gateway ends while it follows what others change."""
    url = kept.lend()
    database = kept.open(url)
    own = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'cambist-tests' AND pid = $1"
    async with database.autocommit() as other:
        async with database.autocommit() as conn:
            pid = (await conn.exec_driver_sql("SELECT pg_backend_pid()")).scalar_one()
            await conn.invalidate()
        while (await other.exec_driver_sql(own, (pid,))).scalar_one():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)
    await kept.take_back(database)
    assert kept.lend() == url


async def test_a_database_full_of_deleted_rows_is_given_up_when_it_is_measured(kept, monkeypatch):
    monkeypatch.setattr(databases_module, "USES_UNTIL_MEASURED", 2)
    monkeypatch.setattr(databases_module, "GROWN_BYTES_MAX", 2**18)
    many = (
        "INSERT INTO merchants (merchant_id, email, name)"
        " SELECT 'mer_' || n, n || '@shop.example', 'Shop' FROM generate_series(1, 3000) n"
    )
    urls = [await used(kept, each) for each in (MERCHANT, MERCHANT, many, MERCHANT, MERCHANT)]
    assert len(set(urls[:4])) == 1
    assert urls[4] != urls[3]


async def test_what_was_not_given_back_is_not_lent_again(kept):
    url = kept.lend()
    database = kept.open(url)
    async with database.autocommit() as conn:
        await conn.exec_driver_sql(MERCHANT)
    assert kept.lend() != url
