"""Chains are watched by one worker each, taken over when it dies, and never in each other's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import accumulate

import pytest
from structlog.testing import capture_logs

from cambist.db.engine import Database, connect
from cambist.ports import Ids, SystemClock
from cambist.registry.switching import switched
from cambist.services import chain_pauses
from cambist.services.chain_pauses import Pausable, Pause
from cambist.testing.memory import MemoryChain, MemoryChainConfig, MemoryFamily, memory_chain_info
from cambist_tasks import leases as leases_module
from cambist_tasks import watching as watching_module
from cambist_tasks.leases import Leases
from cambist_tasks.watching import ChainWatch
from tests.support.machine import Machine
from tests.support.payment_env import registry
from tests.support.shop import Shop
from tests.support.stubborn import stay

pytestmark = pytest.mark.slow


@asynccontextmanager
async def watching(watch: ChainWatch) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(watch.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def leases_of(database_url: str) -> AsyncIterator[tuple[Database, Leases]]:
    """Give a worker its own pool and leases."""
    database = connect(database_url, application_name="cambist-test-worker", pool_size=3)
    leases = Leases(database)
    yield database, leases
    await leases.aclose()
    await database.close()


async def until(condition, timeout_s: float = 15.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110  what is waited for happens in a database
            await asyncio.sleep(0.01)


def memory(chain_id: str = "memory") -> MemoryChain:
    return MemoryChain(memory_chain_info(chain_id, MemoryChainConfig(poll_interval_ms=10)))


@pytest.fixture
async def shop(db: Database, ids: Ids) -> Shop:
    return await Shop(db, MemoryFamily(), SystemClock(), ids).open()


async def killed(db: Database, application: str) -> int:
    """Cut every connection of a worker, as its death would."""
    async with db.autocommit() as conn:
        cut = await conn.exec_driver_sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE application_name = $1 AND datname = current_database()",
            (application,),
        )
        return int(cut.scalar_one())


async def test_a_payment_is_followed_to_its_end(db: Database, database_url: str, shop: Shop) -> None:
    chain = memory()
    address = await shop.payment(chain, "USDX", 100)
    async with leases_of(database_url) as (_, leases):
        watch = ChainWatch(shop.watcher(chain), chain, leases, shop.pauses)
        async with watching(watch):
            # It begins at the head, and the blocks of this chain are older than the payment.
            await until(lambda: watch.state.polls > 0)
            chain.transfer(chain.info.token("USDX"), address, 100)
            chain.mine(1)
            polls = watch.state.polls
            await until(lambda: watch.state.polls > polls)
            chain.mine(5)
            async with asyncio.timeout(60):
                while (await shop.status(address))[0] != "paid":  # noqa: ASYNC110  a row changes
                    await asyncio.sleep(0.02)


async def test_of_two_workers_one_watches_and_the_other_takes_over_within_seconds_when_it_dies(
    db: Database, database_url: str, shop: Shop
) -> None:
    chain = memory()
    async with leases_of(database_url) as (_, first_leases), leases_of(database_url) as (_, second_leases):
        first = ChainWatch(shop.watcher(chain), chain, first_leases, shop.pauses)
        second = ChainWatch(shop.watcher(chain), chain, second_leases, shop.pauses)
        async with watching(first) as dying:
            await until(lambda: first.state.polls > 0)
            async with watching(second):
                await asyncio.sleep(1.5)
                assert (first.state.watching, second.state.watching, second.state.polls) == (True, False, 0)
                dying.cancel()
                await until(lambda: second.state.polls > 0, 10)


async def test_a_worker_that_loses_its_connection_gives_its_lease_up(
    db: Database, database_url: str, shop: Shop
) -> None:
    chain = memory()
    async with leases_of(database_url) as (_, leases):
        watch = ChainWatch(shop.watcher(chain), chain, leases, shop.pauses)
        async with watching(watch):
            await until(lambda: watch.state.polls > 0)
            assert await killed(db, "cambist-test-worker") >= 1
            await until(lambda: not watch.state.watching)
            polls = watch.state.polls
            await until(lambda: watch.state.watching and watch.state.polls > polls)


async def test_a_worker_whose_database_is_stuck_does_not_say_that_it_watches(
    db: Database, database_url: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases_module, "ANSWER_S_MAX", 0.5)
    monkeypatch.setattr(leases_module, "CHECK_S", 0.0)
    machine, chain = Machine(database_url), memory()
    async with leases_of(await machine.start()) as (_, stuck):
        first = ChainWatch(shop.watcher(chain), chain, stuck, shop.pauses)  # which alone is stuck, not what it polls
        async with watching(first):
            await until(lambda: first.state.polls > 0)
            assert first.state.unpolled_s is not None
            machine.swallow()
            await until(lambda: not first.state.watching)
            assert first.state.unpolled_s is None
    await machine.close()


async def test_the_time_without_a_poll_that_succeeded_is_told(
    db: Database, database_url: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, now = memory(), 1_000.0
    monkeypatch.setattr(watching_module, "monotonic", lambda: now)
    async with leases_of(database_url) as (_, held):
        watch = ChainWatch(shop.watcher(chain), chain, held, shop.pauses)
        async with watching(watch):
            await until(lambda: watch.state.polls > 0)
            chain.faults.unavailable = True
            await until(lambda: watch.state.failing)
            now += 100
            assert watch.state.unpolled_s == 100
            chain.faults.unavailable = False
            await until(lambda: watch.state.unpolled_s == 0)


async def test_a_chain_in_trouble_backs_off_and_the_other_is_not_slowed(
    db: Database, database_url: str, shop: Shop
) -> None:
    broken, well = memory("broken"), memory("well")
    async with leases_of(database_url) as (_, leases):
        bad = ChainWatch(shop.watcher(broken), broken, leases, shop.pauses)
        good = ChainWatch(shop.watcher(well), well, leases, shop.pauses)
        async with watching(bad), watching(good):
            await until(lambda: bad.state.polls > 2 and good.state.polls > 2)
            broken.faults.unavailable = True
            await until(lambda: bad.state.failing)
            polls, failures, began = good.state.polls, bad.state.failures, asyncio.get_running_loop().time()
            await until(lambda: good.state.polls - polls > 20)
            # The other goes on at its own pace, while the pauses of this one double from half a second.
            seconds = asyncio.get_running_loop().time() - began
            pauses = accumulate(0.5 * 2**number for number in range(20))
            assert bad.state.failures - failures <= 1 + sum(pause <= seconds for pause in pauses)
            broken.faults.unavailable = False
            await until(lambda: not bad.state.failing)


async def test_an_endpoint_that_asks_for_a_pause_gets_it(db: Database, database_url: str, shop: Shop) -> None:
    chain = memory()
    async with leases_of(database_url) as (_, leases):
        watch = ChainWatch(shop.watcher(chain), chain, leases, shop.pauses)
        chain.faults.rate_limited_s = 2.0
        async with watching(watch):
            await until(lambda: watch.state.failing)
            await asyncio.sleep(1.5)
            assert (watch.state.failures, watch.state.polls) == (1, 0)
            chain.faults.rate_limited_s = None
            await until(lambda: watch.state.polls > 0)


async def test_a_bug_in_a_plugin_is_logged_with_its_traceback_and_costs_nobody_else(
    db: Database, database_url: str, shop: Shop
) -> None:
    buggy, well = memory("buggy"), memory("well")
    async with leases_of(database_url) as (_, leases):
        bad = ChainWatch(shop.watcher(buggy), buggy, leases, shop.pauses)
        good = ChainWatch(shop.watcher(well), well, leases, shop.pauses)
        buggy.faults.crash = ZeroDivisionError("a plugin's mistake")
        with capture_logs() as logs:
            async with watching(bad), watching(good):
                await until(lambda: bad.state.failures > 0 and good.state.polls > 5)
                buggy.faults.crash = None
                await until(lambda: bad.state.polls > 0)
    entry = next(entry for entry in logs if entry["event"] == "poll_failed")
    assert entry["chain"] == "buggy"
    assert isinstance(entry["exc_info"], ZeroDivisionError)


async def test_a_poll_that_hangs_is_given_up(
    db: Database, database_url: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist_tasks.watching.POLL_TIMEOUT_S", 0.3)
    chain = memory()

    async def hang(_: str) -> None:
        await asyncio.Event().wait()

    async with leases_of(database_url) as (_, leases):
        watch = ChainWatch(shop.watcher(chain), chain, leases, shop.pauses)
        chain.faults.before = hang
        async with watching(watch):
            await until(lambda: watch.state.failures > 0)
            chain.faults.before = None
            await until(lambda: watch.state.polls > 0)


@pytest.mark.parametrize("caught", ["view", "head"])
async def test_a_poll_that_catches_its_cancellation_is_given_up_like_one_that_hangs(
    db: Database, database_url: str, shop: Shop, monkeypatch: pytest.MonkeyPatch, caught: str
) -> None:
    monkeypatch.setattr("cambist_tasks.watching.POLL_TIMEOUT_S", 0.3)
    monkeypatch.setattr("cambist.deadlines.GIVE_UP_S", 0.05)
    connected, freed = memory(), asyncio.Event()
    chain = switched(connected)

    async def stubborn(call: str) -> None:
        if call == caught:
            await stay(freed)

    async with leases_of(database_url) as (_, leases):
        watch = ChainWatch(shop.watcher(chain), chain, leases, shop.pauses)
        connected.faults.before = stubborn
        async with watching(watch):
            try:
                await until(lambda: watch.state.failures > 0)
                connected.faults.before = None
                await until(lambda: watch.state.polls > 0)
            finally:
                freed.set()


async def test_a_plugin_that_asks_for_the_end_of_the_process_ends_its_poll_alone(
    db: Database, database_url: str, shop: Shop
) -> None:
    connected = memory("buggy")
    buggy, well = switched(connected), memory("well")
    async with leases_of(database_url) as (_, leases):
        bad = ChainWatch(shop.watcher(buggy), buggy, leases, shop.pauses)
        good = ChainWatch(shop.watcher(well), well, leases, shop.pauses)

        async def exit_of_the_plugin(_: str) -> None:
            raise SystemExit(3)

        connected.faults.before = exit_of_the_plugin
        async with watching(bad), watching(good):
            await until(lambda: bad.state.failures > 0 and good.state.polls > 5)
            connected.faults.before = None
            await until(lambda: bad.state.polls > 0)


async def test_a_long_way_behind_is_read_without_pauses(db: Database, database_url: str, shop: Shop) -> None:
    info = memory_chain_info("slow", MemoryChainConfig(poll_interval_ms=60_000, span_max=10, hashes_kept=2_000))
    chain = MemoryChain(info)
    async with leases_of(database_url) as (_, leases):
        watcher = shop.watcher(chain)
        await watcher.poll()
        chain.mine(500)
        watch = ChainWatch(watcher, chain, leases, shop.pauses)
        async with watching(watch):
            await until(lambda: watch.state.last is not None and watch.state.last.height == 500, 30)
        assert watch.state.blocks == 500


async def test_a_pause_reads_nothing_and_who_paid_in_time_while_it_lasted_has_paid(
    db: Database, database_url: str, shop: Shop
) -> None:
    chain = memory()
    in_time, late = await shop.payment(chain, "USDX", 100), await shop.payment(chain, "USDX", 100, fiat=True)
    async with leases_of(database_url) as (_, leases):
        watch = ChainWatch(shop.watcher(chain), chain, leases, shop.pauses)
        async with watching(watch):
            await until(lambda: watch.state.polls > 0)
            pause = Pause(
                chain="memory", what=Pausable.WATCHING, reason="maintenance", paused_by="op", paused_at=shop.clock.now()
            )
            async with db.transaction() as conn:
                await chain_pauses.pause(conn, registry(), pause)
            await until(lambda: watch.state.paused)
            polls, paid_at = watch.state.polls, int(shop.clock.now().timestamp())
            chain.transfer(chain.info.token("USDX"), in_time, 100)
            chain.mine(1, time=paid_at)
            chain.transfer(chain.info.token("USDX"), late, 100)
            chain.mine(1, time=paid_at + 7_200)
            chain.mine(5)
            # Their time is over long before anybody looks.
            async with db.transaction() as conn:
                await conn.exec_driver_sql(
                    "UPDATE payments SET expires_at = to_timestamp($1::bigint + 1)",
                    (paid_at,),
                )
            # A worker that starts now finds the pause as well.
            async with leases_of(database_url) as (_, others):
                second = ChainWatch(shop.watcher(chain), chain, others, shop.pauses)
                async with watching(second):
                    await until(lambda: watch.state.paused)
                    assert (watch.state.polls, second.state.polls) == (polls, 0)
            assert await shop.status(in_time) == await shop.status(late) == ("pending", 0)
            async with db.transaction() as conn:
                await chain_pauses.resume(conn, "memory", Pausable.WATCHING)
            async with asyncio.timeout(60):
                while await shop.status(in_time) != ("paid", 100):  # noqa: ASYNC110  the database knows
                    await asyncio.sleep(0.02)
            assert await shop.status(late) == ("expired", 100)
            assert not watch.state.paused
