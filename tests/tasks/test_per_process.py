"""What each worker process does for itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from cambist.secrets import SecretsBox
from cambist.services.addresses.account_keys import claim_accounts
from cambist.services.audit.entries import GATEWAY, Action, record
from cambist.services.audit.seals import read_lines, seal
from cambist.services.receiving.deposits import AddressCache
from cambist.services.recovery.restore import accounts_path, compose, read_manifest, write_manifest
from cambist.testing.memory import MemoryChain, MemoryFamily, memory_chain_info
from cambist_tasks import per_process
from cambist_tasks.jobs.account_keys import derive_account_keys
from cambist_tasks.per_process import copy_missing_seals, save_filters, write_manifests
from tests.support.shop import Shop, memory_of
from tests.tasks.test_worker import gateway_of, settings, working

LOST_ACCOUNTS = (
    b'{"type":"project","projectId":"prj_1","merchantId":"mer_1","name":"Shop","isActive":true}\n'
    b'{"type":"account","accountId":"acc_1","publicId":"pub_1","externalId":"carol","projectId":"prj_1",'
    b'"isActive":true,"chains":["memory"],"indexes":{"memory":1}}\n'
)


@pytest.mark.slow
async def test_the_worker_keeps_the_recovery_manifest_in_its_data_directory(db, database_url, redis_url, ids, tmp_path):
    folder = tmp_path / "data"
    async with gateway_of(settings(database_url, redis_url, folder), ids) as gateway, working(gateway):
        async with asyncio.timeout(60):
            while not (folder / "recovery.json").exists():  # noqa: ASYNC110  another task writes it
                await asyncio.sleep(0.05)
        manifest = read_manifest(folder / "recovery.json")
    assert [family.family for family in manifest.families] == ["memory"]
    assert (folder / "recovery.json").stat().st_mode & 0o777 == 0o600


async def next_indexes(db):
    async with db.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT mode || '/' || coin_type AS key, next_index FROM account_keys WHERE merchant_pk IS NOT NULL"
        )
        return {row.key: row.next_index for row in rows}


def written_at(path):
    """Return when a file was written that may be moved aside at any moment."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


@pytest.mark.slow
async def test_a_worker_on_a_database_that_knows_less_keeps_what_the_lost_one_is_restored_from(
    db, database_url, redis_url, clock, ids, tmp_path
):
    """As where somebody starts workers on a new database, or on one of before, before anything is restored."""
    folder = tmp_path / "data"
    folder.mkdir()
    shop = await Shop(db, MemoryFamily(), clock, ids).open()
    path = folder / "recovery.json"
    async with gateway_of(settings(database_url, redis_url, folder), ids) as gateway:

        async def written():
            """Have the worker's task write once, and return what it said of what was there."""
            before = written_at(path)
            with capture_logs() as logs:
                writing = asyncio.create_task(write_manifests(gateway))
                try:
                    async with asyncio.timeout(60):
                        while written_at(path) in {before, None}:  # noqa: ASYNC110
                            await asyncio.sleep(0.01)
                finally:
                    writing.cancel()
            return [entry for entry in logs if entry["event"] == "recovery_manifest_kept"]

        await derive_account_keys(gateway)
        async with db.transaction() as conn:
            await claim_accounts(conn, shop.merchant)
        assert await written() == []
        known = read_manifest(path)
        (mine,) = known.merchants
        others = structs.replace(mine, merchant_id="mer_lost", email="lost@example.com", account=mine.account + 1)
        further = structs.replace(mine, indexes={key: 1 + index for key, index in mine.indexes.items()})
        kept = []
        for lost in (structs.replace(known, merchants=[mine, others]), structs.replace(known, merchants=[further])):
            write_manifest(path, lost)
            accounts_path(path).write_text(f"accounts of {len(kept)}")
            (told,) = await written()
            kept.append(Path(told["kept"]))
            assert "not in the database" in told["reason"]
            assert read_manifest(kept[-1]) == lost
            assert accounts_path(kept[-1]).read_text() == f"accounts of {len(kept) - 1}"
            assert read_manifest(path).merchants == known.merchants
            # What was handed out before the loss is handed out to nobody else.
            assert await next_indexes(db) == lost.merchants[0].indexes
        write_manifest(path, structs.replace(known, merchants=[further]))
        assert await written() == [], "its indexes are kept by now"
        # Whoever restores without the file of accounts has all that the manifest knows, and none of the accounts.
        accounts_path(path).write_bytes(LOST_ACCOUNTS)
        (told,) = await written()
        assert told["reason"] == "its accounts are not all in the database"
        kept.append(Path(told["kept"]))
        assert accounts_path(kept[-1]).read_bytes() == LOST_ACCOUNTS
        path.write_text('{"version": 2}')
        (told,) = await written()
        assert "no recovery manifest of this version" in told["reason"]
        kept.append(Path(told["kept"]))
        assert kept[-1].read_text() == '{"version": 2}'
        assert await written() == [], "what is of this database is written over"
    assert len({*kept, path}) == 5


@pytest.mark.slow
async def test_a_manifest_is_not_put_aside_before_what_it_counts_is_kept(
    db, database_url, redis_url, clock, ids, tmp_path, monkeypatch
):
    """As where the database goes away just then: the next try has to find it. Nor are accounts read before."""
    shop = await Shop(db, MemoryFamily(), clock, ids).open()
    path = tmp_path / "recovery.json"
    async with gateway_of(settings(database_url, redis_url, tmp_path), ids) as gateway:
        await derive_account_keys(gateway)
        async with db.transaction() as conn:
            await claim_accounts(conn, shop.merchant)
            known = await compose(conn, gateway.registry, clock.now())
        (mine,) = known.merchants
        further = structs.replace(mine, indexes={key: 1 + index for key, index in mine.indexes.items()})
        write_manifest(path, structs.replace(known, merchants=[further]))

        async def away(*_):
            raise ConnectionError

        async def read(*_):
            raise AssertionError("many accounts take minutes to read")

        monkeypatch.setattr("cambist_tasks.per_process.restore.keep_indexes", away)
        monkeypatch.setattr("cambist_tasks.per_process.restore.why_kept", read)
        with pytest.raises(ConnectionError):
            await write_manifests(gateway)
    assert read_manifest(path).merchants == [further]


@pytest.mark.slow
async def test_a_worker_saves_its_filter_of_addresses_and_the_next_one_begins_with_it(
    db, database_url, redis_url, clock, ids, tmp_path, monkeypatch
):
    monkeypatch.setattr(per_process, "FILTERS_INTERVAL_S", 0.2)
    folder = tmp_path / "data"
    shop = await Shop(db, MemoryFamily(), clock, ids).open()
    configured, file = settings(database_url, redis_url, folder), folder / "filters" / "live-memory.filter"

    async def work(until):
        async with gateway_of(configured, ids) as gateway, working(gateway):
            chain = memory_of(gateway)
            first = await shop.payment(chain, "USDX", 1)
            chain.mine()
            async with asyncio.timeout(60):
                while not until():
                    await asyncio.sleep(0.05)
                    chain.mine()
            late = await shop.payment(chain, "USDX", 1)
        return [shop.family.address_key(address) for address in (first, late)]

    known = await work(file.exists)
    assert file.stat().st_mode & 0o777 == 0o600
    with capture_logs() as logs:
        known += await work(lambda: any(entry["event"] == "addresses_loaded" for entry in logs))
    assert [entry["of"] for entry in logs if entry["event"] == "addresses_loaded"] == ["snapshot"]
    cache = AddressCache(db, shop.family, "live", folder=folder / "filters")
    with capture_logs() as logs:
        await cache.refresh()
    assert [entry["of"] for entry in logs if entry["event"] == "addresses_loaded"] == ["snapshot"]
    assert all(key in cache for key in known)


async def test_a_worker_that_stops_saves_what_came_since_the_last_time(db, clock, ids, tmp_path):
    shop = await Shop(db, MemoryFamily(), clock, ids).open()
    chain = MemoryChain(memory_chain_info(), genesis_time=0)
    cache, never_used = (AddressCache(db, shop.family, "live", folder=tmp_path / name) for name in ("a", "b"))
    for _ in range(2):
        await shop.payment(chain, "USDX", 1)
        await shop.until_others_end()
        await cache.refresh()
        await save_filters([cache, never_used])
    again = AddressCache(db, shop.family, "live", folder=tmp_path / "a")
    with capture_logs() as logs:
        await again.refresh()
    assert [(entry["of"], entry["addresses"]) for entry in logs] == [("snapshot", 2)]
    assert not (tmp_path / "b").exists()


async def test_a_worker_that_cannot_write_works_and_says_so(db, clock, ids, tmp_path):
    shop = await Shop(db, MemoryFamily(), clock, ids).open()
    await shop.payment(MemoryChain(memory_chain_info(), genesis_time=0), "USDX", 1)
    await shop.until_others_end()
    (tmp_path / "filters").write_text("somebody's file")
    cache = AddressCache(db, shop.family, "live", folder=tmp_path / "filters")
    with capture_logs() as logs:
        await cache.refresh()
        await save_filters([cache])
    assert len(cache) == 1
    assert logs[-1]["event"] == "address_snapshot_failed"


async def test_each_worker_keeps_a_copy_of_the_audit_logs_seals(db, clock, ids, tmp_path):
    box, path = SecretsBox([bytes(32)], ids.random_bytes), tmp_path / "elsewhere" / "seals"

    async def act_and_seal():
        async with db.transaction() as conn:
            await record(conn, GATEWAY, Action.AUTO_PAYOUT_MADE, clock.now())
        async with db.transaction() as conn:
            return (await seal(conn, box, clock.now())).line

    made = [await act_and_seal() for _ in range(2)]
    for _ in range(2):
        await copy_missing_seals(db, path)
    assert list(read_lines(path)) == made
    with path.open("ab") as stream:
        stream.write(b'{"number": 3, "sealed')  # by a worker that was killed
    made.append(await act_and_seal())
    await copy_missing_seals(db, path)
    assert list(read_lines(path)) == made
    # The database is set back to an older backup, and goes on.
    async with db.transaction() as conn:
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        await conn.exec_driver_sql("DELETE FROM audit_seals WHERE number > 1")
        await conn.exec_driver_sql("DELETE FROM audit_entries WHERE id > 1")
    await copy_missing_seals(db, path)
    assert list(read_lines(path)) == made
    clock.advance(60)
    made.append(await act_and_seal())
    await copy_missing_seals(db, path)
    assert [line.number for line in read_lines(path)] == [1, 2, 3, 2]
    assert list(read_lines(path)) == made
