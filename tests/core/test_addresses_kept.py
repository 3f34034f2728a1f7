"""Filters that are saved and loaded: what was committed is known again, and whatever is in doubt is read anew."""

import asyncio
import stat

import pytest
from structlog.testing import capture_logs

from cambist.db.engine import connect
from cambist.services.receiving.deposits import AddressCache, SnapshotError, address_filter, addresses
from cambist.services.receiving.deposits.address_filter import AddressFilter
from cambist.services.receiving.deposits.new_addresses import News
from cambist.testing.memory import MemoryFamily

INSERT = {
    "addresses": (
        "INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index)"
        " SELECT 'live', 'memory', a, $2, 7, 0, hashtext(a)"
        " FROM unnest($1::text[]) AS a"
    ),
    "tracked_addresses": (
        "INSERT INTO tracked_addresses (mode, family, address) SELECT 'live', 'memory', a FROM unnest($1::text[]) AS a"
        " WHERE $2::bigint > 0"
    ),
}
FAMILY = MemoryFamily()


def named(*numbers, index=0):
    return [FAMILY.derive_address("xpubOfOtherShopsAccount", index, number) for number in numbers]


async def watch(shop, texts, *, table="addresses", conn=None):
    if conn is None:
        async with shop.db.transaction() as own:
            await own.exec_driver_sql(INSERT[table], (texts, shop.merchant))
    else:
        await conn.exec_driver_sql(INSERT[table], (texts, shop.merchant))


def knows(cache, texts):
    return all(FAMILY.address_key(text) in cache for text in texts)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "filters"


@pytest.fixture
def small_layers(monkeypatch):
    monkeypatch.setattr(address_filter, "LAYER_KEYS_MIN", 128)


@pytest.fixture
async def loaded(shop, folder):
    """Give what loads the filter of this folder anew, and says where it came from."""

    async def load(family=FAMILY):
        cache = AddressCache(shop.db, family, "live", folder=folder)
        with capture_logs() as logs:
            await cache.refresh()
        (found,) = [entry for entry in logs if entry["event"] == "addresses_loaded"]
        reasons = [entry["reason"] for entry in logs if entry["event"] == "address_snapshot_refused"]
        return cache, found["of"], *reasons

    return load


@pytest.fixture
async def saved(shop, folder):
    """Save a filter of a hundred addresses, ten of them of trackers; give it with them."""
    texts, tracked = named(*range(90)), named(*range(10), index=1)
    await watch(shop, texts)
    await watch(shop, tracked, table="tracked_addresses")
    await shop.until_others_end()
    cache = AddressCache(shop.db, FAMILY, "live", folder=folder)
    await cache.refresh()
    assert await cache.save()
    return cache, texts + tracked


async def test_addresses_of_both_tables_are_known(shop):
    cache = AddressCache(shop.db, FAMILY, "live")
    await watch(shop, named(1))
    await cache.refresh()
    await watch(shop, named(2), table="tracked_addresses")
    assert not knows(cache, named(2))
    held = await cache.refresh()
    assert knows(held, named(1, 2))
    assert len(held) == len(cache) == 2


async def test_where_another_server_answers_everything_is_read_anew(shop, monkeypatch):
    cache = AddressCache(shop.db, FAMILY, "live")
    await watch(shop, named(1))
    await cache.refresh()
    # What a promoted standby does that was behind: it gives numbers once more that this worker has read.
    await watch(shop, named(2))
    async with shop.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE addresses SET xid = '5'::xid8 WHERE address = $1", tuple(named(2)))
    assert not knows(await cache.refresh(), named(2))
    asked = {name: getattr(addresses, name) for name in ("_OLDEST", "_NEW")}

    def answers(started: str) -> None:
        for name, statement in asked.items():
            monkeypatch.setattr(addresses, name, statement.replace("pg_postmaster_start_time()", started))

    answers("'2001-01-01'::timestamptz")
    assert knows(await cache.refresh(), named(1, 2))
    answers("clock_timestamp()")
    with pytest.raises(RuntimeError, match="another server each time"):
        await cache.refresh()


async def test_what_was_read_into_a_filter_that_gave_way_to_another_servers_is_read_again(shop, monkeypatch):
    """Of two who ask at once, the first meets another server. The second is answered when all is loaded from there."""
    cache = AddressCache(shop.db, FAMILY, "live")
    before, read, asked = await cache.refresh(), AddressCache._read, []
    for name in ("_OLDEST", "_NEW"):
        statement = getattr(addresses, name)
        monkeypatch.setattr(
            addresses, name, statement.replace("pg_postmaster_start_time()", "'2001-01-01'::timestamptz")
        )

    async def slowly(self, into, from_xid, *, is_old=False):
        asked.append(into)
        if len(asked) == 2:
            assert into is before
            await asyncio.shield(self._loading)
            await watch(shop, named(1))
            await shop.until_others_end()
        return await read(self, into, from_xid, is_old=is_old)

    monkeypatch.setattr(AddressCache, "_read", slowly)
    for held in await asyncio.gather(cache.refresh(), cache.refresh()):
        assert held is not before
        assert knows(held, named(1))
    assert knows(await cache.refresh(), named(1))


async def test_a_saved_filter_is_loaded_and_what_came_since_is_read(shop, saved, loaded, folder):
    _, texts = saved
    late = named(1000, 1001)
    await watch(shop, late[:1])
    await watch(shop, late[1:], table="tracked_addresses")
    cache, source = await loaded()
    assert source == "snapshot"
    assert knows(cache, texts + late)
    assert len(cache) <= 102
    (file,) = folder.glob("*.filter")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_most_of_the_tables_is_not_read_again(shop, saved, folder):
    _, texts = saved
    await watch(shop, named(1000))
    read = []

    class Counting(MemoryFamily):
        def address_key(self, address):
            read.append(address)
            return super().address_key(address)

    cache = AddressCache(shop.db, Counting(), "live", folder=folder)
    await cache.refresh()
    read.clear()
    await cache.refresh()
    assert knows(cache, texts)
    assert set(read) <= {*named(1000), *texts[-10:]}


async def test_addresses_that_commit_in_another_order_than_they_are_numbered_survive_a_restart(shop, saved, loaded):
    """The older transaction is open while the filter is saved, and while a younger one's address is in it."""
    cache, _ = saved
    async with shop.db.transaction() as conn:
        await watch(shop, named(500), conn=conn)
        await watch(shop, named(501))
        await cache.refresh()
        assert await cache.save()
    again, source = await loaded()
    assert source == "snapshot"
    assert knows(again, named(500, 501))


@pytest.mark.slow
async def test_addresses_added_while_a_filter_is_saved_and_loaded_are_never_missed(shop, saved, folder):
    """Transactions of different lengths add, one process after the other loads, reads on and saves."""
    done = []

    async def add(number):
        table = "addresses" if number % 2 else "tracked_addresses"
        async with shop.db.transaction() as conn:
            await watch(shop, named(2000 + number), table=table, conn=conn) if number % 2 == 0 else None
            await conn.exec_driver_sql("SELECT pg_current_xact_id(), pg_sleep($1)", (number % 7 / 50,))
            if number % 2:
                await conn.exec_driver_sql(
                    "INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index)"
                    " VALUES ('live', 'memory', $1, $2, 8, 0, $3)",
                    (*named(2000 + number), shop.merchant, number),
                )
        done.append(number)

    async def restart():
        for _ in range(12):
            cache = AddressCache(shop.db, FAMILY, "live", folder=folder)
            committed = list(done)
            await cache.refresh()
            assert knows(cache, named(*(2000 + number for number in committed)))
            await cache.save()
            await asyncio.sleep(0.02)

    await asyncio.gather(restart(), *(add(number) for number in range(40)))
    cache = AddressCache(shop.db, FAMILY, "live", folder=folder)
    await cache.refresh()
    assert knows(cache, named(*range(2000, 2040)))


@pytest.mark.parametrize(
    "statement, reason",
    [
        # What a backup from before the snapshot looks like under the same timeline: a disk that was turned back.
        ("DELETE FROM tracked_addresses", "turned back"),
        ("UPDATE tracked_addresses SET address = translate(address, 'abcd', 'badc')", "turned back"),
        ("UPDATE tracked_addresses SET xid = '5'::xid8", "turned back"),
        ("TRUNCATE tracked_addresses", "another history"),
    ],
    ids=["gone", "another", "older", "loaded anew"],
)
async def test_a_database_that_was_turned_back_is_read_anew(shop, saved, loaded, statement, reason):
    async with shop.db.transaction() as conn:
        await conn.exec_driver_sql(statement)
    cache, source, refused = await loaded()
    assert knows(cache, named(*range(90)))
    assert source == "tables"
    assert reason in refused


async def test_a_snapshot_from_the_future_is_refused(shop, saved, loaded, monkeypatch):
    """The database is younger than the snapshot: transaction numbers will be given out a second time."""
    original = AddressCache._origin

    async def younger(self):
        origin, _ = await original(self)
        return origin, 3

    monkeypatch.setattr(AddressCache, "_origin", younger)
    _, source, reason = await loaded()
    assert (source, reason) == ("tables", "it is from a time that this database has not seen")


async def test_a_snapshot_that_is_too_old_is_refused(shop, saved, loaded, monkeypatch):
    monkeypatch.setattr(addresses, "XIDS_OLD_MAX", 0)
    _, source, reason = await loaded()
    assert (source, reason) == ("tables", "it is too old")


async def test_a_snapshot_of_another_database_on_the_same_server_is_refused(shop, saved, databases, folder):
    with databases.fresh() as url:
        other = connect(url, application_name="tests")
        cache = AddressCache(other, FAMILY, "live", folder=folder)
        await cache.refresh()
        assert len(cache) == 0
        await other.close()


async def test_a_plugin_that_makes_other_keys_of_addresses_has_them_read_anew(shop, saved, loaded):
    class Newer(MemoryFamily):
        def address_key(self, address):
            return b"2" + super().address_key(address)

    newer = Newer()
    cache, source, reason = await loaded(newer)
    assert (source, reason) == ("tables", "it does not know what it should")
    assert all(newer.address_key(text) in cache for text in saved[1])


async def test_a_damaged_file_costs_a_start_and_nothing_else(shop, saved, loaded, folder):
    (file,) = folder.glob("*.filter")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] + b"\0\1\2" + whole[len(whole) // 2 + 3 :])
    cache, source, reason = await loaded()
    assert (source, reason) == ("tables", "its checksum is wrong")
    assert knows(cache, saved[1])
    assert await cache.save()
    _, source = await loaded()
    assert source == "snapshot"


async def test_nothing_is_written_where_nothing_is_new(shop, saved, folder):
    cache, _ = saved
    (file,) = folder.glob("*.filter")
    before = file.stat().st_mtime_ns
    assert not await cache.save()
    assert file.stat().st_mtime_ns == before


async def test_a_crowded_filter_is_built_anew_while_scans_go_on(shop, small_layers, monkeypatch):
    cache = AddressCache(shop.db, FAMILY, "live")
    for start in range(0, 700, 100):
        await watch(shop, named(*range(start, start + 100)))
        await cache.refresh()
    before = await cache.refresh()
    assert before.crowded
    building, original = asyncio.Event(), AddressCache._built

    async def slowly(self):
        found = await original(self)
        building.set()
        await watch(shop, named(5000))
        await asyncio.sleep(0.1)
        return found

    monkeypatch.setattr(AddressCache, "_built", slowly)
    tending = asyncio.create_task(cache.tend())
    await building.wait()
    meanwhile = await cache.refresh()
    assert not tending.done()
    assert knows(meanwhile, named(*range(700)))
    await tending
    after = await cache.refresh()
    assert len(after.layers) == 1
    assert knows(after, named(*range(700), 5000))
    assert 700 <= len(after) <= 701, "what a filter mistakes for known is not counted"


async def test_what_a_poll_learns_while_a_filter_is_built_anew_is_read_into_that_one(shop, monkeypatch):
    """It commits after the new filter was read, and goes to the old one."""
    cache = AddressCache(shop.db, FAMILY, "live")
    before, read = await cache.refresh(), AddressCache._read

    async def slowly(self, into, from_xid, *, is_old=False):
        found = await read(self, into, from_xid, is_old=is_old)
        if into is not before:
            since = self.since()
            await watch(shop, named(1))
            await shop.until_others_end()
            xmin, server = await read(self, AddressFilter(0), since)
            told = self.learn(since, News(addresses=named(1), xmin=xmin, server=server))
            assert told.watch is before
        return found

    with monkeypatch.context() as patch:
        patch.setattr(AddressFilter, "crowded", True)
        patch.setattr(AddressCache, "_read", slowly)
        await cache.tend()
    assert not knows(cache, named(1))
    after = await cache.refresh()
    assert after is not before
    assert knows(after, named(1))


async def test_a_poll_that_is_given_up_does_not_have_loading_begin_again(shop, saved, folder, monkeypatch):
    begun, original = [], AddressCache._load

    async def slowly(self):
        begun.append(1)
        await asyncio.sleep(0.1)
        await original(self)

    monkeypatch.setattr(AddressCache, "_load", slowly)
    cache = AddressCache(shop.db, FAMILY, "live", folder=folder)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await cache.refresh()
    await cache.refresh()
    assert len(begun) == 1
    assert knows(cache, saved[1])


async def test_loading_that_failed_is_tried_again(shop, monkeypatch):
    await watch(shop, named(1))
    original, failed = AddressCache._built, []

    async def failing(self):
        if not failed:
            failed.append(1)
            raise ConnectionError
        return await original(self)

    monkeypatch.setattr(AddressCache, "_built", failing)
    cache = AddressCache(shop.db, FAMILY, "live")
    with pytest.raises(ConnectionError):
        await cache.refresh()
    await cache.refresh()
    assert knows(cache, named(1))


async def test_money_is_credited_alike_when_the_filter_takes_everybody_for_watched(shop, chain, usdx, asset):
    """A flood of false positives costs lookups: what is nobody's is stored nowhere."""

    class TakesEverybody(AddressCache):
        async def refresh(self):
            await super().refresh()
            return self

        def __contains__(self, key):
            return True

    shop.address_cache = TakesEverybody(shop.db, FAMILY, "live")
    paid = await shop.payment(chain, "USDX", 5)
    watcher = shop.watcher(chain)
    await shop.poll(watcher)
    for text in named(*range(50)):
        chain.transfer(usdx, text, 3)
    chain.transfer(usdx, paid, 5)
    chain.mine(5)
    await shop.poll(watcher)
    assert await shop.status(paid) == ("paid", 5)
    async with shop.db.transaction() as conn:
        assert (await conn.exec_driver_sql("SELECT count(*) FROM deposits")).scalar_one() == 1
    assert await shop.balance(asset) == {"available": 5}


async def test_every_account_of_the_database_may_ask_for_its_history(shop):
    async with shop.db.transaction() as conn:
        await conn.exec_driver_sql("CREATE ROLE cambist_plain")
        await conn.exec_driver_sql("SET LOCAL ROLE cambist_plain")
        row = (await conn.exec_driver_sql(addresses._ORIGIN)).one()
        await conn.exec_driver_sql("RESET ROLE")
        await conn.exec_driver_sql("DROP ROLE cambist_plain")
    assert int(row.system_identifier) > 0
    assert row.timeline == "00000001"
    assert all(row.files)


async def test_a_server_that_does_not_tell_its_history_costs_snapshots_and_nothing_else(
    shop, saved, loaded, monkeypatch
):
    monkeypatch.setattr(addresses, "_ORIGIN", "SELECT system_identifier FROM pg_control_of_a_hosted_database()")
    cache, source, reason = await loaded()
    assert source == "tables"
    assert "does not tell" in reason
    assert knows(cache, saved[1])
    await watch(shop, named(700))
    with pytest.raises(SnapshotError):
        await cache.save()
    assert knows(await cache.refresh(), named(700))
