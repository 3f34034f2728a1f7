"""The arq worker with a real Redis: what is planted in it, what it forgets, and when it goes away."""

from __future__ import annotations

import asyncio
import gc
import gzip
import os
import pickle
import signal
import sys
import time
import warnings
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import pytest
from arq.connections import ArqRedis
from arq.jobs import DeserializationError, deserialize_job, serialize_job
from arq.worker import Worker
from msgspec.structs import replace
from structlog.testing import capture_logs

from cambist.bootstrap import Parts, open_gateway
from cambist.services.accounting import usage
from cambist.services.accounting.ledger import asset_key
from cambist.services.accounting.usage import Metered
from cambist.services.jobs import requests
from cambist.services.jobs.requests import Kind, NewJob
from cambist.services.platform import PlatformSettings
from cambist.settings import DatabaseSettings, RedisSettings, SettingsError
from cambist.signer.keystore import Keystore
from cambist.testing.fixtures import TEST_MNEMONIC
from cambist_tasks.arq_worker import arq_options, open_pool, queue_of, run_arq, runners_of
from cambist_tasks.codec import decode, encode
from cambist_tasks.requested import queue_due
from cambist_tasks.supervision import keep_running
from tests.core.test_statements import HISTORY
from tests.support.command import run_script
from tests.support.forked import ForkedProcess
from tests.support.webhooks import make_project

pytestmark = pytest.mark.slow

ARQ = str(Path(sys.executable).with_name("arq"))
SETTINGS = "cambist_tasks.worker.WorkerSettings"


@pytest.fixture
def runners(gateway):
    return runners_of(gateway)


def using(settings, valkey):
    """Return settings that name this server."""
    return replace(settings, redis=RedisSettings(url=valkey.url))


@asynccontextmanager
async def running(settings, runners):
    task = asyncio.create_task(keep_running("arq", partial(run_arq, settings, runners)))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(condition, seconds=120.0, worker=None):
    async with asyncio.timeout(seconds):
        while not await condition():
            assert worker is None or worker.returncode is None, worker.log.read_text()
            await asyncio.sleep(0.05)


def runs(runners, name="usage"):
    """Return how often a job has succeeded; to be waited for until it grows."""
    return runners.crons.states[name].succeeded


async def goes_on(runners, name="usage"):
    before = runs(runners, name)

    async def more():
        return runs(runners, name) > before

    await until(more)


async def test_a_worker_that_stops_while_it_writes_down_a_jobs_end_leaves_nothing_open(gateway, runners, monkeypatch):
    finish, writing = Worker.finish_job, asyncio.Event()
    begun, written = [], []

    async def slowly(worker, job, *more):
        begun.append(job)
        writing.set()
        while any(one.get_name() == "arq" for one in asyncio.all_tasks()):  # noqa: ASYNC110  arq makes its own
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        await finish(worker, job, *more)
        written.append(job)

    monkeypatch.setattr(Worker, "finish_job", slowly)
    others = asyncio.all_tasks()
    for _ in range(3):
        writing.clear()
        task = asyncio.create_task(run_arq(gateway.settings, runners))
        await writing.wait()
        task.cancel()
        await asyncio.sleep(0.02)
        task.cancel()  # as who insists does: what is being closed is closed to its end
        await asyncio.wait([task])
        left = {one for one in asyncio.all_tasks() - others if one.get_name() != "hints"}
        assert left == set()
        with warnings.catch_warnings(record=True) as unclosed:
            gc.collect()
        assert unclosed == []
        assert sorted(begun) == sorted(written)


async def test_who_queues_for_arq_when_it_stops_has_ended_before_its_connections_are_closed(
    gateway, runners, monkeypatch
):
    begun, ended, two = [], [], asyncio.Event()

    async def slowly(pool, *what, **how):
        begun.append(what)
        if len(begun) == 2:
            two.set()
        try:
            await asyncio.Event().wait()
        finally:
            try:
                # As its pipeline does, which says to Redis that it watches nothing more. The first to end is quick.
                await asyncio.sleep(0.05 if ended else 0)
                await pool.ping()
            finally:
                ended.append(what)

    monkeypatch.setattr(ArqRedis, "enqueue_job", slowly)
    task = asyncio.create_task(run_arq(gateway.settings, runners))
    async with asyncio.timeout(60):
        await two.wait()
    task.cancel()
    await asyncio.wait([task])
    assert sorted(ended) == sorted(begun)


async def test_a_transaction_that_is_cancelled_twice_gives_its_connection_back(tmp_path):
    async def silent(reader, writer):  # as a Redis that hangs: it lets a key be watched, and says nothing after that
        while data := await reader.read(1000):
            if b"WATCH" in data:
                heard.set()
            writer.write(b"+OK\r\n" * data.count(b"SETINFO") + b"+OK\r\n" * (b"\r\nWATCH\r\n" in data))
        writer.close()

    heard = asyncio.Event()
    server = await asyncio.start_unix_server(silent, tmp_path / "redis")
    pool = open_pool(f"unix://{tmp_path}/redis", "queue")

    async def watching():
        async with pool.pipeline() as pipe:
            await pipe.watch("key")
            heard.clear()
            watched.set()
            await asyncio.Event().wait()

    for _ in range(2):
        watched = asyncio.Event()
        task = asyncio.create_task(watching())
        await watched.wait()
        task.cancel()
        await heard.wait()  # UNWATCH is under way
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        del task
        with warnings.catch_warnings(record=True) as unclosed:
            gc.collect()
        assert unclosed == []
    assert not pool.connection_pool._in_use_connections
    assert len(pool.connection_pool._available_connections) == 1
    await pool.aclose(close_connection_pool=True)
    server.close()
    await server.wait_closed()


async def test_two_gateways_on_one_redis_keep_no_jobs_from_each_other(gateway, databases):
    with databases.fresh() as url:
        settings = replace(gateway.settings, database=replace(gateway.settings.database, url=url))
        async with open_gateway(settings, role="worker", parts=Parts(keystore=Keystore(TEST_MNEMONIC))) as other:
            both = [runners_of(gateway), runners_of(other)]
            pools = [open_pool(each.gateway.settings.redis.url, queue_of(each.gateway.settings)) for each in both]
            for each, pool in zip(both, pools, strict=True):
                # As of a database and its copy: everything in them has the same ids.
                async with each.gateway.db.transaction() as conn:
                    new = NewJob(kind=Kind.RECONCILE, arguments={}, requested_by="operator")
                    await requests.request(conn, each.gateway.ids, new, each.gateway.clock.now())
                    await conn.exec_driver_sql("UPDATE jobs SET job_id = 'job_of_both'")
                await queue_due(each.gateway, pool)
                assert len(await pool.queued_jobs()) == 1
                async with each.gateway.db.transaction() as conn:
                    await conn.exec_driver_sql("DELETE FROM jobs")
                await pool.aclose(close_connection_pool=True)
            named = [{job.name for job in arq_options(each.gateway.settings)["cron_jobs"]} for each in both]
            assert named[0].isdisjoint(named[1])
            async with running(settings, both[1]), running(gateway.settings, both[0]):
                for each in both * 2:
                    await goes_on(each)


def test_workers_of_one_database_have_one_queue_whether_they_need_a_password_or_not(gateway_settings):
    names = {
        queue_of(replace(gateway_settings, database=DatabaseSettings(url=f"postgresql://{who}@db.example/cambist")))
        for who in ("cambist:one", "cambist:two", "cambist")
    }
    assert len(names) == 1
    with pytest.raises(SettingsError):
        queue_of(replace(gateway_settings, database=DatabaseSettings()))


class Planted:
    """What somebody who can write to Redis would have the worker unpickle."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return os.system, (f"touch {self.file}",)


async def test_a_pickle_in_redis_is_refused_and_never_run(gateway, runners, tmp_path):
    file, queue = tmp_path / "ran", queue_of(gateway.settings)
    planted = [
        pickle.dumps(Planted(file)),
        pickle.dumps({"f": f"{queue}:usage", "a": (Planted(file),), "k": {}, "t": None, "et": 1}),
        msgspec.json.encode({"f": "os.system", "a": [f"touch {file}"], "k": {}, "t": None, "et": 1}),
        b"\x00",
    ]
    pool = open_pool(gateway.settings.redis.url, queue)
    for number, data in enumerate(planted):
        await pool.set(f"arq:job:planted{number}", data)
        await pool.zadd(queue, {f"planted{number}": time.time() * 1000})

    async def gone():
        left = await pool.zrange(queue, 0, -1)
        return not [name for name in left if name.startswith(b"planted")]

    async with running(gateway.settings, runners):
        await until(gone)
        await goes_on(runners)
    assert await pool.keys("arq:*planted*") == []
    assert not file.exists()
    await pool.aclose(close_connection_pool=True)


def test_a_job_carries_a_row_id_and_nothing_else():
    written = serialize_job("job", (7,), {}, None, 1_700_000_000_000, serializer=encode)
    assert msgspec.json.decode(written) == {"f": "job", "a": [7], "k": {}, "t": None, "et": 1_700_000_000_000}
    assert deserialize_job(written, deserializer=decode).args == [7]
    for args, kwargs in ((("secret",), {}), ((1, 2), {}), ((1.5,), {}), ((0,), {}), ((), {"a": 1}), (([1],), {})):
        with pytest.raises(Exception, match="unable to serialize"):
            serialize_job("job", args, kwargs, None, 1, serializer=encode)
    for message in ({"f": "job", "a": [1], "k": {}, "t": None, "et": 1, "x": 1}, {"f": "a b", "a": [], "k": {}}, []):
        with pytest.raises(DeserializationError):
            deserialize_job(msgspec.json.encode(message), deserializer=decode)


async def test_a_redis_that_is_emptied_or_killed_costs_time_and_others_do_not_notice(gateway, valkey, runners):
    ticks = []

    async def tick():
        while True:
            ticks.append(1)
            await asyncio.sleep(0.01)

    other = asyncio.create_task(tick())
    async with running(using(gateway.settings, valkey), runners):
        await goes_on(runners)
        pool = open_pool(valkey.url, queue_of(gateway.settings))
        await pool.flushall()
        await goes_on(runners)
        with capture_logs() as logs:
            valkey.kill()

            async def crashed():
                return any(entry["event"] == "task_crashed" for entry in logs)

            await until(crashed)
            before = len(ticks)
            await asyncio.sleep(0.2)
            assert len(ticks) > before
            valkey.start()
        await goes_on(runners)
        await pool.aclose(close_connection_pool=True)
    other.cancel()


def environment(gateway, tmp_path):
    return {
        "PATH": os.environ["PATH"],
        "CAMBIST_DATABASE__URL": gateway.settings.database.url,
        "CAMBIST_REDIS__URL": gateway.settings.redis.url,
        "CAMBIST_DATA_DIR": str(tmp_path / "data"),
    }


async def started(gateway, tmp_path, *arguments):
    log = tmp_path / "log"
    with log.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            *arguments, env=environment(gateway, tmp_path), cwd=tmp_path, stdout=file, stderr=file
        )
    process.log = log
    return process


def start_worker(gateway, tmp_path):
    """Start `cambist worker` by forking a process that has imported it."""
    log = tmp_path / "log"
    return ForkedProcess(("worker",), environment(gateway, tmp_path), log, log, cwd=tmp_path)


async def test_arqs_own_command_runs_jobs_also_after_the_database_failed_and_checks_that_somebody_does(
    gateway, db, tmp_path
):
    async def check():
        # It has nothing to import that the worker below does not.
        where = environment(gateway, tmp_path)
        done = await asyncio.to_thread(run_script, Path(ARQ), where, "--check", SETTINGS, cwd=tmp_path)
        return done.returncode

    async def found(statement):
        async with db.autocommit() as conn:
            return (await conn.exec_driver_sql(statement)).first() is not None

    async def renamed(old, new):
        async with db.autocommit() as conn:
            await conn.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}")

    assert await check() == 1
    await renamed("jobs", "gone")
    worker = await started(gateway, tmp_path, ARQ, SETTINGS)
    try:
        usage_ran = "SELECT 1 FROM cron_runs WHERE name = 'usage' AND finished_at IS NOT NULL"
        await until(lambda: found(usage_ran), worker=worker)
        await renamed("gone", "jobs")
        async with db.transaction() as conn:
            new = NewJob(kind=Kind.RECONCILE, arguments={}, requested_by="operator")
            await requests.request(conn, gateway.ids, new, gateway.clock.now())
        await until(lambda: found("SELECT 1 FROM jobs WHERE state = 'succeeded'"), worker=worker)
        assert await check() == 0
    finally:
        worker.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            await worker.wait()
    assert await check() == 1
    log = worker.log.read_text()
    assert 'relation "jobs" does not exist' in log
    assert " locals " not in log


async def test_a_worker_killed_in_the_middle_of_a_recurring_job_leaves_its_effect_to_the_other_once(
    gateway, db, ids, runners, tmp_path
):
    await make_project(db, ids)
    async with db.transaction() as conn:
        row = (await conn.exec_driver_sql("SELECT id FROM merchants")).scalar_one()
        await usage.grant(conn, row, "live", 1_000, "begin")
        done = [Metered(row, "live", "payment", "memory", f"pay_{number}") for number in range(10)]
        await usage.meter(conn, done, PlatformSettings(), gateway.clock.now())
    cost = 10 * PlatformSettings().cpt.weights.of("payment", "memory")

    async def blocked():
        async with db.autocommit() as other:
            waiting = await other.exec_driver_sql(
                "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            return waiting.first() is not None

    async with db.transaction() as conn:
        # Its posting waits for this lock, in the middle of the job's transaction, and dies there.
        await conn.exec_driver_sql("SELECT 1 FROM ledger_accounts WHERE purpose = 'cpt' FOR UPDATE")
        worker = start_worker(gateway, tmp_path)
        try:
            await until(blocked)
        finally:
            worker.kill()
            await worker.wait()

    async def posted():
        async with db.autocommit() as other:
            left = await other.exec_driver_sql("SELECT count(*) FROM usage_records WHERE NOT posted")
            return left.scalar_one() == 0

    async with running(gateway.settings, runners):
        await until(posted)
        await goes_on(runners)
    async with db.autocommit() as other:
        posted_units = await other.exec_driver_sql(
            "SELECT m.units FROM ledger_movements m JOIN ledger_transactions t ON t.id = m.transaction_pk"
            " WHERE t.kind = 'usage'"
        )
        assert [int(units) for units in posted_units.scalars()] == [cost]


async def test_a_worker_killed_in_the_middle_of_a_slice_leaves_the_job_to_the_other_and_each_piece_is_kept_once(
    gateway, db, ids, tmp_path
):
    (tmp_path / "cambist.toml").write_text("[plugins.evm.chains.ethereum]\nsimulated = true\n")
    await make_project(db, ids)
    async with db.transaction() as conn:
        await conn.exec_driver_sql("ALTER TABLE ledger_movements DISABLE TRIGGER USER")
        await conn.exec_driver_sql(HISTORY.replace("'live'", "'sandbox'"), (asset_key("ethereum", None), 3_500))
        # The third slice has done its work but not committed it when it comes to this lock.
        await conn.exec_driver_sql(
            "CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN PERFORM pg_advisory_xact_lock(9); RETURN NULL; END'"
        )
        await conn.exec_driver_sql(
            "CREATE TRIGGER pause AFTER INSERT ON job_outputs FOR EACH ROW WHEN (NEW.number = 2)"
            " EXECUTE FUNCTION pause()"
        )
        merchant = (await conn.exec_driver_sql("SELECT id FROM merchants")).scalar_one()

    async def asked():
        async with db.transaction() as conn:
            new = NewJob(
                kind=Kind.STATEMENT_EXPORT, arguments={}, requested_by="a test", merchant_pk=merchant, mode="sandbox"
            )
            return await requests.request(conn, ids, new, datetime.now(UTC))

    async def found(job):
        async with db.autocommit() as conn:
            return (await conn.exec_driver_sql("SELECT * FROM jobs WHERE id = $1", (job.pk,))).one()

    async def succeeded(job):
        return (await found(job)).state == "succeeded"

    async def file(job):
        return gzip.decompress(b"".join([piece async for piece in requests.output(db, job)]))

    async def in_the_middle():
        async with db.autocommit() as conn:
            # This lock alone: others of this server wait for locks of their own.
            waiting = await conn.exec_driver_sql(
                "SELECT 1 FROM pg_locks JOIN pg_database d ON d.oid = database AND d.datname = current_database()"
                " WHERE locktype = 'advisory' AND objid = 9 AND NOT granted"
            )
            return waiting.first() is not None

    workers = {}
    for _ in range(2):
        worker = start_worker(gateway, tmp_path)
        workers[worker.pid] = worker
    try:
        async with db.transaction() as conn:
            await conn.exec_driver_sql("SELECT pg_advisory_xact_lock(9)")
            job = await asked()
            await until(in_the_middle)
            dead = await found(job)
            killed = workers.pop(int(dead.worker.rpartition("/")[2]))
            killed.kill()
            await killed.wait()
        async with db.transaction() as conn:
            # What is left of its lease is not waited for.
            await conn.exec_driver_sql("UPDATE jobs SET leased_until = now() - interval '1 second'")
        await until(partial(succeeded, job))
        again = await asked()
        await until(partial(succeeded, again))
    finally:
        for worker in workers.values():
            worker.send_signal(signal.SIGTERM)
            await worker.wait()
    living = await found(job)
    assert (dead.progress["pieces"], dead.lease_token, living.lease_token) == (2, 1, 2)
    assert living.worker.endswith(f"/{worker.pid}")
    assert (living.result["entries"], living.result["complete"]) == (3_500, True)
    assert await file(job) == await file(again)
