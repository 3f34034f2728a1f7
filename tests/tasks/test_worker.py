"""The worker as a whole: from a transfer on a chain to a signed webhook, with metrics on the way, and a clean stop."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import EntryPoint
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy import update
from structlog.testing import capture_logs

from cambist.bootstrap import Gateway, Parts, open_gateway
from cambist.db.engine import Database
from cambist.db.models import Project
from cambist.ports import Ids, SystemClock
from cambist.registry import Registry
from cambist.secrets import SecretsBox
from cambist.services.recovery import unfinished
from cambist.services.webhooks.secrets import TRACKER_FIELD, SigningSecrets
from cambist.settings import (
    AuthSettings,
    DatabaseSettings,
    KeySettings,
    RedisSettings,
    Settings,
    WebhookSettings,
    WorkerSettings,
)
from cambist.signer.keystore import new_keystore
from cambist.testing.memory import MemoryFamily
from cambist.testing.memory.family import named_address
from cambist_tasks.arq_worker import CANCEL_AGAIN_S, end_tasks
from cambist_tasks.chain_keeper import ChainKeeper
from cambist_tasks.worker import STOP_SIGNALS, end_at_signals, run_worker
from tests.support.forked import ForkedProcess
from tests.support.shop import Shop, memory_of
from tests.support.trackers import Watchers
from tests.support.webhooks import SECRET, receiver

pytestmark = pytest.mark.slow

MEMORY = EntryPoint("memory", "cambist.testing.memory.plugin", "cambist.plugins")


def settings(database_url: str, redis_url: str, data_dir: Path, port: int | None = None) -> Settings:
    return Settings(
        data_dir=data_dir,
        database=DatabaseSettings(url=database_url),
        redis=RedisSettings(url=redis_url),
        # Receivers here share the worker's core: what they take a moment over on a busy machine must not come twice.
        webhooks=WebhookSettings(allow_private_targets=True, timeout_ms=30_000, base_delay_ms=100),
        worker=WorkerSettings(metrics_port=port),
        keys=KeySettings(application_key="ab" * 32, stock=3),
        auth=AuthSettings(jwt_secret="s" * 32),
        plugins={"memory": {}},
    )


@asynccontextmanager
async def gateway_of(configured: Settings, ids: Ids) -> AsyncIterator[Gateway]:
    parts = Parts(
        registry=Registry(configured.plugins, found=[MEMORY]), keystore=new_keystore(lambda size: b"\x07" * size)
    )
    async with open_gateway(configured, role="worker", parts=parts) as gateway:
        yield gateway


@asynccontextmanager
async def working(gateway: Gateway) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(run_worker(gateway, stop))
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(12):
            await task


async def watching_begins(db: Database) -> None:
    """Wait for the first poll, which starts at the head: blocks in memory are older than the payments of a test."""
    async with asyncio.timeout(60):
        while True:
            async with db.autocommit() as conn:
                if (await conn.exec_driver_sql("SELECT count(*) FROM chain_cursors")).scalar_one():
                    return
            await asyncio.sleep(0.02)


@pytest.fixture
async def shop(db: Database, ids: Ids) -> Shop:
    return await Shop(db, MemoryFamily(), SystemClock(), ids).open()


async def test_a_transfer_becomes_signed_webhooks(
    db: Database, database_url: str, redis_url: str, ids: Ids, shop: Shop, tmp_path: Path, unused_tcp_port: int
) -> None:
    configured = settings(database_url, redis_url, tmp_path, unused_tcp_port)
    sealed = SigningSecrets(SecretsBox([bytes.fromhex("ab" * 32)], bytes)).seal("prj_1", SECRET)
    async with receiver() as merchant, gateway_of(configured, ids) as gateway:
        async with db.transaction() as conn:
            await conn.execute(
                update(Project).values(payment_webhook_url=merchant.url, webhook_secret_encrypted=sealed)
            )
        chain = memory_of(gateway)
        address = await shop.payment(chain, "USDX", 100)
        async with working(gateway):
            await watching_begins(db)
            token = chain.info.token("USDX")
            assert token is not None
            chain.transfer(token, address, 100)
            chain.mine(1)
            await asyncio.sleep(0.2)
            chain.mine(4)
            async with asyncio.timeout(60):
                while len(merchant.received) < 3:  # noqa: ASYNC110  a server receives
                    await asyncio.sleep(0.02)
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{unused_tcp_port}/metrics") as answer,
            ):
                page = await answer.text()
    for request in merchant.received:
        request.verify(SECRET)
    names = [request.headers["X-Webhook-Event"] for request in merchant.received]
    assert names == ["payment.detected", "payment.confirming", "payment.paid"]
    assert 'cambist_chain_watching{chain="memory"} 1.0' in page
    assert 'cambist_chain_height{chain="memory"} 5.0' in page
    assert 'cambist_chain_deposits_total{chain="memory"} 1.0' in page
    assert 'cambist_endpoint_healthy{chain="memory",endpoint="memory"} 1.0' in page
    assert 'cambist_webhook_attempts_total{outcome="delivered"}' in page


async def test_a_worker_waits_for_a_restore_that_has_not_come_to_its_end(
    db: Database, database_url: str, redis_url: str, ids: Ids, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would begin to read chains at their heads, and write its manifest over the one that is restored from."""
    monkeypatch.setattr("cambist_tasks.restored.ASKED_EVERY_S", 0.01)
    monkeypatch.setattr("cambist_tasks.restored.TOLD_EVERY", 1)
    manifest = tmp_path / "recovery.json"
    manifest.write_text("what is restored from")
    async with db.transaction() as conn:
        await unfinished.begin(conn)
    async with gateway_of(settings(database_url, redis_url, tmp_path), ids) as gateway:
        with capture_logs() as logs:
            async with working(gateway):
                async with asyncio.timeout(60):
                    while sum(entry["event"] == "restore_unfinished" for entry in logs) < 10:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                async with db.autocommit() as conn:
                    assert (await conn.exec_driver_sql("SELECT count(*) FROM chain_cursors")).scalar_one() == 0
                assert manifest.read_text() == "what is restored from"
                async with db.transaction() as conn:
                    await unfinished.finish(conn)
                await watching_begins(db)


async def test_the_worker_keeps_account_keys_in_stock(
    db: Database, database_url: str, redis_url: str, ids: Ids, tmp_path: Path
) -> None:
    async with gateway_of(settings(database_url, redis_url, tmp_path), ids) as gateway, working(gateway):
        async with asyncio.timeout(60):
            while True:
                async with db.autocommit() as conn:
                    found = await conn.exec_driver_sql(
                        "SELECT count(DISTINCT account_index) FROM account_keys WHERE account_index > 0"
                    )
                    if found.scalar_one() == 3:
                        break
                await asyncio.sleep(0.05)


async def test_two_workers_share_the_work_and_tell_the_merchant_once(
    db: Database, database_url: str, redis_url: str, ids: Ids, shop: Shop, tmp_path: Path
) -> None:
    configured = settings(database_url, redis_url, tmp_path)
    async with receiver() as merchant, gateway_of(configured, ids) as one, gateway_of(configured, ids) as two:
        async with db.transaction() as conn:
            await conn.execute(update(Project).values(payment_webhook_url=merchant.url))
        chain = memory_of(one)
        # Both workers look at the same chain in memory.
        memory_of(two)._blocks = chain._blocks
        addresses = [await shop.payment(chain, "USDX", 100) for _ in range(20)]
        async with working(one), working(two):
            await watching_begins(db)
            token = chain.info.token("USDX")
            assert token is not None
            for address in addresses:
                chain.transfer(token, address, 100)
            chain.mine(5)
            async with asyncio.timeout(60):
                while len(merchant.received) < 60:  # noqa: ASYNC110  a server receives
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.3)
    assert len(merchant.received) == 60


async def test_a_worker_process_stops_cleanly_on_sigterm(database_url: str, redis_url: str, tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "CAMBIST_DATABASE__URL": database_url,
        "CAMBIST_REDIS__URL": redis_url,
        "CAMBIST_DATA_DIR": str(tmp_path / "data"),
    }
    log = tmp_path / "log"
    log.touch()
    process = ForkedProcess(("worker",), environment, log, log, cwd=tmp_path)
    async with asyncio.timeout(60):
        while b"worker_ready" not in log.read_bytes():
            assert process.returncode is None, log.read_text()
            await asyncio.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0, log.read_text()
    said = log.read_bytes()
    assert b"worker_stopped" in said
    assert b"Traceback" not in said


async def test_what_moves_at_a_watched_address_becomes_webhooks_that_its_tracker_signs(
    db: Database, database_url: str, redis_url: str, ids: Ids, shop: Shop, tmp_path: Path
) -> None:
    watchers = Watchers(db, shop.project, family=shop.family.name)
    sealed = SigningSecrets(SecretsBox([bytes.fromhex("ab" * 32)], bytes))
    configured = settings(database_url, redis_url, tmp_path)
    async with receiver() as merchant, gateway_of(configured, ids) as gateway:
        chain = memory_of(gateway)
        somebody = named_address("somebody")
        tracker = await watchers.make([somebody], url=merchant.url)
        secret = sealed.seal(f"trk_{shop.project}_1", SECRET, field=TRACKER_FIELD)
        await watchers.change(tracker, secret_encrypted=secret)
        async with working(gateway):
            await watching_begins(db)
            token = chain.info.token("USDX")
            assert token is not None
            chain.transfer(token, somebody, 100)
            chain.mine(1 + chain.info.confirmations)
            async with asyncio.timeout(60):
                while len(merchant.received) < 2:  # noqa: ASYNC110  a server receives
                    await asyncio.sleep(0.02)
    for request in merchant.received:
        request.verify(SECRET)
    events = [request.headers["X-Webhook-Event"] for request in merchant.received]
    assert events == ["transaction.detected", "transaction.confirmed"]


async def test_a_task_that_loses_its_cancellation_ends_at_a_signal_and_at_nothing_else() -> None:
    async def deaf() -> None:
        for _ in range(3):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(600)

    loop = asyncio.get_running_loop()
    task = asyncio.create_task(deaf())
    end_at_signals(task)
    try:
        await asyncio.sleep(0)
        # As a time limit inside of it does, which takes it back in the end.
        task.cancel()
        await asyncio.sleep(3 * CANCEL_AGAIN_S)
        task.uncancel()
        assert not task.done()
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(60):
            await task
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)


async def test_a_chain_whose_connection_has_ended_is_connected_again(
    database_url: str, redis_url: str, ids: Ids, tmp_path: Path
) -> None:
    async with gateway_of(settings(database_url, redis_url, tmp_path), ids) as gateway:
        gateway.connections.ended.add("memory")
        reopening = asyncio.create_task(ChainKeeper(gateway, ()).run_reopening())
        async with asyncio.timeout(30):
            while gateway.connections.ended:  # noqa: ASYNC110  it is connected meanwhile
                await asyncio.sleep(0)
        await end_tasks({reopening})
