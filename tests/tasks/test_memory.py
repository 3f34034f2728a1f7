"""What one batch of blocks frees is there for the next, and connections that nobody needs are closed."""

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack
from functools import partial

import pytest
from msgspec.structs import replace

from cambist.bootstrap import WORKER_KEEPS, open_database
from cambist.db import pool
from cambist.db.engine import BusyError

BATCHES = 20
BATCH_BYTES = 8 << 20

# In a process of its own: there is no way back.
PROGRAM = f"""
import resource
from cambist_tasks.memory import tune_memory
tune_memory()
for number in range({BATCHES} + 1):
    if number == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    pieces = [b"x" * (1 << 18) for _ in range({BATCH_BYTES} >> 18)]
    del pieces
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="another C library has other ways")
def test_memory_is_not_asked_for_anew_with_each_batch():
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(ended.stdout) < BATCHES * BATCH_BYTES // 4096 // 10


@pytest.fixture
def few(gateway_settings):
    database = replace(gateway_settings.database, pool_size=6, pool_overflow=2, pool_timeout_s=1)
    return replace(gateway_settings, database=database)


async def needing(database, count):
    """Have as many connections at once, and return the server's numbers of them."""
    async with AsyncExitStack() as stack:
        held = [await stack.enter_async_context(database.autocommit()) for _ in range(count)]
        return {(await conn.exec_driver_sql("SELECT pg_backend_pid()")).scalar_one() for conn in held}


async def at_the_server(database):
    async with database.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = current_setting('application_name')"
        )
        return set(found.scalars())


@pytest.fixture
async def windows(monkeypatch):
    """Have windows end when the test says so; return what ends them, and their timers."""
    loop, ends = asyncio.get_running_loop(), []
    call_later = loop.call_later

    def later(delay, callback, *arguments, **options):
        if delay != pool.WINDOW_S:
            return call_later(delay, callback, *arguments, **options)
        timer = call_later(3600, lambda: None)
        ends.append((partial(callback, *arguments), timer))
        return timer

    monkeypatch.setattr(loop, "call_later", later)
    return ends


def end(windows):
    callback, _ = windows.pop()
    callback()


@pytest.mark.parametrize("role, kept", [("worker", WORKER_KEEPS), ("web", 6)])
async def test_connections_beyond_those_that_are_kept_are_closed_once_they_were_idle_for_a_while(
    few, role, kept, windows
):
    database = open_database(few, role)
    idle = database.engine.pool.checkedin
    try:
        opened = await needing(database, 8)
        assert len(opened) == 8
        assert await needing(database, 8) == opened  # nothing was closed between two bursts
        end(windows)
        assert idle() == 8
        await needing(database, 7)
        end(windows)
        assert idle() == 7
        last = await needing(database, 1)
        end(windows)
        assert idle() == kept
        assert windows == []  # there is nothing to close any more
        # The server hears of it a moment later.
        async with asyncio.timeout(10):
            while len(left := await at_the_server(database)) > kept:  # noqa: ASYNC110  another process ends
                await asyncio.sleep(0.01)
        assert last <= left < opened
        # What was closed can be opened again, and no more; and it is closed though nobody asks for anything any more.
        assert left < await needing(database, 8)
        with pytest.raises(BusyError):
            await needing(database, 9)
        for _ in range(2):
            end(windows)
        assert idle() == kept
        assert windows == []
        await needing(database, 8)
    finally:
        await database.close()
    assert [timer.cancelled() for _, timer in windows] == [True]
